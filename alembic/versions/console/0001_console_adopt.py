"""The console's tables, made or taken over from Skyline.

Skyline's own revision 000 made both tables with an index and no primary key,
001 replaced the index with the key (spec/skyline.md section 3); both states
are found in the field and both become the same.

Revision: console_0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from trimaran.db import schema

revision = "console_0001"
down_revision = None
branch_labels = ("console",)
depends_on = None


def upgrade() -> None:
    """Makes revoked_token and settings, or gives the existing ones their keys."""
    if not schema.create_table(
        "revoked_token",
        sa.Column("uuid", sa.String(128), nullable=False),
        sa.Column("expire", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("uuid", name="pk_revoked_token"),
    ):
        _give_key("revoked_token", "uuid", _keep_latest_revocations)
    schema.create_index("ix_revoked_token_expire", "revoked_token", ["expire"])
    if not schema.create_table(
        "settings",
        sa.Column("key", sa.String(128), nullable=False),
        sa.Column("value", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("key", name="pk_settings"),
    ):
        _give_key("settings", "key", _keep_one_setting)


def _give_key(table: str, column: str, unique: object) -> None:
    if not schema.has_primary_key(table):
        assert callable(unique)
        unique(op.get_bind())
        schema.create_primary_key(f"pk_{table}", table, [column])
    schema.drop_index(f"ix_{table}_{column}", table)


def _keep_latest_revocations(connection: sa.Connection) -> None:
    table = sa.table("revoked_token", sa.column("uuid"), sa.column("expire"))
    twice = connection.execute(
        sa.select(table.c.uuid, sa.func.max(table.c.expire))
        .group_by(table.c.uuid)
        .having(sa.func.count() > 1)
    ).all()
    for uuid, expire in twice:
        connection.execute(table.delete().where(table.c.uuid == uuid))
        connection.execute(table.insert().values(uuid=uuid, expire=expire))


def _keep_one_setting(connection: sa.Connection) -> None:
    table = sa.table("settings", sa.column("key"), sa.column("value", sa.JSON()))
    seen: dict[str, object] = {}
    twice = set()
    for key, value in connection.execute(sa.select(table.c.key, table.c.value)):
        if key in seen:
            twice.add(key)
        seen[key] = value
    for key in sorted(twice):
        connection.execute(table.delete().where(table.c.key == key))
        connection.execute(table.insert().values(key=key, value=seen[key]))
