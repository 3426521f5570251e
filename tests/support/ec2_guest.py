"""What the metadata service asks of Nova and Neutron, on the OpenStack of dictionaries."""

from __future__ import annotations

import uuid
from typing import Any

from tests.support.ec2_openstack import MINE, NEUTRON, NOVA, OpenStack

SUBNET = "5ab0e700-0000-4000-8000-000000000001"


class GuestCloud(OpenStack):
    """Nova and Neutron with what belongs to one server.

    Attributes:
        ports: Neutron's ports.
        floating: Neutron's floating addresses.
        subnets: Neutron's subnets.
        keypairs: texts of public keys by (user, name).
        devices: Nova's attachments by server.
    """

    def __init__(self, mock: Any) -> None:
        super().__init__(mock)
        self.ports: list[dict[str, Any]] = []
        self.floating: list[dict[str, Any]] = []
        self.subnets = [
            {
                "id": SUBNET,
                "cidr": "10.0.0.0/24",
                "ip_version": 4,
                "network_id": "net-1",
                "provider": "provider-1",
            }
        ]
        self.keypairs: dict[tuple[str, str], str] = {}
        self.devices: dict[str, list[dict[str, Any]]] = {}

    def guest(self, project: str = MINE, **fields: Any) -> dict[str, Any]:
        """A running server with a port and a key."""
        server = self.server(project, **{"key_name": "mine", "user_id": "u1", **fields})
        group = next(row for row in self.groups if row["project_id"] == project)
        self.ports.append(
            {
                "id": str(uuid.uuid4()),
                "device_id": server["id"],
                "tenant_id": project,
                "network_id": "net-1",
                "mac_address": "fa:16:3e:00:00:01",
                "fixed_ips": [{"subnet_id": SUBNET, "ip_address": "10.0.0.5"}],
                "security_groups": [group["id"]],
                "created_at": "2026-01-02T03:04:05Z",
            }
        )
        self.keypairs["u1", "mine"] = "ssh-rsa AAAA"
        return server

    def asked(self) -> list[str]:
        """The paths that were asked for since the last call, without their hosts."""
        found = [path.removeprefix(NOVA).removeprefix(NEUTRON) for _, path in self.seen]
        self.seen.clear()
        return found

    def _one_server(self, request: Any, response: Any, path: str) -> Any:
        if path.endswith("/os-volume_attachments"):
            return {"volumeAttachments": self.devices.get(path.split("/")[1], [])}
        return super()._one_server(request, response, path)

    def _nova(self, request: Any, response: Any, path: str) -> Any:
        if path.startswith("os-keypairs/"):
            text = self.keypairs.get((request.qs["user_id"][0], path.split("/")[1]))
            return {"keypair": {"public_key": text}} if text else self._missing(response)
        return super()._nova(request, response, path)

    def _neutron(self, request: Any, response: Any, path: str) -> Any:
        query = request.qs
        if path == "ports" and "fixed_ips" in query:
            wanted = query["fixed_ips"][0].removeprefix("ip_address=")
            return {
                "ports": [
                    row
                    for row in self.ports
                    if row["network_id"] in query["network_id"]
                    and wanted in [each["ip_address"] for each in row["fixed_ips"]]
                ]
            }
        if path == "ports":
            return {"ports": [p for p in self.ports if p["device_id"] in query["device_id"]]}
        if path == "subnets" and "advanced_service_providers" in query:
            wanted = query["advanced_service_providers"]
            return {"subnets": [s for s in self.subnets if s["provider"] in wanted]}
        if path == "subnets":
            return {"subnets": [s for s in self.subnets if s["id"] in query["id"]]}
        if path == "floatingips":
            return {"floatingips": [f for f in self.floating if f["port_id"] in query["port_id"]]}
        if path == "security-groups" and "id" in query:
            return {"security_groups": [g for g in self.groups if g["id"] in query["id"]]}
        return super()._neutron(request, response, path)
