"""Idempotency tokens: the first request that stores one owns it (spec ec2.md F53).

Taking a token is the first write of the action's transaction, so of two equal
requests at once the second waits for the first one's commit and then reads
what it made.
"""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import Session

from trimaran.db.clock import db_now
from trimaran.db.models.ec2 import ClientTokenRow
from trimaran.db.upsert import changed, insert_missing


class ClientToken(NamedTuple):
    """A token as read: what request it was for, and what that made."""

    fingerprint: str
    result: str


def find_token(session: Session, project_id: str, action: str, token: str) -> ClientToken | None:
    """The token of a project's action, or None."""
    row = session.execute(
        sa.select(ClientTokenRow.fingerprint, ClientTokenRow.result).where(
            ClientTokenRow.project_id == project_id,
            ClientTokenRow.action == action,
            ClientTokenRow.token == token,
        )
    ).first()
    return ClientToken(row[0], row[1]) if row else None


def take_token(
    session: Session, project_id: str, action: str, token: str, fingerprint: str, result: str
) -> ClientToken:
    """Store a token unless it is there.

    Returns:
        The stored token: ours (``result`` equal) or that of the request that came first.
    """
    values = {
        "project_id": project_id,
        "action": action,
        "token": token,
        "fingerprint": fingerprint,
        "result": result,
        "created_at": db_now(),
    }
    insert_missing(session, ClientTokenRow, [values])
    stored = find_token(session, project_id, action, token)
    return stored or ClientToken(fingerprint, result)


def drop_token(session: Session, project_id: str, action: str, token: str, result: str) -> None:
    """Forget a token of a request that was undone, so that a retry starts anew."""
    changed(
        session,
        sa.delete(ClientTokenRow).where(
            ClientTokenRow.project_id == project_id,
            ClientTokenRow.action == action,
            ClientTokenRow.token == token,
            ClientTokenRow.result == result,
        ),
    )


def drop_old_tokens(session: Session, older_than: float, limit: int = 1000) -> int:
    """Delete tokens that are older (in seconds) than any client retries.

    Returns:
        How many were deleted; fewer than ``limit`` means that none is left.
    """
    old = session.execute(
        sa.select(ClientTokenRow.project_id, ClientTokenRow.action, ClientTokenRow.token)
        .where(ClientTokenRow.created_at < db_now() - older_than)
        .limit(limit)
    ).all()
    for project_id, action, token in old:
        changed(
            session,
            sa.delete(ClientTokenRow).where(
                ClientTokenRow.project_id == project_id,
                ClientTokenRow.action == action,
                ClientTokenRow.token == token,
            ),
        )
    return len(old)
