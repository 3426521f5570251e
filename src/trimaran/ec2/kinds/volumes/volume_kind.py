"""Volumes as the reconciliation engine sees them: what Cinder lists to the caller.

Beside its id an item holds what EC2 says and Cinder does not know, in its blob:

``stage``/``draft``
    the volume is being made; the draft stands in for Cinder's JSON until then;
``attached``
    by server: the instance's id, the device name that was asked for, and
    whether the volume dies with the instance (see `volume_attachments`);
``modification``
    the last ModifyVolume (see `volume_modification`);
``type``
    EC2's name of the volume type and Cinder's name of what it stands for;
``snapshot_id``, ``client_token``, ``auto_enable_io``
    what the volume was made with, or told to be.

What no longer agrees with Cinder is repaired as it is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.volumes import volume_states as states
from trimaran.ec2.kinds.volumes.volume_modification import finished
from trimaran.ec2.reconcile_kind import Fate, Found, Kind, Reference, Selection, Thunks
from trimaran.errors import NotFound

#: Up to so many objects are asked for one by one; more are read with the whole listing.
FEW = 6

STAGE = "stage"
MAKING = "making"
DRAFT = "draft"
ATTACHED = "attached"
TYPE = "type"

#: Whose a volume is, as Cinder tells administrators and owners.
OWNER = "os-vol-tenant-attr:tenant_id"


class Volumes(Kind):
    """The volumes of the caller's project."""

    prefixes = ("vol",)

    def listings(self, ctx: Context, selection: Selection | None) -> Thunks:
        cinder = ctx.user.volume
        return thunks_for("volume", selection, cinder.volumes, cinder.volume)

    def found(self, ctx: Context, listed: Mapping[str, Any]) -> list[Found]:
        return [
            Found("vol", row["id"], row, hint=hint(row.get("name"), "vol"))
            for row in rows_of(listed, "volume")
            # An administrator is shown other projects' volumes when asking for one by its id.
            if row.get(OWNER, ctx.project_id) == ctx.project_id
        ]

    def new_item(self, ctx: Context, found: Found) -> NewItem:
        return NewItem("vol", found.os_id, ctx.project_id)

    def repair(self, ctx: Context, item: Item, found: Found) -> Mapping[str, Any]:
        data = dict(item.data)
        if item.os_id is None or STAGE in data:
            data = made(data)
        asked = data.get(TYPE)
        if asked and asked.get("name") is None:
            data[TYPE] = {**asked, "name": found.body.get("volume_type")}
        noted = data.get(ATTACHED) or {}
        kept = _kept(noted, found.body)
        if kept != noted:
            data[ATTACHED] = kept
        data |= finished(ctx, data, found.body)
        return {"data": data} if data != item.data else {}

    def fate(self, ctx: Context, item: Item) -> Fate:
        return fate_of_making(ctx, item)

    def references(
        self, ctx: Context, listed: Mapping[str, Any], found: Sequence[Found]
    ) -> Iterable[Reference]:
        for thing in found:
            if source := thing.body.get("snapshot_id"):
                # It may be gone: a mapping, which no describe of snapshots takes for its own.
                yield Reference("snap", source, own=False)


def thunks_for(
    noun: str,
    selection: Selection | None,
    listing: Callable[..., list[dict[str, Any]]],
    one: Callable[[str], dict[str, Any]],
) -> Thunks:
    """What to ask Cinder: the whole listing, or the few selected by name or one by one."""
    if selection is None or len(selection) > FEW:
        return {f"{noun}s": listing}
    thunks: dict[str, Callable[[], Any]] = {
        f"{noun}s:{item.id}": partial(listing, name=item.id) for item in selection.waiting
    }
    return thunks | {
        f"{noun}:{os_id}": partial(unless_gone, one, os_id) for os_id in selection.os_ids
    }


def unless_gone(one: Callable[[str], dict[str, Any]], os_id: str) -> dict[str, Any] | None:
    """One object, or None when Cinder has it no more."""
    try:
        return one(os_id)
    except NotFound:
        return None


def fate_of_making(ctx: Context, item: Item) -> Fate:
    """An item without object is kept while its object may still come."""
    waits = item.os_id is None and item.data.get(STAGE) == MAKING
    young = item.age is not None and item.age < ctx.conf.trimaran.launch_deadline_seconds
    return Fate.KEEP if waits and young else Fate.DELETE


def made(data: Mapping[str, Any]) -> dict[str, Any]:
    """The blob of an item whose object is there."""
    return {name: value for name, value in data.items() if name not in (STAGE, DRAFT)}


def rows_of(listed: Mapping[str, Any], noun: str) -> Iterable[dict[str, Any]]:
    """The rows of a kind in what was listed, each once: whole listings and single objects."""
    rows: dict[str, dict[str, Any]] = {}
    for name, result in listed.items():
        if name == f"{noun}s" or name.startswith(f"{noun}s:"):
            rows |= {row["id"]: row for row in result}
        elif name.startswith(f"{noun}:") and result is not None:
            rows[result["id"]] = result
    return rows.values()


def hint(name: Any, prefix: str) -> str:
    """The id that an object was made for: its name, while nobody renames it."""
    return name if isinstance(name, str) and ids.is_id(name, [prefix]) else ""


def attachments(volume: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Cinder's attachments of a volume by server."""
    return {
        row["server_id"]: row for row in volume.get("attachments") or () if row.get("server_id")
    }


def _kept(noted: Mapping[str, Any], volume: Mapping[str, Any]) -> dict[str, Any]:
    """The notes on attachments that are there or coming, each bound to its attachment."""
    there = attachments(volume)
    coming = states.status_of(volume) in states.ATTACHING
    kept = {}
    for server, note in noted.items():
        row = there.get(server)
        if row is None and coming:
            kept[server] = note
        elif row is not None and note.get("attachment") in (None, row.get("attachment_id")):
            kept[server] = {**note, "attachment": row.get("attachment_id")}
    return kept
