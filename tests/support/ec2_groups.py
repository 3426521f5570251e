"""Neutron's security groups, added to the cloud of dictionaries, with what Neutron 29 refuses."""

from __future__ import annotations

import ipaddress
import re
import uuid
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests_mock

from tests.support.ec2_openstack import MINE, OpenStack

_SAME = ("direction", "ethertype", "protocol", "port_range_min", "port_range_max")


class Groups(OpenStack):
    """Security groups with rules.

    Attributes:
        in_use: Neutron ids of groups that a port is in.
        most_rules: the project's quota of rules.
        most_groups: the project's quota of groups.
        quiet: requests (regular expression on "METHOD url") that are done but answered 503.
    """

    def __init__(self, mock: requests_mock.Mocker) -> None:
        super().__init__(mock)
        self.in_use: set[str] = set()
        self.most_rules = 10_000
        self.most_groups = 1_000
        self.quiet: list[str] = []
        self.groups: list[dict[str, Any]] = []
        self._moment = 0

    def group(self, name: str, project: str = MINE, **fields: Any) -> dict[str, Any]:
        """Puts a group with Neutron's initial rules into the project."""
        made = {
            "id": str(uuid.uuid4()),
            "name": name,
            "project_id": project,
            "description": "",
            "security_group_rules": [],
        } | fields
        self.groups.append(made)
        for ethertype in ("IPv6", "IPv4"):
            self.rule(made, direction="egress", ethertype=ethertype)
        return made

    def rule(self, group: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """Puts a rule into a group."""
        self._moment += 1
        made = {
            "id": str(uuid.uuid4()),
            "project_id": group["project_id"],
            "security_group_id": group["id"],
            "direction": "ingress",
            "ethertype": "IPv4",
            "protocol": None,
            "port_range_min": None,
            "port_range_max": None,
            "remote_ip_prefix": None,
            "remote_group_id": None,
            "remote_address_group_id": None,
            "description": None,
            "belongs_to_default_sg": False,
            "created_at": f"2026-01-01T00:{self._moment // 60:02d}:{self._moment % 60:02d}Z",
        } | fields
        prefix = made["remote_ip_prefix"]
        if made["protocol"] in ("tcp", "udp") and (
            (made["port_range_min"], made["port_range_max"]) == (1, 65535)
        ):
            made["port_range_min"] = made["port_range_max"] = None
        made["normalized_cidr"] = (
            str(ipaddress.ip_network(prefix, strict=False)) if prefix else None
        )
        group["security_group_rules"].append(made)
        return made

    def named(self, name: str) -> dict[str, Any]:
        """The one group of that name."""
        [found] = [row for row in self.groups if row["name"] == name]
        return found

    def rules(self, group: dict[str, Any], direction: str = "ingress") -> list[dict[str, Any]]:
        """The rules of a group in one direction."""
        return [row for row in group["security_group_rules"] if row["direction"] == direction]

    # -- answers --------------------------------------------------------------

    def _answer(self, request: Any, response: Any) -> Any:
        made = super()._answer(request, response)
        if any(re.search(p, f"{request.method} {request.url}") for p in self.quiet):
            response.status_code = 503
            return {"NeutronError": {"type": "x", "message": "lost"}}
        return made

    def _no(self, response: Any, status: int, kind: str) -> Any:
        response.status_code = status
        return {"NeutronError": {"type": kind, "message": f"No, host-1 ({kind})", "detail": ""}}

    def _neutron(self, request: Any, response: Any, path: str) -> Any:
        what, _, thing = path.partition("/")
        if what == "security-groups":
            return self._groups(request, response, thing)
        if what == "security-group-rules":
            return self._rules(request, response, thing)
        return super()._neutron(request, response, path)

    def _mine(self) -> list[dict[str, Any]]:
        return [row for row in self.groups if self.admin or row["project_id"] == self.project]

    def _groups(self, request: Any, response: Any, thing: str) -> Any:
        if request.method == "GET" and not thing:
            return {"security_groups": _matching(request, self._mine())}
        if request.method == "POST":
            body = request.json()["security_group"]
            owner = body["project_id"]
            if len([row for row in self.groups if row["project_id"] == owner]) >= self.most_groups:
                return self._no(response, 409, "OverQuota")
            made = self.group(body["name"], owner, description=body.get("description", ""))
            response.status_code = 201
            return {"security_group": made}
        found = next((row for row in self._mine() if row["id"] == thing), None)
        if found is None:
            return self._no(response, 404, "SecurityGroupNotFound")
        if request.method == "PUT":
            found.update(request.json()["security_group"])
        if request.method == "DELETE":
            if thing in self.in_use:
                return self._no(response, 409, "SecurityGroupInUse")
            self.groups.remove(found)
            for row in self.groups:
                rules = row["security_group_rules"]
                rules[:] = [rule for rule in rules if rule["remote_group_id"] != thing]
            response.status_code = 204
            return None
        return {"security_group": found}

    def _rules(self, request: Any, response: Any, thing: str) -> Any:
        mine = [rule for row in self._mine() for rule in row["security_group_rules"]]
        if request.method == "GET":
            return {"security_group_rules": _matching(request, mine)}
        if request.method == "POST":
            return self._make_rules(request, response, mine)
        found = next((row for row in mine if row["id"] == thing), None)
        if found is None:
            return self._no(response, 404, "SecurityGroupRuleNotFound")
        if request.method != "DELETE":
            return self._no(response, 500, "HTTPInternalServerError")
        group = next(row for row in self.groups if row["id"] == found["security_group_id"])
        group["security_group_rules"].remove(found)
        response.status_code = 204
        return None

    def _make_rules(self, request: Any, response: Any, mine: list[dict[str, Any]]) -> Any:
        """All of them or none, as Neutron does it."""
        bodies = request.json()["security_group_rules"]
        if len(mine) + len(bodies) > self.most_rules:
            return self._no(response, 409, "OverQuota")
        known = {row["id"]: row for row in self.groups}
        there = {_key(row) for row in mine}
        for body in bodies:
            group = known.get(body["security_group_id"])
            if group is None or (body.get("remote_group_id") or group["id"]) not in known:
                return self._no(response, 404, "SecurityGroupNotFound")
            if body.get("protocol") in ("tcp", "udp") and body.get("port_range_min") == 0:
                return self._no(response, 400, "SecurityGroupInvalidPortValue")
            if _key(body) in there:
                return self._no(response, 409, "SecurityGroupRuleExists")
            there.add(_key(body))
        made = [
            self.rule(
                known[body["security_group_id"]],
                **{name: value for name, value in body.items() if name != "project_id"},
            )
            for body in bodies
        ]
        response.status_code = 201
        return {"security_group_rules": made}


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    anywhere = {"IPv4": "0.0.0.0/0", "IPv6": "::/0"}[row["ethertype"]]
    peer = row.get("remote_group_id") or row.get("remote_ip_prefix") or anywhere
    return (row["security_group_id"], peer, *(row.get(name) for name in _SAME))


def _matching(request: Any, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    query = parse_qs(urlsplit(request.url).query)
    query.pop("fields", None)
    return [
        row for row in rows if all(str(row.get(name)) in values for name, values in query.items())
    ]
