"""DHCP options as Neutron's ports carry them (spec ec2.md 3.4).

Neutron has no set of options to point at: each port has its own copy, so the
interfaces of a VPC are changed one by one, but only those that differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy.orm import Session

from trimaran.cloud import CloudSession, gather
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.vpcs.vpc_kind import DHCP_OPTIONS
from trimaran.errors import NotFound

Row = Mapping[str, Any]
Options = dict[str, str | None]

CONFIGURATION = "dhcp_configuration"
#: The value that means "what the cloud provides", which is no option at all.
PROVIDED = "AmazonProvidedDNS"

#: EC2's names of options and dnsmasq's.
NAMES: Mapping[str, str] = {
    "domain-name": "domain-name",
    "domain-name-servers": "dns-server",
    "netbios-name-servers": "netbios-ns",
    "netbios-node-type": "netbios-nodetype",
    "ntp-servers": "ntp-server",
}
MTU = "mtu"


def port_options(ctx: Context, vpc: Item, items: Iterable[Item]) -> Options | None:
    """The options of a VPC's ports; None when they were never set, so that ports have none.

    Args:
        ctx: the request, for the configured MTU.
        vpc: the VPC.
        items: among which its set of options is.
    """
    if DHCP_OPTIONS not in vpc.data:
        return None
    wanted = vpc.data[DHCP_OPTIONS]
    found = next((item for item in items if item.id == wanted), None)
    configuration = found.data.get(CONFIGURATION) or {} if found else {}
    options: Options = dict.fromkeys(NAMES.values())
    options[MTU] = str(ctx.conf.network_device_mtu)
    for key, values in configuration.items():
        told = [str(value) for value in values if value != PROVIDED]
        options[NAMES[key]] = ",".join(told) or None
    return options


def as_rows(options: Options) -> list[dict[str, Any]]:
    """Options as Neutron takes them in an update; a value of None takes an option away."""
    return [
        {"opt_name": name, "opt_value": value, "ip_version": 4}
        for name, value in sorted(options.items())
    ]


def sync_ports(ctx: Context, vpc_id: str, cloud: CloudSession | None = None) -> None:
    """Give all interfaces of a VPC the options of its set, where they differ."""
    asked = cloud or ctx.user
    told: tuple[Options, list[str]] | None = None
    while (wanted := ctx.db.read(lambda s: _wanted(s, ctx, vpc_id))) != told:
        if wanted is None or not _push(asked, *wanted):
            return
        told = wanted


def _wanted(session: Session, ctx: Context, vpc_id: str) -> tuple[Options, list[str]] | None:
    items = queries.items_of(session, ctx.project_id, ["vpc", "dopt", "eni"])
    vpc = next((item for item in items if item.id == vpc_id), None)
    options = port_options(ctx, vpc, items) if vpc else None
    ports = [i.os_id for i in items if i.kind == "eni" and i.vpc_id == vpc_id and i.os_id]
    return (options, sorted(ports)) if options is not None and ports else None


def _push(cloud: CloudSession, options: Options, ports: Sequence[str]) -> bool:
    rows = cloud.network.ports(id=list(ports), fields=["id", "extra_dhcp_opts"])
    differing = [row["id"] for row in rows if _told(row) != _set(options)]
    updates: dict[str, Callable[[], None]] = {
        os_id: partial(_update, cloud, os_id, options) for os_id in differing
    }
    if updates:
        gather(**updates)
    return bool(updates)


def _set(options: Options) -> dict[str, str]:
    return {name: value for name, value in options.items() if value is not None}


def _told(port: Row) -> dict[str, str]:
    """The options of a port that are ours to set; others stay as they are."""
    ours = {*NAMES.values(), MTU}
    rows = port.get("extra_dhcp_opts") or ()
    return {row["opt_name"]: row["opt_value"] for row in rows if row["opt_name"] in ours}


def _update(cloud: CloudSession, os_id: str, options: Options) -> None:
    try:
        cloud.network.update_port(os_id, {"extra_dhcp_opts": as_rows(options)})
    except NotFound:
        return  # the next describe of interfaces finds out
