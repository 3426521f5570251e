"""Magnum's tables, made or taken over from upstream.

Names and types are those of upstream's head revision b3e1cf4a2d5e
(spec/magnum.md section 4).  A database that an older upstream left gets the
columns it lacks; columns that upstream has dropped since stay, unused, so
that going back is possible.  Beside them: indexes that upstream never had,
and the row that creators of one project queue on.

Revision: magnum_0001
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from trimaran.db import schema

revision = "magnum_0001"
down_revision = None
branch_labels = ("magnum",)
depends_on = None

Column = sa.Column[object]


def _strings(*names: str, length: int = 255) -> list[Column]:
    return [sa.Column(name, sa.String(length), nullable=True) for name in names]


def _integers(*names: str) -> list[Column]:
    return [sa.Column(name, sa.Integer(), nullable=True) for name in names]


def _texts(*names: str) -> list[Column]:
    return [sa.Column(name, sa.Text(), nullable=True) for name in names]


def _flags(*names: str) -> list[Column]:
    return [sa.Column(name, sa.Boolean(), nullable=True) for name in names]


def _common() -> list[Column]:
    return [
        sa.Column("created_at", sa.DateTime(), nullable=True),
        sa.Column("updated_at", sa.DateTime(), nullable=True),
        sa.Column("id", sa.Integer(), nullable=False, autoincrement=True),
    ]


def _uuid(nullable: bool = True) -> list[Column]:
    return [sa.Column("uuid", sa.String(36), nullable=nullable)]


def _cluster() -> list[Column]:
    return [
        *_strings("project_id", "user_id", "name", "cluster_template_id", "keypair"),
        *_uuid(),
        *_strings("master_flavor_id", "flavor_id", "stack_id", "api_address", "discovery_url"),
        *_strings("coe_version", "container_version", "fixed_network", "fixed_subnet"),
        *_integers("docker_volume_size", "create_timeout"),
        *_texts("labels", "health_status_reason", "status_reason"),
        *_strings("status", "health_status", length=20),
        *_strings("ca_cert_ref", "magnum_cert_ref", length=512),
        *_strings("etcd_ca_cert_ref", "front_proxy_ca_cert_ref", length=512),
        *_flags("floating_ip_enabled", "master_lb_enabled"),
    ]


def _cluster_template() -> list[Column]:
    return [
        *_uuid(),
        *_strings("project_id", "user_id", "name", "image_id", "flavor_id", "master_flavor_id"),
        *_strings("keypair_id", "external_network_id", "fixed_network", "fixed_subnet"),
        *_strings("network_driver", "volume_driver", "dns_nameserver", "docker_storage_driver"),
        *_strings("cluster_distro", "coe", "http_proxy", "https_proxy", "no_proxy"),
        *_strings("server_type", "insecure_registry", "tags", "driver"),
        *_integers("apiserver_port", "docker_volume_size"),
        *_flags("registry_enabled", "tls_disabled", "public", "master_lb_enabled"),
        *_flags("floating_ip_enabled", "hidden"),
        *_texts("labels"),
    ]


def _nodegroup() -> list[Column]:
    owner = ("name", "cluster_id", "project_id")
    return [
        *_uuid(nullable=False),
        *(sa.Column(name, sa.String(255), nullable=False) for name in owner),
        *_strings("flavor_id", "image_id", "role", "stack_id"),
        *_strings("status", "version", length=20),
        *_integers("docker_volume_size", "node_count", "max_node_count", "min_node_count"),
        *_texts("labels", "node_addresses", "status_reason", "node_labels", "node_taints"),
        *_flags("is_default"),
    ]


def _x509keypair() -> list[Column]:
    return [
        *_uuid(),
        *_texts("certificate", "private_key", "private_key_passphrase", "intermediates"),
        *_strings("project_id", "user_id"),
    ]


def _magnum_service() -> list[Column]:
    return [
        *_strings("host", "binary", "disabled_reason"),
        *_flags("disabled", "forced_down"),
        sa.Column("last_seen_up", sa.DateTime(), nullable=True),
        sa.Column("report_count", sa.Integer(), nullable=False),
    ]


def _quotas() -> list[Column]:
    return [*_strings("project_id", "resource"), *_integers("hard_limit")]


def _federation() -> list[Column]:
    return [
        *_uuid(),
        *_strings("project_id", "name", "hostcluster_id"),
        *_strings("status", length=20),
        *_texts("status_reason", "member_ids", "properties"),
    ]


#: table → (its columns, the constraint's name, the columns that are unique together)
TABLES: dict[str, tuple[Callable[[], list[Column]], list[tuple[str, tuple[str, ...]]]]] = {
    "cluster": (_cluster, [("uniq_cluster0uuid", ("uuid",))]),
    "cluster_template": (_cluster_template, [("uniq_cluster_template0uuid", ("uuid",))]),
    "nodegroup": (
        _nodegroup,
        [
            ("uniq_nodegroup0uuid", ("uuid",)),
            ("uniq_nodegroup0cluster_id0name", ("cluster_id", "name")),
        ],
    ),
    "x509keypair": (_x509keypair, [("uniq_x509keypair0uuid", ("uuid",))]),
    "magnum_service": (
        _magnum_service,
        [("uniq_magnum_service0host0binary", ("host", "binary"))],
    ),
    "quotas": (_quotas, [("uniq_quotas0project_id0resource", ("project_id", "resource"))]),
    "federation": (_federation, [("uniq_federation0uuid", ("uuid",))]),
}

INDEXES = {
    "ix_trimaran_cluster_project": ("cluster", "project_id"),
    "ix_trimaran_cluster_status": ("cluster", "status"),
    "ix_trimaran_cluster_template": ("cluster", "cluster_template_id"),
    "ix_trimaran_nodegroup_status": ("nodegroup", "status"),
    "ix_trimaran_nodegroup_project": ("nodegroup", "project_id"),
}


def upgrade() -> None:
    """Makes the tables, or completes those that upstream made."""
    for name, (columns, unique) in TABLES.items():
        made = schema.create_table(
            name,
            *_common(),
            *columns(),
            sa.PrimaryKeyConstraint("id", name=f"pk_{name}"),
            *(sa.UniqueConstraint(*on, name=title) for title, on in unique),
        )
        if not made:
            for column in columns():
                schema.add_column(name, column)
    for title, (table, column) in INDEXES.items():
        schema.create_index(title, table, [column])
    schema.create_table(
        "trimaran_magnum_project",
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("reservations", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", name="pk_trimaran_magnum_project"),
    )
