"""What is remembered of a project's default VPC (see `DefaultVpcRow`)."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from trimaran.db.clock import db_now
from trimaran.db.models.ec2 import DefaultVpcRow
from trimaran.db.upsert import changed, insert_missing


def is_held_off(session: Session, project_id: str) -> bool:
    """Whether the default VPC is not to be made now: not wanted, or too soon after a failure."""
    found = session.execute(
        sa.select(DefaultVpcRow.opted_out, DefaultVpcRow.retry_at > db_now()).where(
            DefaultVpcRow.project_id == project_id
        )
    ).first()
    return found is not None and bool(found[0] or found[1])


def opt_out(session: Session, project_id: str) -> None:
    """The project does not want it any more."""
    _change(session, project_id, opted_out=True)


def note_failure(session: Session, project_id: str, pause: float, longest: float) -> None:
    """It could not be made; not again before a time that doubles with each failure.

    Args:
        pause: seconds after the first failure.
        longest: seconds at most.
    """
    _change(session, project_id, failures=DefaultVpcRow.failures + 1)
    failures = session.scalars(
        sa.select(DefaultVpcRow.failures).where(DefaultVpcRow.project_id == project_id)
    ).one()
    wait = min(longest, pause * 2.0 ** min(failures - 1, 30))
    _change(session, project_id, retry_at=db_now() + wait)


def forget(session: Session, project_id: str) -> None:
    """It is there, or wanted again."""
    changed(session, sa.delete(DefaultVpcRow).where(DefaultVpcRow.project_id == project_id))


def _change(session: Session, project_id: str, **values: Any) -> None:
    rows = [{"project_id": project_id, "opted_out": False, "failures": 0}]
    insert_missing(session, DefaultVpcRow, rows)
    changed(
        session,
        sa.update(DefaultVpcRow).where(DefaultVpcRow.project_id == project_id).values(**values),
    )
