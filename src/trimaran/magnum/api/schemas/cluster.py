"""Bodies of clusters (spec section 1.8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field

from trimaran.magnum.api import links
from trimaran.magnum.api.fields import (
    AtLeastOne,
    Boolean,
    Count,
    Ignored,
    Labels,
    ReadOnly,
    Storable,
    Text,
    Uuid,
    Words,
    storable,
)
from trimaran.magnum.api.microversions import Version
from trimaran.magnum.api.schemas.common import Body, Link, moment

Status = Literal[
    "CREATE_IN_PROGRESS",
    "CREATE_FAILED",
    "CREATE_COMPLETE",
    "UPDATE_IN_PROGRESS",
    "UPDATE_FAILED",
    "UPDATE_COMPLETE",
    "DELETE_IN_PROGRESS",
    "DELETE_FAILED",
    "DELETE_COMPLETE",
    "RESUME_COMPLETE",
    "RESUME_FAILED",
    "RESTORE_COMPLETE",
    "ROLLBACK_IN_PROGRESS",
    "ROLLBACK_FAILED",
    "ROLLBACK_COMPLETE",
    "SNAPSHOT_COMPLETE",
    "CHECK_COMPLETE",
    "ADOPT_COMPLETE",
]
Health = Literal["HEALTHY", "UNHEALTHY", "UNKNOWN"]
Name = Annotated[
    str,
    # Room for what drivers append to make a stack's or release's name.
    Field(min_length=1, max_length=242, pattern=r"^[a-zA-Z][a-zA-Z0-9_.-]*$"),
    AfterValidator(storable),
]

#: cluster_id replaces stack_id from here on
CLUSTER_ID = Version(1, 13)
#: statuses whose clusters say which node groups failed
FAILED = frozenset(
    {"CREATE_FAILED", "UPDATE_FAILED", "DELETE_FAILED", "ROLLBACK_FAILED", "RESUME_FAILED"}
)


class ClusterCreate(Body):
    """What a new cluster is made of.

    ``uuid``, ``status``, ``health_*``, ``faults`` and the label differences are
    taken and not used, because clients send back what they were shown.
    """

    uuid: Uuid | None = None
    name: Name | None = None
    cluster_template_id: Storable
    keypair: Text | None = None
    node_count: Count | None = None
    master_count: AtLeastOne | None = None
    docker_volume_size: AtLeastOne | None = None
    labels: Labels | None = None
    master_flavor_id: Text | None = None
    flavor_id: Text | None = None
    create_timeout: Count | None = Field(default=60, description="Minutes.")
    links: ReadOnly = None
    stack_id: ReadOnly = None
    cluster_id: ReadOnly = None
    status: Status | None = None
    status_reason: Storable | None = None
    health_status: Health | None = None
    health_status_reason: Ignored | None = None
    discovery_url: Words | None = None
    api_address: ReadOnly = None
    coe_version: ReadOnly = None
    container_version: ReadOnly = None
    project_id: ReadOnly = None
    user_id: ReadOnly = None
    node_addresses: ReadOnly = None
    master_addresses: ReadOnly = None
    faults: Ignored | None = None
    fixed_network: Text | None = None
    fixed_subnet: Text | None = None
    floating_ip_enabled: Boolean | None = None
    merge_labels: Boolean | None = None
    labels_overridden: Ignored | None = None
    labels_added: Ignored | None = None
    labels_skipped: Ignored | None = None
    master_lb_enabled: Boolean | None = None
    created_at: ReadOnly = None
    updated_at: ReadOnly = None


class ClusterSummary(BaseModel):
    """A cluster in a list."""

    uuid: str
    name: str | None
    cluster_template_id: str | None
    keypair: str | None
    node_count: int
    master_count: int
    docker_volume_size: int | None
    labels: dict[str, str]
    master_flavor_id: str | None
    flavor_id: str | None
    create_timeout: int | None
    links: list[Link]
    stack_id: str | None = Field(default=None, description="Before 1.13.")
    cluster_id: str | None = Field(default=None, description="From 1.13 on.")
    status: str | None
    health_status: str | None
    merge_labels: bool = False


class Cluster(BaseModel):
    """A cluster as it is shown."""

    uuid: str
    name: str | None
    cluster_template_id: str | None
    keypair: str | None
    node_count: int
    master_count: int
    docker_volume_size: int | None
    labels: dict[str, str]
    master_flavor_id: str | None
    flavor_id: str | None
    create_timeout: int | None
    links: list[Link]
    stack_id: str | None = Field(default=None, description="Before 1.13.")
    cluster_id: str | None = Field(default=None, description="From 1.13 on.")
    status: str | None
    status_reason: str | None
    health_status: str | None
    health_status_reason: dict[str, str]
    discovery_url: str | None
    api_address: str | None
    coe_version: str | None
    container_version: str | None
    project_id: str | None
    user_id: str | None
    node_addresses: list[str]
    master_addresses: list[str]
    faults: dict[str, str | None] | None = Field(
        default=None, description="Only of a failed cluster shown alone."
    )
    fixed_network: str | None
    fixed_subnet: str | None
    floating_ip_enabled: bool | None
    merge_labels: bool = False
    labels_overridden: dict[str, str]
    labels_added: dict[str, str]
    labels_skipped: dict[str, str]
    master_lb_enabled: bool | None
    created_at: str | None
    updated_at: str | None


class Clusters(BaseModel):
    """A page of clusters."""

    clusters: list[ClusterSummary]
    next: str | None = Field(default=None, description="Absent on the last page.")


class ClustersDetail(BaseModel):
    """A page of clusters with all that is known of them."""

    clusters: list[Cluster]
    next: str | None = Field(default=None, description="Absent on the last page.")


_COUNTS = ("node_count", "master_count")
_ADDRESSES = ("node_addresses", "master_addresses")
_MADE = frozenset(
    {"links", "cluster_id", "faults", "merge_labels", *_COUNTS, *_ADDRESSES}
    | {"labels_overridden", "labels_added", "labels_skipped"}
)
#: columns of table ``cluster`` that the two forms show
SUMMARY = tuple(name for name in ClusterSummary.model_fields if name not in _MADE)
FULL = tuple(name for name in Cluster.model_fields if name not in _MADE)
_TIMES = ("created_at", "updated_at")


def _order(model: type[BaseModel], *, stack: bool) -> tuple[str, ...]:
    absent = {"faults", "cluster_id" if stack else "stack_id"}
    return tuple(name for name in model.model_fields if name not in absent)


_ORDERS = {
    (model, stack): _order(model, stack=stack)
    for model in (ClusterSummary, Cluster)
    for stack in (False, True)
}


def _made(row: Mapping[str, Any], app_url: str) -> dict[str, Any]:
    return {
        "links": links.of(app_url, "clusters", row["uuid"]),
        "cluster_id": row["stack_id"],
        "merge_labels": False,
    }


def summary(row: Mapping[str, Any], app_url: str, version: Version) -> dict[str, Any]:
    """A cluster for a list.

    Args:
        row: :data:`SUMMARY` of table ``cluster``, and the numbers of its nodes.
        app_url: base of links.
        version: the microversion asked for.
    """
    values = {**row, **_made(row, app_url)}
    return {name: values[name] for name in _ORDERS[ClusterSummary, version < CLUSTER_ID]}


def full(
    row: Mapping[str, Any],
    nodes: Any,
    template_labels: Mapping[str, str],
    app_url: str,
    version: Version,
) -> dict[str, Any]:
    """A cluster with all that is known of it.

    Args:
        row: of table ``cluster``, at least :data:`FULL`.
        nodes: its ``NodeTotals``.
        template_labels: labels of its template.
        app_url: base of links.
        version: the microversion asked for.
    """
    values = {
        **row,
        **_made(row, app_url),
        **vars(nodes),
        **{name: moment(row[name]) for name in _TIMES},
        **label_differences(template_labels, row["labels"]),
    }
    return {name: values[name] for name in _ORDERS[Cluster, version < CLUSTER_ID]}


def label_differences(
    parent: Mapping[str, str], labels: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """How labels differ from those they were made from.

    Args:
        parent: labels of the template (of the cluster, for a node group).
        labels: labels of the cluster (of the node group).

    Returns:
        ``labels_overridden`` with the parent's values, as upstream shows them,
        ``labels_added`` and ``labels_skipped``.
    """
    return {
        "labels_overridden": {
            key: parent[key] for key, value in labels.items() if parent.get(key, value) != value
        },
        "labels_added": {key: value for key, value in labels.items() if key not in parent},
        "labels_skipped": {key: value for key, value in parent.items() if key not in labels},
    }


def faults(nodegroups: Sequence[Any]) -> dict[str, str | None]:
    """Reasons of the node groups that failed, by their names (F-63).

    Args:
        nodegroups: rows of table ``nodegroup``.
    """
    return {
        group.name: group.status_reason
        for group in nodegroups
        if (group.status or "").endswith("FAILED")
    }
