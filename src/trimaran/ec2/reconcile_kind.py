"""What a kind of resource tells the reconciliation engine: one class a kind, nothing else.

A new kind of EC2 resource is one subclass of `Kind`; the steps, their order and
everything about races, transactions and ids are in `trimaran.ec2.reconcile`.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, ClassVar

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2.context import Context
from trimaran.errors import Forbidden, Unauthenticated, Unavailable

LOG = logging.getLogger(__name__)

Thunks = Mapping[str, Callable[[], Any]]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects a selective reconciliation is about.

    Attributes:
        os_ids: OpenStack ids, each once.
        waiting: items that have none yet: their object may exist all the same.
    """

    os_ids: tuple[str, ...]
    waiting: tuple[Item, ...] = ()

    def __len__(self) -> int:
        return len(self.os_ids) + len(self.waiting)


class Fate(Enum):
    """What becomes of an item whose object is not in the cloud."""

    KEEP = "keep"
    BURY = "bury"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Found:
    """One object of the cloud.

    Attributes:
        kind: the prefix that its id has or would get.
        os_id: its OpenStack id.
        body: its raw JSON.
        own: it belongs to the caller's project; otherwise it gets a mapping only.
        hint: the id that it was made for, if it carries one (name, property).
    """

    kind: str
    os_id: str
    body: Mapping[str, Any]
    own: bool = True
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Reference:
    """An object that descriptions mention: it needs an id, nothing else.

    Attributes:
        own: it is known to belong to the project (otherwise its owner is not known).
        alike: other kinds that it may be stored as.
        known_only: it is shown if it has an id, and gets none otherwise.
    """

    kind: str
    os_id: str
    own: bool = True
    alike: tuple[str, ...] = ()
    known_only: bool = False


@dataclass(frozen=True, slots=True)
class Pair:
    """An item and its object; a tombstone, or what is not there yet, has none."""

    item: Item
    found: Found | None

    @property
    def body(self) -> Mapping[str, Any]:
        """The object's JSON, empty without one."""
        return self.found.body if self.found else {}


@dataclass
class View:
    """What a reconciliation saw; what a description is made from.

    Attributes:
        pairs: items with their objects, and the tombstones that are still shown.
        listed: the listings' results by name.
        tags: tags by item id, as boto3 shows them.
        ids: EC2 ids by OpenStack id, of objects and references.
        referred: the project's own items among the references, by OpenStack id.
    """

    ctx: Context
    pairs: list[Pair] = field(default_factory=list)
    listed: dict[str, Any] = field(default_factory=dict)
    tags: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    referred: dict[str, Item] = field(default_factory=dict)

    def id_of(self, os_id: str | None) -> str | None:
        """The EC2 id of an OpenStack object that was listed or referred to."""
        return self.ids.get(os_id) if os_id else None


class Kind(ABC):
    """How one kind of resource is reconciled and described.

    An instance lives for one request and may keep what that request asked for.
    """

    prefixes: ClassVar[tuple[str, ...]]
    #: The project's items of other kinds that `load` has read as well, by OpenStack id:
    #: references to them need no look of their own.
    beside: Mapping[str, Item] = MappingProxyType({})

    @abstractmethod
    def listings(self, ctx: Context, selection: Selection | None) -> Thunks:
        """What to ask the cloud; all run in parallel.

        Args:
            ctx: the request.
            selection: ask for these objects only; None asks for all.
        """

    @abstractmethod
    def found(self, ctx: Context, listed: Mapping[str, Any]) -> list[Found]:
        """The objects of this kind among the results of the listings."""

    def details(
        self, ctx: Context, listed: Mapping[str, Any], found: Sequence[Found], selective: bool
    ) -> Thunks:
        """A second round, for what only the first one's results name."""
        return {}

    @abstractmethod
    def new_item(self, ctx: Context, found: Found) -> NewItem:
        """The item of an object that has none."""

    def repair(self, ctx: Context, item: Item, found: Found) -> Mapping[str, Any]:
        """Changes (arguments of `queries.update_item`) that make an own item agree with its object.

        Returned only when something differs: a describe of an unchanged cloud writes nothing.
        """
        return {}

    def fate(self, ctx: Context, item: Item) -> Fate:
        """What becomes of an own item without object."""
        return Fate.DELETE

    def confirm_gone(self, ctx: Context, items: Sequence[Item]) -> None:  # noqa: B027 - optional
        """A second opinion before anything is removed.

        Raises:
            Unavailable: the listing was not complete after all.
        """

    def removed(  # noqa: B027 - optional
        self, session: Session, ctx: Context, items: Sequence[Item]
    ) -> None:
        """What else changes in the transaction that deletes items because their objects are gone.

        Items that only exist beside them, or mention them.
        """

    def gone(self, ctx: Context, items: Sequence[Item]) -> None:  # noqa: B027 - optional
        """What vanished objects take along in the cloud, before their items are removed.

        It may fail: the items then stay, and the next look does it again.
        """

    def expired(self, ctx: Context, item: Item) -> bool:
        """Whether a tombstone has been shown long enough."""
        return True

    def hidden(self, item: Item) -> bool:
        """Whether an item is not shown although it is there (it is being undone)."""
        return False

    def references(
        self, ctx: Context, listed: Mapping[str, Any], found: Sequence[Found]
    ) -> Iterable[Reference]:
        """Other objects whose ids the descriptions of the found ones show."""
        return ()

    def remembered(self, item: Item) -> Iterable[Reference]:
        """Other objects whose ids the description of an item without object shows."""
        return ()

    def load(self, session: Session, ctx: Context, wanted: Collection[str] | None) -> list[Item]:
        """The items to begin with: those of the ids, or all of the project."""
        if wanted is None:
            return queries.items_of(session, ctx.project_id, self.prefixes)
        return queries.items_by_ids(session, ctx.project_id, wanted)


def as_admin(action: Callable[[], Any], *, service: str) -> Callable[[], Any]:
    """A call with the service user's rights, whose refusal is ours and not the caller's.

    Args:
        action: the call.
        service: which service it asks, for the log and the error.

    Raises:
        Unavailable: (when called) the service user may not do this; the log
            says what to do.
    """

    def call() -> Any:
        try:
            return action()
        except (Forbidden, Unauthenticated) as error:
            LOG.error(
                "The %s service refuses the service user (%s): "
                "the user of [keystone_authtoken] needs the role admin",
                service,
                error,
            )
            raise Unavailable(service=service) from error

    return call
