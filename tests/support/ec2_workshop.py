"""What images and instances are changed with, added to the cloud of dictionaries."""

from __future__ import annotations

import json
import uuid
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests_mock

from tests.support.ec2_openstack import OPERATOR
from tests.support.ec2_storage import Storage


class Workshop(Storage):
    """Glance's changes, members and uploads; Nova's console, password, snapshot and resize.

    Attributes:
        members: by image id, status by project.
        console: what consoles say, None while there is none.
        password: what the guest encrypted.
        fail_resize: status with which Nova refuses a resize.
        may_publish: projects that Glance lets publish images.
    """

    def __init__(self, mock: requests_mock.Mocker) -> None:
        self.members: dict[str, dict[str, str]] = {}
        self.console: str | None = "login: é\n"
        self.password = ""
        self.fail_resize: int | None = None
        self.may_publish = {OPERATOR}
        super().__init__(mock)

    # -- Glance ---------------------------------------------------------------

    def _sees(self, image: dict[str, Any]) -> bool:
        shared = self.members.get(image["id"], {}).get(self.project)
        return self.admin or shared == "accepted" or super()._sees(image)

    def _glance(self, request: Any, response: Any, path: str) -> Any:
        steps = path.split("/")
        if path == "images" and request.method == "POST":
            made = self.image(self.project, status="queued", **request.json())
            response.status_code = 201
            return made
        if path == "images":
            query = parse_qs(urlsplit(request.url).query)
            rows = super()._glance(request, response, path)["images"]
            if "ec2_id" in query:
                rows = [row for row in rows if row.get("ec2_id") == query["ec2_id"][0]]
            return {"images": rows}
        image = self.images.get(steps[1])
        if image is None or not self._sees(image):
            return self._missing(response)
        if steps[-1] == "file":
            image["status"] = "active"
            response.status_code = 204
            return None
        if "members" in steps:
            return self._members(request, response, image, steps)
        if request.method == "PATCH":
            return self._patch(request, response, image)
        if request.method == "DELETE":
            del self.images[steps[1]]
            response.status_code = 204
            return None
        return super()._glance(request, response, path)

    def _patch(self, request: Any, response: Any, image: dict[str, Any]) -> Any:
        for change in request.json():
            name = change["path"].removeprefix("/")
            if change["value"] == "public" and self.project not in self.may_publish:
                return self.refused(response, 403, "You are not authorized to publicize_image")
            image[name] = change["value"]
        return image

    def _members(self, request: Any, response: Any, image: dict[str, Any], steps: list[str]) -> Any:
        if image["visibility"] != "shared":
            return self.refused(response, 403, "Only shared images have members.")
        mine = self.members.setdefault(image["id"], {})
        if request.method == "GET":
            rows = [{"member_id": name, "status": status} for name, status in mine.items()]
            return {"members": rows}
        if request.method == "POST":
            name = request.json()["member"]
            if name in mine:
                return self.refused(response, 409, "already a member")
            mine[name] = "pending"
            return {"member_id": name}
        if request.method == "PUT":
            if not self.admin and self.project != steps[3]:
                return self.refused(response, 403, "not yours")
            mine[steps[3]] = request.json()["status"]
            return {"member_id": steps[3]}
        response.status_code = 204
        del mine[steps[3]]
        return None

    # -- Nova -----------------------------------------------------------------

    def _nova(self, request: Any, response: Any, path: str) -> Any:
        steps = path.split("/")
        if path.endswith("/os-server-password"):
            return {"password": self.password}
        if path == "os-availability-zone/detail":
            if not self.admin:
                return self.refused(response, 403, "Policy doesn't allow it")
            service = {"available": True, "active": True, "updated_at": "2026-01-01T00:00:00"}
            row = {
                "zoneName": "nova",
                "zoneState": {"available": True},
                "hosts": {"host-1": {"nova-compute": service}},
            }
            return {"availabilityZoneInfo": [row]}
        if path.endswith("/action") and steps[1] in self.servers:
            answer = self._own_action(response, self.servers[steps[1]], request.json())
            if answer is not None or response.status_code != 200:
                return answer
        if "/os-volume_attachments/" in path and request.method == "PUT":
            body = request.json()["volumeAttachment"]
            for row in self.servers[steps[1]]["os-extended-volumes:volumes_attached"]:
                if row["id"] == steps[3]:
                    row["delete_on_termination"] = body["delete_on_termination"]
            response.status_code = 202
            return None
        return super()._nova(request, response, path)

    def _own_action(self, response: Any, server: dict[str, Any], body: dict[str, Any]) -> Any:
        if "os-getConsoleOutput" in body:
            if self.console is None:
                return self.refused(response, 409, "Instance not ready")
            return {"output": self.console}
        if "createImage" in body:
            return {"image_id": self._image_of(server, body["createImage"])}
        if "resize" in body:
            if self.fail_resize:
                return self.refused(response, self.fail_resize, "No, host-1")
            names = {row["id"]: row["name"] for row in self.flavors}
            server["flavor"] = {"original_name": names[body["resize"]["flavorRef"]], "vcpus": 1}
            server["OS-EXT-STS:vm_state"] = "resized"
            server["OS-EXT-STS:power_state"] = 4
            response.status_code = 202
        if "confirmResize" in body:
            server["OS-EXT-STS:vm_state"] = "stopped"
            response.status_code = 204
        return None

    def _image_of(self, server: dict[str, Any], body: dict[str, Any]) -> str:
        """What Nova makes of a server that boots from a volume."""
        devices = []
        for row in server["os-extended-volumes:volumes_attached"]:
            volume = self.volumes[row["id"]]
            snapshot = self.snapshot(volume, name=f"snapshot for {body['name']}")
            device = volume["attachments"][0]["device"]
            devices.append(
                {
                    "device_name": device,
                    "source_type": "snapshot",
                    "destination_type": "volume",
                    "snapshot_id": snapshot["id"],
                    "volume_size": volume["size"],
                    "delete_on_termination": row["delete_on_termination"],
                    "boot_index": 0 if device == "/dev/vda" else None,
                }
            )
        made = self.image(
            self.project,
            name=body["name"],
            id=str(uuid.uuid4()),
            size=0,
            root_device_name="/dev/vda",
            bdm_v2="True",
            block_device_mapping=json.dumps(devices),
            **body["metadata"],
        )
        return str(made["id"])

    def _neutron(self, request: Any, response: Any, path: str) -> Any:
        if path.startswith("quotas/"):
            return {"quota": {"floatingip": {"limit": 50}, "security_group": {"limit": 10}}}
        return super()._neutron(request, response, path)
