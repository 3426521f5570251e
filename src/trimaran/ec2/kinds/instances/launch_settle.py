"""How a launch ends: one transaction, the same for the request and for who takes it over.

The items say how far a launch has come, by their stage: ``launching`` until the
launch is decided, none when it has succeeded, ``undone`` when it has failed,
``ending`` when somebody terminated the instance meanwhile.  Whoever concludes
brings what it knows of Nova's servers; the decision is made from the items as
they are in the transaction, so two who conclude the same launch agree, and what
is left over (a server of an undone launch) is told to the one who knows of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_tags as tag_queries
from trimaran.db.queries import ec2_tokens as token_queries
from trimaran.db.queries.ec2 import Item
from trimaran.ec2 import journal
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.instances.instance_kind import ENDING, STAGE, UNDONE
from trimaran.errors import TrimaranError

ACTION = "RunInstances"
#: How often a conclusion is tried again when items change under it.
TRIES = 8

T = TypeVar("T")
Write = Callable[[Callable[[Session], T]], T]


@dataclass(frozen=True)
class Launch:
    """A launch as its journal knows it.

    Attributes:
        reservation_id: its reservation.
        item_ids: its instances.
        least: how many of them make it a success.
        token: the client token that it took, or "".
        volume_tags: tags of the volumes that Nova makes for it.
        plugged: by instance, the interfaces and public addresses that are made for it.
        borrowed: by instance, the interfaces that were there before.
    """

    reservation_id: str
    item_ids: list[str]
    least: int
    token: str = ""
    volume_tags: dict[str, str] = field(default_factory=dict)
    plugged: dict[str, list[str]] = field(default_factory=dict)
    borrowed: dict[str, list[str]] = field(default_factory=dict)

    def payload(self, project_id: str) -> dict[str, Any]:
        """For the journal."""
        return {"project": project_id, "launch": asdict(self)}


@dataclass
class Conclusion:
    """What a conclusion decided.

    Attributes:
        success: the launch has enough instances.
        stay: the items that are instances now.
        doomed: Nova ids of servers that are to be deleted.
        waiting: the instances of which it is not known whether a server exists.
    """

    success: bool
    stay: list[Item] = field(default_factory=list)
    doomed: list[str] = field(default_factory=list)
    waiting: set[str] = field(default_factory=set)

    @property
    def left(self) -> bool:
        """Whether something is still open."""
        return bool(self.waiting)


class _ChangedMeanwhile(Exception):
    """Another process changed an item after this transaction read it."""


def conclude(
    ctx: Context,
    launch: Launch,
    servers: Mapping[str, str | None],
    write: Write[Conclusion],
    job_id: str | None = None,
    also: Callable[[Session, Conclusion], bool] = lambda session, made: False,
) -> Conclusion:
    """Decide a launch, as far as it is not decided yet.

    Args:
        ctx: whose launch.
        launch: which.
        servers: by item id, Nova's id; "" for a server that surely does not
            exist; None, or no entry, when nobody knows.
        write: runs a unit of work.
        job_id: the journal's entry, to be ended when nothing is left to do.
        also: what else the decision changes, in the same transaction; whether
            it leaves something to do.
    """

    def unit(session: Session) -> Conclusion:
        made = _decide(session, ctx.project_id, launch, servers)
        more = also(session, made)
        left = made.left or made.doomed or more or _has_volumes_to_tag(launch, made)
        if job_id and not left:
            journal.end(session, job_id)
        return made

    for _ in range(TRIES):
        try:
            return write(unit)
        except _ChangedMeanwhile:
            continue
    raise TrimaranError("The launch changes too often to be concluded.")


def _has_volumes_to_tag(launch: Launch, made: Conclusion) -> bool:
    return made.success and bool(launch.volume_tags)


def _decide(
    session: Session, project_id: str, launch: Launch, servers: Mapping[str, str | None]
) -> Conclusion:
    items = {item.id: item for item in queries.items_by_ids(session, project_id, launch.item_ids)}
    known = {
        item_id: (items[item_id].os_id if item_id in items else None) or servers.get(item_id)
        for item_id in launch.item_ids
    }
    stages = {item_id: item.data.get(STAGE) for item_id, item in items.items()}
    won = None in stages.values()
    if not won and UNDONE not in stages.values():
        standing = [i for i, stage in stages.items() if stage == ENDING or known[i]]
        won = len(standing) >= launch.least
    made = Conclusion(won)
    run = _Run(session, project_id, made)
    for item_id in launch.item_ids:
        item = items.get(item_id)
        if item is None:
            run.doom(known[item_id])
        elif won:
            run.keep(item, known[item_id])
        else:
            run.undo(item, known[item_id])
    queries.delete_items(session, project_id, run.drop)
    queries.bury_items(session, project_id, run.bury)
    if not won:
        tag_queries.delete_tags(session, project_id, run.hidden, None)
        if launch.token:
            token_queries.drop_token(
                session, project_id, ACTION, launch.token, launch.reservation_id
            )
    return made


class _Run:
    """The changes of one conclusion."""

    def __init__(self, session: Session, project_id: str, made: Conclusion) -> None:
        self._session = session
        self._project_id = project_id
        self._made = made
        self.drop: list[str] = []
        self.bury: list[str] = []
        self.hidden: list[str] = []

    def doom(self, os_id: str | None) -> None:
        if os_id:
            self._made.doomed.append(os_id)

    def keep(self, item: Item, os_id: str | None) -> None:
        """One item of a launch that succeeded."""
        stage = item.data.get(STAGE)
        if stage is None:
            self._made.stay.append(item)
        elif stage == UNDONE:
            self.undo(item, os_id)
        elif os_id is None:
            self._made.waiting.add(item.id)
            if stage == ENDING:
                self._made.stay.append(item)
        elif os_id == "":
            (self.bury if stage == ENDING else self.drop).append(item.id)
        else:
            data = dict(item.data)
            if stage == ENDING:
                self.doom(os_id)
            else:
                del data[STAGE]
            self._change(item, data, os_id)
            self._made.stay.append(item)

    def undo(self, item: Item, os_id: str | None) -> None:
        """One item of a launch that failed."""
        if os_id == "":
            self.drop.append(item.id)
            return
        self.hidden.append(item.id)
        self.doom(os_id)
        if os_id is None:
            self._made.waiting.add(item.id)
        if item.data.get(STAGE) != UNDONE or (os_id and not item.os_id):
            self._change(item, {**item.data, STAGE: UNDONE}, os_id)

    def _change(self, item: Item, data: Mapping[str, Any], os_id: str | None) -> None:
        change_item(self._session, self._project_id, item, data, os_id)


def change_item(
    session: Session, project_id: str, item: Item, data: Mapping[str, Any], os_id: str | None
) -> None:
    """Change an item that the decision was made from; if it is another by now, decide anew."""
    changed = queries.update_item(
        session, project_id, item.id, version=item.version, data=data, os_id=os_id or None
    )
    if not changed:
        raise _ChangedMeanwhile
