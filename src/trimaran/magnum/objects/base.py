"""What every object that a driver is given can do.

Upstream's objects are oslo.versionedobjects from end to end; here they are
plain attribute holders over the queries, and the versioned envelope exists at
the RPC boundary only.  Changes are found by comparing with what was loaded,
so that ``cluster.labels["x"] = "y"; cluster.save()`` is saved, and only what
changed is written: a stale copy of a column never overwrites a newer one.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from trimaran.db import Database
from trimaran.db.models import magnum as models
from trimaran.db.queries import magnum as queries
from trimaran.magnum.context import RequestContext

O = TypeVar("O", bound="MagnumObject")  # noqa: E741

#: never written by save()
_FIXED = frozenset({"id", "uuid", "created_at", "updated_at"})


class MagnumObject:
    """An object with the columns of a table as attributes.

    A field that was never set is absent: reading it raises AttributeError,
    ``"name" in object`` tells.

    Args:
        context: with the database for the methods that need one.
        values: fields to set; they count as changes.
    """

    NAME: ClassVar[str]
    VERSION: ClassVar[str]
    MODEL: ClassVar[Any]
    #: fields beside the table's columns
    EXTRA: ClassVar[frozenset[str]] = frozenset()
    #: dict fields whose keys and values are strings
    STRINGS: ClassVar[frozenset[str]] = frozenset()
    FIELDS: ClassVar[frozenset[str]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__dict__.get("MODEL") is not None:
            cls.FIELDS = frozenset(column.name for column in cls.MODEL.__table__.columns)

    def __init__(self, context: RequestContext | None = None, **values: Any) -> None:
        self._context = context
        self._loaded: dict[str, Any] = {}
        for name, value in values.items():
            setattr(self, name, value)

    if TYPE_CHECKING:
        # The fields are the table's columns; type checkers cannot see them.
        def __setattr__(self, name: str, value: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        # Only called when the attribute is absent.
        raise AttributeError(f"{type(self).__name__} has no {name!r}")

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self, name, value)

    def __contains__(self, name: str) -> bool:
        return name in self.__dict__

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(name for name in self.FIELDS if name in self))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.as_dict() == self.as_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={getattr(self, name)!r}" for name in ("uuid", "name", "status") if name in self
        )
        return f"{type(self).__name__}({shown})"

    def value(self, name: str, default: Any = None) -> Any:
        """Returns a field, or the default when it was never set."""
        return getattr(self, name) if name in self else default

    @classmethod
    def from_row(cls: type[O], row: Any, context: RequestContext | None = None) -> O:
        """Makes an object of a database row; nothing counts as changed."""
        made = cls(context)
        made._load(row)
        return made

    def _load(self, row: Any) -> None:
        for name in self.FIELDS:
            self.__dict__[name] = copy.deepcopy(getattr(row, name))
        self.obj_reset_changes()

    def obj_attr_is_set(self, name: str) -> bool:
        """Whether the field has a value (None counts)."""
        return name in self

    def obj_get_changes(self) -> dict[str, Any]:
        """Returns the fields that differ from what was loaded, in-place changes included."""
        return {
            name: self.__dict__[name]
            for name in sorted(self.FIELDS | self.EXTRA)
            if name in self.__dict__
            and (name not in self._loaded or self._loaded[name] != self.__dict__[name])
        }

    def obj_what_changed(self) -> set[str]:
        """Returns the names of the fields that changed."""
        return set(self.obj_get_changes())

    def obj_reset_changes(self, names: Iterable[str] | None = None) -> None:
        """Takes the present values as loaded.

        Args:
            names: only these fields; None means all.
        """
        for name in names if names is not None else self.FIELDS:
            if name in self.__dict__:
                self._loaded[name] = copy.deepcopy(self.__dict__[name])

    def as_dict(self) -> dict[str, Any]:
        """Returns the fields that are set."""
        return {name: self.__dict__[name] for name in sorted(self.FIELDS) if name in self.__dict__}

    @property
    def db(self) -> Database:
        """The database of this object's context.

        Raises:
            RuntimeError: the object was made without one.
        """
        if self._context is None or self._context.db is None:
            raise RuntimeError(f"this {type(self).__name__} has no database: give it a context")
        return self._context.db

    def pending(self) -> dict[str, Any]:
        """Returns the columns that save() would write."""
        changes = {k: v for k, v in self.obj_get_changes().items() if k not in _FIXED | self.EXTRA}
        for name in self.STRINGS & changes.keys():
            value = {str(key): str(item) for key, item in (changes[name] or {}).items()}
            changes[name] = self.__dict__[name] = value
        return changes


def database(context: RequestContext | None) -> Database:
    """Returns a context's database.

    Raises:
        RuntimeError: the context has none.
    """
    if context is None or context.db is None:
        raise RuntimeError("this context has no database")
    return context.db


def scope(context: RequestContext) -> queries.Scope:
    """Returns whose rows a context sees: all for all-tenants admins, else its project's."""
    if context.all_tenants or (context.is_admin and not context.project_id):
        return queries.EVERYTHING
    return queries.Scope(
        project_id=context.project_id, user_id=context.user_id, is_admin=context.is_admin
    )


def page(
    limit: int | None, marker: Any, sort_key: str | None, sort_dir: str | None
) -> queries.Page:
    """Returns upstream's four listing arguments as one value."""
    by = getattr(marker, "uuid", marker)
    return queries.Page(limit, by, sort_key or "id", sort_dir or "asc")


__all__ = ["MagnumObject", "database", "models", "page", "queries", "scope"]
