"""An OpenStack of dictionaries behind requests_mock, and the context of an EC2 action on it."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import requests_mock

from tests.support import keystone
from trimaran.cloud import Cloud
from trimaran.config import ec2 as ec2_config
from trimaran.db import Database
from trimaran.db.models.base import Base
from trimaran.db.models.ec2 import ClientTokenRow, DefaultVpcRow, ItemRow, TagRow
from trimaran.db.models.work import Job, Lease
from trimaran.ec2.context import Context
from trimaran.ec2.on_behalf import Deputies
from trimaran.ec2.protocol.errors import to_ec2
from trimaran.errors import TrimaranError

NOVA, NEUTRON = "http://nova.test/v2.1", "http://neutron.test/v2.0"
GLANCE, CINDER = "http://glance.test/v2", "http://cinder.test/v3/project"
MINE, THEIRS, OPERATOR = "p1", "p2", "operator"
TOKENS = {"user-token": MINE, "their-token": THEIRS, "minted-token": MINE}
#: The access key that the requests of callers are signed with.
ACCESS = "AKIATEST"


def database(directory: Path) -> Database:
    """A fresh SQLite database with the EC2 tables."""
    made = Database(f"sqlite:///{directory}/ec2.sqlite", pool_size=4)
    rows = (ItemRow, TagRow, ClientTokenRow, DefaultVpcRow, Job, Lease)
    tables = [Base.metadata.tables[row.__tablename__] for row in rows]
    Base.metadata.create_all(made.engine, tables=tables)
    return made


class OpenStack:
    """Nova, Neutron, Glance and Cinder for two projects.

    Attributes:
        servers: Nova's servers by id; change them behind the facade's back.
        page: servers in one part of Nova's listing, None for all.
        fail: request paths (regular expression → status) that fail.
        refuse: called with the body of each create; raises or returns a status to refuse.
        blind: the administrator's listing leaves out these server ids (a cell is down).
        filters: Nova honours the project filter of its listing.
        creates: bodies of the servers that were created.
        types: Cinder's volume types.
        refusal: Nova's words to a server that it does not make.
    """

    types: Sequence[dict[str, Any]] = ({"id": "t0", "name": "fast", "extra_specs": {}},)
    refusal = "No, and why: internal.host"

    def __init__(self, mock: requests_mock.Mocker) -> None:
        self.keystone = keystone.Keystone(mock)
        self.servers: dict[str, dict[str, Any]] = {}
        self.images: dict[str, dict[str, Any]] = {}
        self.volumes: dict[str, dict[str, Any]] = {}
        self.groups = [
            {"id": str(uuid.uuid4()), "name": "default", "project_id": MINE},
            {"id": str(uuid.uuid4()), "name": "web", "project_id": MINE},
            {"id": str(uuid.uuid4()), "name": "default", "project_id": THEIRS},
        ]
        self.networks = [
            self.network("private", MINE),
            self.network("subnet-00000001", MINE),
            self.network("shared", OPERATOR, shared=True),
        ]
        self.flavors = [self.flavor("m1.small", 2048, 20), self.flavor("m1.tiny", 512, 1)]
        self.zones = ["nova", "internal"]
        self.keys = {"mykey"}
        self.limits = {"maxTotalInstances": -1, "totalInstancesUsed": 0}
        self.page: int | None = None
        self.fail: dict[str, int] = {}
        self.refuse: Callable[[dict[str, Any]], int | None] = lambda body: None
        self.before: Callable[[str, str], None] = lambda method, path: None
        self.blind: set[str] = set()
        self.lost_answers = False
        self.filters = True
        self.creates: list[dict[str, Any]] = []
        self.actions: list[tuple[str, dict[str, Any]]] = []
        self.seen: list[tuple[str, str]] = []
        for base in (NOVA, NEUTRON, GLANCE, CINDER):
            mock.register_uri(
                requests_mock.ANY, re.compile(re.escape(base) + "/.*"), json=self._answer
            )

    # -- things ---------------------------------------------------------------

    @staticmethod
    def network(name: str, project: str, *, shared: bool = False) -> dict[str, Any]:
        return {"id": str(uuid.uuid4()), "name": name, "project_id": project, "shared": shared}

    @staticmethod
    def flavor(name: str, ram: int, disk: int) -> dict[str, Any]:
        return {"id": str(uuid.uuid4()), "name": name, "ram": ram, "disk": disk, "vcpus": 1}

    def server(self, project: str = MINE, **fields: Any) -> dict[str, Any]:
        """Puts a running server into Nova, as another client would."""
        server_id = fields.pop("id", None) or str(uuid.uuid4())
        made = {
            "id": server_id,
            "name": f"name-{server_id[:8]}",
            "tenant_id": project,
            "status": "ACTIVE",
            "created": "2026-01-02T03:04:05Z",
            "metadata": {},
            "image": {"id": next(iter(self.images), str(uuid.uuid4()))},
            "flavor": {"original_name": "m1.small", "vcpus": 2},
            "key_name": None,
            "addresses": {
                "private": [
                    {"addr": "10.0.0.5", "version": 4, "OS-EXT-IPS:type": "fixed"},
                    {"addr": "172.24.4.7", "version": 4, "OS-EXT-IPS:type": "floating"},
                ]
            },
            "security_groups": [{"name": "default"}],
            "host_status": "UP",
            "OS-EXT-AZ:availability_zone": "nova",
            "OS-EXT-STS:vm_state": "active",
            "OS-EXT-STS:task_state": None,
            "OS-SRV-USG:launched_at": "2026-01-02T03:04:09.000000",
            "OS-EXT-SRV-ATTR:reservation_id": "r-" + server_id[:8],
            "OS-EXT-SRV-ATTR:launch_index": 0,
            "OS-EXT-SRV-ATTR:root_device_name": "/dev/vda",
            "OS-EXT-SRV-ATTR:hostname": f"name-{server_id[:8]}",
            "OS-EXT-SRV-ATTR:kernel_id": "",
            "OS-EXT-SRV-ATTR:ramdisk_id": "",
            "os-extended-volumes:volumes_attached": [],
        } | fields
        self.servers[server_id] = made
        return made

    def image(self, owner: str = OPERATOR, **fields: Any) -> dict[str, Any]:
        """Puts an active image into Glance."""
        image_id = fields.pop("id", None) or str(uuid.uuid4())
        made = {
            "id": image_id,
            "name": "cirros",
            "status": "active",
            "visibility": "public" if owner == OPERATOR else "private",
            "owner": owner,
            "container_format": "bare",
            "disk_format": "qcow2",
            "created_at": "2026-01-01T00:00:00Z",
            "os_hidden": False,
            "size": 1 << 20,
            "min_disk": 0,
        } | fields
        self.images[image_id] = made
        return made

    def volume(self, server: dict[str, Any], device: str, **fields: Any) -> dict[str, Any]:
        """Puts a volume into Cinder that is attached to a server."""
        volume_id = str(uuid.uuid4())
        made = {
            "id": volume_id,
            "status": "in-use",
            "os-vol-tenant-attr:tenant_id": server["tenant_id"],
            "attachments": [
                {
                    "server_id": server["id"],
                    "device": device,
                    "attached_at": "2026-01-02T03:04:08.000000",
                }
            ],
        } | fields
        self.volumes[volume_id] = made
        attached = server["os-extended-volumes:volumes_attached"]
        attached.append({"id": volume_id, "delete_on_termination": True})
        return made

    def calls(self, service: str = "") -> list[tuple[str, str]]:
        """(method, path) of the requests so far, of one base URL or of all."""
        return [call for call in self.seen if call[1].startswith(service)]

    # -- answers --------------------------------------------------------------

    def _answer(self, request: Any, response: Any) -> Any:
        token = request.headers["X-Auth-Token"]
        self.project = TOKENS.get(token, "service")
        self.admin = token in self.keystone.valid
        path = request.url.split("?")[0]
        self.seen.append((request.method, path))
        self.before(request.method, path)
        for pattern, status in self.fail.items():
            if re.search(pattern, request.url):
                response.status_code = status
                return {"error": {"message": "broken"}}
        for base, name in ((NOVA, "nova"), (NEUTRON, "neutron"), (GLANCE, "glance")):
            if path.startswith(base):
                handler = getattr(self, f"_{name}")
                return handler(request, response, path.removeprefix(base + "/"))
        return self._cinder(request, response, path.removeprefix(CINDER + "/"))

    def _missing(self, response: Any) -> Any:
        response.status_code = 404
        return {"itemNotFound": {"message": "not found"}}

    def _nova(self, request: Any, response: Any, path: str) -> Any:
        if path == "servers/detail":
            return self._list_servers(request, response)
        if path == "servers" and request.method == "POST":
            return self._create_server(request, response)
        if path.startswith("servers/"):
            return self._one_server(request, response, path)
        if path == "flavors/detail":
            return {"flavors": self.flavors}
        if path == "os-availability-zone":
            rows = [{"zoneName": z, "zoneState": {"available": True}} for z in self.zones]
            return {"availabilityZoneInfo": rows}
        if path == "limits":
            return {"limits": {"absolute": self.limits, "rate": []}}
        if path.startswith("os-keypairs/") and path.split("/")[1] in self.keys:
            return {"keypair": {"name": path.split("/")[1]}}
        return self._missing(response)

    def _list_servers(self, request: Any, response: Any) -> Any:
        query = {name: values[-1] for name, values in request.qs.items()}
        project = self.project
        rows = list(self.servers.values())
        if query.get("all_tenants") in ("true", "1"):
            if not self.admin:
                response.status_code = 403
                return {"forbidden": {"message": "Policy doesn't allow it"}}
            project = query.get("project_id", "")
            rows = [row for row in rows if row["id"] not in self.blind]
        if self.filters:
            rows = [row for row in rows if not project or row["tenant_id"] == project]
        if "name" in query:
            rows = [row for row in rows if re.search(query["name"], row["name"])]
        start = 0
        if "marker" in query:
            start = [row["id"] for row in rows].index(query["marker"]) + 1
        part = rows[start : start + self.page] if self.page else rows[start:]
        answer: dict[str, Any] = {"servers": part}
        if start + len(part) < len(rows):
            wanted = "&".join(
                f"{name}={value}" for name, value in query.items() if name != "marker"
            )
            link = f"{NOVA}/servers/detail?{wanted}&marker={part[-1]['id']}"
            answer["servers_links"] = [{"rel": "next", "href": link}]
        return answer

    def _create_server(self, request: Any, response: Any) -> Any:
        body = request.json()["server"]
        status = self.refuse(body)
        if status:
            response.status_code = status
            words = "Quota exceeded for instances" if status == 403 else self.refusal
            return {"refused": {"message": words}}
        self.creates.append(body)
        flavor = next(row for row in self.flavors if row["id"] == body["flavorRef"])
        server = self.server(
            self.project,
            name=body["name"],
            metadata=body.get("metadata", {}),
            image={"id": body["imageRef"]} if body.get("imageRef") else "",
            flavor={"original_name": flavor["name"], "vcpus": 1},
            key_name=body.get("key_name"),
        )
        if self.lost_answers:
            response.status_code = 500
            return {"computeFault": {"message": "lost"}}
        response.status_code = 202
        return {"server": {"id": server["id"]}}

    def _one_server(self, request: Any, response: Any, path: str) -> Any:
        server_id = path.split("/")[1]
        server = self.servers.get(server_id)
        if server is None or not (self.admin or server["tenant_id"] == self.project):
            return self._missing(response)
        if request.method == "DELETE":
            del self.servers[server_id]
            response.status_code = 204
            return None
        if path.endswith("/action"):
            self.actions.append((server_id, request.json()))
            response.status_code = 202
            return None
        return {"server": server}

    def _neutron(self, request: Any, response: Any, path: str) -> Any:
        if path == "networks":
            mine = [n for n in self.networks if n["shared"] or n["project_id"] == self.project]
            return {"networks": mine}
        if path == "security-groups":
            wanted = request.qs.get("project_id", [""])[-1]
            return {"security_groups": [g for g in self.groups if g["project_id"] == wanted]}
        return self._missing(response)

    def _sees(self, image: dict[str, Any]) -> bool:
        return image["owner"] == self.project or image["visibility"] in ("public", "community")

    def _glance(self, request: Any, response: Any, path: str) -> Any:
        rows = [row for row in self.images.values() if self._sees(row)]
        if path == "images":
            query = {name: values[-1] for name, values in request.qs.items()}
            hidden = query.get("os_hidden") == "true"
            rows = [row for row in rows if row["os_hidden"] == hidden]
            if "owner" in query:
                rows = [row for row in rows if row["owner"] == query["owner"]]
            if "id" in query:
                wanted = query["id"].removeprefix("in:").split(",")
                rows = [row for row in rows if row["id"] in wanted]
            return {"images": rows}
        found = {row["id"]: row for row in rows}.get(path.split("/")[-1])
        return found if found is not None else self._missing(response)

    def _cinder(self, request: Any, response: Any, path: str) -> Any:
        mine = {
            row["id"]: row
            for row in self.volumes.values()
            if self.admin or row["os-vol-tenant-attr:tenant_id"] == self.project
        }
        if path == "volumes/detail":
            return {"volumes": list(mine.values())}
        if path == "types":
            return {"volume_types": list(self.types)}
        found = mine.get(path.split("/")[-1])
        return {"volume": found} if found is not None else self._missing(response)


class Caller:
    """Makes contexts of one project on a fake or a real cloud.

    Args:
        cloud: ours.
        db: ours.
        token: the caller's.
        directory: where the configuration is written.
        options: text lines of ``[trimaran]``.
    """

    def __init__(
        self, cloud: Cloud, db: Database, token: Any, directory: Path, *options: str
    ) -> None:
        self.cloud, self.db, self.token = cloud, db, token
        path = directory / f"ec2api-{uuid.uuid4().hex[:8]}.conf"
        path.write_text("\n".join(["[DEFAULT]", "ec2_host = 192.0.2.9", "[trimaran]", *options]))
        self.conf = ec2_config.load([str(path)])

    def context(self, action: str = "DescribeInstances", **fields: Any) -> Context:
        nothing: Any = None
        fields.setdefault("access_key", ACCESS)
        fields.setdefault("deputies", Deputies(self.cloud.identity, self.cloud, "RegionOne"))
        return Context(
            token=self.token,
            request_id="req-1",
            action=action,
            region="RegionOne",
            user=self.cloud.as_user(self.token),
            admin=self.cloud.as_service(),
            db=self.db,
            conf=self.conf,
            enforcer=nothing,
            policy_context=nothing,
            **fields,
        )

    def __call__(self, action: Callable[..., Any], /, **request: Any) -> Any:
        """Runs an action with boto3's arguments; ``DryRun`` goes to the context."""
        name = "".join(part.capitalize() for part in action.__name__.split("_"))
        context = self.context(name, dry_run=bool(request.pop("DryRun", False)))
        result = action(context, request)
        context.commit_point()
        return result


def code_of(me: Caller, action: Callable[..., Any], /, **request: Any) -> str:
    """The code with which an action is refused, in our own words."""
    with pytest.raises(TrimaranError) as caught:
        me(action, **request)
    told = to_ec2(caught.value)
    assert "host-1" not in told.message, "OpenStack's words are not for the caller"
    return told.code


def instances_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The instances of a DescribeInstances answer, by id."""
    found = [each for row in answer["Reservations"] for each in row["Instances"]]
    return sorted(found, key=lambda each: str(each["InstanceId"]))
