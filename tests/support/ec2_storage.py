"""Cinder's and Nova's storage calls, added to the cloud of dictionaries."""

from __future__ import annotations

import re
import uuid
from typing import Any

import requests_mock

from tests.support.ec2_openstack import MINE, OpenStack

TENANT = "os-vol-tenant-attr:tenant_id"
OWNER = "os-extended-snapshot-attributes:project_id"


class Storage(OpenStack):
    """Volumes, snapshots, volume types and key pairs.

    Attributes:
        snapshots: Cinder's snapshots by id.
        types: volume types; those in ``secret`` encrypt.
        pairs: Nova's key pairs of the one user by name.
        quiet: requests (regular expression on "METHOD url") that are done but answered 503.
        fail_attach, fail_detach: status and words with which Nova refuses.
        bodies: (method, URL, JSON) of the requests that had a body.
    """

    def __init__(self, mock: requests_mock.Mocker) -> None:
        self.snapshots: dict[str, dict[str, Any]] = {}
        self.types = [
            {"id": "t1", "name": "plain", "extra_specs": {}},
            {"id": "t2", "name": "safe", "extra_specs": {}},
            {"id": "t3", "name": "shared", "extra_specs": {"multiattach": "<is> True"}},
        ]
        self.secret = {"t2"}
        self.pairs: dict[str, dict[str, Any]] = {}
        self.quiet: list[str] = []
        self.fail_attach: tuple[int, str] | None = None
        self.fail_detach: tuple[int, str] | None = None
        self.bodies: list[tuple[str, str, Any]] = []
        super().__init__(mock)

    def free_volume(self, project: str = MINE, **fields: Any) -> dict[str, Any]:
        """Puts a volume into Cinder that nothing has."""
        made = {
            "id": str(uuid.uuid4()),
            "name": "by hand",
            "status": "available",
            "size": 1,
            "availability_zone": "nova",
            "created_at": "2026-01-02T03:04:05.000000",
            "volume_type": "plain",
            "snapshot_id": None,
            "encrypted": False,
            "multiattach": False,
            "attachments": [],
            TENANT: project,
        } | fields
        self.volumes[made["id"]] = made
        return made

    def snapshot(self, volume: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """Puts a snapshot of a volume into Cinder."""
        made = {
            "id": str(uuid.uuid4()),
            "name": "by hand",
            "description": None,
            "status": "available",
            "size": volume["size"],
            "created_at": "2026-01-02T03:05:05.000000",
            "volume_id": volume["id"],
            OWNER: volume[TENANT],
            "os-extended-snapshot-attributes:progress": "100%",
        } | fields
        self.snapshots[made["id"]] = made
        return made

    def attach(self, volume: dict[str, Any], server: dict[str, Any], device: str) -> None:
        """Attaches a volume, as Nova does it in the end."""
        volume["status"] = "in-use"
        volume["attachments"].append(
            {
                "id": volume["id"],
                "attachment_id": str(uuid.uuid4()),
                "server_id": server["id"],
                "device": device,
                "attached_at": "2026-01-02T03:04:08.000000",
            }
        )
        listed = server["os-extended-volumes:volumes_attached"]
        if volume["id"] not in [row["id"] for row in listed]:
            listed.append({"id": volume["id"], "delete_on_termination": False})

    def detach(self, volume: dict[str, Any]) -> None:
        """Takes all attachments away."""
        for server in self.servers.values():
            listed = server["os-extended-volumes:volumes_attached"]
            listed[:] = [row for row in listed if row["id"] != volume["id"]]
        volume["attachments"].clear()
        volume["status"] = "available"

    def _answer(self, request: Any, response: Any) -> Any:
        if request.body and not request.url.endswith("/file"):
            self.bodies.append((request.method, request.url, request.json()))
        answer = super()._answer(request, response)
        if any(re.search(quiet, f"{request.method} {request.url}") for quiet in self.quiet):
            response.status_code = 503
            return {"error": {"message": "lost"}}
        return answer

    def refused(self, response: Any, status: int, words: str) -> Any:
        response.status_code = status
        return {"refused": {"message": words}}

    # -- Cinder ---------------------------------------------------------------

    def _cinder(self, request: Any, response: Any, path: str) -> Any:
        steps = path.split("/")
        if steps[0] == "types":
            return self._types(response, steps)
        if path == "os-availability-zone":
            rows = [{"zoneName": zone, "zoneState": {"available": True}} for zone in self.zones]
            return {"availabilityZoneInfo": rows}
        if steps[0] == "snapshots":
            return self._snapshots(request, response, steps)
        if path == "volumes" and request.method == "POST":
            return self._make_volume(request, response)
        if steps[-1] == "action":
            return self._change_volume(response, self.volumes[steps[1]], request.json())
        if request.method == "DELETE":
            return self._delete_volume(response, steps[1])
        answer = super()._cinder(request, response, path)
        if path == "volumes/detail" and "name" in request.qs:
            [name] = request.qs["name"]
            answer = {"volumes": [row for row in answer["volumes"] if row["name"] == name]}
        return answer

    def _types(self, response: Any, steps: list[str]) -> Any:
        if len(steps) == 1:
            return {"volume_types": self.types}
        if steps[1] == "default":
            return {"volume_type": self.types[0]}
        if not self.admin:
            return self.refused(response, 403, "Policy doesn't allow it")
        return {"provider": "luks"} if steps[1] in self.secret else {}

    def _make_volume(self, request: Any, response: Any) -> Any:
        body = request.json()["volume"]
        status = self.refuse(body)
        if status:
            words = "VolumeLimitExceeded: quota" if status == 413 else "Invalid volume_type, host-1"
            return self.refused(response, status, words)
        kind = body.get("volume_type") or "plain"
        made = self.free_volume(
            self.project,
            name=body["name"],
            status="creating",
            size=body["size"],
            availability_zone=body.get("availability_zone", "nova"),
            volume_type=kind,
            snapshot_id=body.get("snapshot_id"),
            encrypted=kind == "safe",
            multiattach=kind == "shared",
        )
        response.status_code = 202
        return {"volume": made}

    def _change_volume(self, response: Any, volume: dict[str, Any], body: dict[str, Any]) -> Any:
        response.status_code = 202
        if "os-extend" in body:
            volume["status"], volume["size"] = "extending", body["os-extend"]["new_size"]
        else:
            volume["status"] = "retyping"
            volume["volume_type"] = body["os-retype"]["new_type"]
        return None

    def _delete_volume(self, response: Any, volume_id: str) -> Any:
        if volume_id not in self.volumes:
            return self._missing(response)
        if any(row["volume_id"] == volume_id for row in self.snapshots.values()):
            return self.refused(response, 400, "Invalid volume: must not have snapshots, host-1")
        self.volumes[volume_id]["status"] = "deleting"
        response.status_code = 202
        return None

    def _snapshots(self, request: Any, response: Any, steps: list[str]) -> Any:
        mine = {
            row["id"]: row
            for row in self.snapshots.values()
            if self.admin or row[OWNER] == self.project
        }
        if steps[-1] == "detail":
            rows = list(mine.values())
            for name in ("name", "volume_id"):
                if name in request.qs:
                    rows = [row for row in rows if row[name] == request.qs[name][0]]
            return {"snapshots": rows}
        if request.method == "POST":
            body = request.json()["snapshot"]
            volume = self.volumes[body["volume_id"]]
            fields = {name: body[name] for name in ("name", "description")}
            made = self.snapshot(volume, status="creating", **fields)
            made["os-extended-snapshot-attributes:progress"] = "0%"
            response.status_code = 202
            return {"snapshot": made}
        found = mine.get(steps[1])
        if found is None:
            return self._missing(response)
        if request.method == "DELETE":
            found["status"] = "deleting"
            response.status_code = 202
            return None
        return {"snapshot": found}

    # -- Nova -----------------------------------------------------------------

    def _nova(self, request: Any, response: Any, path: str) -> Any:
        if path.startswith("os-keypairs"):
            return self._keypairs(request, response, path)
        if "/os-volume_attachments" in path:
            return self._attachments(request, response, path.split("/"))
        return super()._nova(request, response, path)

    def _attachments(self, request: Any, response: Any, steps: list[str]) -> Any:
        server = self.servers[steps[1]]
        if request.method == "DELETE":
            volume = self.volumes[steps[3]]
            if self.fail_detach:
                return self.refused(response, *self.fail_detach)
            volume["status"] = "detaching"
            response.status_code = 202
            return None
        body = request.json()["volumeAttachment"]
        if self.fail_attach:
            return self.refused(response, *self.fail_attach)
        volume = self.volumes[body["volumeId"]]
        volume["status"] = "reserved"
        row = {"id": volume["id"], "delete_on_termination": False}
        server["os-extended-volumes:volumes_attached"].append(row)
        return {"volumeAttachment": {**body, "id": volume["id"], "delete_on_termination": False}}

    def _keypairs(self, request: Any, response: Any, path: str) -> Any:
        if path == "os-keypairs" and request.method == "POST":
            body = request.json()["keypair"]
            if not re.fullmatch(r"[-_@. a-zA-Z0-9]+", body["name"]):
                return self.refused(response, 400, "Invalid input for field/attribute name")
            if body["name"] in self.pairs:
                return self.refused(response, 409, "Key pair already exists.")
            made = {**body, "fingerprint": f"aa:{len(body['public_key'])}", "type": "ssh"}
            self.pairs[body["name"]] = made
            response.status_code = 201
            return {"keypair": made}
        if path == "os-keypairs":
            return {"keypairs": [{"keypair": row} for row in self.pairs.values()]}
        name = path.split("/")[1]
        if name not in self.pairs:
            return self._missing(response)
        if request.method == "DELETE":
            del self.pairs[name]
            response.status_code = 202
            return None
        return {"keypair": {**self.pairs[name], "created_at": "2026-01-02T03:04:05.000000"}}
