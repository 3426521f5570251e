"""What Neutron's VPN as a service has for a VPC, made to agree with the items (spec 3.17, 3.18).

While a VPN gateway is attached each subnet has a VPN service; each connection of
the gateway that has routes in a subnet's table has an IPsec connection there.
Nothing of that is remembered: services bear the subnet's id as their name,
connections ``<connection>/<subnet>``, and what is on the VPC's router is ours.
One process at a time does it for a VPC, since Neutron would make things twice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.cloud import CloudError, CloudSession, gather
from trimaran.db.queries import ec2 as queries
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.vpcs import vpc_gateway
from trimaran.ec2.kinds.vpn import vpn_items as names
from trimaran.ec2.kinds.vpn.vpn_wanted import KINDS, Link, Wanted, wanted_of
from trimaran.ec2.protocol.errors import EC2Error, unsupported
from trimaran.errors import BadRequest, Conflict, NotFound, QuotaExceeded

Row = Mapping[str, Any]

#: For tunnels over the internet (spec 3.18).
MTU = 1427


def sync_vpn(ctx: Context, vpc_id: str, cloud: CloudSession | None = None) -> None:
    """Make Neutron agree with the items about a VPC to which a VPN gateway is attached.

    Nothing is asked of Neutron for any other VPC.

    Raises:
        EC2Error: ``UnsupportedOperation`` without VPN as a service in the cloud.
    """
    _until_settled(ctx, vpc_id, cloud or ctx.user, make=True, only_attached=True)


def clean_vpn(
    ctx: Context,
    vpc_id: str,
    cloud: CloudSession | None = None,
    *,
    only_attached: bool = False,
) -> None:
    """Remove from Neutron what the items do not want (any more) of a VPC.

    To be called before the router loses its way out, or a subnet the router:
    VPN services keep both.

    Args:
        ctx: the request.
        vpc_id: the VPC.
        cloud: as whom.
        only_attached: ask nothing of Neutron when no VPN gateway is attached.
    """
    _until_settled(ctx, vpc_id, cloud or ctx.user, make=False, only_attached=only_attached)


def _until_settled(
    ctx: Context, vpc_id: str, cloud: CloudSession, *, make: bool, only_attached: bool
) -> None:
    def read() -> Wanted | None:
        items = ctx.db.read(lambda s: queries.items_of(s, ctx.project_id, KINDS))
        return wanted_of(items, vpc_id)

    wanted = read()
    if wanted is None or (only_attached and not wanted.attached):
        return
    told: Wanted | None = None
    with work.hold(ctx.db, f"ec2.vpn.{vpc_id}"):
        while (wanted := read()) is not None and wanted != told:
            try:
                _tell(ctx, cloud, vpc_id, wanted, make=make)
            except CloudError:
                # A subnet or a connection may have gone between the look and the call.
                if read() == wanted:
                    raise
            else:
                told = wanted


def _tell(ctx: Context, cloud: CloudSession, vpc_id: str, wanted: Wanted, *, make: bool) -> None:
    neutron = cloud.network
    try:
        services = neutron.vpn_services(router_id=wanted.router)
    except NotFound:
        if make:
            raise no_vpn() from None
        return  # there is nothing to be cleaned either
    links = neutron.ipsec_connections(vpnservice_id=[row["id"] for row in services])
    kept_services = {row["name"]: row for row in services if row["name"] in wanted.services}
    spare = [row["id"] for row in services if row is not kept_services.get(row["name"])]
    on_kept = {row["id"] for row in kept_services.values()}
    kept: dict[tuple[str, str], Row] = {}
    doomed: list[str] = []
    for row in links:
        key = _key(row)
        link = wanted.links.get(key)
        if link is None or key in kept or row["vpnservice_id"] not in on_kept:
            doomed.append(row["id"])
        elif _same_ends(row, link) and _agrees(cloud, row, link, change=make):
            kept[key] = row
        else:
            doomed.append(row["id"])
    _delete(neutron.delete_ipsec_connection, doomed)
    _delete(neutron.delete_vpn_service, spare)
    if make and len(kept_services) < len(wanted.services):
        # Whoever attaches a gateway has noted it, but may not have come to the router yet.
        vpc_gateway.sync_gateway(ctx, vpc_id, cloud)
    if make:
        _make(ctx, cloud, wanted, kept_services, kept)


def _key(row: Row) -> tuple[str, str]:
    connection, _, subnet = str(row.get("name") or "").partition("/")
    return connection, subnet


def _same_ends(row: Row, link: Link) -> bool:
    return (row["peer_address"], row["ikepolicy_id"], row["ipsecpolicy_id"]) == (
        link.peer,
        link.ike,
        link.ipsec,
    )


def _agrees(cloud: CloudSession, row: Row, link: Link, *, change: bool) -> bool:
    """Whether a connection has its ranges, or has been given them.

    Neutron changes none that it has not finished making; that one is made anew.
    """
    if sorted(row.get("peer_cidrs") or ()) == list(link.cidrs):
        return True
    if not change:
        return True
    try:
        cloud.network.update_ipsec_connection(row["id"], {"peer_cidrs": list(link.cidrs)})
    except (BadRequest, Conflict, NotFound):
        return False
    return True


def _delete(delete: Callable[[str], None], os_ids: Iterable[str]) -> None:
    def one(os_id: str) -> None:
        with contextlib.suppress(NotFound):
            delete(os_id)

    thunks = {os_id: partial(one, os_id) for os_id in os_ids}
    if thunks:
        gather(**thunks)


def _make(
    ctx: Context,
    cloud: CloudSession,
    wanted: Wanted,
    services: Mapping[str, Row],
    links: Mapping[tuple[str, str], Row],
) -> None:
    missing = {name: os_id for name, os_id in wanted.services.items() if name not in services}
    there = {name: row["id"] for name, row in services.items()}
    project = {"project_id": ctx.project_id}
    try:
        made = gather(
            **{
                name: partial(
                    cloud.network.create_vpn_service,
                    {**project, "name": name, "router_id": wanted.router, "subnet_id": os_id},
                )
                for name, os_id in missing.items()
            }
        )
        there |= {name: row["id"] for name, row in made.items()}
        new = {key: link for key, link in wanted.links.items() if key not in links}
        secrets = _secrets(cloud, new.values())
        bodies = {
            "/".join(key): {
                **project,
                "name": "/".join(key),
                "vpnservice_id": there[key[1]],
                "ikepolicy_id": link.ike,
                "ipsecpolicy_id": link.ipsec,
                "peer_address": link.peer,
                "peer_id": link.peer,
                "peer_cidrs": list(link.cidrs),
                "psk": link.secret or secrets.get(link.ike, ""),
                "mtu": str(MTU),
                "initiator": "response-only",
            }
            for key, link in new.items()
        }
        gather(
            **{
                name: partial(cloud.network.create_ipsec_connection, body)
                for name, body in bodies.items()
            }
        )
    except QuotaExceeded as error:
        raise EC2Error(
            "VpnConnectionLimitExceeded", "The project may have no more VPN services."
        ) from error


def _secrets(cloud: CloudSession, links: Iterable[Link]) -> dict[str, str]:
    """Pre-shared keys by IKE policy."""
    policies = sorted({link.ike for link in links if not link.secret and link.ike})
    if not policies:
        return {}
    rows = cloud.network.ike_policies(id=policies)
    return {row["id"]: str(row.get("description") or "") for row in rows}


def stop_subnet(ctx: Context, cloud: CloudSession, subnet_id: str) -> None:
    """Remove the VPN service of a subnet, which keeps it and its router.

    Nothing is asked of Neutron while no VPN gateway of the project is attached.
    """
    gateways = ctx.db.read(lambda s: queries.items_of(s, ctx.project_id, [names.GATEWAY]))
    if not any(item.vpc_id for item in gateways):
        return
    neutron = cloud.network
    try:
        services = neutron.vpn_services(
            name=subnet_id, project_id=ctx.project_id, fields=["id", "name"]
        )
    except NotFound:
        return
    doomed = [row["id"] for row in services]
    links = neutron.ipsec_connections(vpnservice_id=doomed, fields=["id"])
    _delete(neutron.delete_ipsec_connection, [row["id"] for row in links])
    _delete(neutron.delete_vpn_service, doomed)


def no_vpn() -> EC2Error:
    """The error of a cloud without VPN as a service."""
    return unsupported("This cloud has no VPN as a service.")


def attached_gateway(session: Session, project_id: str, gateway_id: str) -> str | None:
    """The VPC that a VPN gateway is attached to."""
    items = queries.items_by_ids(session, project_id, [gateway_id])
    return items[0].vpc_id if items else None
