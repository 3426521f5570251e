"""Clusters (spec sections 1.8, 1.9, 2.1 and 2.5).

Nothing that was accepted is lost: what a request asks for is recorded in the
transaction that changes the rows, and the answer goes out after the commit.
The message to a conductor only wakes it up.
"""

from __future__ import annotations

import uuid
from types import SimpleNamespace
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response, status
from sqlalchemy.orm import Session

from trimaran.db.models.magnum import Cluster as Row
from trimaran.db.models.magnum import ClusterTemplate
from trimaran.db.queries import magnum as queries
from trimaran.errors import BadRequest, NotFound
from trimaran.magnum import objects
from trimaran.magnum.api import listing, names
from trimaran.magnum.api.answers import Json
from trimaran.magnum.api.call import Authenticated, Call
from trimaran.magnum.api.controllers.common import ERRORS, found
from trimaran.magnum.api.fields import Boolean, Ident
from trimaran.magnum.api.listing import Paged
from trimaran.magnum.api.microversions import Version
from trimaran.magnum.api.patch import Patch
from trimaran.magnum.api.pipeline import TokenRoute, since
from trimaran.magnum.api.schemas import cluster as schema
from trimaran.magnum.api.schemas.common import Accepted
from trimaran.magnum.api.updates import ClusterUpdate
from trimaran.magnum.validation import clusters as checks
from trimaran.magnum.validation.resources import Resources

router = APIRouter(
    route_class=TokenRoute, prefix="/v1/clusters", tags=["clusters"], responses=ERRORS
)

#: from here on there may be no nodes, and an unknown template is a 404
_ZERO_NODES = Version(1, 10)
_STORED = (
    "name",
    "cluster_template_id",
    "keypair",
    "docker_volume_size",
    "labels",
    "master_flavor_id",
    "flavor_id",
    "discovery_url",
    "fixed_network",
    "fixed_subnet",
    "floating_ip_enabled",
    "master_lb_enabled",
)


@router.get("", response_model=schema.Clusters)
def get_all(call: Authenticated, page: Paged) -> Response:
    """List clusters."""
    call.authorize("cluster:get_all")
    scope = call.authorize_all_projects("cluster:get_all_all_projects")

    rows = call.parts.db.read(
        lambda session: queries.columns_of_clusters(
            session, scope, page, schema.SUMMARY, nodes=True
        )
    )
    shown = [schema.summary(row, call.app_url, call.version) for row in rows]
    return Json(listing.body(call, "clusters", "clusters", shown, page))


@router.get("/detail", response_model=schema.ClustersDetail)
def detail(call: Authenticated, page: Paged) -> Response:
    """List clusters with all that is known of them."""
    call.authorize("cluster:detail")
    scope = call.authorize_all_projects("cluster:detail_all_projects")

    def load(session: Session) -> list[dict[str, Any]]:
        rows = queries.columns_of_clusters(session, scope, page, schema.FULL)
        return _full(session, call, rows)

    shown = call.parts.db.read(load)
    return Json(listing.body(call, "clusters", "clusters/detail", shown, page))


@router.get("/{cluster_ident}", response_model=schema.Cluster)
def get_one(call: Authenticated, cluster_ident: Ident) -> Response:
    """Show a cluster."""
    scope = call.authorize_all_projects("cluster:get_one_all_projects")

    def load(session: Session) -> tuple[dict[str, Any], dict[str, Any]]:
        row, nodes, labels = queries.cluster_in_full(session, scope, cluster_ident)
        shown = schema.full(row, nodes, labels, call.app_url, call.version)
        if row["status"] in schema.FAILED:
            shown["faults"] = schema.faults(queries.nodegroups_of(session, row["uuid"]))
        return row, shown

    row, shown = call.parts.db.read(load)
    call.authorize("cluster:get", row)
    return Json(shown)


def _full(session: Session, call: Call, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    nodes = queries.node_totals(session, [row["uuid"] for row in rows])
    wanted = {row["cluster_template_id"] for row in rows if row["cluster_template_id"]}
    labels = queries.template_labels(session, wanted)
    return [
        schema.full(
            row,
            nodes[row["uuid"]],
            # A template that is gone, in an adopted database, must not hide its clusters.
            labels.get(row["cluster_template_id"] or "", {}),
            call.app_url,
            call.version,
        )
        for row in rows
    ]


@router.post("", response_model=Accepted, status_code=status.HTTP_202_ACCEPTED)
def post(call: Authenticated, cluster: schema.ClusterCreate) -> Response:
    """Create a cluster; its row is there when the answer is."""
    conf, given = call.parts.conf, cluster.given()
    master_count, node_count = given.pop("master_count", 1), given.pop("node_count", 1)
    template = _template(call, cluster.cluster_template_id)
    driver = call.parts.drivers.for_template(template)
    checks.check_storage(template, cluster.docker_volume_size)
    driver.validate_master_size(master_count)
    if call.version < _ZERO_NODES:
        checks.check_zero_nodes(node_count)
    call.authorize("cluster:create")
    limit = conf.quotas.max_clusters_per_project
    project = call.context.project_id or ""
    call.parts.db.read(lambda session: queries.check_cluster_quota(session, project, limit))
    checks.check_hidden(template, is_admin=call.is_admin)
    values = checks.inherit(template, given)
    checks.check_resources(conf, Resources(call.cloud), template, values, master_count)
    row = _accept(call, template, _columns(call, cluster, values), master_count, node_count)
    return _accepted(row.uuid)


def _template(call: Call, ident: str) -> ClusterTemplate:
    try:
        return call.parts.db.read(
            lambda session: queries.get_template(session, call.scope(), ident, allow_id=True)
        )
    except NotFound as error:
        if call.version < _ZERO_NODES:
            raise BadRequest(error.message) from None
        raise


def _columns(call: Call, cluster: schema.ClusterCreate, values: dict[str, Any]) -> dict[str, Any]:
    return {
        **{name: values.get(name) for name in _STORED},
        "name": values.get("name") or names.generate("cluster"),
        "uuid": str(uuid.uuid4()),
        "project_id": call.context.project_id,
        "user_id": call.context.user_id,
        "create_timeout": cluster.create_timeout,
        "status": "CREATE_IN_PROGRESS",
    }


def _accept(
    call: Call,
    template: ClusterTemplate,
    columns: dict[str, Any],
    master_count: int,
    node_count: int,
) -> Row:
    """Quota, rows and operation in one transaction (F-4, F-10, F-69), then the wake-up."""
    parts, timeout = call.parts, columns["create_timeout"]
    groups = objects.default_nodegroups(
        SimpleNamespace(**columns), template, master_count, node_count
    )

    def accept(session: Session) -> tuple[Row, str]:
        limit = parts.conf.quotas.max_clusters_per_project
        queries.reserve_cluster_quota(session, columns["project_id"], limit)
        row = queries.create_cluster(session, columns, groups)
        arguments = {"create_timeout": timeout}
        operation = parts.operations.record(
            session, call.context, "cluster_create", row.uuid, arguments
        )
        return row, operation

    row, operation = parts.accept(accept)
    parts.conductor.cluster_create(
        call.context,
        # All of it is new, for a conductor that has to write it.
        objects.Cluster(**columns),
        master_count,
        node_count,
        timeout,
        operation=operation,
    )
    return row


@router.patch("/{cluster_ident}", response_model=Accepted, status_code=status.HTTP_202_ACCEPTED)
@since("1.1", "patch", rollback="1.3")
def patch_one(
    call: Authenticated,
    cluster_ident: Ident,
    patch: Patch,
    rollback: Annotated[Boolean, Query()] = False,
) -> Response:
    """Change the number of nodes, or report health."""
    ClusterUpdate.rules.check(patch)
    scope = call.authorize_all_projects("cluster:update_all_projects")
    row = found(call, queries.get_cluster, scope, cluster_ident)
    update = ClusterUpdate(call, row, patch)
    update.authorize()
    update.apply()
    if call.version < _ZERO_NODES:
        checks.check_zero_nodes(update.node_count)
    update.accept(rollback=rollback)
    return _accepted(row.uuid)


@router.delete("/{cluster_ident}", status_code=status.HTTP_204_NO_CONTENT)
def delete(call: Authenticated, cluster_ident: Ident) -> Response:
    """Delete a cluster; asking again while it goes on is fine (F-65)."""
    scope = call.authorize_all_projects("cluster:delete_all_projects")
    row = found(call, queries.get_cluster, scope, cluster_ident)
    call.authorize("cluster:delete", row.as_dict())
    parts = call.parts

    def accept(session: Session) -> str:
        queries.mark_cluster_deleting(session, row.uuid)
        return parts.operations.record(session, call.context, "cluster_delete", row.uuid, {})

    operation = parts.accept(accept)
    parts.conductor.cluster_delete(call.context, row.uuid, operation=operation)
    return Response(status_code=status.HTTP_204_NO_CONTENT)


def _accepted(ident: str) -> Response:
    return Json({"uuid": ident}, status_code=status.HTTP_202_ACCEPTED)
