"""Rows of Nova, Cinder and Neutron for listings of any length, as those services write them.

Every row has an image, volumes, a server and a network of its own, so that joins find as much to
ask for as rows can make them.
"""

from __future__ import annotations

import uuid
from typing import Any
from urllib.parse import parse_qs, urlsplit

from console_gates import Call, Played

Row = dict[str, Any]
MOMENT = "2026-01-02T03:04:05Z"


def _id() -> str:
    return str(uuid.uuid4())


def server(project_id: str, **changes: Any) -> Row:
    """A server of Nova's microversion 2.79."""
    return {
        "id": _id(),
        "name": "played",
        "status": "ACTIVE",
        "tenant_id": project_id,
        "user_id": "u",
        "hostId": "h",
        "image": {"id": _id()},
        "flavor": {
            "original_name": "m1.tiny", "vcpus": 1, "ram": 512, "disk": 1, "ephemeral": 0,
            "swap": 0, "extra_specs": {},
        },
        "addresses": {
            "net": [{"addr": "10.0.0.5", "version": 4, "OS-EXT-IPS:type": "fixed",
                     "OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:00:00:01"}]
        },
        "os-extended-volumes:volumes_attached": [{"id": _id(), "delete_on_termination": False}],
        "OS-EXT-SRV-ATTR:host": "compute-1",
        "OS-EXT-SRV-ATTR:hostname": "played",
        "OS-EXT-SRV-ATTR:root_device_name": "/dev/vda",
        "OS-EXT-STS:task_state": None,
        "OS-EXT-STS:vm_state": "active",
        "OS-EXT-STS:power_state": 1,
        "created": MOMENT,
        "updated": MOMENT,
        "metadata": {},
        "locked": False,
        "tags": [],
        "links": [],
        **changes,
    }  # fmt: skip


def volume(project_id: str) -> Row:
    """An attached volume."""
    ident, server_id = _id(), _id()
    return {
        "id": ident,
        "name": "played",
        "status": "in-use",
        "size": 1,
        "attachments": [
            {"id": ident, "attachment_id": _id(), "volume_id": ident, "server_id": server_id,
             "device": "/dev/vdb", "host_name": None, "attached_at": MOMENT}
        ],
        "os-vol-tenant-attr:tenant_id": project_id,
        "os-vol-host-attr:host": "h@b#p",
        "snapshot_id": None,
        "source_volid": None,
        "volume_type": "sandbox",
        "encrypted": False,
        "bootable": "false",
        "multiattach": False,
        "availability_zone": "nova",
        "created_at": MOMENT,
        "metadata": {},
        "links": [],
    }  # fmt: skip


def snapshot(project_id: str) -> Row:
    """A snapshot of a volume that is its alone."""
    return {
        "id": _id(),
        "name": "played",
        "status": "available",
        "size": 1,
        "volume_id": _id(),
        "created_at": MOMENT,
        "updated_at": MOMENT,
        "description": "",
        "metadata": {},
        "user_id": "u",
        "os-extended-snapshot-attributes:project_id": project_id,
        "os-extended-snapshot-attributes:progress": "100%",
    }


def port(project_id: str, **changes: Any) -> Row:
    """A server's port."""
    return {
        "id": _id(),
        "name": "",
        "status": "ACTIVE",
        "admin_state_up": True,
        "network_id": _id(),
        "device_id": _id(),
        "device_owner": "compute:nova",
        "mac_address": "fa:16:3e:00:00:01",
        "project_id": project_id,
        "tenant_id": project_id,
        "fixed_ips": [
            {"subnet_id": _id(), "ip_address": "10.0.0.5"},
            {"subnet_id": _id(), "ip_address": "fd00::5"},
        ],
        "binding:vnic_type": "normal",
        "port_security_enabled": True,
        "created_at": MOMENT,
        "description": "",
        **changes,
    }


class Rows:
    """Answers listings that name a ``limit`` with as many rows, always the same ones.

    Args:
        project_id: whose they are.
    """

    def __init__(self, project_id: str, most: int = 100) -> None:
        kinds = {
            "/servers/detail": ("servers", server),
            "/volumes/detail": ("volumes", volume),
            "/snapshots/detail": ("snapshots", snapshot),
            "/v2.0/ports": ("ports", port),
        }
        self._rows = {
            end: (name, [make(project_id) for _ in range(most)])
            for end, (name, make) in kinds.items()
        }

        attached = [each["server_id"] for row in self._of("volumes") for each in row["attachments"]]
        devices = [row["device_id"] for row in self._of("ports")]
        self._servers = {each: {**server(project_id), "id": each} for each in (*attached, *devices)}

    def __call__(self, call: Call) -> Played | None:
        """See ``console_gates.Play``."""
        parts = urlsplit(call.path)
        query = parse_qs(parts.query)
        if call.service == "nova":
            found = self._server(parts.path, query)
            if found is not None:
                return Played(found)
        if "limit" not in query or {"id", "uuid", "snapshot_id"} & query.keys():
            return None
        for end, (name, rows) in self._rows.items():
            if parts.path.endswith(end):
                page = rows[: int(query["limit"][0])]
                return Played({name: page, "count": len(page)})
        return None

    def _of(self, name: str) -> list[Row]:
        return next(rows for each, rows in self._rows.values() if each == name)

    def _server(self, path: str, query: dict[str, list[str]]) -> Row | None:
        """Servers that rows name: all of them, one by a filter, or one by its id."""
        if "deleted" in query:
            return None
        if path.endswith("/servers"):
            return {"servers": [{"id": key, "name": row["name"]}
                                for key, row in self._servers.items()]}  # fmt: skip
        wanted = (query.get("uuid") or [path.rpartition("/")[2]])[0]
        if wanted not in self._servers:
            return None
        row = self._servers[wanted]
        return {"servers": [row]} if "uuid" in query else {"server": row}
