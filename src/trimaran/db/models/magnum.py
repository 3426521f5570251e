"""Magnum's tables, with upstream's names and columns (spec/magnum.md section 4).

An existing Magnum database is adopted in place, so nothing here may differ
from what upstream's last revision left: no foreign keys, hard deletes, JSON
kept as text, naive UTC timestamps.  What we need beside it (the row that
creators of one project queue on, indexes) is added under names of our own.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from trimaran.db.models.base import MYSQL_TABLE, Base, JSONText


def utcnow() -> datetime:
    """Returns the time as these tables keep it: naive UTC, whole seconds.

    MySQL's DATETIME has no fractions and rounds, so that a row could lie in
    the future by half a second; cutting here keeps the dialects alike.
    """
    return datetime.now(UTC).replace(tzinfo=None, microsecond=0)


JSONDict = JSONText(dict)
JSONList = JSONText(list)


class _Row:
    """Columns of every table of Magnum."""

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True, sort_order=-3)
    created_at: Mapped[datetime | None] = mapped_column(sa.DateTime, default=utcnow, sort_order=-2)
    updated_at: Mapped[datetime | None] = mapped_column(sa.DateTime, onupdate=utcnow, sort_order=-1)

    def as_dict(self) -> dict[str, Any]:
        """Returns the row's columns by name."""
        table: sa.Table = self.__table__  # type: ignore[attr-defined]
        return {column.name: getattr(self, column.name) for column in table.columns}


def _text(length: int = 255) -> Any:
    return mapped_column(sa.String(length))


class Cluster(_Row, Base):
    """A Kubernetes cluster; its sizes and addresses are in its node groups."""

    __tablename__ = "cluster"
    __table_args__ = (
        sa.UniqueConstraint("uuid", name="uniq_cluster0uuid"),
        sa.Index("ix_trimaran_cluster_project", "project_id"),
        sa.Index("ix_trimaran_cluster_status", "status"),
        sa.Index("ix_trimaran_cluster_template", "cluster_template_id"),
        MYSQL_TABLE,
    )

    project_id: Mapped[str | None] = _text()
    user_id: Mapped[str | None] = _text()
    uuid: Mapped[str] = mapped_column(sa.String(36), nullable=True)
    name: Mapped[str | None] = _text()
    cluster_template_id: Mapped[str | None] = _text()
    keypair: Mapped[str | None] = _text()
    docker_volume_size: Mapped[int | None]
    labels: Mapped[dict[str, str]] = mapped_column(JSONDict, nullable=True, default=dict)
    master_flavor_id: Mapped[str | None] = _text()
    flavor_id: Mapped[str | None] = _text()
    stack_id: Mapped[str | None] = _text()
    api_address: Mapped[str | None] = _text()
    status: Mapped[str | None] = _text(20)
    status_reason: Mapped[str | None] = mapped_column(sa.Text)
    health_status: Mapped[str | None] = _text(20)
    health_status_reason: Mapped[dict[str, str]] = mapped_column(
        JSONDict, nullable=True, default=dict
    )
    create_timeout: Mapped[int | None]
    discovery_url: Mapped[str | None] = _text()
    coe_version: Mapped[str | None] = _text()
    container_version: Mapped[str | None] = _text()
    ca_cert_ref: Mapped[str | None] = _text(512)
    magnum_cert_ref: Mapped[str | None] = _text(512)
    etcd_ca_cert_ref: Mapped[str | None] = _text(512)
    front_proxy_ca_cert_ref: Mapped[str | None] = _text(512)
    fixed_network: Mapped[str | None] = _text()
    fixed_subnet: Mapped[str | None] = _text()
    floating_ip_enabled: Mapped[bool | None] = mapped_column(default=True)
    master_lb_enabled: Mapped[bool | None] = mapped_column(default=False)


class ClusterTemplate(_Row, Base):
    """What clusters are made from."""

    __tablename__ = "cluster_template"
    __table_args__ = (
        sa.UniqueConstraint("uuid", name="uniq_cluster_template0uuid"),
        MYSQL_TABLE,
    )

    uuid: Mapped[str] = mapped_column(sa.String(36), nullable=True)
    project_id: Mapped[str | None] = _text()
    user_id: Mapped[str | None] = _text()
    name: Mapped[str | None] = _text()
    image_id: Mapped[str | None] = _text()
    flavor_id: Mapped[str | None] = _text()
    master_flavor_id: Mapped[str | None] = _text()
    keypair_id: Mapped[str | None] = _text()
    external_network_id: Mapped[str | None] = _text()
    fixed_network: Mapped[str | None] = _text()
    fixed_subnet: Mapped[str | None] = _text()
    network_driver: Mapped[str | None] = _text()
    volume_driver: Mapped[str | None] = _text()
    dns_nameserver: Mapped[str | None] = _text()
    apiserver_port: Mapped[int | None]
    docker_volume_size: Mapped[int | None]
    docker_storage_driver: Mapped[str | None] = _text()
    cluster_distro: Mapped[str | None] = _text()
    coe: Mapped[str | None] = _text()
    http_proxy: Mapped[str | None] = _text()
    https_proxy: Mapped[str | None] = _text()
    no_proxy: Mapped[str | None] = _text()
    registry_enabled: Mapped[bool | None] = mapped_column(default=False)
    labels: Mapped[dict[str, str]] = mapped_column(JSONDict, nullable=True, default=dict)
    tls_disabled: Mapped[bool | None] = mapped_column(default=False)
    public: Mapped[bool | None] = mapped_column(default=False)
    server_type: Mapped[str | None] = _text()
    insecure_registry: Mapped[str | None] = _text()
    master_lb_enabled: Mapped[bool | None] = mapped_column(default=False)
    floating_ip_enabled: Mapped[bool | None] = mapped_column(default=True)
    hidden: Mapped[bool | None] = mapped_column(default=False)
    tags: Mapped[str | None] = _text()
    driver: Mapped[str | None] = _text()


class NodeGroup(_Row, Base):
    """Nodes of one kind of a cluster; ``cluster_id`` is the cluster's UUID."""

    __tablename__ = "nodegroup"
    __table_args__ = (
        sa.UniqueConstraint("uuid", name="uniq_nodegroup0uuid"),
        sa.UniqueConstraint("cluster_id", "name", name="uniq_nodegroup0cluster_id0name"),
        sa.Index("ix_trimaran_nodegroup_status", "status"),
        sa.Index("ix_trimaran_nodegroup_project", "project_id"),
        MYSQL_TABLE,
    )

    uuid: Mapped[str] = mapped_column(sa.String(36))
    name: Mapped[str] = _text()
    cluster_id: Mapped[str] = _text()
    project_id: Mapped[str] = _text()
    docker_volume_size: Mapped[int | None]
    labels: Mapped[dict[str, str]] = mapped_column(JSONDict, nullable=True, default=dict)
    flavor_id: Mapped[str | None] = _text()
    image_id: Mapped[str | None] = _text()
    node_addresses: Mapped[list[str]] = mapped_column(JSONList, nullable=True, default=list)
    node_count: Mapped[int | None]
    role: Mapped[str | None] = _text()
    max_node_count: Mapped[int | None]
    min_node_count: Mapped[int | None]
    is_default: Mapped[bool | None] = mapped_column(default=False)
    stack_id: Mapped[str | None] = _text()
    status: Mapped[str | None] = _text(20)
    status_reason: Mapped[str | None] = mapped_column(sa.Text)
    version: Mapped[str | None] = _text(20)
    node_labels: Mapped[dict[str, str]] = mapped_column(JSONDict, nullable=True, default=dict)
    node_taints: Mapped[list[dict[str, str]]] = mapped_column(JSONList, nullable=True, default=list)


class X509KeyPair(_Row, Base):
    """A certificate of the ``x509keypair`` certificate manager."""

    __tablename__ = "x509keypair"
    __table_args__ = (sa.UniqueConstraint("uuid", name="uniq_x509keypair0uuid"), MYSQL_TABLE)

    uuid: Mapped[str] = mapped_column(sa.String(36), nullable=True)
    certificate: Mapped[str | None] = mapped_column(sa.Text)
    private_key: Mapped[str | None] = mapped_column(sa.Text)
    private_key_passphrase: Mapped[str | None] = mapped_column(sa.Text)
    intermediates: Mapped[str | None] = mapped_column(sa.Text)
    project_id: Mapped[str | None] = _text()
    user_id: Mapped[str | None] = _text()


class MagnumService(_Row, Base):
    """The heartbeat of one conductor host."""

    __tablename__ = "magnum_service"
    __table_args__ = (
        sa.UniqueConstraint("host", "binary", name="uniq_magnum_service0host0binary"),
        MYSQL_TABLE,
    )

    host: Mapped[str | None] = _text()
    binary: Mapped[str | None] = _text()
    disabled: Mapped[bool | None] = mapped_column(default=False)
    disabled_reason: Mapped[str | None] = _text()
    last_seen_up: Mapped[datetime | None] = mapped_column(sa.DateTime)
    forced_down: Mapped[bool | None] = mapped_column(default=False)
    report_count: Mapped[int] = mapped_column(default=0)


class Quota(_Row, Base):
    """A project's own limit of one resource."""

    __tablename__ = "quotas"
    __table_args__ = (
        sa.UniqueConstraint("project_id", "resource", name="uniq_quotas0project_id0resource"),
        MYSQL_TABLE,
    )

    project_id: Mapped[str | None] = _text()
    resource: Mapped[str | None] = _text()
    hard_limit: Mapped[int | None]


class Federation(_Row, Base):
    """Upstream's never finished federation; the table is kept as it is."""

    __tablename__ = "federation"
    __table_args__ = (sa.UniqueConstraint("uuid", name="uniq_federation0uuid"), MYSQL_TABLE)

    uuid: Mapped[str] = mapped_column(sa.String(36), nullable=True)
    project_id: Mapped[str | None] = _text()
    name: Mapped[str | None] = _text()
    hostcluster_id: Mapped[str | None] = _text()
    member_ids: Mapped[list[str]] = mapped_column(JSONList, nullable=True, default=list)
    status: Mapped[str | None] = _text(20)
    status_reason: Mapped[str | None] = mapped_column(sa.Text)
    properties: Mapped[dict[str, str]] = mapped_column(JSONDict, nullable=True, default=dict)


class ProjectGate(Base):
    """The row that concurrent creators of one project queue on (fault F-10).

    Counting clusters and then inserting one is only right when nobody else
    counts in between; a project has no other row of its own to lock.
    """

    __tablename__ = "trimaran_magnum_project"

    project_id: Mapped[str] = mapped_column(sa.String(255), primary_key=True)
    reservations: Mapped[int] = mapped_column(sa.BigInteger, default=0)
