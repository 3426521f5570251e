"""Sends notifications, and never lets one hold up or fail an operation."""

from __future__ import annotations

import logging
import socket
import uuid
from typing import Any

from trimaran.errors import TrimaranError
from trimaran.magnum.context import RequestContext
from trimaran.magnum.notifications.cadf import payload
from trimaran.magnum.objects import Cluster
from trimaran.magnum.rpc import open_notification_transport
from trimaran.magnum.rpc.threads import oslo_messaging

LOG = logging.getLogger(__name__)

#: attempts to send beside the first; more would hold the operation up
RETRIES = 1
_EVENTS = uuid.UUID("0b9d8f0e-6a27-4c50-8b8f-1a2f4f6f3c11")


class _Serializer(oslo_messaging.NoOpSerializer):
    def serialize_context(self, context: RequestContext) -> dict[str, Any]:
        return context.to_dict()


class Notifier:
    """Notifies about clusters; does nothing where the operator chose no driver.

    Args:
        conf: loaded ``magnum.conf``.
    """

    def __init__(self, conf: Any) -> None:
        host = conf.host or socket.getfqdn()
        self._notifier = oslo_messaging.Notifier(
            open_notification_transport(conf),
            publisher_id=f"container-infra.{host}",
            serializer=_Serializer(),
            retry=RETRIES,
        )

    def cluster(
        self,
        context: RequestContext,
        cluster: Cluster,
        action: str,
        outcome: str,
        *,
        operation: str | None = None,
    ) -> None:
        """Notifies about one cluster.

        Args:
            context: who asked.
            cluster: as it is now.
            action: ``create``, ``update`` or ``delete``.
            outcome: ``pending``, ``success`` or ``failure``.
            operation: the operation's id; the same operation and outcome give
                the same event id, so a repeated one can be told.
        """
        event_id = str(uuid.uuid5(_EVENTS, f"{operation}/{outcome}")) if operation else None
        try:
            body = payload(context, cluster.as_dict(), action, outcome, event_id=event_id)
            send = self._notifier.error if outcome == "failure" else self._notifier.info
            send(context, f"magnum.cluster.{action}", body)
        except (TrimaranError, oslo_messaging.MessagingException, OSError) as problem:
            LOG.warning("Notification %s/%s of %s not sent: %s", action, outcome, cluster, problem)
