"""Neutron.

Its listings have no parts unless the operator limits them; what limits a
question is the length of the URL, so a filter with many values is asked in
several requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar
from urllib.parse import urlencode

from trimaran.cloud.vpn import VpnCalls
from trimaran.cloud.wire import Query, Row, segment
from trimaran.identity import remote

# Web servers in front of Neutron refuse request lines from 8 KiB on.
_LONGEST_QUERY = 6000


class Network(VpnCalls):
    """Thin client of Neutron; lists as filter values are alternatives."""

    name: ClassVar[str] = "network"
    version: ClassVar[str] = "/v2.0"

    def all(
        self, path: str, collection: str, query: Query, *, microversion: str | None = None
    ) -> list[Row]:
        """Reads a whole listing, in several questions when one would be too long."""
        rows: list[Row] = []
        for part in _questions(dict(query)):
            rows.extend(super().all(path, collection, part, microversion=microversion))
        return rows

    def networks(self, **query: Any) -> list[Row]:
        """Returns all networks that the caller may see and the filters let through."""
        return self.all("networks", "networks", query)

    def network(self, network_id: str) -> Row:
        """Returns one network."""
        return self._one("networks", "network", network_id)

    def create_network(self, body: Query) -> Row:
        """Makes a network."""
        return self._create("networks", "network", body)

    def update_network(self, network_id: str, body: Query) -> Row:
        """Changes a network."""
        return self._update("networks", "network", network_id, body)

    def delete_network(self, network_id: str) -> None:
        """Deletes a network."""
        self._delete("networks", network_id)

    def subnets(self, **query: Any) -> list[Row]:
        """Returns all subnets that the caller may see and the filters let through."""
        return self.all("subnets", "subnets", query)

    def subnet(self, subnet_id: str) -> Row:
        """Returns one subnet."""
        return self._one("subnets", "subnet", subnet_id)

    def create_subnet(self, body: Query) -> Row:
        """Makes a subnet."""
        return self._create("subnets", "subnet", body)

    def update_subnet(self, subnet_id: str, body: Query) -> Row:
        """Changes a subnet."""
        return self._update("subnets", "subnet", subnet_id, body)

    def delete_subnet(self, subnet_id: str) -> None:
        """Deletes a subnet."""
        self._delete("subnets", subnet_id)

    def ports(self, **query: Any) -> list[Row]:
        """Returns all ports that the caller may see and the filters let through."""
        return self.all("ports", "ports", query)

    def port(self, port_id: str) -> Row:
        """Returns one port."""
        return self._one("ports", "port", port_id)

    def create_port(self, body: Query) -> Row:
        """Makes a port."""
        return self._create("ports", "port", body)

    def update_port(self, port_id: str, body: Query, *, revision: int | None = None) -> Row:
        """Changes a port.

        Args:
            port_id: which.
            body: the changes.
            revision: ``revision_number`` that the changes were made from; a port
                that was changed since is left alone (412).
        """
        headers = {} if revision is None else {"If-Match": f"revision_number={revision}"}
        return self._update("ports", "port", port_id, body, headers=headers)

    def delete_port(self, port_id: str) -> None:
        """Deletes a port."""
        self._delete("ports", port_id)

    def routers(self, **query: Any) -> list[Row]:
        """Returns all routers that the caller may see and the filters let through."""
        return self.all("routers", "routers", query)

    def router(self, router_id: str) -> Row:
        """Returns one router."""
        return self._one("routers", "router", router_id)

    def create_router(self, body: Query) -> Row:
        """Makes a router."""
        return self._create("routers", "router", body)

    def update_router(self, router_id: str, body: Query) -> Row:
        """Changes a router."""
        return self._update("routers", "router", router_id, body)

    def delete_router(self, router_id: str) -> None:
        """Deletes a router."""
        self._delete("routers", router_id)

    def floating_ips(self, **query: Any) -> list[Row]:
        """Returns all floating IP addresses that the caller may see and the filters let through."""
        return self.all("floatingips", "floatingips", query)

    def floating_ip(self, floating_ip_id: str) -> Row:
        """Returns one floating IP address."""
        return self._one("floatingips", "floatingip", floating_ip_id)

    def create_floating_ip(self, body: Query) -> Row:
        """Makes a floating IP address."""
        return self._create("floatingips", "floatingip", body)

    def update_floating_ip(self, floating_ip_id: str, body: Query) -> Row:
        """Changes a floating IP address."""
        return self._update("floatingips", "floatingip", floating_ip_id, body)

    def delete_floating_ip(self, floating_ip_id: str) -> None:
        """Deletes a floating IP address."""
        self._delete("floatingips", floating_ip_id)

    def security_groups(self, **query: Any) -> list[Row]:
        """Returns all security groups that the caller may see and the filters let through."""
        return self.all("security-groups", "security_groups", query)

    def security_group(self, security_group_id: str) -> Row:
        """Returns one security group."""
        return self._one("security-groups", "security_group", security_group_id)

    def create_security_group(self, body: Query) -> Row:
        """Makes a security group."""
        return self._create("security-groups", "security_group", body)

    def update_security_group(self, security_group_id: str, body: Query) -> Row:
        """Changes a security group."""
        return self._update("security-groups", "security_group", security_group_id, body)

    def delete_security_group(self, security_group_id: str) -> None:
        """Deletes a security group."""
        self._delete("security-groups", security_group_id)

    def security_group_rules(self, **query: Any) -> list[Row]:
        """Returns all security group rules that the caller may see and the filters let through."""
        return self.all("security-group-rules", "security_group_rules", query)

    def security_group_rule(self, security_group_rule_id: str) -> Row:
        """Returns one security group rule."""
        return self._one("security-group-rules", "security_group_rule", security_group_rule_id)

    def create_security_group_rule(self, body: Query) -> Row:
        """Makes a security group rule."""
        return self._create("security-group-rules", "security_group_rule", body)

    def create_security_group_rules(
        self, bodies: Sequence[Query], *, timeout: tuple[float, float] | None = None
    ) -> list[Row]:
        """Makes several security group rules, or none of them.

        Args:
            bodies: the rules.
            timeout: seconds to connect and to wait for an answer; Neutron takes a
                time for each rule.
        """
        document = {"security_group_rules": list(bodies)}
        more = {} if timeout is None else {"timeout": timeout}
        answer = self.json("POST", "security-group-rules", json=document, **more)
        rows = answer.get("security_group_rules")
        if not isinstance(rows, list) or len(rows) != len(bodies):
            raise remote.unreachable(self._service, "the answer has no security_group_rules")
        return rows

    def delete_security_group_rule(self, security_group_rule_id: str) -> None:
        """Deletes a security group rule."""
        self._delete("security-group-rules", security_group_rule_id)

    def subnet_pools(self, **query: Any) -> list[Row]:
        """Returns all subnet pools that the caller may see and the filters let through."""
        return self.all("subnetpools", "subnetpools", query)

    def subnet_pool(self, subnet_pool_id: str) -> Row:
        """Returns one subnet pool."""
        return self._one("subnetpools", "subnetpool", subnet_pool_id)

    def create_subnet_pool(self, body: Query) -> Row:
        """Makes a subnet pool."""
        return self._create("subnetpools", "subnetpool", body)

    def update_subnet_pool(self, subnet_pool_id: str, body: Query) -> Row:
        """Changes a subnet pool."""
        return self._update("subnetpools", "subnetpool", subnet_pool_id, body)

    def delete_subnet_pool(self, subnet_pool_id: str) -> None:
        """Deletes a subnet pool."""
        self._delete("subnetpools", subnet_pool_id)

    def add_router_interface(self, router_id: str, body: Query) -> Row:
        """Plugs a router into a subnet (``subnet_id``) or a port (``port_id``)."""
        return self.json("PUT", f"routers/{segment(router_id)}/add_router_interface", json=body)

    def remove_router_interface(self, router_id: str, body: Query) -> Row:
        """Unplugs a router from a subnet or a port."""
        return self.json("PUT", f"routers/{segment(router_id)}/remove_router_interface", json=body)

    def extensions(self) -> list[Row]:
        """Returns the API extensions that the server has loaded."""
        return self.all("extensions", "extensions", {})

    def availability_zones(self, **query: Any) -> list[Row]:
        """Returns the zones of networks and routers."""
        return self.all("availability_zones", "availability_zones", query)

    def quota(self, project_id: str) -> Row:
        """Returns limit, used and reserved of each resource of a project."""
        return self._inner(self.json("GET", f"quotas/{segment(project_id)}/details.json"), "quota")


def _questions(query: dict[str, Any]) -> list[dict[str, Any]]:
    """Splits a query that is too long at its longest filter."""
    filters = {
        name: value
        for name, value in query.items()
        if name != "fields" and isinstance(value, list | tuple | set)
    }
    if any(not value for value in filters.values()):
        # No alternatives: nothing matches.  Neutron would read it as "no filter".
        return []
    if not filters or len(urlencode(query, doseq=True)) <= _LONGEST_QUERY:
        return [query]
    name = max(filters, key=lambda each: len(filters[each]))
    values = list(dict.fromkeys(filters[name]))
    if len(values) < 2:
        return [query]
    middle = len(values) // 2
    halves = (values[:middle], values[middle:])
    return [part for half in halves for part in _questions({**query, name: half})]
