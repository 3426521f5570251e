"""The reconciliation engine: what a Describe does before it can answer.

OpenStack is the truth about objects; our database is the truth about ids, tags
and what OpenStack has no field for.  All kinds take the same steps, in an order
that makes races harmless:

1. items and tags are read (one statement each) *before* the cloud is asked, so
   an item that was read and has no object in a complete listing is really gone;
2. all listings run in parallel; one that fails, or a page of one, fails the
   describe, and nothing is written;
3. objects without an item are looked up once more by OpenStack id *after* the
   listing: what another process stored meanwhile is found, not made again;
4. whatever has to change is changed in one transaction; when nothing has, none
   is opened.  Processes that see the same new object at once converge on one
   id (see `trimaran.db.queries.ec2.add_items`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy.orm import Session

from trimaran.cloud import gather
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_tags as tag_queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.reconcile_kind import Fate, Found, Kind, Pair, Reference, Selection, View
from trimaran.ec2.tags_shown import tags_by_item


def reconcile(
    ctx: Context,
    kind: Kind,
    wanted: Sequence[str] | None = None,
    *,
    objects: Sequence[str] | None = None,
) -> View:
    """Bring items and cloud together for one kind.

    Args:
        ctx: the request.
        kind: the kind, made for this request.
        wanted: well-formed ids to be looked at alone; None for all.
        objects: OpenStack ids to be looked at alone; unlike with ``wanted``,
            what is there without an item gets one.

    Returns:
        What is there; with ``wanted``, exactly one pair for each of them.

    Raises:
        EC2Error: the kind's ``NotFound`` when one of the ids does not exist (any more).
        Unavailable: a listing failed, or cannot be complete.
    """
    run = _Run(ctx, kind, _once(wanted), _once(objects))
    run.load()
    run.list()
    run.pair()
    run.plan_additions()
    run.plan_changes()
    run.write()
    return run.view()


def _once(values: Sequence[str] | None) -> list[str] | None:
    return None if values is None else list(dict.fromkeys(values))


def _changed(item: Item, changes: Mapping[str, Any]) -> Item:
    """An item as it will be, for the description that is made of it."""
    told = {name: value for name, value in changes.items() if name != "revive"}
    dead_for = None if "revive" in changes else item.dead_for
    return replace(item, **told, dead_for=dead_for, version=item.version + 1)


@dataclass
class _Run:
    ctx: Context
    kind: Kind
    wanted: list[str] | None
    objects: list[str] | None
    seen: View = field(init=False)
    live: list[Item] = field(default_factory=list)
    dead: list[Item] = field(default_factory=list)
    found: list[Found] = field(default_factory=list)
    pairs: dict[str, Pair] = field(default_factory=dict)
    new: dict[str, Found] = field(default_factory=dict)
    adds: list[NewItem] = field(default_factory=list)
    updates: list[tuple[Item, dict[str, Any]]] = field(default_factory=list)
    absent: dict[Fate, list[Item]] = field(default_factory=dict)
    expired: list[Item] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.seen = View(self.ctx)

    def load(self) -> None:
        """Items and tags, before the cloud is asked."""
        ctx, kind = self.ctx, self.kind

        def read(session: Session) -> tuple[list[Item], list[tag_queries.Tag]]:
            if self.objects is not None:
                known = queries.by_os_ids(session, self.objects)
                items = [item for item in known.values() if self._is_ours(item)]
                chosen = [item.id for item in items]
            else:
                items = kind.load(session, ctx, self.wanted)
                if self.wanted is None:
                    return items, tag_queries.tags_of(session, ctx.project_id, kind.prefixes)
                chosen = self.wanted
            return items, tag_queries.tags_by_items(session, ctx.project_id, chosen)

        items, tags = ctx.db.read(read)
        self.seen.tags = tags_by_item(tags)
        self.live = [item for item in items if item.dead_for is None]
        self.dead = [item for item in items if item.dead_for is not None]
        self._require({item.id for item in items if not kind.hidden(item)})

    def _require(self, there: Collection[str]) -> None:
        missing = [item_id for item_id in self.wanted or () if item_id not in there]
        if missing:
            raise ids.missing_ids(missing)

    def list(self) -> None:
        """All listings at once; then a second round where the kind has one."""
        selection = self._selection()
        if selection is not None and not len(selection):
            return
        listed = self.seen.listed
        listed.update(gather(**self.kind.listings(self.ctx, selection)))
        self.found = self.kind.found(self.ctx, listed)
        if selection is not None:
            # A kind may read more than it was asked for; the rest is not touched.
            chosen = set(selection.os_ids)
            hints = {item.id for item in selection.waiting}
            self.found = [
                thing for thing in self.found if thing.os_id in chosen or thing.hint in hints
            ]
        more = self.kind.details(self.ctx, listed, self.found, selection is not None)
        if more:
            listed.update(gather(**more))

    def _selection(self) -> Selection | None:
        if self.objects is not None:
            return Selection(tuple(self.objects))
        if self.wanted is None:
            return None
        return Selection(
            tuple(item.os_id for item in self.live if item.os_id),
            tuple(item for item in self.live if not item.os_id),
        )

    def pair(self) -> None:
        """Objects to items: by OpenStack id, else by the id that the object was made for."""
        by_os_id = {item.os_id: item for item in (*self.dead, *self.live) if item.os_id}
        waiting = {item.id: item for item in self.live if not item.os_id}
        for thing in self.found:
            item = by_os_id.get(thing.os_id)
            if item is None and thing.own:
                item = waiting.pop(thing.hint, None)
            if item is None or (thing.own and not self._is_ours(item)):
                self.new[thing.os_id] = thing
            else:
                self._join(item, thing)

    def _is_ours(self, item: Item) -> bool:
        return item.project_id == self.ctx.project_id

    def _join(self, item: Item, thing: Found) -> None:
        self.pairs[item.id] = Pair(item, thing)
        self.seen.ids[thing.os_id] = item.id

    def plan_additions(self) -> None:
        """New objects get items; what descriptions refer to gets an id."""
        references: dict[str, Reference] = {
            reference.os_id: reference
            for reference in self._references()
            if reference.os_id not in self.seen.ids
        }
        beside = {
            os_id: self.kind.beside[os_id] for os_id in references if os_id in self.kind.beside
        }
        self.seen.ids.update({os_id: item.id for os_id, item in beside.items()})
        self.seen.referred.update(beside)
        references = {os_id: each for os_id, each in references.items() if os_id not in beside}
        if not self.new and not references:
            return
        known, made_for = self._look_up(
            {*self.new, *references}, {thing.hint for thing in self.new.values() if thing.hint}
        )
        self.seen.ids.update({os_id: item.id for os_id, item in known.items()})
        self.seen.referred.update({i: item for i, item in known.items() if self._is_ours(item)})
        for thing in self.new.values():
            item = known.get(thing.os_id) or made_for.get(thing.hint)
            if item is not None and (self._is_ours(item) or not thing.own):
                self._join(item, thing)
            elif item is not None or self.wanted is None:
                self.adds.append(self.kind.new_item(self.ctx, thing))
        for reference in references.values():
            stored = reference.os_id in known or reference.os_id in self.new
            if not (stored or reference.known_only):
                self.adds.append(
                    NewItem(
                        kind=reference.kind,
                        os_id=reference.os_id,
                        project_id=self.ctx.project_id if reference.own else None,
                        alike=reference.alike,
                    )
                )

    def _references(self) -> Iterable[Reference]:
        yield from self.kind.references(self.ctx, self.seen.listed, self.found)
        for item in (*self.live, *self.dead):
            if item.id not in self.pairs:
                yield from self.kind.remembered(item)

    def _look_up(
        self, os_ids: Collection[str], hints: Collection[str]
    ) -> tuple[dict[str, Item], dict[str, Item]]:
        """Items by OpenStack id (any project's), and own ones that wait for an object."""

        def read(session: Session) -> tuple[dict[str, Item], dict[str, Item]]:
            known = queries.by_os_ids(session, os_ids)
            waiting: list[Item] = []
            if hints:
                waiting = queries.items_by_ids(session, self.ctx.project_id, hints)
            return known, {item.id: item for item in waiting if not item.os_id}

        return self.ctx.db.read(read)

    def plan_changes(self) -> None:
        """Links, revivals and repairs; and the fate of what has no object."""
        for pair in list(self.pairs.values()):
            if pair.found is None or not self._is_ours(pair.item):
                continue
            changes = dict(self.kind.repair(self.ctx, pair.item, pair.found))
            if pair.item.os_id is None:
                changes["os_id"] = pair.found.os_id
            if pair.item.dead_for is not None:
                changes["revive"] = True
            if changes:
                self.updates.append((pair.item, changes))
                self.pairs[pair.item.id] = Pair(_changed(pair.item, changes), pair.found)
        self.absent = {fate: [] for fate in Fate}
        for item in self.live:
            if item.id not in self.pairs and self._is_ours(item):
                self.absent[self.kind.fate(self.ctx, item)].append(item)
        vanished = [
            item for fate in (Fate.BURY, Fate.DELETE) for item in self.absent[fate] if item.os_id
        ]
        if vanished:
            self.kind.confirm_gone(self.ctx, vanished)
            self.kind.gone(self.ctx, vanished)
        self.expired = [
            item
            for item in self.dead
            if item.id not in self.pairs and self.kind.expired(self.ctx, item)
        ]

    def write(self) -> None:
        """Everything that has to change, in one transaction; none when nothing has."""
        bury = [item.id for item in self.absent[Fate.BURY]]
        delete = [item.id for item in (*self.absent[Fate.DELETE], *self.expired)]
        if not (self.adds or self.updates or bury or delete):
            return

        def apply(session: Session) -> list[Item]:
            made = queries.add_items(session, self.adds, ids.mint)
            # In one order everywhere: two describes then wait for each other, not in a circle.
            for item, changes in sorted(self.updates, key=lambda each: each[0].id):
                queries.update_item(
                    session, item.project_id, item.id, version=item.version, **changes
                )
            queries.bury_items(session, self.ctx.project_id, bury)
            queries.delete_items(session, self.ctx.project_id, delete)
            if gone := self.absent[Fate.DELETE]:
                self.kind.removed(session, self.ctx, gone)
            return made

        for new, item in zip(self.adds, self.ctx.db.write(apply), strict=True):
            thing = self.new.get(new.os_id or "")
            if thing is not None:
                self._join(item, thing)
            elif new.os_id:
                self.seen.ids[new.os_id] = item.id

    def view(self) -> View:
        """What is shown: pairs, what is still being made, tombstones old and new."""
        shown = dict(self.pairs)
        self._show(shown, self.absent[Fate.KEEP])
        self._show(shown, (replace(item, dead_for=0.0) for item in self.absent[Fate.BURY]))
        gone = {item.id for item in self.expired}
        self._show(shown, (item for item in self.dead if item.id not in gone))
        self.seen.pairs = [pair for pair in shown.values() if not self.kind.hidden(pair.item)]
        self._require({pair.item.id for pair in self.seen.pairs})
        return self.seen

    @staticmethod
    def _show(shown: dict[str, Pair], items: Iterable[Item]) -> None:
        for item in items:
            shown.setdefault(item.id, Pair(item, None))
