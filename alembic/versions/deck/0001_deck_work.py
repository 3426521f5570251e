"""Background work and leases.

Revision: deck_0001
"""

from __future__ import annotations

import sqlalchemy as sa

from trimaran.db import schema

revision = "deck_0001"
down_revision = None
branch_labels = ("deck",)
depends_on = None


def upgrade() -> None:
    """Makes work_jobs and work_leases."""
    schema.create_table(
        "work_jobs",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("key", sa.String(255), nullable=True),
        sa.Column("active_key", sa.String(255), nullable=True),
        sa.Column("payload", schema.long_text(), nullable=False),
        sa.Column("step", sa.String(64), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("max_attempts", sa.Integer(), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("owner", sa.String(255), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.Column("finished_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_work_jobs"),
        sa.UniqueConstraint("active_key", "kind", name="uq_work_jobs_active_key_kind"),
    )
    schema.create_index("ix_work_jobs_due_at_kind", "work_jobs", ["due_at", "kind"])
    schema.create_index("ix_work_jobs_finished_at", "work_jobs", ["finished_at"])
    schema.create_table(
        "work_leases",
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("owner", sa.String(255), nullable=False),
        sa.Column("token", sa.String(32), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_work_leases"),
    )
    schema.create_index("ix_work_leases_expires_at", "work_leases", ["expires_at"])
