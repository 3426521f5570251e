"""Notifications: recorded with the transition that they tell of, sent afterwards.

A conductor may die between a change and its notification, so the two are one
transaction: the change takes a job along that holds the finished event.  The
job is run until the broker has taken the event, in the order of the
transitions of its cluster.  What is sent again after a crash has the same id.
"""

from __future__ import annotations

import logging
import socket
import threading
import uuid
from typing import Any

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.db import Database
from trimaran.db.queries import magnum as queries
from trimaran.magnum.context import RequestContext
from trimaran.magnum.notifications.cadf import payload
from trimaran.magnum.rpc import open_notification_transport
from trimaran.magnum.rpc.threads import oslo_messaging

LOG = logging.getLogger(__name__)

KIND = "magnum.notify"
#: attempts of the library beside the first; the job brings its own
RETRIES = 1
#: seconds until a broker that did not take an event is asked again
AGAIN = 10.0
#: seconds after which nobody wants an event any more
MAX_AGE = 86400.0
#: seconds that one run may take
TIMEOUT = 120.0
#: at once in a process: a broker that is away must not hold up operations
AT_ONCE = 2
_EVENTS = uuid.UUID("0b9d8f0e-6a27-4c50-8b8f-1a2f4f6f3c11")


class NotSent(Exception):
    """The broker did not take a notification."""


class _Serializer(oslo_messaging.NoOpSerializer):
    def serialize_context(self, context: RequestContext) -> dict[str, Any]:
        return context.to_dict()


class Notifier:
    """Notifies about clusters; does nothing where the operator chose no driver.

    Args:
        conf: loaded ``magnum.conf``.
        db: where events wait for the broker.
    """

    def __init__(self, conf: Any, db: Database) -> None:
        host = conf.host or socket.getfqdn()
        transport = open_notification_transport(conf)
        self._db = db
        self._problems = _watch(transport)
        self._notifier = oslo_messaging.Notifier(
            transport,
            publisher_id=f"container-infra.{host}",
            serializer=_Serializer(),
            retry=RETRIES,
        )
        chosen = set(conf.oslo_messaging_notifications.driver)
        self.enabled = bool(chosen - {"noop"})

    def register(self, runner: work.Runner) -> None:
        """Makes a runner send what was recorded."""
        runner.add_job(KIND, self._run, timeout=TIMEOUT, max_age=MAX_AGE, limit=AT_ONCE)

    def record(
        self,
        session: Session,
        context: RequestContext,
        cluster_uuid: str,
        action: str,
        outcome: str,
        *,
        operation: str | None = None,
    ) -> None:
        """Records the event of a transition in the transition's own transaction.

        Args:
            session: of the unit that changes the cluster, after the change.
            context: who asked.
            cluster_uuid: of the cluster.
            action: ``create``, ``update`` or ``delete``.
            outcome: ``pending``, ``success`` or ``failure``.
            operation: names the operation; with the outcome it makes the
                event's id, so that a step that is run again tells nothing new.
        """
        if self.enabled:
            record(session, context, cluster_uuid, action, outcome, operation=operation)

    def send(self, context: RequestContext, body: dict[str, Any]) -> None:
        """Sends an event.

        Args:
            context: who asked.
            body: the CADF event.

        Raises:
            NotSent: the broker did not take it.
        """
        self._problems.last = None
        tell = self._notifier.error if body["outcome"] == "failure" else self._notifier.info
        tell(context, f"magnum.cluster.{body['action']}", body)
        problem = self._problems.last
        if problem is not None:
            raise NotSent(f"{type(problem).__name__}: {problem}")

    def _run(self, job: work.JobRun) -> None:
        if not self.enabled:
            return
        cluster = str(job.key).partition("/")[0]
        earlier = self._db.read(lambda s: queries.earlier_operation(s, (KIND,), cluster, job.id))
        if earlier is not None:
            # Soon at first; later the broker is probably away.
            raise work.Retry(0.2 if job.age < AGAIN else AGAIN, "an earlier event to be sent")
        try:
            self.send(RequestContext.from_dict(job.payload["context"]), job.payload["event"])
        except NotSent as problem:
            raise work.Retry(AGAIN, f"the broker to take the event ({problem})") from problem


def record(
    session: Session,
    context: RequestContext,
    cluster_uuid: str,
    action: str,
    outcome: str,
    *,
    operation: str | None = None,
) -> None:
    """Records an event whether or not this process would send it; see ``Notifier.record``."""
    cluster = queries.cluster_snapshot(session, cluster_uuid)
    if cluster is None:
        return
    event_id = str(uuid.uuid5(_EVENTS, f"{operation}/{outcome}") if operation else uuid.uuid4())
    work.enqueue(
        session,
        KIND,
        {
            "context": context.redacted_copy().to_dict(),
            "event": payload(context, cluster, action, outcome, event_id=event_id),
        },
        key=queries.operation_key(cluster_uuid, event_id),
    )


class _Problems(threading.local):
    last: Exception | None = None


def _watch(transport: Any) -> _Problems:
    """Notes what sending ends with: the library's drivers log a failure and say nothing."""
    problems = _Problems()
    inner = transport._send_notification

    def send(*args: Any, **kwargs: Any) -> Any:
        try:
            return inner(*args, **kwargs)
        except Exception as problem:
            problems.last = problem
            raise

    transport._send_notification = send
    return problems
