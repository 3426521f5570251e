"""A subnet in Neutron: a network of its own, with the VPC's router at its first address.

The router is plugged in by a port and not by the subnet's ``gateway_ip``, which
stays empty (see `route_push`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from typing import Any

from trimaran.cloud import CloudSession
from trimaran.ec2.kinds.vpcs.route_push import HostRoute, as_rows
from trimaran.ec2.kinds.vpcs.vpc_cidr import gateway_of

Row = Mapping[str, Any]

#: Owners of the ports by which routers are in a network.
ROUTER_PORTS = (
    "network:router_interface",
    "network:router_interface_distributed",
    "network:ha_router_replicated_interface",
)
#: Owners of ports that come and go with a network (router, DHCP, metadata).
OURS = "network:"

_PORT_FIELDS = ["id", "name", "device_id", "device_owner", "fixed_ips"]


def make_network(
    cloud: CloudSession, name: str, cidr: IPv4Network, routes: Sequence[HostRoute]
) -> Row:
    """Make network and subnet of a name.

    Returns:
        Neutron's JSON of the subnet.
    """
    network = cloud.network.create_network({"name": name})
    return cloud.network.create_subnet(
        {
            "name": name,
            "network_id": network["id"],
            "ip_version": 4,
            "cidr": str(cidr),
            "gateway_ip": None,
            # The first address is the router's, although it is no gateway in Neutron's eyes.
            "allocation_pools": [{"start": str(cidr[2]), "end": str(cidr[-2])}],
            "host_routes": as_rows(routes),
        }
    )


def plug(cloud: CloudSession, router: str, subnet: Row, name: str) -> None:
    """Plug a router into a subnet at its first address, by a port of a name."""
    address = gateway_of(subnet["cidr"])
    port = cloud.network.create_port(
        {
            "name": name,
            "project_id": subnet["project_id"],
            "network_id": subnet["network_id"],
            "fixed_ips": [{"subnet_id": subnet["id"], "ip_address": address}],
        }
    )
    cloud.network.add_router_interface(router, {"port_id": port["id"]})


def ports_of(cloud: CloudSession, network: str) -> list[dict[str, Any]]:
    """The ports of a network."""
    return cloud.network.ports(network_id=network, fields=_PORT_FIELDS)
