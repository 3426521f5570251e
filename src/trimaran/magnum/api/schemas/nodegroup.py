"""Bodies of node groups (spec section 1.11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Field

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
)
from trimaran.magnum.api.schemas.cluster import label_differences
from trimaran.magnum.api.schemas.common import Body, Link, columns, ordered

Map = Annotated[dict[Storable, Storable], Field()]


class NodeGroupCreate(Body):
    """What a new node group is made of.

    ``id``, ``uuid``, ``cluster_id``, ``is_default``, ``status`` and ``version``
    are taken and not used: they are the service's to say (F-41).
    """

    id: AtLeastOne | None = None
    uuid: Uuid | None = None
    name: Text
    cluster_id: Storable | None = None
    project_id: ReadOnly = None
    docker_volume_size: AtLeastOne | None = None
    labels: Labels | None = None
    links: ReadOnly = None
    flavor_id: Text | None = None
    image_id: Text | None = None
    node_addresses: ReadOnly = None
    node_count: Count | None = None
    role: Text | None = None
    min_node_count: Count | None = None
    max_node_count: Count | None = None
    is_default: Boolean | None = None
    stack_id: ReadOnly = None
    status: Storable | None = None
    status_reason: Storable | None = None
    version: Storable | None = None
    merge_labels: Boolean | None = None
    labels_overridden: Ignored | None = None
    labels_added: Ignored | None = None
    labels_skipped: Ignored | None = None
    node_labels: Map | None = None
    node_taints: list[Map] | None = None
    created_at: ReadOnly = None
    updated_at: ReadOnly = None


class NodeGroupSummary(BaseModel):
    """A node group in a list; counts are the real ones (F-43)."""

    uuid: str
    name: str
    flavor_id: str | None
    image_id: str | None
    node_count: int | None
    role: str | None
    min_node_count: int | None
    max_node_count: int | None
    is_default: bool | None
    stack_id: str | None
    status: str | None
    merge_labels: bool = False


class NodeGroup(BaseModel):
    """A node group as it is shown."""

    id: int
    uuid: str
    name: str
    cluster_id: str
    project_id: str | None
    docker_volume_size: int | None
    labels: dict[str, str]
    links: list[Link]
    flavor_id: str | None
    image_id: str | None
    node_addresses: list[str]
    node_count: int | None
    role: str | None
    min_node_count: int | None
    max_node_count: int | None
    is_default: bool | None
    stack_id: str | None
    status: str | None
    status_reason: str | None
    version: str | None
    merge_labels: bool = False
    labels_overridden: dict[str, str]
    labels_added: dict[str, str]
    labels_skipped: dict[str, str]
    node_labels: dict[str, str]
    node_taints: list[dict[str, str]]
    created_at: str | None
    updated_at: str | None


class NodeGroups(BaseModel):
    """A page of node groups."""

    nodegroups: list[NodeGroupSummary]
    next: str | None = Field(default=None, description="Absent on the last page.")


_MADE = frozenset({"links", "merge_labels", "labels_overridden", "labels_added", "labels_skipped"})
#: columns of table ``nodegroup`` that a list shows
SUMMARY = tuple(name for name in NodeGroupSummary.model_fields if name not in _MADE)
_FULL = tuple(name for name in NodeGroup.model_fields if name not in _MADE)


def summary(row: Mapping[str, Any]) -> dict[str, Any]:
    """A node group for a list.

    Args:
        row: :data:`SUMMARY` of table ``nodegroup``.
    """
    return {**row, "merge_labels": False}


def full(row: Any, cluster_labels: Mapping[str, str], app_url: str) -> dict[str, Any]:
    """A node group with all that is known of it.

    Args:
        row: of table ``nodegroup``.
        cluster_labels: labels of its cluster.
        app_url: base of links.
    """
    values = {
        **columns(row, _FULL),
        "links": links.of(app_url, f"clusters/{row.cluster_id}/nodegroups", row.uuid),
        "merge_labels": False,
        **label_differences(cluster_labels, row.labels),
    }
    return ordered(NodeGroup, values)
