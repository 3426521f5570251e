"""Actions of a cluster: resize and upgrade (spec section 1.10)."""

from __future__ import annotations

from fastapi import APIRouter, Response, status
from sqlalchemy.orm import Session

from trimaran.db.models.magnum import Cluster, ClusterTemplate, NodeGroup
from trimaran.db.queries import magnum as queries
from trimaran.errors import BadRequest, Conflict, NotFound
from trimaran.magnum import objects
from trimaran.magnum.api.answers import Json
from trimaran.magnum.api.call import Authenticated, Call
from trimaran.magnum.api.controllers.common import ERRORS, found
from trimaran.magnum.api.fields import AtLeastOne, Count, Ident, ReadOnly, Storable, Text
from trimaran.magnum.api.microversions import Version
from trimaran.magnum.api.pipeline import TokenRoute, since
from trimaran.magnum.api.schemas.common import Accepted, Body
from trimaran.magnum.statuses import CHANGEABLE
from trimaran.magnum.validation import clusters, nodegroups

router = APIRouter(
    route_class=TokenRoute,
    prefix="/v1/clusters/{cluster_ident}/actions",
    tags=["actions"],
    responses=ERRORS,
)
_ZERO_NODES = Version(1, 10)
_UPGRADES = Version(1, 8)


class ClusterResizeRequest(Body):
    """Another size of one node group."""

    node_count: Count
    nodes_to_remove: list[Storable] | None = None
    nodegroup: Text | None = None
    created_at: ReadOnly = None
    updated_at: ReadOnly = None


class ClusterUpgradeRequest(Body):
    """Another template; one node group moves to it, some nodes at a time."""

    max_batch_size: AtLeastOne | None = None
    nodegroup: Text | None = None
    cluster_template: Text
    created_at: ReadOnly = None
    updated_at: ReadOnly = None


def _group(session: Session, cluster: Cluster, ident: str | None) -> NodeGroup:
    if ident is not None:
        return queries.get_nodegroup(session, cluster.uuid, ident)
    for group in queries.nodegroups_of(session, cluster.uuid, {"is_default": True}):
        if group.role != "master":
            return group
    raise NotFound("Nodegroup default-worker could not be found.")


@router.post("/resize", response_model=Accepted, status_code=status.HTTP_202_ACCEPTED)
@since("1.7", "resize")
def resize(
    call: Authenticated, cluster_ident: Ident, cluster_resize_req: ClusterResizeRequest
) -> Response:
    """Give a node group another size."""
    count = cluster_resize_req.node_count
    if call.version < _ZERO_NODES:
        clusters.check_zero_nodes(count)
    row = found(call, queries.get_cluster, call.scope(), cluster_ident)
    call.authorize("cluster:resize", row.as_dict())
    group = call.parts.db.read(lambda session: _group(session, row, cluster_resize_req.nodegroup))
    if group.role == "master":
        _check_masters(call, row, count)
    else:
        nodegroups.check_size(group, count)
    arguments = {
        "node_count": count,
        "nodes_to_remove": cluster_resize_req.nodes_to_remove or [],
        "nodegroup": group.uuid,
    }
    parts = call.parts

    def accept(session: Session) -> str:
        now = queries.find_cluster(session, row.uuid)
        clusters.check_status(parts.conf, now, CHANGEABLE, "Resizing")
        return parts.operations.record(session, call.context, "cluster_resize", row.uuid, arguments)

    operation = parts.accept(accept)
    parts.conductor.cluster_resize(
        call.context,
        objects.Cluster.from_row(row),
        count,
        cluster_resize_req.nodes_to_remove or [],
        objects.NodeGroup.from_row(group),
        operation=operation,
    )
    return Json({"uuid": row.uuid}, status_code=status.HTTP_202_ACCEPTED)


def _check_masters(call: Call, row: Cluster, count: int) -> None:
    template = call.parts.db.read(
        lambda session: queries.find_template(session, row.cluster_template_id or "")
    )
    if template is None:
        raise NotFound(f"ClusterTemplate {row.cluster_template_id} could not be found.")
    call.parts.drivers.for_template(template).validate_master_resize(count)


@router.post("/upgrade", response_model=Accepted, status_code=status.HTTP_202_ACCEPTED)
@since("1.7", "upgrade")
def upgrade(
    call: Authenticated, cluster_ident: Ident, cluster_upgrade_req: ClusterUpgradeRequest
) -> Response:
    """Move a node group to another template; the conductor answers before we do."""
    if call.version < _UPGRADES:
        raise BadRequest("Cluster upgrade is not supported in the provided microversion.")
    scope = call.authorize_all_projects("cluster:upgrade_all_projects")
    row = found(call, queries.get_cluster, scope, cluster_ident)
    call.authorize("cluster:upgrade", row.as_dict())

    def load(session: Session) -> tuple[ClusterTemplate, NodeGroup, ClusterTemplate | None]:
        new = queries.get_template(session, scope, cluster_upgrade_req.cluster_template)
        group = _group(session, row, cluster_upgrade_req.nodegroup)
        return new, group, queries.find_template(session, row.cluster_template_id or "")

    new, group, current = call.parts.db.read(load)
    if new.uuid != row.cluster_template_id and not group.is_default:
        name = current.name if current else row.cluster_template_id
        raise Conflict(
            f"Cluster Template is not valid for upgrade: Nodegroup {group.name} can be upgraded "
            f"only to match cluster's template ({name})."
        )
    call.parts.conductor.cluster_upgrade(
        call.context,
        objects.Cluster.from_row(row),
        objects.ClusterTemplate.from_row(new),
        cluster_upgrade_req.max_batch_size or 1,
        objects.NodeGroup.from_row(group),
    )
    return Json({"uuid": row.uuid}, status_code=status.HTTP_202_ACCEPTED)
