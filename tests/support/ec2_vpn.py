"""Neutron's VPN as a service (29), added to the cloud of dictionaries, with what it refuses."""

from __future__ import annotations

import re
import uuid
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests_mock

from tests.support.ec2_neutron import Neutron

Row = dict[str, Any]

OUTSIDE = "172.24.4.9"
_KEYS = {
    "ikepolicies": "ikepolicy",
    "ipsecpolicies": "ipsecpolicy",
    "vpnservices": "vpnservice",
    "ipsec-site-connections": "ipsec_site_connection",
}


class Vpn(Neutron):
    """Policies, services and connections.

    Attributes:
        vpn: the objects by collection and id.
        vpnaas: the cloud has the extension.
        settled: connections are ACTIVE as soon as they are made, and may be changed.
        most_vpn: quotas by collection.
    """

    def __init__(self, mock: requests_mock.Mocker) -> None:
        super().__init__(mock)
        self.vpn: dict[str, dict[str, Row]] = {name: {} for name in _KEYS}
        self.vpnaas = True
        self.settled = False
        self.most_vpn: dict[str, int] = {}

    def vpn_names(self, what: str) -> list[str]:
        """The names of what a collection holds, sorted."""
        return sorted(row["name"] for row in self.vpn[what].values())

    def links(self) -> dict[str, list[str]]:
        """The ranges behind each connection by its name."""
        rows = self.vpn["ipsec-site-connections"].values()
        made = {row["name"]: sorted(row["peer_cidrs"]) for row in rows}
        assert len(made) == len(rows), "two connections of one name"
        return made

    def left(self) -> dict[str, set[str]]:
        return super().left() | {what: set(self.vpn_names(what)) for what in _KEYS}

    def _neutron(self, request: Any, response: Any, path: str) -> Any:
        if not path.startswith("vpn/"):
            return super()._neutron(request, response, path)
        if not self.vpnaas:
            return self._no(response, 404, "HTTPNotFound")
        what, _, thing = path.removeprefix("vpn/").partition("/")
        rows = self.vpn[what]
        if request.method == "POST":
            return self._make_vpn(request, response, what)
        mine = [row for row in rows.values() if self.admin or row["project_id"] == self.project]
        if not thing:
            query = parse_qs(urlsplit(request.url).query)
            query.pop("fields", None)
            found = [row for row in mine if all(str(row[n]) in v for n, v in query.items())]
            return {_listing(what): found}
        row = rows.get(thing)
        if row is None or row not in mine:
            return self._no(response, 404, "NotFound")
        if request.method == "DELETE":
            if self._needed(what, thing):
                return self._no(response, 409, "InUse")
            del rows[thing]
            response.status_code = 204
            return None
        if row["status"] == "PENDING_CREATE":
            return self._no(response, 400, "VPNStateInvalidToUpdate")
        row.update(request.json()[_KEYS[what]])
        return {_KEYS[what]: row}

    def _make_vpn(self, request: Any, response: Any, what: str) -> Any:
        body = request.json()[_KEYS[what]]
        if len(self.vpn[what]) >= self.most_vpn.get(what, 1000):
            return self._no(response, 409, "OverQuota")
        if body.get("auth_algorithm") == "sha1":
            return self._no(response, 500, "HTTPInternalServerError")
        if what == "vpnservices":
            router = self.topology["routers"].get(body["router_id"])
            if router is None or not router["external_gateway_info"]:
                return self._no(response, 400, "RouterIsNotExternal")
            if body["subnet_id"] not in self.topology["subnets"]:
                return self._no(response, 404, "SubnetNotFound")
        if what == "ipsec-site-connections":
            assert body["psk"]
            for collection, name in (
                ("ikepolicies", "ikepolicy_id"),
                ("ipsecpolicies", "ipsecpolicy_id"),
                ("vpnservices", "vpnservice_id"),
            ):
                if body[name] not in self.vpn[collection]:
                    return self._no(response, 404, "NotFound")
        status = "ACTIVE" if self.settled else "PENDING_CREATE"
        made = {"id": str(uuid.uuid4()), "status": status, "description": "", **body}
        self.vpn[what][made["id"]] = made
        response.status_code = 201
        return {_KEYS[what]: made}

    def _needed(self, what: str, thing: str) -> bool:
        field = f"{_KEYS[what]}_id"
        return any(row.get(field) == thing for row in self.vpn["ipsec-site-connections"].values())

    # -- what VPN services keep ------------------------------------------------

    def _filled(self, what: str, body: Row) -> Row:
        filled = super()._filled(what, body)
        if what == "routers" and body.get("external_gateway_info"):
            addresses = [{"ip_address": "2001:db8::9"}, {"ip_address": OUTSIDE}]
            gateway = {**body["external_gateway_info"], "external_fixed_ips": addresses}
            return {**filled, "external_gateway_info": gateway}
        return filled

    def _refuses_routers(self, router: Row, body: Row) -> tuple[int, str] | None:
        leaves = body.get("external_gateway_info", {}) is None
        served = any(row["router_id"] == router["id"] for row in self.vpn["vpnservices"].values())
        return (409, "RouterInUse") if leaves and served else super()._refuses_routers(router, body)

    def _remove_router_interface(self, response: Any, router: Row, body: Row) -> Any:
        port = self.topology["ports"].get(body["port_id"])
        subnets = {row["subnet_id"] for row in port["fixed_ips"]} if port else set()
        if any(row["subnet_id"] in subnets for row in self.vpn["vpnservices"].values()):
            return self._no(response, 409, "SubnetInUseByVPNService")
        return super()._remove_router_interface(response, router, body)


def _listing(what: str) -> str:
    return re.sub("-", "_", what)
