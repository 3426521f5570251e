"""What a listener on the broker receives: each transition once, whoever works on it."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.magnum_conductor import Deployment
from tests.support.processes import Fleet
from trimaran.magnum import rpc
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
        return [self.arrived.get(timeout=30) for _ in range(count)]


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with Fleet() as started:
        yield started


class Loud(Deployment):
    """A deployment whose operator wants notifications."""

    def write_conf(self, name: str, transport: str | None = None, **more: str) -> str:
        return super().write_conf(
            name,
            transport,
            oslo_messaging_notifications__driver="messagingv2",
            oslo_messaging_notifications__topics=f"{self.topic}-events",
            **more,
        )


@pytest.fixture
def magnum(tmp_path: Path, mariadb_url: str) -> Iterator[Loud]:
    made = Loud(tmp_path, mariadb_url)
    yield made
    made.db.dispose()


@pytest.fixture
def listener(magnum: Loud) -> Iterator[Listener]:
    transport = rpc.open_notification_transport(magnum.conf)
    target = oslo_messaging.Target(topic=f"{magnum.topic}-events", exchange=magnum.topic)
    endpoint = Listener()
    running = oslo_messaging.get_notification_listener(transport, [target], [endpoint])
    running.start()
    yield endpoint
    running.stop()
    running.wait()
    transport.cleanup()


def test_each_transition_is_told_once(magnum: Loud, listener: Listener, fleet: Fleet) -> None:
    for name in ("one", "two"):
        magnum.start(fleet, name)
    cluster = magnum.create({"sandbox_polls": "1"})
    magnum.until_status(cluster, "CREATE_COMPLETE")
    magnum.delete(cluster)
    magnum.until_status(cluster, None)
    failed = magnum.create({"sandbox_fail": "create"})
    magnum.until_status(failed, "CREATE_FAILED")

    told = listener.take(6)
    assert [(level, event, outcome) for level, _, event, outcome, _, _ in told] == [
        ("INFO", "magnum.cluster.create", "pending"),
        ("INFO", "magnum.cluster.create", "success"),
        ("INFO", "magnum.cluster.delete", "pending"),
        ("INFO", "magnum.cluster.delete", "success"),
        ("INFO", "magnum.cluster.create", "pending"),
        ("ERROR", "magnum.cluster.create", "failure"),
    ]
    assert {publisher for _, publisher, *_ in told} <= {
        "container-infra.one",
        "container-infra.two",
    }
    *_, body, context = told[0]
    assert body["target"]["id"] == cluster
    assert body["initiator"]["user_id"] == "u1"
    assert context["auth_token"] is None
    reason = told[-1][4]["target"]["attachments"][0]["content"]["status_reason"]
    assert reason == "sandbox: create refused"
    assert listener.arrived.empty()
