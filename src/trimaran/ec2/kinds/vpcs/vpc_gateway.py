"""The way out of a VPC: its router's external gateway, there with an internet or VPN gateway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from trimaran.cloud import CloudSession
from trimaran.db.queries import ec2 as queries
from trimaran.ec2.context import Context
from trimaran.ec2.protocol.errors import EC2Error
from trimaran.errors import Conflict, NotFound

Row = Mapping[str, Any]
GATEWAYS = ("igw", "vgw")


def external_network(ctx: Context, cloud: CloudSession | None = None) -> Row:
    """The network that ``external_network`` names, or the only external one.

    Raises:
        EC2Error: ``Unsupported`` when there is none, or more than one.
    """
    asked = cloud or ctx.user
    query: dict[str, Any] = {"router:external": True, "fields": ["id", "name"]}
    if ctx.conf.external_network:
        query["name"] = ctx.conf.external_network
    rows = ctx.once("external network", lambda: asked.network.networks(**query))
    if len(rows) != 1:
        what = "no external network" if not rows else "more than one external network"
        raise EC2Error("Unsupported", f"The cloud has {what} that could be used.")
    return dict(rows[0])


def sync_gateway(ctx: Context, vpc_id: str, cloud: CloudSession | None = None) -> None:
    """Give the router of a VPC an external gateway exactly when an item says so.

    Raises:
        EC2Error: ``DependencyViolation`` when public addresses still need the gateway.
    """
    asked = cloud or ctx.user
    told: tuple[str, bool] | None = None
    while (wanted := ctx.db.read(lambda s: _wanted(s, ctx.project_id, vpc_id))) != told:
        if wanted is None:
            return
        router, connected = wanted
        info = {"network_id": external_network(ctx, asked)["id"]} if connected else None
        try:
            asked.network.update_router(router, {"external_gateway_info": info})
        except NotFound:
            return
        except Conflict as error:
            if connected:
                raise
            raise mapped(vpc_id) from error
        told = wanted


def mapped(vpc_id: str) -> EC2Error:
    """The error for a gateway that public addresses need."""
    return EC2Error(
        "DependencyViolation",
        f"Network {vpc_id} has some mapped public address(es). "
        "Please unmap those public address(es) before detaching the gateway.",
    )


def _wanted(session: Session, project_id: str, vpc_id: str) -> tuple[str, bool] | None:
    items = queries.items_of(session, project_id, ["vpc", *GATEWAYS])
    router = next((item.os_id for item in items if item.id == vpc_id), None)
    if not router:
        return None
    return router, any(item.kind in GATEWAYS and item.vpc_id == vpc_id for item in items)
