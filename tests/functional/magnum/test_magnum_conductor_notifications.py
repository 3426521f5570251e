"""What a listener on the broker receives: each transition once, whoever works on it."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session

from tests.support.magnum_conductor import Deployment, cuttable_broker
from tests.support.processes import PATIENCE, Fleet
from tests.support.servers import AMQP_URL
from trimaran.db.queries import work_jobs
from trimaran.magnum import rpc
from trimaran.magnum.notifications import Notifier
from trimaran.magnum.rpc.threads import oslo_messaging


class Listener:
    """Keeps what arrives."""

    def __init__(self) -> None:
        self.arrived: queue.Queue[tuple[str, str, str, str, Any, Any]] = queue.Queue()

    def info(self, context: Any, publisher: str, event: str, body: Any, _meta: Any) -> None:
        self._keep("INFO", context, publisher, event, body)

    def error(self, context: Any, publisher: str, event: str, body: Any, _meta: Any) -> None:
        self._keep("ERROR", context, publisher, event, body)

    def _keep(self, level: str, context: Any, publisher: str, event: str, body: Any) -> None:
        self.arrived.put((level, publisher, event, body["outcome"], body, context))

    def take(self, count: int) -> list[tuple[str, str, str, str, Any, Any]]:
        return [self.arrived.get(timeout=PATIENCE) for _ in range(count)]


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with Fleet() as started:
        yield started


class Loud(Deployment):
    """A deployment whose operator wants notifications, maybe by a broker of their own."""

    def __init__(self, folder: Path, url: str, *, notifications: str = AMQP_URL) -> None:
        self.notifications = notifications
        super().__init__(folder, url)

    def write_conf(self, name: str, transport: str | None = None, **more: str) -> str:
        return super().write_conf(
            name,
            transport,
            oslo_messaging_notifications__driver="messagingv2",
            oslo_messaging_notifications__topics=f"{self.topic}-events",
            oslo_messaging_notifications__transport_url=self.notifications,
            **more,
        )


@pytest.fixture
def magnum(tmp_path: Path, magnum_mariadb_url: str) -> Iterator[Loud]:
    made = Loud(tmp_path, magnum_mariadb_url)
    yield made
    made.db.dispose()


@pytest.fixture
def listener(magnum: Loud) -> Iterator[Listener]:
    with listening(magnum) as endpoint:
        yield endpoint


@contextlib.contextmanager
def listening(magnum: Loud) -> Iterator[Listener]:
    """Receives a deployment's notifications."""
    transport = rpc.open_notification_transport(magnum.conf)
    target = oslo_messaging.Target(topic=f"{magnum.topic}-events", exchange=magnum.topic)
    endpoint = Listener()
    running = oslo_messaging.get_notification_listener(transport, [target], [endpoint])
    running.start()
    try:
        yield endpoint
    finally:
        running.stop()
        running.wait()
        transport.cleanup()


@pytest.mark.parametrize("conductors", [1, 2, 3])
def test_each_transition_is_told_once(
    magnum: Loud, listener: Listener, fleet: Fleet, conductors: int
) -> None:
    for number in range(conductors):
        magnum.begin(fleet, f"c{number}")
    template = magnum.template()
    clusters = [magnum.create({"sandbox_polls": "1"}, template=template) for _ in range(4)]
    for cluster in clusters:
        magnum.until_status(cluster, "CREATE_COMPLETE")
        magnum.delete(cluster)
    for cluster in clusters:
        magnum.until_status(cluster, None)
    told = listener.take(4 * len(clusters))
    for cluster in clusters:
        assert [
            (event, outcome)
            for _, _, event, outcome, body, _ in told
            if body["target"]["id"] == cluster
        ] == [
            ("magnum.cluster.create", "pending"),
            ("magnum.cluster.create", "success"),
            ("magnum.cluster.delete", "pending"),
            ("magnum.cluster.delete", "success"),
        ]
    # Whatever else was recorded would have been sent by now.
    magnum.until(
        lambda: "magnum.notify" not in [job[0] for job in magnum.db.read(work_jobs.waiting)]
    )
    assert listener.arrived.empty()


def test_f57_what_a_listener_is_told(magnum: Loud, listener: Listener, fleet: Fleet) -> None:
    magnum.start(fleet, "one")
    cluster = magnum.create({"sandbox_polls": "1"})
    magnum.until_status(cluster, "CREATE_COMPLETE")
    failed = magnum.create({"sandbox_fail": "create"})
    magnum.until_status(failed, "CREATE_FAILED")

    # In the order of their happening for one cluster; nothing is said about several.
    told = sorted(listener.take(4), key=lambda event: event[4]["target"]["id"] == failed)
    assert [(level, event, outcome) for level, _, event, outcome, _, _ in told] == [
        ("INFO", "magnum.cluster.create", "pending"),
        ("INFO", "magnum.cluster.create", "success"),
        ("INFO", "magnum.cluster.create", "pending"),
        ("ERROR", "magnum.cluster.create", "failure"),
    ]
    assert {publisher for _, publisher, *_ in told} == {"container-infra.one"}
    *_, body, context = told[0]
    assert body["target"]["id"] == cluster
    assert body["initiator"]["user_id"] == "u1"
    assert context["auth_token"] is None
    reason = told[-1][4]["target"]["attachments"][0]["content"]["status_reason"]
    assert reason == "sandbox: create refused"
    assert listener.arrived.empty()


def test_events_outlive_the_broker_and_the_conductor(
    tmp_path: Path, magnum_mariadb_url: str, fleet: Fleet
) -> None:
    with cuttable_broker() as (way, url):
        magnum = Loud(tmp_path, magnum_mariadb_url, notifications=url)
        with listening(magnum) as arrived:
            way.cut()
            first = magnum.start(fleet, "one")
            cluster = magnum.create({"sandbox_polls": "1"})
            magnum.until_status(cluster, "CREATE_COMPLETE")
            first.kill()
            assert arrived.arrived.empty()

            way.mend()
            magnum.start(fleet, "two")
            outcomes = [told[3] for told in arrived.take(2)]
        assert outcomes == ["pending", "success"]
        assert arrived.arrived.empty()

        def states() -> list[str]:
            jobs = magnum.db.read(lambda s: work_jobs.listing(s, kind="magnum.notify"))
            return [job.state for job in jobs]

        # Noted after it was sent.
        magnum.until(lambda: states() == ["done", "done"])
        magnum.db.dispose()


def test_an_event_of_a_change_that_is_undone_is_not_told(
    tmp_path: Path, magnum_mariadb_url: str
) -> None:
    magnum = Loud(tmp_path, magnum_mariadb_url)
    notifier = Notifier(magnum.conf, magnum.db)
    cluster = magnum.create()

    def unit(session: Session) -> None:
        notifier.record(session, magnum.context, cluster, "create", "pending")
        raise RuntimeError("the change failed")

    with pytest.raises(RuntimeError):
        magnum.db.write(unit)
    assert magnum.db.read(lambda s: work_jobs.listing(s, kind="magnum.notify")) == []
    magnum.db.dispose()
