"""Snapshots as the reconciliation engine sees them: what Cinder lists to the caller.

Whether a snapshot is encrypted only its volume tells (Cinder keeps that one as
long as it has snapshots).  The answer never changes, so it is noted in the item
and asked for once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.volumes.volume_kind import (
    FEW,
    STAGE,
    fate_of_making,
    hint,
    made,
    rows_of,
    thunks_for,
    unless_gone,
)
from trimaran.ec2.reconcile_kind import Fate, Found, Kind, Pair, Reference, Selection, Thunks

ENCRYPTED = "encrypted"

_OWNER = "os-extended-snapshot-attributes:project_id"


class Snapshots(Kind):
    """The snapshots of the caller's project."""

    prefixes = ("snap",)

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._encrypted: dict[str, bool] = {}

    def load(self, session: Session, ctx: Context, wanted: Collection[str] | None) -> list[Item]:
        items = super().load(session, ctx, wanted)
        if wanted:
            # Ids that images and volumes told of: Cinder says whether they are the caller's.
            known = {item.id for item in items}
            told = queries.mapped_by_ids(session, [each for each in wanted if each not in known])
            items += [item for item in told if item.project_id is None and item.kind == "snap"]
        self._known = {item.os_id for item in items if item.os_id and ENCRYPTED in item.data}
        return items

    def listings(self, ctx: Context, selection: Selection | None) -> Thunks:
        cinder = ctx.user.volume
        return thunks_for("snapshot", selection, cinder.snapshots, cinder.snapshot)

    def found(self, ctx: Context, listed: Mapping[str, Any]) -> list[Found]:
        return [
            Found("snap", row["id"], row, hint=hint(row.get("name"), "snap"))
            for row in rows_of(listed, "snapshot")
            if row.get(_OWNER, ctx.project_id) == ctx.project_id
            and str(row.get("status")).lower() != "deleted"
        ]

    def details(
        self, ctx: Context, listed: Mapping[str, Any], found: Sequence[Found], selective: bool
    ) -> Thunks:
        unknown = sorted(
            {thing.body["volume_id"] for thing in found if thing.os_id not in self._known}
        )
        if len(unknown) > FEW:
            return {"volumes": self._noting(ctx.user.volume.volumes)}
        return {f"volume:{os_id}": self._noting(_volume(ctx, os_id)) for os_id in unknown}

    def _noting(self, read: Callable[[], list[dict[str, Any]]]) -> Callable[[], Any]:
        def ask() -> list[dict[str, Any]]:
            rows = read()
            for row in rows:
                self._encrypted[row["id"]] = bool(row.get("encrypted"))
            return rows

        return ask

    def _note(self, found: Found) -> dict[str, Any]:
        told = self._encrypted.get(found.body["volume_id"])
        return {} if told is None else {ENCRYPTED: told}

    def new_item(self, ctx: Context, found: Found) -> NewItem:
        return NewItem("snap", found.os_id, ctx.project_id, self._note(found))

    def repair(self, ctx: Context, item: Item, found: Found) -> Mapping[str, Any]:
        data = dict(item.data)
        if item.os_id is None or STAGE in data:
            data = made(data)
        data |= self._note(found)
        return {"data": data} if data != item.data else {}

    def fate(self, ctx: Context, item: Item) -> Fate:
        return fate_of_making(ctx, item)

    def references(
        self, ctx: Context, listed: Mapping[str, Any], found: Sequence[Found]
    ) -> Iterable[Reference]:
        for thing in found:
            yield Reference("vol", thing.body["volume_id"])

    def is_encrypted(self, pair: Pair) -> bool:
        """Whether the snapshot of a pair is encrypted, by what was told now or noted before."""
        told = self._encrypted.get(str(pair.body.get("volume_id")))
        return bool(pair.item.data.get(ENCRYPTED)) if told is None else told


def _volume(ctx: Context, os_id: str) -> Callable[[], list[dict[str, Any]]]:
    def read() -> list[dict[str, Any]]:
        volume = unless_gone(ctx.user.volume.volume, os_id)
        return [] if volume is None else [volume]

    return read
