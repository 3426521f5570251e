"""Node groups of a cluster (spec section 1.11).

Administrators see those of every project and change those of their own (F-35).
"""

from __future__ import annotations

import uuid
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response, status
from sqlalchemy.orm import Session

from trimaran.db.models.magnum import Cluster, NodeGroup
from trimaran.db.queries import magnum as queries
from trimaran.errors import BadRequest, Conflict
from trimaran.magnum import objects
from trimaran.magnum.api import listing
from trimaran.magnum.api import patch as patching
from trimaran.magnum.api.answers import Json
from trimaran.magnum.api.call import Authenticated, Call
from trimaran.magnum.api.controllers.common import ERRORS, found
from trimaran.magnum.api.fields import Ident, Storable
from trimaran.magnum.api.listing import Paged
from trimaran.magnum.api.patch import Patch, Rules
from trimaran.magnum.api.pipeline import TokenRoute, since
from trimaran.magnum.api.schemas import nodegroup as schema
from trimaran.magnum.validation import nodegroups as checks
from trimaran.magnum.validation.resources import Resources

router = APIRouter(
    route_class=TokenRoute,
    prefix="/v1/clusters/{cluster_id}/nodegroups",
    tags=["node groups"],
    responses=ERRORS,
)

_MUTABLE = ("min_node_count", "max_node_count", "node_labels", "node_taints")
_RULES = Rules(
    internal=frozenset(
        {
            "name",
            "cluster_id",
            "docker_volume_size",
            "labels",
            "flavor_id",
            "image_id",
            "node_addresses",
            "node_count",
            "role",
            "is_default",
            "stack_id",
            "status",
            "status_reason",
            "version",
        }
    )
)


@router.get("", response_model=schema.NodeGroups)
@since("1.9", "get_all")
def get_all(
    call: Authenticated,
    cluster_id: Ident,
    page: Paged,
    role: Annotated[Storable | None, Query()] = None,
) -> Response:
    """List the node groups of a cluster."""
    call.authorize("nodegroup:get_all")
    scope = call.authorize_all_projects("nodegroup:get_all_all_projects")

    uuid, rows = call.parts.db.read(
        lambda session: queries.nodegroups_of_page(
            session, scope, cluster_id, page, role or None, schema.SUMMARY
        )
    )
    shown = [schema.summary(row) for row in rows]
    # The role goes along, or page 2 would show all roles (F-45).
    resource = f"clusters/{uuid}/nodegroups"
    return Json(listing.body(call, "nodegroups", resource, shown, page, role=role))


@router.get("/{nodegroup_id}", response_model=schema.NodeGroup)
@since("1.9", "get_one")
def get_one(call: Authenticated, cluster_id: Ident, nodegroup_id: Ident) -> Response:
    """Show a node group."""
    call.authorize("nodegroup:get")
    scope = call.authorize_all_projects("nodegroup:get_one_all_projects")

    def load(session: Session) -> dict[str, Any]:
        uuid, labels = queries.columns_of_cluster(session, scope, cluster_id, "uuid", "labels")
        row = queries.get_nodegroup(session, uuid, nodegroup_id)
        return schema.full(row, labels, call.app_url)

    return Json(call.parts.db.read(load))


@router.post("", response_model=schema.NodeGroup, status_code=status.HTTP_202_ACCEPTED)
@since("1.9", "post")
def post(call: Authenticated, cluster_id: Ident, nodegroup: schema.NodeGroupCreate) -> Response:
    """Add a node group to a cluster."""
    call.authorize("nodegroup:create")
    cluster = found(call, queries.get_cluster, call.scope(), cluster_id)
    if not cluster.api_address:
        raise Conflict("Cluster API address is not available yet")
    groups = call.parts.db.read(lambda session: queries.nodegroups_of(session, cluster.uuid))
    if nodegroup.name in {group.name for group in groups}:
        raise _name_taken(nodegroup.name, cluster)
    values = _values(nodegroup)
    checks.check(values)
    if values["role"] == "master":
        raise BadRequest("Creating master nodegroups is currently not supported.")
    _inherit(call, cluster, nodegroup, values)
    default = call.parts.conf.cinder.default_boot_volume_size
    Resources(call.cloud).check_root_volume(values["flavor_id"], cluster.labels, default)
    parts = call.parts

    def accept(session: Session) -> tuple[NodeGroup, str]:
        arguments = {"nodegroup": values["uuid"]}
        operation = _record(session, call, cluster, "nodegroup_create", arguments)
        try:
            return queries.insert_nodegroup(session, values), operation
        except Conflict:
            raise _name_taken(nodegroup.name, cluster) from None

    row, operation = parts.accept(accept)
    parts.conductor.nodegroup_create(
        call.context,
        objects.Cluster.from_row(cluster),
        # All of it is new, for a conductor that has to write it; the status is its to say.
        objects.NodeGroup(**{key: value for key, value in values.items() if key != "status"}),
        operation=operation,
    )
    return _shown(call, cluster, row)


def _name_taken(name: str, cluster: Cluster) -> Conflict:
    return Conflict(f"A node group with name {name} already exists in the cluster {cluster.name}.")


def _values(nodegroup: schema.NodeGroupCreate) -> dict[str, Any]:
    given = nodegroup.given("node_count", "role", "min_node_count", "node_labels", "node_taints")
    return {
        "name": nodegroup.name,
        "node_count": given.get("node_count", 1),
        "role": given.get("role", "worker"),
        "min_node_count": given.get("min_node_count", 0),
        # No maximum is no limit, and so is 0 (F-44).
        "max_node_count": nodegroup.max_node_count or None,
        "node_labels": given.get("node_labels", {}),
        "node_taints": given.get("node_taints", []),
        "docker_volume_size": nodegroup.docker_volume_size,
        "image_id": nodegroup.image_id,
        "flavor_id": nodegroup.flavor_id,
    }


def _inherit(
    call: Call, cluster: Cluster, nodegroup: schema.NodeGroupCreate, values: dict[str, Any]
) -> None:
    template = call.parts.db.read(
        lambda session: queries.find_template(session, cluster.cluster_template_id or "")
    )
    values["image_id"] = values["image_id"] or (template.image_id if template else None)
    values["flavor_id"] = values["flavor_id"] or cluster.flavor_id
    if nodegroup.labels is None:
        values["labels"] = dict(cluster.labels)
    else:
        inherited = cluster.labels if nodegroup.merge_labels else {}
        values["labels"] = {**inherited, **nodegroup.labels}
    values |= {
        "uuid": str(uuid.uuid4()),
        "cluster_id": cluster.uuid,
        "project_id": call.context.project_id,
        "is_default": False,
        "status": "CREATE_IN_PROGRESS",
        "node_addresses": [],
    }


def _record(
    session: Session, call: Call, cluster: Cluster, name: str, arguments: dict[str, Any]
) -> str:
    """Records an operation while the cluster permits it (F-17)."""
    current = queries.find_cluster(session, cluster.uuid)
    checks.check_cluster_status(current.status if current else "DELETE_COMPLETE")
    record = call.parts.operations.record
    return record(session, call.context, name, cluster.uuid, arguments)


def _shown(call: Call, cluster: Cluster, row: NodeGroup) -> Response:
    body = schema.full(row, cluster.labels, call.app_url)
    return Json(body, status_code=status.HTTP_202_ACCEPTED)


@router.patch(
    "/{nodegroup_id}", response_model=schema.NodeGroup, status_code=status.HTTP_202_ACCEPTED
)
@since("1.9", "patch")
def patch_one(
    call: Authenticated, cluster_id: Ident, nodegroup_id: Ident, patch: Patch
) -> Response:
    """Change limits, Kubernetes labels or taints of a node group."""
    _RULES.check(patch)
    cluster, row = _found(call, cluster_id, nodegroup_id)
    call.authorize("nodegroup:update")
    document = patching.apply(row.as_dict(), patch)
    body = patching.validated(
        schema.NodeGroupCreate, document, "name", "node_count", "role", *_MUTABLE
    )
    values = _values(body)
    checks.check(values)
    parts = call.parts
    arguments = {"nodegroup": row.uuid, "changes": {name: values[name] for name in _MUTABLE}}

    def accept(session: Session) -> tuple[NodeGroup, str]:
        current = queries.get_nodegroup(session, cluster.uuid, row.uuid)
        checks.check_status("nodegroup_update", current.status)
        return current, _record(session, call, cluster, "nodegroup_update", arguments)

    current, operation = parts.accept(accept)
    # The conductor writes the row, and takes that back when the driver refuses;
    # the answer shows what was accepted.
    group = objects.NodeGroup.from_row(current)
    for name in _MUTABLE:
        setattr(current, name, values[name])
        setattr(group, name, values[name])
    parts.conductor.nodegroup_update(
        call.context, objects.Cluster.from_row(cluster), group, operation=operation
    )
    return _shown(call, cluster, current)


@router.delete("/{nodegroup_id}", status_code=status.HTTP_204_NO_CONTENT)
@since("1.9", "delete")
def delete(call: Authenticated, cluster_id: Ident, nodegroup_id: Ident) -> Response:
    """Remove a node group that is not one of the first two."""
    cluster, row = _found(call, cluster_id, nodegroup_id)
    call.authorize("nodegroup:delete")
    if row.is_default:
        raise BadRequest("Deleting a default nodegroup is not supported.")
    parts = call.parts

    arguments = {"nodegroup": row.uuid}
    operation = parts.accept(
        lambda session: _record(session, call, cluster, "nodegroup_delete", arguments)
    )
    parts.conductor.nodegroup_delete(
        call.context,
        objects.Cluster.from_row(cluster),
        objects.NodeGroup.from_row(row),
        operation=operation,
    )
    return Response(status_code=status.HTTP_204_NO_CONTENT)


def _found(call: Call, cluster_ident: str, ident: str) -> tuple[Cluster, NodeGroup]:
    scope = call.scope()

    def load(session: Session) -> tuple[Cluster, NodeGroup]:
        cluster = queries.get_cluster(session, scope, cluster_ident)
        return cluster, queries.get_nodegroup(session, cluster.uuid, ident)

    return call.parts.db.read(load)
