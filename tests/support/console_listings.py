"""Nova, Cinder, Glance and Neutron played for the console's listings.

Rows are as those services send them; each question is kept, so that a test
can say what was asked and how often.
"""

from __future__ import annotations

import ast
import itertools
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests
import requests_mock

NOVA = "http://nova.test/v2.1"
CINDER = "http://cinder.test/v3/project"
GLANCE = "http://glance.test/v2"
NEUTRON = "http://neutron.test/v2.0"


def server(server_id: str, **changes: Any) -> dict[str, Any]:
    """A server of p1 as Nova sends it to an administrator."""
    row = {
        "id": server_id,
        "name": f"name-{server_id}",
        "status": "ACTIVE",
        "tenant_id": "p1",
        "user_id": "u1",
        "created": "2026-01-01T00:00:00Z",
        "updated": "2026-01-02T00:00:00Z",
        "image": {"id": "i1"},
        "flavor": {
            "vcpus": 1,
            "ram": 512,
            "disk": 1,
            "ephemeral": 0,
            "swap": 0,
            "original_name": "m1.tiny",
            "extra_specs": {},
        },
        "addresses": {
            "private": [
                {"addr": "10.0.0.5", "OS-EXT-IPS:type": "fixed"},
                {"addr": "172.24.4.9", "OS-EXT-IPS:type": "floating"},
            ]
        },
        "metadata": {},
        "locked": False,
        "OS-EXT-STS:task_state": None,
        "OS-EXT-STS:vm_state": "active",
        "OS-EXT-STS:power_state": 1,
        "OS-EXT-SRV-ATTR:host": "host-1",
        "OS-EXT-SRV-ATTR:hostname": server_id,
        "OS-EXT-SRV-ATTR:root_device_name": "/dev/vda",
        "os-extended-volumes:volumes_attached": [],
        "unknown-member": "dropped",
    }
    return {**row, **changes}


def volume(volume_id: str, *servers: str, **changes: Any) -> dict[str, Any]:
    """A volume of p1, attached to servers."""
    row = {
        "id": volume_id,
        "name": f"name-{volume_id}",
        "status": "in-use" if servers else "available",
        "size": 1,
        "multiattach": False,
        "bootable": "false",
        "encrypted": False,
        "os-vol-tenant-attr:tenant_id": "p1",
        "os-vol-host-attr:host": "host@pool",
        "attachments": [
            {"id": volume_id, "server_id": each, "device": "/dev/vdb", "attachment_id": "a1"}
            for each in servers
        ],
        "snapshot_id": None,
    }
    return {**row, **changes}


def snapshot(snapshot_id: str, volume_id: str, **changes: Any) -> dict[str, Any]:
    """A snapshot of p1."""
    row = {
        "id": snapshot_id,
        "name": f"name-{snapshot_id}",
        "status": "available",
        "size": 1,
        "volume_id": volume_id,
        "metadata": {},
        "os-extended-snapshot-attributes:project_id": "p1",
    }
    return {**row, **changes}


def port(port_id: str, network_id: str = "n1", device_id: str = "", **changes: Any) -> Any:
    """A port of p1."""
    row = {
        "id": port_id,
        "name": f"name-{port_id}",
        "network_id": network_id,
        "device_id": device_id,
        "device_owner": "compute:nova" if device_id else "",
        "project_id": "p1",
        "status": "ACTIVE",
        "admin_state_up": True,
        "mac_address": "fa:16:3e:00:00:01",
        "fixed_ips": [{"ip_address": "10.0.0.5"}, {"ip_address": "2001:db8::5"}],
        "binding:vnic_type": "normal",
    }
    return {**row, **changes}


class Services:
    """The four services.

    Args:
        mock: the adapter; play Keystone on it first.

    Attributes:
        asked: (service, path, query, token) of the questions in order.
        refuse: path to (status, message): what that listing answers instead.
    """

    def __init__(self, mock: requests_mock.Mocker) -> None:
        self.servers: list[dict[str, Any]] = []
        self.volumes: list[dict[str, Any]] = []
        self.snapshots: list[dict[str, Any]] = []
        self.ports: list[dict[str, Any]] = []
        self.networks: list[dict[str, Any]] = []
        self.images: list[dict[str, Any]] = []
        self.services: list[dict[str, Any]] = []
        self.nova_page = 1000
        self.asked: list[tuple[str, str, dict[str, list[str]], str]] = []
        self.headers: list[dict[str, str]] = []
        self.refuse: dict[str, tuple[int, str]] = {}
        self.down: set[str] = set()
        for base, answer in (
            (NOVA, self._nova),
            (CINDER, self._cinder),
            (GLANCE, self._glance),
            (NEUTRON, self._neutron),
        ):
            pattern = re.compile(rf"^{re.escape(base)}/(?!extensions)")
            mock.register_uri("GET", pattern, json=self._recorded(base, answer))

    def calls(self, path: str) -> list[dict[str, list[str]]]:
        """The queries of the questions to a path."""
        return [query for _, seen, query, _ in self.asked if seen == path]

    def tokens(self, path: str) -> list[str]:
        """The tokens of the questions to a path."""
        return [token for _, seen, _, token in self.asked if seen == path]

    def _recorded(self, base: str, answer: Any) -> Any:
        service = urlsplit(base).netloc.split(".")[0]

        def answering(request: Any, context: Any) -> Any:
            # request.qs is lower case, which ids need not be.
            query = parse_qs(urlsplit(request.url).query, keep_blank_values=True)
            path = request.url.split("?")[0].removeprefix(f"{base}/")
            self.asked.append((service, path, query, request.headers["X-Auth-Token"]))
            self.headers.append(dict(request.headers))
            if service in self.down:
                raise requests.ConnectionError("refused")
            if path in self.refuse:
                context.status_code, message = self.refuse[path]
                return {"badRequest": {"code": context.status_code, "message": message}}
            return answer(path, query, request.headers["X-Auth-Token"] == "service", context)

        return answering

    def _nova(self, path: str, query: dict[str, list[str]], system: bool, context: Any) -> Any:
        if path == "os-services":
            return {"services": self.services}
        rows = self.servers
        if not path.startswith("servers/") or path == "servers/detail":
            recycled = query.get("deleted") == ["True"]
            rows = [row for row in rows if (row["status"] == "SOFT_DELETED") is recycled]
            if system and "uuid" in query:
                rows = [row for row in rows if row["id"] == query["uuid"][0]]
            if "project_id" in query:
                rows = [row for row in rows if row["tenant_id"] == query["project_id"][0]]
            if "all_tenants" not in query:
                rows = [row for row in rows if row["tenant_id"] == "p1"]
            if "marker" in query and query["marker"][0] not in [row["id"] for row in rows]:
                context.status_code = 400
                return {"badRequest": {"message": f"marker [{query['marker'][0]}] not found"}}
            return self._page(f"{NOVA}/{path}", "servers", rows, query, self.nova_page)
        for row in rows:
            if row["id"] == path.removeprefix("servers/"):
                return {"server": row}
        context.status_code = 404
        return {"itemNotFound": {"message": "Instance could not be found."}}

    def _cinder(self, path: str, query: dict[str, list[str]], system: bool, context: Any) -> Any:
        kind, _, tail = path.partition("/")
        rows: list[dict[str, Any]] = getattr(self, kind)
        if tail != "detail":
            for row in rows:
                if row["id"] == tail:
                    return {kind[:-1]: row}
            context.status_code = 404
            return {"itemNotFound": {"message": "Not found."}}
        if "multiattach" in query and not system:
            context.status_code = 400
            return {"badRequest": {"message": "Invalid filters multiattach are found."}}
        for name in ("id", "snapshot_id"):
            if name in query:
                text = query[name][0]
                wanted = ast.literal_eval(text) if text.startswith("[") else [text]
                rows = [row for row in rows if row.get(name) in wanted]
        if "marker" in query and query["marker"][0] not in [row["id"] for row in rows]:
            context.status_code = 404
            return {"itemNotFound": {"message": f"{query['marker'][0]} could not be found."}}
        body = self._page(f"{CINDER}/{path}", kind, rows, query, 1000)
        if "with_count" in query:
            body["count"] = len(rows)
        return body

    def _glance(self, path: str, query: dict[str, list[str]], system: bool, context: Any) -> Any:
        wanted = query["id"][0].removeprefix("in:").split(",")
        return {"images": [row for row in self.images if row["id"] in wanted]}

    def _neutron(self, path: str, query: dict[str, list[str]], system: bool, context: Any) -> Any:
        rows: list[dict[str, Any]] = getattr(self, path)
        for name in ("id", "name", "network_id", "project_id", "device_owner"):
            if name in query:
                rows = [row for row in rows if row.get(name) in query[name]]
        if "marker" in query and query["marker"][0] not in [row["id"] for row in rows]:
            context.status_code = 404
            message = f"Port {query['marker'][0]} could not be found."
            return {"NeutronError": {"type": "PortNotFound", "message": message, "detail": ""}}
        return {path: rows[: int(query["limit"][0])] if "limit" in query else rows}

    def _page(
        self, url: str, name: str, rows: list[Any], query: dict[str, list[str]], most: int
    ) -> Any:
        ids = [row["id"] for row in rows]
        start = ids.index(query["marker"][0]) + 1 if "marker" in query else 0
        size = min(most, int(query["limit"][0]) if "limit" in query else most)
        part = list(itertools.islice(rows, start, start + size))
        body: dict[str, Any] = {name: part}
        if start + size < len(rows):
            href = f"{url}?marker={part[-1]['id']}"
            body[f"{name}_links"] = [{"rel": "next", "href": href}]
        return body
