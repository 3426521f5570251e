"""The API's end of the queue.

A cast is a hint: the operation is recorded already, so the request never
waits for the broker.  One thread sends the hints; when the broker is away it
fails fast, says so once, and the conductors find the operations by looking.
A call needs an answer: it is bounded, also where oslo.messaging would wait
for a broker for ever, which it does for the first reply queue of a process.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from trimaran.errors import Unavailable
from trimaran.magnum.context import RequestContext
from trimaran.magnum.objects import Certificate, Cluster, ClusterTemplate, NodeGroup
from trimaran.magnum.rpc import faults
from trimaran.magnum.rpc import transport as bus
from trimaran.magnum.rpc.serializer import Serializer
from trimaran.magnum.rpc.threads import oslo_messaging
from trimaran.policy import Context

LOG = logging.getLogger(__name__)

#: hints that wait for the broker at most; what does not fit is found by looking
WAITING = 1000
#: seconds that a call waits for the process's first connection
CONNECT = 10.0


class ConductorClient:
    """Talks to the conductors; one a process.

    Args:
        transport: of the message bus.
        target: the conductors' address.
        timeout: seconds to wait for the answer of a call.
        auth_url: Keystone's URL, for drivers that ask for it.
        recorded: False where a message is all that there is of an operation: it is
            sent before the request is answered, and its loss is told.
    """

    def __init__(
        self,
        transport: Any,
        target: Any,
        *,
        timeout: float = 60.0,
        auth_url: str | None = None,
        recorded: bool = True,
    ) -> None:
        self._transport = transport
        self._rpc = oslo_messaging.get_rpc_client(
            transport, target, serializer=Serializer(), timeout=timeout
        )
        self._timeout = timeout
        self._auth_url = auth_url
        self._recorded = recorded
        self._hints: queue.Queue[Callable[[], None] | None] = queue.Queue(WAITING)
        self._sender: threading.Thread | None = None
        self._lock = threading.Lock()
        self._connected = threading.Event()
        self._connecting = False
        self._silent = False

    @classmethod
    def from_conf(cls, conf: Any, transport: Any = None) -> ConductorClient:
        """Makes the client of a process.

        Args:
            conf: loaded ``magnum.conf``.
            transport: shared with a conductor of this process; None opens one.
        """
        bus.prepare(conf)
        opened = transport or bus.open_transport(conf)
        return cls(
            opened,
            bus.target(conf),
            timeout=float(conf.rpc_response_timeout),
            auth_url=getattr(conf.keystone_authtoken, "auth_url", None),
            recorded=not conf.api.upstream_conductor,
        )

    # Casts: each names the recorded operation that it is about.

    def cluster_create(
        self,
        context: Context | RequestContext,
        cluster: Cluster,
        master_count: int,
        node_count: int,
        create_timeout: int | None,
        *,
        operation: str | None = None,
    ) -> None:
        """Asks for the creation of a cluster."""
        self._cast(
            context,
            operation,
            "cluster_create",
            cluster=cluster,
            master_count=master_count,
            node_count=node_count,
            create_timeout=create_timeout,
        )

    def cluster_update(
        self,
        context: Context | RequestContext,
        cluster: Cluster,
        node_count: int | None,
        health_status: str | None,
        health_status_reason: dict[str, str] | None,
        rollback: bool = False,
        *,
        operation: str | None = None,
    ) -> None:
        """Asks for another size of the default workers, or to keep a health status."""
        self._cast(
            context,
            operation,
            "cluster_update",
            cluster=cluster,
            node_count=node_count,
            health_status=health_status,
            health_status_reason=health_status_reason,
            rollback=rollback,
        )

    def cluster_delete(
        self, context: Context | RequestContext, uuid: str, *, operation: str | None = None
    ) -> None:
        """Asks for the deletion of a cluster."""
        self._cast(context, operation, "cluster_delete", uuid=uuid)

    def cluster_resize(
        self,
        context: Context | RequestContext,
        cluster: Cluster,
        node_count: int,
        nodes_to_remove: list[str],
        nodegroup: NodeGroup,
        *,
        operation: str | None = None,
    ) -> None:
        """Asks for another size of a node group."""
        self._cast(
            context,
            operation,
            "cluster_resize",
            cluster=cluster,
            node_count=node_count,
            nodes_to_remove=nodes_to_remove,
            nodegroup=nodegroup,
        )

    def nodegroup_create(
        self,
        context: Context | RequestContext,
        cluster: Cluster,
        nodegroup: NodeGroup,
        *,
        operation: str | None = None,
    ) -> None:
        """Asks for a new node group."""
        self._cast(context, operation, "nodegroup_create", cluster=cluster, nodegroup=nodegroup)

    def nodegroup_update(
        self,
        context: Context | RequestContext,
        cluster: Cluster,
        nodegroup: NodeGroup,
        *,
        operation: str | None = None,
    ) -> None:
        """Asks for other limits, labels or taints of a node group."""
        self._cast(context, operation, "nodegroup_update", cluster=cluster, nodegroup=nodegroup)

    def nodegroup_delete(
        self,
        context: Context | RequestContext,
        cluster: Cluster,
        nodegroup: NodeGroup,
        *,
        operation: str | None = None,
    ) -> None:
        """Asks for the removal of a node group."""
        self._cast(context, operation, "nodegroup_delete", cluster=cluster, nodegroup=nodegroup)

    # Calls: each raises what the conductor answered, or Unavailable(service="conductor").

    def cluster_upgrade(
        self,
        context: Context | RequestContext,
        cluster: Cluster,
        cluster_template: ClusterTemplate,
        max_batch_size: int | None,
        nodegroup: NodeGroup,
        rollback: bool = False,
        *,
        operation: str | None = None,
    ) -> None:
        """Begins the upgrade of a node group to a template."""
        arguments: dict[str, Any] = {
            "cluster": cluster,
            "cluster_template": cluster_template,
            "max_batch_size": max_batch_size,
            "nodegroup": nodegroup,
        }
        if rollback:
            arguments["rollback"] = True
        self._call(context, operation, "cluster_upgrade", **arguments)

    def get_ca_certificate(
        self,
        context: Context | RequestContext,
        cluster: Cluster,
        ca_cert_type: str | None = None,
    ) -> str:
        """Returns a CA of the cluster as PEM: Kubernetes', ``etcd``'s or ``front_proxy``'s."""
        return _pem(
            self._call(
                context, None, "get_ca_certificate", cluster=cluster, ca_cert_type=ca_cert_type
            )
        )

    def sign_certificate(
        self, context: Context | RequestContext, cluster: Cluster, certificate: Certificate
    ) -> str:
        """Has a certificate request signed; returns the certificate as PEM."""
        return _pem(
            self._call(context, None, "sign_certificate", cluster=cluster, certificate=certificate)
        )

    def rotate_ca_certificate(
        self,
        context: Context | RequestContext,
        cluster: Cluster,
        *,
        operation: str | None = None,
    ) -> None:
        """Begins the rotation of the cluster's CAs."""
        self._call(context, operation, "rotate_ca_certificate", cluster=cluster)

    def credential_rotate(
        self,
        context: Context | RequestContext,
        cluster: Cluster,
        *,
        operation: str | None = None,
    ) -> None:
        """Begins the rotation of the cluster's cloud credential."""
        self._call(context, operation, "credential_rotate", cluster=cluster)

    def ping_conductor(self) -> bool:
        """Whether a conductor answers within the time-out."""
        try:
            self._call(RequestContext.admin(), None, "ping_conductor")
        except Unavailable:
            return False
        return True

    def ping(self) -> None:
        """Looks whether a broker listens, for health checks.

        Raises:
            Unavailable: none does (service "broker").
        """
        bus.ping(self._transport)

    def close(self, timeout: float = 2.0) -> None:
        """Sends what waits, as far as the broker takes it, and ends the sender.

        Args:
            timeout: seconds at most.
        """
        with self._lock:
            sender, self._sender = self._sender, None
        if sender is not None:
            try:
                self._hints.put(None, timeout=timeout)
            except queue.Full:
                return
            sender.join(timeout)

    def _wire(self, context: Context | RequestContext, operation: str | None) -> RequestContext:
        if not isinstance(context, RequestContext):
            context = RequestContext.from_policy(context, auth_url=self._auth_url)
        known = operation if self._recorded else None
        return replace(context, operation_id=known, db=None, cloud=None)

    def _cast(
        self,
        context: Context | RequestContext,
        operation: str | None,
        method: str,
        **arguments: Any,
    ) -> None:
        told = self._wire(context, operation)
        caller = self._rpc.prepare(retry=0)

        def send() -> None:
            caller.cast(told, method, **arguments)

        if not self._recorded:
            try:
                send()
            except oslo_messaging.MessagingException as problem:
                raise Unavailable(
                    "The conductor cannot be reached; try again later.", service="conductor"
                ) from problem
            return
        with self._lock:
            if self._sender is None:
                self._sender = threading.Thread(
                    target=self._send_hints, name="conductor-hints", daemon=True
                )
                self._sender.start()
        try:
            self._hints.put_nowait(send)
        except queue.Full:
            self._lost("too many messages wait for the broker")

    def _send_hints(self) -> None:
        while (send := self._hints.get()) is not None:
            try:
                send()
            except Exception as problem:  # noqa: BLE001 - a lost hint is no error
                self._lost(f"{type(problem).__name__}: {problem}")
            else:
                self._silent = False

    def _lost(self, why: str) -> None:
        level = logging.DEBUG if self._silent else logging.WARNING
        self._silent = True
        LOG.log(
            level,
            "A message to the conductors was not sent (%s); they find the operation by "
            "themselves. Check transport_url and the broker.",
            why,
        )

    def _call(
        self,
        context: Context | RequestContext,
        operation: str | None,
        method: str,
        **arguments: Any,
    ) -> Any:
        self._connect()
        try:
            return self._rpc.prepare(retry=0).call(
                self._wire(context, operation), method, **arguments
            )
        except Exception as problem:
            error = faults.incoming(problem)
            if isinstance(error, Unavailable):
                LOG.warning(
                    "No answer from the conductors to %s (%s: %s)",
                    method,
                    type(problem).__name__,
                    problem,
                )
            raise error from problem

    def _connect(self) -> None:
        """Waits until this process has its reply queue, which a thread of its own sets up."""
        if self._connected.is_set():
            return
        with self._lock:
            if not self._connecting:
                self._connecting = True
                threading.Thread(
                    target=self._first_call, name="conductor-connect", daemon=True
                ).start()
        if not self._connected.wait(min(CONNECT, self._timeout)):
            raise Unavailable(
                "The conductor does not answer; try again later.", service="conductor"
            )

    def _first_call(self) -> None:
        # The call blocks until there is a reply queue; its answer does not matter.
        try:
            self._rpc.prepare(timeout=1).call(RequestContext.admin(), "ping_conductor")
        except oslo_messaging.MessagingTimeout:
            LOG.debug("The broker is there, no conductor answers yet")
        except Exception as problem:  # noqa: BLE001 - tried again by the next call
            LOG.warning("No connection to the broker: %s", problem)
            with self._lock:
                self._connecting = False
            return
        self._connected.set()


def _pem(answer: Any) -> str:
    """The certificate of an answer: upstream answers with an object, or with the text itself."""
    return str(answer.pem if hasattr(answer, "pem") else answer)
