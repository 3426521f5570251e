"""Create, update, delete, resize and upgrade of clusters (spec/magnum.md 6.1 to 6.5)."""

from __future__ import annotations

import logging

from sqlalchemy.orm import Session

from trimaran import errors
from trimaran.db.queries import magnum as queries
from trimaran.magnum.certificates import REFERENCES
from trimaran.magnum.conductor.operation import CHANGEABLE, COMPLETE, Operation
from trimaran.magnum.objects import ClusterTemplate

LOG = logging.getLogger(__name__)

IN_PROGRESS = {"status": "UPDATE_IN_PROGRESS", "status_reason": None}


def create(op: Operation) -> None:
    """Makes certificates and has the driver begin the cluster."""
    cluster = op.cluster
    if cluster.status != "CREATE_IN_PROGRESS":
        # Deleted meanwhile, or ended by the create time-out.
        op.done()
        return
    try:
        _certificates(op)
        if op.step != "announced":
            op.note("announced", tell=("create", "pending"))
        op.driver().create_cluster(op.context, cluster, op.args.get("create_timeout"))
        cluster.save()
    except Exception as problem:  # noqa: BLE001 - whatever a driver raises is for the user
        op.failed("CREATE", problem)
    stack = cluster.value("stack_id")
    op.done(
        lambda session: (
            queries.update_nodegroups_of(session, cluster.uuid, {"stack_id": stack})
            if stack
            else None
        )
    )


def _certificates(op: Operation) -> None:
    cluster = op.cluster
    if cluster.ca_cert_ref and cluster.magnum_cert_ref:
        return
    have = dict(op.noted.get("certificates") or {})

    def noted(column: str, reference: str) -> None:
        have[column] = reference
        op.note("certificates", certificates=have)

    made = op.crew.certificates.generate(cluster, generation=op.job.id, have=have, noted=noted)
    op.note("certified", lambda session: queries.update_cluster(session, cluster.uuid, dict(made)))
    for column in REFERENCES:
        setattr(cluster, column, made[column])
    cluster.obj_reset_changes(REFERENCES)


def delete(op: Operation) -> None:
    """Has the driver begin to remove the cluster; the rows go when it says so."""
    cluster = op.cluster
    if op.step == "":
        op.note(
            "announced",
            lambda session: queries.mark_cluster_deleting(session, cluster.uuid),
            tell=("delete", "pending"),
        )
        cluster.refresh()
    if cluster.status != "DELETE_IN_PROGRESS":
        cluster.status = "DELETE_IN_PROGRESS"
    try:
        op.driver().delete_cluster(op.context, cluster)
        cluster.save()
    except errors.NotFound as problem:
        if op.crew.db.read(lambda s: queries.find_cluster(s, cluster.uuid)) is not None:
            op.failed("DELETE", problem)
    except Exception as problem:  # noqa: BLE001
        op.failed("DELETE", problem)
    op.done()


def update(op: Operation) -> None:
    """Gives the default workers another size, or keeps a health status."""
    cluster, args = op.cluster, op.args
    health = {
        name: args[name]
        for name in ("health_status", "health_status_reason")
        if args.get(name) is not None and args[name] != cluster.value(name)
    }
    if health:
        op.note(
            op.step, lambda session: queries.update_cluster(session, cluster.uuid, dict(health))
        )
        for name, value in health.items():
            setattr(cluster, name, value)
        cluster.obj_reset_changes(health)
    worker = cluster.default_ng_worker
    count = args.get("node_count")
    if op.step == "" and (count is None or count == worker.node_count):
        op.done()
        return
    if op.step == "":
        try:
            op.allow(COMPLETE, "Updating")
        except errors.BadRequest as problem:
            op.refused(problem)

        def begin(session: Session) -> None:
            queries.update_nodegroup(session, worker.uuid, {"node_count": count})
            queries.update_cluster(session, cluster.uuid, IN_PROGRESS)

        op.note("announced", begin, tell=("update", "pending"), old_count=worker.node_count)
        cluster.refresh()
    try:
        driver = op.driver()
        manager = driver.get_scale_manager(op.context, None, cluster)
        driver.update_cluster(op.context, cluster, manager, bool(args.get("rollback")))
        cluster.save()
    except Exception as problem:  # noqa: BLE001
        old = {"node_count": op.noted["old_count"]}
        op.failed(
            "UPDATE",
            problem,
            nodegroups={},
            undo=lambda session: queries.update_nodegroup(session, worker.uuid, old),
        )
    op.done()


def resize(op: Operation) -> None:
    """Gives a node group another size; requests may follow each other closely."""
    cluster, args = op.cluster, op.args
    group = op.nodegroup()
    if op.step == "":
        try:
            op.allow(CHANGEABLE, "Resizing")
        except errors.BadRequest as problem:
            op.refused(problem)

        def begin(session: Session) -> None:
            changes = {"node_count": args["node_count"], **IN_PROGRESS}
            queries.update_nodegroup(session, group.uuid, changes)
            queries.update_cluster(session, cluster.uuid, IN_PROGRESS)

        op.note("announced", begin, tell=("update", "pending"), old_count=group.node_count)
        cluster.refresh()
        group.refresh()
    try:
        driver = op.driver()
        manager = driver.get_scale_manager(op.context, None, cluster)
        driver.resize_cluster(
            op.context,
            cluster,
            manager,
            args["node_count"],
            args.get("nodes_to_remove") or [],
            group,
        )
        cluster.save()
    except Exception as problem:  # noqa: BLE001
        old = {"node_count": op.noted["old_count"]}
        op.failed(
            "UPDATE",
            problem,
            nodegroups={group.uuid: "UPDATE_FAILED"},
            undo=lambda session: queries.update_nodegroup(session, group.uuid, old),
        )
    op.done()


def upgrade(op: Operation) -> None:
    """Has the driver begin the upgrade of a node group to a template."""
    cluster, args = op.cluster, op.args
    group = op.nodegroup()
    if op.step == "":
        try:
            op.allow(COMPLETE, "Upgrading")
        except errors.BadRequest as problem:
            op.refused(problem)
        op.note("announced", tell=("update", "pending"))
    try:
        template = ClusterTemplate.get_by_uuid(op.context.elevated(), args["cluster_template"])
        op.driver().upgrade_cluster(
            op.context,
            cluster,
            template,
            args.get("max_batch_size"),
            group,
            rollback=bool(args.get("rollback")),
        )
    except errors.BadRequest as problem:
        if problem.code == "NotSupported":
            op.refused(problem)
        op.failed("UPDATE", problem, nodegroups={group.uuid: "UPDATE_FAILED"})
    except Exception as problem:  # noqa: BLE001
        op.failed("UPDATE", problem, nodegroups={group.uuid: "UPDATE_FAILED"})
    changes = cluster.pending() | IN_PROGRESS

    def begun(session: Session) -> None:
        queries.update_cluster(session, cluster.uuid, changes)
        queries.update_nodegroup(session, group.uuid, IN_PROGRESS)

    op.done(begun)
