"""The EC2 facade's tables: upstream's ``items`` and ``tags``, and what we add.

The two upstream tables keep their names, columns and meaning, so that an
ec2api database is adopted where it stands and upstream can still read what we
write (spec ec2.md 4.2): ``data`` stays a text column with a JSON object of all
other fields.  Our columns are nullable or have a server default, so a row that
an upstream process inserts during a migration is still a whole row.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.orm import Mapped, mapped_column

from trimaran.db.models.base import MYSQL_TABLE, Base, EpochSeconds

PROJECT = 64
ITEM_ID = 30
OS_ID = 36
VPC_ID = 12
KIND = 12
TAG_KEY = 127
TAG_VALUE = 255
ACTION = 64
TOKEN = 64


def _exact(length: int) -> sa.String:
    """Text compared by its bytes: MySQL's default collations take ``Name`` for ``name``."""
    return sa.String(length).with_variant(
        mysql.VARCHAR(length, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
    )


class ItemRow(Base):
    """An EC2 resource, or the mapping of a foreign OpenStack object to an EC2 id.

    A row with null project is a mapping: the id that all projects see for a
    public image of a project that never came here itself.  ``deleted_at`` set
    means a tombstone: shown as terminated for a while, then removed.
    """

    __tablename__ = "items"
    __table_args__ = (
        sa.Index("items_os_id_idx", "os_id", unique=True),
        sa.Index("items_project_kind_idx", "project_id", "kind"),
        sa.Index("items_project_vpc_idx", "project_id", "vpc_id"),
        MYSQL_TABLE,
    )

    id: Mapped[str] = mapped_column(sa.String(ITEM_ID), primary_key=True)
    project_id: Mapped[str | None] = mapped_column(sa.String(PROJECT))
    vpc_id: Mapped[str | None] = mapped_column(sa.String(VPC_ID))
    os_id: Mapped[str | None] = mapped_column(sa.String(OS_ID))
    data: Mapped[str | None] = mapped_column(sa.Text)
    #: The id's prefix; null only in rows that upstream wrote after our migration.
    kind: Mapped[str | None] = mapped_column(sa.String(KIND))
    is_public: Mapped[bool] = mapped_column(sa.Boolean, server_default=sa.false())
    #: Raised by each change; a compare-and-set on it is an optimistic lock.
    version: Mapped[int] = mapped_column(sa.Integer, server_default="0")
    created_at: Mapped[float | None] = mapped_column(EpochSeconds)
    updated_at: Mapped[float | None] = mapped_column(EpochSeconds)
    deleted_at: Mapped[float | None] = mapped_column(EpochSeconds)


class TagRow(Base):
    """A tag of an item."""

    __tablename__ = "tags"

    project_id: Mapped[str] = mapped_column(sa.String(PROJECT), primary_key=True)
    item_id: Mapped[str] = mapped_column(sa.String(ITEM_ID), primary_key=True)
    key: Mapped[str] = mapped_column(_exact(TAG_KEY), primary_key=True)
    value: Mapped[str | None] = mapped_column(_exact(TAG_VALUE))


class DefaultVpcRow(Base):
    """What a project's default VPC has been through: deleted for good, or failed to be made.

    No row means that it was never tried, or that the last try succeeded.
    """

    __tablename__ = "default_vpcs"

    project_id: Mapped[str] = mapped_column(sa.String(PROJECT), primary_key=True)
    #: Somebody deleted it, so it is not made again unless asked for.
    opted_out: Mapped[bool] = mapped_column(sa.Boolean, server_default=sa.false())
    #: Tries that failed in a row, and the time before which there is no other.
    failures: Mapped[int] = mapped_column(sa.Integer, server_default="0")
    retry_at: Mapped[float | None] = mapped_column(EpochSeconds)


class ClientTokenRow(Base):
    """An idempotency token: the first request that stored it decides what it stands for.

    A table of its own, not a column of ``items``: one RunInstances makes many
    items, and the token has to be taken before the first of them exists.
    """

    __tablename__ = "client_tokens"

    project_id: Mapped[str] = mapped_column(sa.String(PROJECT), primary_key=True)
    action: Mapped[str] = mapped_column(sa.String(ACTION), primary_key=True)
    token: Mapped[str] = mapped_column(_exact(TOKEN), primary_key=True)
    #: Digest of the request's parameters: another request may not reuse the token.
    fingerprint: Mapped[str] = mapped_column(sa.String(64))
    #: What the request made: a reservation id, an item id.
    result: Mapped[str] = mapped_column(sa.String(64))
    created_at: Mapped[float] = mapped_column(EpochSeconds)
