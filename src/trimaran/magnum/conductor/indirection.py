"""Object indirection: what upstream's ``magnum-api`` binary has the conductor read and write.

Our own API asks the database itself.  Upstream's, when it is started as a
binary, sends each method of an object over the queue; during a migration it
may meet our conductor.  Only the methods that it has a use for exist here, by
name: a message chooses from two tables and never names an attribute.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trimaran.db.queries import magnum as queries
from trimaran.errors import BadRequest
from trimaran.magnum.conductor.crew import Crew
from trimaran.magnum.context import RequestContext
from trimaran.magnum.objects import (
    Cluster,
    ClusterTemplate,
    Federation,
    MagnumObject,
    MagnumService,
    NodeGroup,
    Quota,
    Stats,
)
from trimaran.magnum.objects import base as rows
from trimaran.magnum.rpc import envelope

Function = Callable[..., Any]


def _count_clusters(context: RequestContext, filters: Mapping[str, Any] | None = None) -> int:
    return len(Cluster.list(context, filters=filters))


def _quota(context: RequestContext, project_id: str, resource: str) -> Quota:
    row = context_db(context).read(lambda s: queries.get_quota(s, project_id, resource))
    return Quota.from_row(row, context)


def _quotas(
    context: RequestContext,
    limit: int | None = None,
    marker: Any = None,
    sort_key: str | None = None,
    sort_dir: str | None = None,
    filters: Mapping[str, Any] | None = None,
) -> list[Quota]:
    part = queries.Page(limit, getattr(marker, "id", marker), sort_key or "id", sort_dir or "asc")
    scope = queries.EVERYTHING
    if filters and filters.get("project_id"):
        scope = queries.Scope(project_id=filters["project_id"])
    found = context_db(context).read(lambda s: queries.list_quotas(s, scope, part))
    return [Quota.from_row(row, context) for row in found]


def _update_quota(context: RequestContext, project_id: str, quota: Mapping[str, Any]) -> Quota:
    changes = {"hard_limit": quota["hard_limit"]}
    row = context_db(context).write(
        lambda s: queries.update_quota(s, project_id, quota["resource"], changes)
    )
    return Quota.from_row(row, context)


def _create_quota(quota: Quota) -> None:
    values = quota.obj_get_changes()
    quota._load(quota.db.write(lambda s: queries.insert_quota(s, values)))


def _delete_quota(quota: Quota) -> None:
    quota.db.write(lambda s: queries.delete_quota(s, quota.project_id, quota.resource))


def _stats(context: RequestContext, project_id: str | None = None) -> Stats:
    clusters, nodes = context_db(context).read(lambda s: queries.stats(s, project_id))
    return Stats(context, clusters=clusters, nodes=nodes)


def _services(context: RequestContext, *_more: Any, **_named: Any) -> list[MagnumService]:
    found = context_db(context).read(queries.list_services)
    return [MagnumService.from_row(row, context) for row in found]


def _federation(context: RequestContext, ident: str) -> Federation:
    row = context_db(context).read(lambda s: queries.get_federation(s, rows.scope(context), ident))
    return Federation.from_row(row, context)


def _federations(
    context: RequestContext,
    limit: int | None = None,
    marker: Any = None,
    sort_key: str | None = None,
    sort_dir: str | None = None,
    filters: Mapping[str, Any] | None = None,
) -> list[Federation]:
    part = rows.page(limit, marker, sort_key, sort_dir)
    found = context_db(context).read(
        lambda s: queries.list_federations(s, rows.scope(context), part)
    )
    return [Federation.from_row(row, context) for row in found]


def _create_template(template: ClusterTemplate) -> None:
    # Upstream's API leaves the UUID to whoever writes the row.
    values = {**template.obj_get_changes(), "uuid": template.value("uuid") or str(uuid.uuid4())}
    template._load(template.db.write(lambda s: queries.insert_template(s, values)))


def _destroy_template(template: ClusterTemplate) -> None:
    template.db.write(lambda s: queries.delete_template(s, template.uuid))


context_db = rows.database

#: (class, method) → what answers, called with the context
OF_CLASSES: dict[tuple[str, str], Function] = {
    **{("Cluster", name): Cluster.get for name in ("get", "get_by_id", "get_by_uuid")},
    ("Cluster", "get_by_name"): Cluster.get,
    ("Cluster", "get_count_all"): _count_clusters,
    ("Cluster", "list"): Cluster.list,
    **{
        ("ClusterTemplate", name): ClusterTemplate.get
        for name in ("get", "get_by_id", "get_by_uuid", "get_by_name")
    },
    ("ClusterTemplate", "list"): ClusterTemplate.list,
    **{
        ("NodeGroup", name): NodeGroup.get
        for name in ("get", "get_by_id", "get_by_uuid", "get_by_name")
    },
    ("NodeGroup", "list"): NodeGroup.list,
    ("Quota", "get_quota_by_project_id_resource"): _quota,
    ("Quota", "list"): _quotas,
    ("Quota", "update_quota"): _update_quota,
    ("Stats", "get_cluster_stats"): _stats,
    ("MagnumService", "list"): _services,
    **{("Federation", name): _federation for name in ("get", "get_by_uuid", "get_by_name")},
    ("Federation", "list"): _federations,
}
#: (class, method) → what answers, called with the object
OF_OBJECTS: dict[tuple[str, str], Function] = {
    ("Cluster", "save"): Cluster.save,
    ("Cluster", "refresh"): Cluster.refresh,
    ("ClusterTemplate", "create"): _create_template,
    ("ClusterTemplate", "save"): ClusterTemplate.save,
    ("ClusterTemplate", "refresh"): ClusterTemplate.refresh,
    ("ClusterTemplate", "destroy"): _destroy_template,
    ("NodeGroup", "save"): NodeGroup.save,
    ("NodeGroup", "refresh"): NodeGroup.refresh,
    ("Quota", "create"): _create_quota,
    ("Quota", "delete"): _delete_quota,
}


class IndirectionEndpoint:
    """The three RPC methods of object indirection.

    Args:
        crew: the conductor's parts.
    """

    def __init__(self, crew: Crew) -> None:
        self._crew = crew

    def object_class_action_versions(
        self,
        context: RequestContext,
        objname: str,
        objmethod: str,
        object_versions: Mapping[str, str],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """Answers a class method.

        Raises:
            BadRequest: there is no such method, or another version is asked for.
        """
        function = _chosen(OF_CLASSES, objname, objmethod)
        _check_version(objname, object_versions.get(objname))
        return function(context.at(self._crew.db), *args, **kwargs)

    def object_action(
        self,
        context: RequestContext,
        objinst: MagnumObject,
        objmethod: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> tuple[dict[str, Any], Any]:
        """Answers a method of an object: the fields that are different now, and the result.

        Raises:
            BadRequest: there is no such method.
        """
        function = _chosen(OF_OBJECTS, objinst.NAME, objmethod)
        objinst._context = context.at(self._crew.db)
        before = envelope.pack(objinst)["magnum_object.data"]
        result = function(objinst, *args, **kwargs)
        after = envelope.pack(objinst)["magnum_object.data"]
        updates = {
            name: value
            for name, value in after.items()
            if name not in before or before[name] != value
        }
        return {**updates, "obj_what_changed": sorted(objinst.obj_what_changed())}, result

    def object_backport_versions(
        self, context: RequestContext, objinst: MagnumObject, object_versions: Mapping[str, str]
    ) -> MagnumObject:
        """Answers with the object in our version, the only one there is.

        Raises:
            BadRequest: another is asked for.
        """
        _check_version(objinst.NAME, object_versions.get(objinst.NAME))
        return objinst


def _chosen(table: Mapping[tuple[str, str], Function], name: str, method: str) -> Function:
    found = table.get((name, method))
    if found is None:
        raise BadRequest(f"{name}.{method} is not supported.", code="UnsupportedObjectError")
    return found


def _check_version(name: str, wanted: str | None) -> None:
    ours = envelope.CLASSES[name].VERSION
    if wanted is not None and wanted != ours:
        raise BadRequest(
            f"Version {wanted} of {name} is not supported, supported version is {ours}.",
            code="IncompatibleObjectVersion",
        )
