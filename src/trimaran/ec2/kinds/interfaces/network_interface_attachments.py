"""Attachments that began or ended behind our back.

Neutron tells the server that has a port.  What EC2 shows besides (the
instance's id, a device index) is noted when AttachNetworkInterface or a launch
makes an attachment; one that Nova made without us is noted by the first look
that sees it, which asks Nova once.

A port that no server has any more, though we noted one, was unplugged in Nova,
or its server has ended: then the interface may have to go as well.  Nova is
asked which it is before anything is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.instances import instance_states as states
from trimaran.ec2.kinds.instances.instance_kind import Instances
from trimaran.ec2.kinds.interfaces import network_interface_kind as kind
from trimaran.ec2.kinds.interfaces.network_interface_end import take_along
from trimaran.ec2.reconcile import reconcile
from trimaran.ec2.reconcile_kind import Pair, View

#: An instance in one of these has all its ports, unless they were unplugged.
_PLUGGED = (states.RUNNING, states.STOPPED)


def settle_attachments(ctx: Context, view: View) -> View:
    """The view of interfaces with their attachments as Nova knows them."""
    strange = [pair for pair in view.pairs if _is_strange(pair)]
    lost = [pair for pair in view.pairs if kind.is_lost(ctx, pair.item.data, pair.body)]
    if strange:
        _learn(ctx, view, strange)
    if lost:
        _let_go(ctx, lost)
    if strange or lost:
        _read_again(ctx, view, [pair.item.id for pair in (*strange, *lost)])
    return view


def _is_strange(pair: Pair) -> bool:
    server, data = kind.server_of(pair.body), pair.item.data
    known = data.get(kind.INSTANCE) and data.get(kind.SERVER, server) == server
    return bool(server) and not known


def _learn(ctx: Context, view: View, strange: Sequence[Pair]) -> None:
    servers = sorted({kind.server_of(pair.body) for pair in strange})
    seen = reconcile(ctx, Instances(groups=False, volumes=False), objects=servers)
    known = {pair.found.os_id: pair.item.id for pair in seen.pairs if pair.found is not None}
    view.ids.update(known)
    ctx.db.write(lambda s: _note(s, ctx, strange, known))


def _note(session: Session, ctx: Context, strange: Sequence[Pair], known: dict[str, str]) -> None:
    items = {item.id: item for item in queries.items_of(session, ctx.project_id, [kind.PREFIX])}
    for pair in strange:
        server = kind.server_of(pair.body)
        item = items.get(pair.item.id)
        if item is None or server not in known:
            continue
        mine = (each for each in items.values() if each.data.get(kind.INSTANCE) == known[server])
        index = first_free_index(each.data.get(kind.INDEX, 0) for each in mine)
        noted = kind.attached(known[server], index, ctx.now, deletes=False)
        del noted[kind.ATTACHMENT]
        data = {**kind.detached(item.data), **noted, kind.SERVER: server}
        queries.update_item(session, ctx.project_id, item.id, version=item.version, data=data)
        items[item.id] = replace(item, data=data)


def _let_go(ctx: Context, lost: Sequence[Pair]) -> None:
    instance_ids = {str(pair.item.data[kind.INSTANCE]) for pair in lost}
    items = ctx.db.read(lambda s: queries.items_by_ids(s, ctx.project_id, instance_ids))
    there = [item.id for item in items if item.dead_for is None]
    take_along(ctx, instance_ids - set(there))
    if not there:
        return
    # Whoever is gone takes its own along as it is found out.
    seen = reconcile(ctx, _Known(groups=False, volumes=False), there)
    living = {
        pair.item.id
        for pair in seen.pairs
        if pair.found is not None and states.state_of(pair.body) in _PLUGGED
    }
    unplugged = [pair for pair in lost if pair.item.data[kind.INSTANCE] in living]
    ctx.db.write(lambda s: _unplug(s, ctx, unplugged))


class _Known(Instances):
    """Instances that were there a moment ago: one that an undone launch hides is no error."""

    def hidden(self, item: Item) -> bool:
        return False


def _unplug(session: Session, ctx: Context, pairs: Sequence[Pair]) -> None:
    for pair in pairs:
        queries.update_item(
            session,
            ctx.project_id,
            pair.item.id,
            version=pair.item.version,
            data=kind.detached(pair.item.data),
        )


def _read_again(ctx: Context, view: View, interface_ids: Sequence[str]) -> None:
    def read(session: Session) -> list[Item]:
        return queries.items_by_ids(session, ctx.project_id, interface_ids)

    now = {item.id: item for item in ctx.db.read(read)}
    touched = set(interface_ids)
    view.pairs = [
        replace(pair, item=now[pair.item.id]) if pair.item.id in touched else pair
        for pair in view.pairs
        if pair.item.id in now or pair.item.id not in touched
    ]


def first_free_index(taken: Iterable[Any]) -> int:
    """The lowest device index that is not taken."""
    used = set(taken)
    return next(index for index in range(len(used) + 1) if index not in used)
