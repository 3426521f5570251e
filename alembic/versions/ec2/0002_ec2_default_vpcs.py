"""Remember whether a project wants its default VPC, and when making it was last in vain.

Revision: ec2_0002
"""

from __future__ import annotations

import sqlalchemy as sa

from trimaran.db import schema

revision = "ec2_0002"
down_revision = "ec2_0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes default_vpcs."""
    schema.create_table(
        "default_vpcs",
        sa.Column("project_id", sa.String(64), nullable=False),
        sa.Column("opted_out", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("retry_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("project_id", name="pk_default_vpcs"),
    )
