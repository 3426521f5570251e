"""The EC2 facade's tables, made or taken over from ec2-api.

Upstream's one version (001, spec/ec2.md 4.2) made ``items`` and ``tags`` in
MySQL's three-byte utf8.  Both keep their columns; ours are added, ``kind`` is
filled from the ids, ``is_public`` from the blobs.  On MySQL the tables become
utf8mb4, and tags compare by their bytes, as the keys of AWS do: going back
is possible, every row that upstream could store is still stored as it was.

Revision: ec2_0001
"""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from trimaran.db import schema

revision = "ec2_0001"
down_revision = None
branch_labels = ("ec2",)
depends_on = None

BATCH = 1000


def _exact(length: int) -> sa.types.TypeEngine[str]:
    return sa.String(length).with_variant(
        mysql.VARCHAR(length, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
    )


def upgrade() -> None:
    """Makes items, tags and client_tokens, or completes the first two."""
    made = schema.create_table(
        "items",
        sa.Column("id", sa.String(30), nullable=False),
        sa.Column("project_id", sa.String(64), nullable=True),
        sa.Column("vpc_id", sa.String(12), nullable=True),
        sa.Column("os_id", sa.String(36), nullable=True),
        sa.Column("data", sa.Text(), nullable=True),
        sa.Column("kind", sa.String(12), nullable=True),
        sa.Column("is_public", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("version", sa.Integer(), server_default="0", nullable=False),
        sa.Column("created_at", sa.Double(), nullable=True),
        sa.Column("updated_at", sa.Double(), nullable=True),
        sa.Column("deleted_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_items"),
    )
    if not made:
        _complete_items()
    schema.create_index("items_os_id_idx", "items", ["os_id"], unique=True)
    schema.create_index("items_project_kind_idx", "items", ["project_id", "kind"])
    schema.create_index("items_project_vpc_idx", "items", ["project_id", "vpc_id"])
    made = schema.create_table(
        "tags",
        sa.Column("project_id", sa.String(64), nullable=False),
        sa.Column("item_id", sa.String(30), nullable=False),
        sa.Column("key", _exact(127), nullable=False),
        sa.Column("value", _exact(255), nullable=True),
        sa.PrimaryKeyConstraint("project_id", "item_id", "key", name="pk_tags"),
    )
    if not made:
        _complete_tags()
    schema.create_table(
        "client_tokens",
        sa.Column("project_id", sa.String(64), nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("token", _exact(64), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("result", sa.String(64), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "action", "token", name="pk_client_tokens"),
    )


def _on_mysql() -> bool:
    return op.get_bind().dialect.name in ("mysql", "mariadb")


def _complete_items() -> None:
    if _on_mysql():
        # MODIFY keeps the type: CONVERT TO alone would widen TEXT to MEDIUMTEXT.
        op.execute(
            "ALTER TABLE items CONVERT TO CHARACTER SET utf8mb4, "
            "MODIFY data TEXT CHARACTER SET utf8mb4 NULL"
        )
    schema.add_column("items", sa.Column("kind", sa.String(12), nullable=True))
    schema.add_column(
        "items", sa.Column("is_public", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
    schema.add_column(
        "items", sa.Column("version", sa.Integer(), server_default="0", nullable=False)
    )
    for name in ("created_at", "updated_at", "deleted_at"):
        schema.add_column("items", sa.Column(name, sa.Double(), nullable=True))
    _backfill()


def _backfill() -> None:
    connection = op.get_bind()
    items = sa.table(
        "items",
        sa.column("id", sa.String),
        sa.column("data", sa.Text),
        sa.column("kind", sa.String),
        sa.column("is_public", sa.Boolean),
    )
    last = ""
    while True:
        rows = connection.execute(
            sa.select(items.c.id, items.c.data)
            .where(items.c.id > last, items.c.kind.is_(None))
            .order_by(items.c.id)
            .limit(BATCH)
        ).all()
        if not rows:
            return
        connection.execute(
            sa.update(items)
            .where(items.c.id == sa.bindparam("of"))
            .values(kind=sa.bindparam("its_kind"), is_public=sa.bindparam("public")),
            [
                {"of": row[0], "its_kind": row[0].split("-", 1)[0], "public": _is_public(row[1])}
                for row in rows
            ],
        )
        last = rows[-1][0]


def _is_public(data: str | None) -> bool:
    try:
        blob = json.loads(data or "{}")
    except ValueError:
        return False
    return isinstance(blob, dict) and blob.get("is_public") is True


def _complete_tags() -> None:
    if _on_mysql():
        op.execute("ALTER TABLE tags CONVERT TO CHARACTER SET utf8mb4")
        op.execute(
            "ALTER TABLE tags "
            "MODIFY `key` VARCHAR(127) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, "
            "MODIFY value VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL"
        )
