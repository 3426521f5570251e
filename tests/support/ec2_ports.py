"""Ports with addresses, floating IPs and what Nova plugs into servers, with what each refuses."""

from __future__ import annotations

import ipaddress
import itertools
from typing import Any

import requests_mock

from tests.support.ec2_neutron import ROUTER_PORT, Neutron
from tests.support.ec2_openstack import Caller
from trimaran.ec2.kinds.vpcs.internet_gateway import (
    attach_internet_gateway,
    create_internet_gateway,
)
from trimaran.ec2.kinds.vpcs.subnet_create import create_subnet
from trimaran.ec2.kinds.vpcs.vpc_create import create_vpc

Row = dict[str, Any]


class Ports(Neutron):
    """A cloud whose ports get addresses and whose servers have ports.

    Attributes:
        refuse_attach: status and words with which Nova refuses an interface.
        details: Neutron tells who has the port of a floating IP.
    """

    def __init__(self, mock: requests_mock.Mocker) -> None:
        super().__init__(mock)
        self.refuse_attach: tuple[int, str] | None = None
        self.details = True
        self._numbers = itertools.count(1)

    # -- what tests look at ----------------------------------------------------

    def servers_of(self, name: str) -> Row:
        """Nova's server of an instance."""
        [row] = [row for row in self.servers.values() if row["name"] == name]
        return row

    def address(self, public: str) -> Row:
        """The floating IP of a public address."""
        rows = self.topology["floatingips"].values()
        [row] = [row for row in rows if row["floating_ip_address"] == public]
        return row

    def addresses(self, interface_id: str) -> list[str]:
        """The private addresses of an interface in Neutron."""
        rows = self.named(interface_id, "ports")["fixed_ips"]
        return sorted(row["ip_address"] for row in rows)

    def unplug(self, server_id: str) -> None:
        """Ends a server as Nova does: its ports are free, but not deleted."""
        del self.servers[server_id]
        for port in self.topology["ports"].values():
            if port["device_id"] == server_id:
                port.update(device_id="", device_owner="")

    # -- Neutron ---------------------------------------------------------------

    def _neutron(self, request: Any, response: Any, path: str) -> Any:
        what, _, thing = path.partition("/")
        port = self.topology["ports"].get(thing)
        if what == "ports" and port is not None:
            expected = request.headers.get("If-Match")
            if expected and expected != f"revision_number={port['revision_number']}":
                return self._no(response, 412, "RevisionNumberConstraintFailed")
            owned = port["device_owner"].startswith("compute:")
            if request.method == "DELETE" and owned and not self.admin:
                return self._no(response, 403, "PolicyNotAuthorized")
            if request.method == "DELETE":
                for row in self.topology["floatingips"].values():
                    if row["port_id"] == thing:
                        row.update(port_id=None, fixed_ip_address=None)
        if what in ("ports", "floatingips") and request.method in ("POST", "PUT"):
            body = request.json()[what[:-1]]
            there = self.topology[what].get(thing, {})
            refused = getattr(self, f"_bad_{what}")(body, there)
            if refused:
                return self._no(response, *refused)
        made = super()._neutron(request, response, path)
        if what == "ports" and request.method == "PUT" and port is not None:
            port["revision_number"] += 1
        return self._told(what, made)

    def _told(self, what: str, made: Any) -> Any:
        if what != "floatingips" or not self.details or not isinstance(made, dict):
            return made
        if what in made:
            return {what: [self._detailed(row) for row in made[what]]}
        return {k: self._detailed(row) if k == "floatingip" else row for k, row in made.items()}

    def _detailed(self, row: Row) -> Row:
        port = self.topology["ports"].get(row["port_id"] or "")
        names = ("name", "network_id", "device_id", "device_owner")
        return {**row, "port_details": port and {name: port.get(name) for name in names}}

    def _filled(self, what: str, body: Row) -> Row:
        made = super()._filled(what, body)
        if what == "ports" and "fixed_ips" in body:
            made = {**made, "fixed_ips": self._addressed(body["fixed_ips"])}
        if what == "floatingips" and body.get("port_id"):
            port = self.topology["ports"][body["port_id"]]
            fixed = body.get("fixed_ip_address") or port["fixed_ips"][0]["ip_address"]
            made = {**made, "fixed_ip_address": fixed}
        if what == "floatingips" and "port_id" in body and not body["port_id"]:
            made = {**made, "fixed_ip_address": None}
        return made

    def _defaults(self, what: str) -> Row:
        number = next(self._numbers)
        more: dict[str, Row] = {
            "ports": {
                "mac_address": f"fa:16:3e:00:00:{number % 256:02x}",
                "allowed_address_pairs": [],
                "revision_number": 1,
                "status": "DOWN",
            },
            "floatingips": {
                "floating_ip_address": f"172.24.4.{number % 250 + 2}",
                "description": "",
            },
        }
        return super()._defaults(what) | more.get(what, {})

    def _held(self, subnet_id: str) -> set[str]:
        return {
            address["ip_address"]
            for port in self.topology["ports"].values()
            for address in port["fixed_ips"]
            if address["subnet_id"] == subnet_id
        }

    def _addressed(self, wanted: list[Row]) -> list[Row]:
        made: list[Row] = []
        for row in wanted:
            subnet = self.topology["subnets"][row["subnet_id"]]
            taken = self._held(subnet["id"]) | {each["ip_address"] for each in made}
            free = (str(each) for each in list(ipaddress.ip_network(subnet["cidr"]).hosts())[1:])
            chosen = row.get("ip_address") or next(each for each in free if each not in taken)
            made.append({"subnet_id": subnet["id"], "ip_address": chosen})
        return made

    def _bad_ports(self, body: Row, there: Row) -> tuple[int, str] | None:
        now = {row["ip_address"] for row in there.get("fixed_ips", ())}
        known = {group["id"] for group in self.groups}
        if not known.issuperset(body.get("security_groups") or ()):
            return 404, "SecurityGroupNotFound"
        for row in body.get("fixed_ips") or ():
            subnet = self.topology["subnets"].get(row["subnet_id"])
            if subnet is None:
                return 404, "SubnetNotFound"
            cidr = ipaddress.ip_network(subnet["cidr"])
            named = row.get("ip_address")
            if named and ipaddress.ip_address(named) not in cidr:
                return 400, "InvalidIpForSubnet"
            if named and named not in now and named in self._held(subnet["id"]):
                return 409, "IpAddressAlreadyAllocated"
            wanted = sum(1 for each in body["fixed_ips"] if each.get("ip_address") not in now)
            if wanted > cidr.num_addresses - 3 - len(self._held(subnet["id"]) - now):
                return 409, "IpAddressGenerationFailure"
        return None

    def _bad_floatingips(self, body: Row, there: Row) -> tuple[int, str] | None:
        if not body.get("port_id"):
            return None
        port = self.topology["ports"].get(body["port_id"])
        if port is None:
            return 404, "PortNotFound"
        fixed = body.get("fixed_ip_address")
        if fixed not in [row["ip_address"] for row in port["fixed_ips"]]:
            return 400, "BadRequest"
        for row in self.topology["floatingips"].values():
            if row is not there and (row["port_id"], row["fixed_ip_address"]) == (
                port["id"],
                fixed,
            ):
                return 409, "FloatingIPPortAlreadyAssociated"
        return None if self._leads_out(port) else (404, "ExternalGatewayForFloatingIPNotFound")

    def _leads_out(self, port: Row) -> bool:
        routers = {
            each["device_id"]
            for each in self.topology["ports"].values()
            if each["network_id"] == port["network_id"] and each["device_owner"] == ROUTER_PORT
        }
        rows = self.topology["routers"]
        return any(rows[each]["external_gateway_info"] for each in routers)

    # -- Nova ------------------------------------------------------------------

    def _nova(self, request: Any, response: Any, path: str) -> Any:
        steps = path.split("/")
        if len(steps) > 2 and steps[2] == "os-interface":
            return self._interface(request, response, steps)
        if path == "servers" and request.method == "POST":
            return self._boot(request, response, path)
        before = set(self.servers)
        made = super()._nova(request, response, path)
        for gone in before - set(self.servers):
            for port in self.topology["ports"].values():
                if port["device_id"] == gone:
                    port.update(device_id="", device_owner="")
        return made

    def _boot(self, request: Any, response: Any, path: str) -> Any:
        before = set(self.servers)
        made = super()._nova(request, response, path)
        for server_id in set(self.servers) - before:
            for each in request.json()["server"].get("networks") or ():
                if "port" in each:
                    self._plug(server_id, each["port"])
        return made

    def _plug(self, server_id: str, port_id: str) -> None:
        port = self.topology["ports"][port_id]
        port.update(device_id=server_id, device_owner="compute:nova", status="ACTIVE")

    def _interface(self, request: Any, response: Any, steps: list[str]) -> Any:
        if request.method == "DELETE":
            port = self.topology["ports"].get(steps[3])
            if port is None or port["device_id"] != steps[1]:
                return self._missing(response)
            port.update(device_id="", device_owner="")
            response.status_code = 202
            return None
        if self.refuse_attach:
            response.status_code, words = self.refuse_attach
            return {"refused": {"message": words}}
        port_id = request.json()["interfaceAttachment"]["port_id"]
        self._plug(steps[1], port_id)
        return {"interfaceAttachment": {"port_id": port_id}}


class Place:
    """A VPC with one subnet, for tests of what is in it.

    Args:
        me: whose.
        gateway: it has a way out.
        cidr: of the subnet.
    """

    def __init__(self, me: Caller, *, gateway: bool = True, cidr: str = "10.0.1.0/24") -> None:
        self.vpc = str(me(create_vpc, CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"])
        made = me(create_subnet, VpcId=self.vpc, CidrBlock=cidr)["Subnet"]
        self.subnet = str(made["SubnetId"])
        self.gateway = ""
        if gateway:
            self.gateway = me(create_internet_gateway)["InternetGateway"]["InternetGatewayId"]
            me(attach_internet_gateway, InternetGatewayId=self.gateway, VpcId=self.vpc)
