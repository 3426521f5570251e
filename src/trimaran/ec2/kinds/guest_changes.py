"""Telling the metadata service that a guest's network is not what it was.

What Neutron knows alone (groups, floating addresses) leaves no trace in an
instance's item, whose version the metadata service compares before it shows
what it keeps; so actions that change such things raise the version.  Called
after the change: what is read from then on is new.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.interfaces.network_interface_kind import INSTANCE


def interfaces_changed(ctx: Context, interface_ids: Iterable[str | None]) -> None:
    """Groups or addresses of interfaces have changed; one that is not attached matters to nobody.

    Args:
        ctx: the request, behind its change.
        interface_ids: the project's interfaces; None among them is ignored.
    """
    wanted = {interface_id for interface_id in interface_ids if interface_id}

    def write(session: Session) -> None:
        items = queries.items_by_ids(session, ctx.project_id, wanted)
        instances = {str(item.data[INSTANCE]) for item in items if item.data.get(INSTANCE)}
        queries.touch_items(session, ctx.project_id, instances)

    if wanted:
        ctx.db.write(write)


def server_changed(ctx: Context, server_id: str) -> None:
    """The same of a server that is in no VPC: its interfaces have no items."""

    def write(session: Session) -> None:
        items = queries.by_os_ids(session, [server_id]).values()
        queries.touch_items(session, ctx.project_id, {item.id for item in items})

    if server_id:
        ctx.db.write(write)
