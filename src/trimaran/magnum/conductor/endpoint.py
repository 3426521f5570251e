"""The RPC methods (spec/magnum.md section 5).

A message of our own API names the operation that it recorded, and is no more
than a hint to look for work.  A message of an upstream API brings the objects
themselves: rows and operation are then written here, which is the moment from
which nothing is lost.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.db.queries import magnum as queries
from trimaran.errors import BadRequest, Conflict
from trimaran.magnum.conductor.crew import Crew
from trimaran.magnum.conductor.executor import Executor
from trimaran.magnum.context import RequestContext
from trimaran.magnum.objects import (
    Certificate,
    Cluster,
    ClusterTemplate,
    MagnumObject,
    NodeGroup,
    default_nodegroups,
)

LOG = logging.getLogger(__name__)

#: seconds that a caller waits less than its time-out, so that our answer wins
MARGIN = 3.0
_ROW_ONLY = frozenset({"id", "created_at", "updated_at"})


class ConductorEndpoint:
    """Answers the API.

    Args:
        crew: the conductor's parts.
        runner: runs what is recorded.
        executor: waits for what a caller waits for.
    """

    def __init__(self, crew: Crew, runner: work.Runner, executor: Executor) -> None:
        self._crew = crew
        self._runner = runner
        self._executor = executor

    def ping_conductor(self, context: RequestContext) -> bool:
        """Answers True."""
        return True

    # casts

    def cluster_create(
        self,
        context: RequestContext,
        cluster: Cluster,
        master_count: int,
        node_count: int,
        create_timeout: int | None,
    ) -> None:
        """Begins a cluster."""
        if self._hint(context):
            return
        values = _values(cluster) | {"status": "CREATE_IN_PROGRESS", "status_reason": None}
        template = self._crew.db.read(
            lambda s: queries.get_template(s, queries.EVERYTHING, values["cluster_template_id"])
        )
        groups = default_nodegroups(values, template, master_count, node_count)

        def unit(session: Session) -> None:
            queries.create_cluster(session, values, groups)
            self._record(
                session,
                context,
                "cluster_create",
                values["uuid"],
                {"create_timeout": create_timeout},
            )

        try:
            self._crew.db.write(unit)
        except Conflict:
            LOG.info("cluster_create of %s came again; it is there already", values["uuid"])
        self._runner.wake()

    def cluster_update(
        self,
        context: RequestContext,
        cluster: Cluster,
        node_count: int | None = None,
        health_status: str | None = None,
        health_status_reason: dict[str, str] | None = None,
        rollback: bool = False,
    ) -> None:
        """Begins another size of the default workers, or keeps a health status."""
        self._ask(
            context,
            "cluster_update",
            cluster.uuid,
            {
                "node_count": node_count,
                "health_status": health_status,
                "health_status_reason": health_status_reason,
                "rollback": rollback,
            },
        )

    def cluster_delete(self, context: RequestContext, uuid: str) -> None:
        """Begins a deletion."""
        self._ask(context, "cluster_delete", uuid, {})

    def cluster_resize(
        self,
        context: RequestContext,
        cluster: Cluster,
        node_count: int,
        nodes_to_remove: list[str] | None,
        nodegroup: NodeGroup,
    ) -> None:
        """Begins another size of a node group."""
        self._ask(
            context,
            "cluster_resize",
            cluster.uuid,
            {
                "node_count": node_count,
                "nodes_to_remove": nodes_to_remove,
                "nodegroup": nodegroup.uuid,
            },
        )

    def nodegroup_create(
        self, context: RequestContext, cluster: Cluster, nodegroup: NodeGroup
    ) -> None:
        """Begins a node group."""
        if self._hint(context):
            return
        values = _values(nodegroup) | {"status": "CREATE_IN_PROGRESS"}

        def unit(session: Session) -> None:
            queries.insert_nodegroup(session, values)
            args = {"nodegroup": values["uuid"]}
            self._record(session, context, "nodegroup_create", cluster.uuid, args)

        self._crew.db.write(unit)
        self._runner.wake()

    def nodegroup_update(
        self, context: RequestContext, cluster: Cluster, nodegroup: NodeGroup
    ) -> None:
        """Begins other limits, labels or taints of a node group."""
        args = {"nodegroup": nodegroup.uuid, "changes": nodegroup.pending()}
        self._ask(context, "nodegroup_update", cluster.uuid, args)

    def nodegroup_delete(
        self, context: RequestContext, cluster: Cluster, nodegroup: NodeGroup
    ) -> None:
        """Begins the removal of a node group."""
        self._ask(context, "nodegroup_delete", cluster.uuid, {"nodegroup": nodegroup.uuid})

    # calls

    def cluster_upgrade(
        self,
        context: RequestContext,
        cluster: Cluster,
        cluster_template: ClusterTemplate,
        max_batch_size: int | None,
        nodegroup: NodeGroup,
        rollback: bool = False,
    ) -> None:
        """Begins an upgrade; a refusal is answered."""
        self._ask_and_wait(
            context,
            "cluster_upgrade",
            cluster.uuid,
            {
                "cluster_template": cluster_template.uuid,
                "max_batch_size": max_batch_size,
                "nodegroup": nodegroup.uuid,
                "rollback": rollback,
            },
        )

    def rotate_ca_certificate(self, context: RequestContext, cluster: Cluster) -> None:
        """Begins the rotation of the authorities; a refusal is answered."""
        self._ask_and_wait(context, "rotate_ca_certificate", cluster.uuid, {})

    def credential_rotate(self, context: RequestContext, cluster: Cluster) -> None:
        """Rotates the credential; a refusal is answered."""
        self._ask_and_wait(context, "credential_rotate", cluster.uuid, {})

    def get_ca_certificate(
        self, context: RequestContext, cluster: Cluster, ca_cert_type: str | None = None
    ) -> Certificate:
        """Answers with an authority of the cluster."""
        pair = self._crew.certificates.authority(self._fresh(cluster), ca_cert_type)
        return _certificate(context, cluster, pem=pair.certificate)

    def sign_certificate(
        self, context: RequestContext, cluster: Cluster, certificate: Certificate
    ) -> Certificate:
        """Answers with the signed certificate."""
        csr = certificate.value("csr")
        if not csr:
            raise BadRequest("Received invalid csr b''.", code="InvalidCsr")
        kind = certificate.value("ca_cert_type")
        pem = self._crew.certificates.sign(self._fresh(cluster), csr, kind)
        return _certificate(context, cluster, pem=pem, csr=csr, ca_cert_type=kind)

    # federations never came to be

    def federation_create(
        self, context: RequestContext, federation: Any, create_timeout: int | None = None
    ) -> None:
        """Refuses."""
        raise BadRequest("Federations are not supported.", code="NotSupported")

    def federation_update(
        self, context: RequestContext, federation: Any, rollback: bool = False
    ) -> None:
        """Refuses."""
        raise BadRequest("Federations are not supported.", code="NotSupported")

    def federation_delete(self, context: RequestContext, uuid: str) -> None:
        """Refuses."""
        raise BadRequest("Federations are not supported.", code="NotSupported")

    def _hint(self, context: RequestContext) -> bool:
        if context.operation_id is None:
            return False
        self._runner.wake()
        return True

    def _record(
        self,
        session: Session,
        context: RequestContext,
        name: str,
        uuid: str,
        args: Mapping[str, Any],
    ) -> str:
        return self._crew.operations.record(session, context, name, uuid, args)

    def _ask(self, context: RequestContext, name: str, uuid: str, args: Mapping[str, Any]) -> None:
        if not self._hint(context):
            self._crew.db.write(lambda s: self._record(s, context, name, uuid, args))
            self._runner.wake()

    def _ask_and_wait(
        self, context: RequestContext, name: str, uuid: str, args: Mapping[str, Any]
    ) -> None:
        operation = context.operation_id or self._crew.db.write(
            lambda s: self._record(s, context, name, uuid, args)
        )
        self._runner.wake()
        limit = max(1.0, float(self._crew.conf.rpc_response_timeout) - MARGIN)
        self._executor.wait(operation, limit)

    def _fresh(self, cluster: Cluster) -> Cluster:
        return Cluster.get_by_uuid(self._crew.admin(), cluster.uuid)


def _values(item: MagnumObject) -> dict[str, Any]:
    return {name: value for name, value in item.as_dict().items() if name not in _ROW_ONLY}


def _certificate(context: RequestContext, cluster: Cluster, **values: Any) -> Certificate:
    return Certificate(
        None,
        project_id=context.project_id,
        user_id=context.user_id,
        cluster_uuid=cluster.uuid,
        **{name: value for name, value in values.items() if value is not None},
    )
