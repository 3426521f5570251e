"""Security group rules: the one kind of item whose OpenStack object changes.

Neutron cannot change a rule; a modified one is a new one that takes over the
old one's EC2 id.  Everywhere else an item's ``os_id`` is set once (spec 4.3).
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.orm import Session

from trimaran.db.clock import db_now
from trimaran.db.models.ec2 import ItemRow
from trimaran.db.upsert import changed


def replace_object(session: Session, project_id: str, item_id: str, os_id: str) -> bool:
    """Give an item another OpenStack object.

    Returns:
        Whether the item was there.
    """
    statement = (
        sa.update(ItemRow)
        .where(ItemRow.project_id == project_id, ItemRow.id == item_id)
        .values(os_id=os_id, version=ItemRow.version + 1, updated_at=db_now())
    )
    return changed(session, statement) > 0
