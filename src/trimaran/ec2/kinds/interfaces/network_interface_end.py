"""What instances take along when they end: interfaces that go with them, and their own addresses.

Called when an instance's server is gone for certain, by whoever sees that first;
all of it may be done twice.  The service user does it: the one who looks may be
allowed to look only, and Neutron lets nobody else delete a port that a server
had a moment ago (spec ec2.md 11.5).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from sqlalchemy.orm import Session

from trimaran.cloud import gather
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.interfaces import network_interface_kind as kind
from trimaran.ec2.kinds.interfaces.address_kind import AUTO
from trimaran.ec2.kinds.interfaces.network_interface_routes import retell_routes
from trimaran.errors import NotFound

LOG = logging.getLogger(__name__)


def take_along(ctx: Context, instance_ids: Collection[str]) -> None:
    """Delete what goes with instances, and detach the rest.

    Args:
        ctx: whose instances.
        instance_ids: instances whose servers are gone.

    Raises:
        TrimaranError: something could not be deleted; nothing is forgotten.
    """
    items = ctx.db.read(lambda s: _things_of(s, ctx, instance_ids))
    if not items:
        return
    doomed = [item for item in items if item.kind == kind.ELASTIC or item.data.get(kind.DELETES)]
    delete_objects(ctx, doomed)
    ctx.db.write(lambda s: _forget(s, ctx, instance_ids))


def delete_objects(ctx: Context, items: Sequence[Item]) -> None:
    """Delete the ports and floating IPs behind items, also where only their names are known.

    Raises:
        TrimaranError: one could not be deleted.
    """
    neutron, mine = ctx.admin.network, {"project_id": ctx.project_id}
    of: dict[str, tuple[Callable[..., list[dict[str, Any]]], Callable[[str], None], str]] = {
        kind.ELASTIC: (neutron.floating_ips, neutron.delete_floating_ip, "description"),
        kind.PREFIX: (neutron.ports, neutron.delete_port, "name"),
    }
    for prefix, (listing, delete, called) in of.items():
        chosen = [item for item in items if item.kind == prefix]
        known = [item.os_id for item in chosen if item.os_id]
        names = [item.id for item in chosen if not item.os_id]
        rows: dict[str, Any] = {}
        if known:
            rows |= {row["id"]: row for row in listing(**mine, id=known)}
        if names:
            rows |= {row["id"]: row for row in listing(**mine, **{called: names})}
        # The service user sees every project's: the filter is not taken on trust.
        there = [os_id for os_id, row in rows.items() if row.get("project_id") == ctx.project_id]
        if there:
            LOG.info("Deleting %s %s of project %s", len(there), prefix, ctx.project_id)
            gather(**{os_id: partial(_delete, delete, os_id) for os_id in there})


def _delete(delete: Callable[[str], None], os_id: str) -> None:
    with contextlib.suppress(NotFound):
        delete(os_id)


def _things_of(session: Session, ctx: Context, instance_ids: Collection[str]) -> list[Item]:
    wanted = set(instance_ids)
    names = {kind.PREFIX: kind.INSTANCE, kind.ELASTIC: AUTO}
    items = queries.items_of(session, ctx.project_id, list(names))
    return [item for item in items if item.data.get(names[item.kind]) in wanted]


def _forget(session: Session, ctx: Context, instance_ids: Collection[str]) -> None:
    gone = []
    for item in _things_of(session, ctx, instance_ids):
        if item.kind == kind.ELASTIC or item.data.get(kind.DELETES):
            gone.append(item.id)
        else:
            data = kind.detached(item.data)
            queries.update_item(session, ctx.project_id, item.id, data=data)
    queries.delete_items(session, ctx.project_id, gone)
    retell_routes(session, ctx, [each for each in gone if ids.kind_of(each) == kind.PREFIX])
