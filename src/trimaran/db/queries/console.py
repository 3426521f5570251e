"""What the console asks its database (spec/skyline.md sections 1.9 and 3)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import bindparam, delete, select
from sqlalchemy.orm import Session

from trimaran.db import upsert
from trimaran.db.clock import db_now
from trimaran.db.models.console import RevokedToken, Setting

#: What upstream's INTEGER column holds.
_LAST_SECOND = 2**31 - 1

# Built once: it is asked with every request, and building it took longer than asking.
_REVOKED = (
    select(RevokedToken.__table__.c.uuid)
    .where(RevokedToken.__table__.c.uuid.in_([bindparam("uuid"), bindparam("other")]))
    .limit(1)
)


def revoke(session: Session, uuid: str, expire: int) -> None:
    """Notes that a console token is not to be accepted any more; twice is harmless.

    Args:
        session: of the unit of work.
        uuid: the token's uuid claim.
        expire: the token's exp claim, Unix seconds.
    """
    row = {"uuid": uuid, "expire": min(expire, _LAST_SECOND)}
    upsert.insert_missing(session, RevokedToken, [row])


def is_revoked(session: Session, uuid: str, other: str | None = None) -> bool:
    """True when one of these was revoked; one look-up by primary key.

    Args:
        session: of the unit of work.
        uuid: the token's uuid claim.
        other: whatever else stands for the same login.
    """
    keys = {"uuid": uuid, "other": uuid if other is None else other}
    return session.connection().execute(_REVOKED, keys).first() is not None


def purge_expired(session: Session) -> int:
    """Deletes revocations of tokens that have ended by themselves.

    Upstream does this on each request (fault F2); here it is timed work.

    Returns:
        How many rows went.
    """
    # One second of grace, as upstream: a token is accepted in its last second.
    ended = delete(RevokedToken).where(RevokedToken.expire < db_now() - 1)
    return upsert.changed(session, ended)


def list_settings(session: Session) -> dict[str, Any]:
    """The settings that were changed, by key; keys unknown to the service included."""
    return {setting.key: setting.value for setting in session.scalars(select(Setting))}


def get_setting(session: Session, key: str) -> Setting | None:
    """The changed setting of this key; None when its configured value holds.

    A row whose ``value`` is None means that null was set.
    """
    return session.get(Setting, key)


def set_setting(session: Session, key: str, value: Any) -> None:
    """Sets a setting to any JSON value, null included."""
    upsert.upsert(session, Setting, {"key": key, "value": value})


def reset_setting(session: Session, key: str) -> None:
    """Gives a setting its configured value back; harmless when it has it."""
    session.execute(delete(Setting).where(Setting.key == key))
