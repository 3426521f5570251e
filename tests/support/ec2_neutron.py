"""Neutron's networks, routers, ports and addresses, with what Neutron 29 refuses (measured)."""

from __future__ import annotations

import ipaddress
import uuid
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests_mock

from tests.support.ec2_groups import Groups
from tests.support.ec2_openstack import MINE, OPERATOR

ROUTER_PORT = "network:router_interface"
Row = dict[str, Any]


class Neutron(Groups):
    """Routers, networks, subnets, ports and floating IPs of all projects.

    Attributes:
        topology: the objects by collection and id; change them behind the facade's back.
        most: quotas by collection.
        malformed: collections in which each create is refused as malformed.
    """

    def __init__(self, mock: requests_mock.Mocker) -> None:
        super().__init__(mock)
        self.networks = []
        self.topology: dict[str, dict[str, Row]] = {
            name: {} for name in ("networks", "subnets", "ports", "routers", "floatingips")
        }
        self.most: dict[str, int] = {}
        self.malformed: set[str] = set()
        self.external = self.put("networks", name="public", project_id=OPERATOR, external=True)

    # -- things ---------------------------------------------------------------

    def put(self, what: str, **fields: Any) -> Row:
        """Puts an object into Neutron, as another client would."""
        made: Row = {"id": str(uuid.uuid4()), "name": "", "project_id": MINE} | fields
        self.topology[what][made["id"]] = made
        return made

    def port(self, network_id: str, address: str, **fields: Any) -> Row:
        """Puts a port with one address into the (one) subnet of a network."""
        subnet = next(
            row for row in self.topology["subnets"].values() if row["network_id"] == network_id
        )
        return self.put(
            "ports",
            **{
                "network_id": network_id,
                "device_id": "",
                "device_owner": "",
                "security_groups": [],
                "extra_dhcp_opts": [],
                "fixed_ips": [{"subnet_id": subnet["id"], "ip_address": address}],
            }
            | fields,
        )

    def all(self, what: str) -> list[Row]:
        """The objects of a collection that the project owns."""
        return [row for row in self.topology[what].values() if row["project_id"] == MINE]

    def named(self, name: str, what: str = "") -> Row:
        """The one object of that name in a collection; without one, the security group."""
        if not what:
            return super().named(name)
        [found] = [row for row in self.all(what) if row["name"] == name]
        return found

    def left(self) -> dict[str, set[str]]:
        """Names or ids of everything that the project has; compare before and after."""
        found = {
            what: {row["name"] or row["id"] for row in self.all(what)} for what in self.topology
        }
        return found | {"groups": {row["name"] for row in self.groups}}

    def routes(self, subnet_id: str) -> dict[str, str]:
        """The host routes of the subnet of that name."""
        rows = self.named(subnet_id, "subnets")["host_routes"]
        return {row["destination"]: row["nexthop"] for row in rows}

    # -- answers --------------------------------------------------------------

    def _neutron(self, request: Any, response: Any, path: str) -> Any:
        what, _, rest = path.partition("/")
        if what not in self.topology:
            return super()._neutron(request, response, path)
        thing, _, action = rest.partition("/")
        if request.method == "GET" and not thing:
            return {what: _matching(request, self._seen(what))}
        if request.method == "POST":
            return self._make(request, response, what)
        found = {row["id"]: row for row in self._seen(what)}.get(thing)
        if found is None:
            return self._no(response, 404, f"{what[:-1]}NotFound")
        if action:
            return getattr(self, f"_{action}")(response, found, request.json())
        if request.method == "DELETE":
            refused = getattr(self, f"_keeps_{what}", lambda row: None)(found)
            if refused:
                return self._no(response, 409, refused)
            del self.topology[what][thing]
            response.status_code = 204
            return None
        if request.method == "PUT":
            body = request.json()[what[:-1]]
            refused = getattr(self, f"_refuses_{what}", lambda row, body: None)(found, body)
            if refused:
                return self._no(response, *refused)
            found.update(self._filled(what, body))
        return {what[:-1]: found}

    def _seen(self, what: str) -> list[Row]:
        rows = self.topology[what].values()
        return [
            row
            for row in rows
            if self.admin or row["project_id"] == self.project or row.get("external")
        ]

    def _make(self, request: Any, response: Any, what: str) -> Any:
        body = {"project_id": self.project} | request.json()[what[:-1]]
        owned = [r for r in self.topology[what].values() if r["project_id"] == body["project_id"]]
        if len(owned) >= self.most.get(what, 1000):
            return self._no(response, 409, "OverQuota")
        if what in self.malformed:
            return self._no(response, 400, "HTTPBadRequest")
        if what == "subnets":
            refused = self._bad_subnet(body)
            if refused:
                return self._no(response, *refused)
        made = self.put(what, **self._defaults(what) | self._filled(what, body))
        response.status_code = 201
        return {what[:-1]: made}

    def _defaults(self, what: str) -> Row:
        found: dict[str, Row] = {
            "networks": {"status": "ACTIVE", "shared": False},
            "subnets": {"host_routes": [], "gateway_ip": "automatic"},
            "ports": {
                "device_id": "",
                "device_owner": "",
                "security_groups": [],
                "extra_dhcp_opts": [],
                "fixed_ips": [],
            },
            "routers": {"external_gateway_info": None},
            "floatingips": {"port_id": None, "fixed_ip_address": None},
        }
        return found[what]

    def _filled(self, what: str, body: Row) -> Row:
        if what == "ports" and "extra_dhcp_opts" in body:
            rows = [row for row in body["extra_dhcp_opts"] if row["opt_value"] is not None]
            return {**body, "extra_dhcp_opts": rows}
        return body

    def _bad_subnet(self, body: Row) -> tuple[int, str] | None:
        cidr = ipaddress.ip_network(body["cidr"])
        if cidr.is_multicast or cidr.is_loopback:
            return 400, "InvalidInput"
        return None

    def _refuses_subnets(self, subnet: Row, body: Row) -> tuple[int, str] | None:
        if len(body.get("host_routes", ())) > 20:
            return 400, "HostRoutesExhausted"
        held = [
            address["ip_address"]
            for port in self.topology["ports"].values()
            for address in port["fixed_ips"]
            if port["device_owner"] == ROUTER_PORT and address["subnet_id"] == subnet["id"]
        ]
        changes = body.get("gateway_ip", subnet["gateway_ip"]) != subnet["gateway_ip"]
        return (409, "GatewayIpInUse") if changes and subnet["gateway_ip"] in held else None

    def _refuses_routers(self, router: Row, body: Row) -> tuple[int, str] | None:
        leaves = body.get("external_gateway_info", {}) is None
        if leaves and self._mapped(router):
            return 409, "RouterExternalGatewayInUseByFloatingIp"
        return None

    def _mapped(self, router: Row) -> bool:
        networks = {
            port["network_id"]
            for port in self.topology["ports"].values()
            if port["device_id"] == router["id"]
        }
        ports = self.topology["ports"]
        return any(
            row["port_id"] in ports and ports[row["port_id"]]["network_id"] in networks
            for row in self.topology["floatingips"].values()
        )

    def _keeps_networks(self, network: Row) -> str | None:
        """Ports of Neutron's own services go with a network, and so do its subnets."""
        ports = [r for r in self.topology["ports"].values() if r["network_id"] == network["id"]]
        if any(row["device_owner"] != "network:dhcp" for row in ports):
            return "NetworkInUse"
        for what in ("ports", "subnets"):
            rows = self.topology[what]
            for row in [r for r in rows.values() if r["network_id"] == network["id"]]:
                del rows[row["id"]]
        return None

    def _keeps_routers(self, router: Row) -> str | None:
        ports = self.topology["ports"].values()
        inside = any(row["device_id"] == router["id"] for row in ports)
        return "RouterInUse" if inside else None

    def _keeps_ports(self, port: Row) -> str | None:
        return "PortInUseAsRouterInterface" if port["device_owner"] == ROUTER_PORT else None

    def _add_router_interface(self, response: Any, router: Row, body: Row) -> Any:
        port = self.topology["ports"].get(body["port_id"])
        if port is None:
            return self._no(response, 404, "PortNotFound")
        subnets = self.topology["subnets"]
        [address] = port["fixed_ips"]
        cidr = ipaddress.ip_network(subnets[address["subnet_id"]]["cidr"])
        for other in self.topology["ports"].values():
            if other["device_id"] == router["id"]:
                its = ipaddress.ip_network(subnets[other["fixed_ips"][0]["subnet_id"]]["cidr"])
                if its.overlaps(cidr):
                    response.status_code = 400
                    words = f"Bad router request: Cidr {cidr} overlaps with cidr {its}, host-1"
                    return {"NeutronError": {"type": "BadRequest", "message": words}}
        port.update(device_id=router["id"], device_owner=ROUTER_PORT)
        return {"port_id": port["id"]}

    def _remove_router_interface(self, response: Any, router: Row, body: Row) -> Any:
        port = self.topology["ports"].get(body["port_id"])
        if port is None or port["device_id"] != router["id"]:
            return self._no(response, 404, "RouterInterfaceNotFound")
        if self._mapped(router):
            return self._no(response, 409, "RouterInterfaceInUseByFloatingIP")
        del self.topology["ports"][port["id"]]
        return {"port_id": port["id"]}


def _matching(request: Any, rows: list[Row]) -> list[Row]:
    query = parse_qs(urlsplit(request.url).query)
    query.pop("fields", None)
    external = query.pop("router:external", None)
    if external:
        wanted = external[0].lower() == "true"
        rows = [row for row in rows if bool(row.get("external")) == wanted]
    return [row for row in rows if all(_has(row, name, v) for name, v in query.items())]


def _has(row: Row, name: str, values: list[str]) -> bool:
    held = row.get(name)
    if isinstance(held, list):
        return any(str(each) in values for each in held)
    return str(held) in values
