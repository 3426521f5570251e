"""The Kubernetes monitor against HTTPS servers that answer well, badly, slowly or with malice."""

from __future__ import annotations

import dataclasses
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.kubernetes_stub import RULES, Stub, node, send, serving
from tests.support.magnum_conductor import NO_BROKER, Deployment
from tests.support.processes import Fleet
from trimaran.db.queries import magnum as queries
from trimaran.errors import NotFound
from trimaran.magnum.certificates import Certificates, make_manager, x509
from trimaran.magnum.certificates.x509 import KeyPair
from trimaran.magnum.context import RequestContext
from trimaran.magnum.drivers import k8s_client, k8s_monitor
from trimaran.magnum.drivers.k8s_client import ClusterAPI, NoAnswer, client_context
from trimaran.magnum.drivers.k8s_monitor import KubernetesMonitor
from trimaran.magnum.objects import Cluster


@pytest.fixture(scope="module")
def authority() -> KeyPair:
    return x509.make_authority("c", RULES)


@pytest.fixture(scope="module")
def client(authority: KeyPair) -> KeyPair:
    return x509.make_client(authority, RULES)


@pytest.fixture
def stub(tmp_path: Path, authority: KeyPair) -> Iterator[Stub]:
    with serving(tmp_path, authority) as running:
        yield running


class Kept:
    """Certificates of one cluster; counts how often they are read."""

    def __init__(self, authority: KeyPair, client: KeyPair) -> None:
        self.pairs = {"authority": authority, "client": client}
        self.reads = 0

    def authority(self, cluster: Any) -> KeyPair:
        self.reads += 1
        return self.pairs["authority"]

    def client(self, cluster: Any) -> KeyPair:
        self.reads += 1
        return self.pairs["client"]


@pytest.fixture
def kept(authority: KeyPair, client: KeyPair) -> Kept:
    k8s_monitor._contexts.clear()
    return Kept(authority, client)


def look(kept: Any, url: str | None, **values: Any) -> dict[str, Any]:
    context = dataclasses.replace(RequestContext.admin(), certificates=kept)
    fields = {
        "uuid": "u",
        "name": "c",
        "api_address": url,
        "labels": {},
        "floating_ip_enabled": True,
        "master_lb_enabled": False,
        "ca_cert_ref": "ca",
        "magnum_cert_ref": "client",
    }
    monitor = KubernetesMonitor(context, Cluster(context, **(fields | values)))
    monitor.poll_health_status()
    return monitor.data


def test_a_cluster_whose_nodes_are_ready_is_healthy(stub: Stub, kept: Kept) -> None:
    stub.nodes = [node("master-0"), node("worker-0")]
    assert look(kept, stub.url) == {
        "health_status": "HEALTHY",
        "health_status_reason": {
            "api": "ok",
            "master-0.Ready": "True",
            "worker-0.Ready": "True",
        },
    }
    assert stub.asked == [("/healthz", "admin"), ("/api/v1/nodes?limit=250", "admin")]
    assert stub.connections == 1


@pytest.mark.parametrize("state", ["False", "Unknown", None])
def test_a_node_that_is_not_ready_makes_it_unhealthy(
    stub: Stub, kept: Kept, state: str | None
) -> None:
    stub.nodes = [node("a"), node("b", state)]
    found = look(kept, stub.url)
    assert found["health_status"] == "UNHEALTHY"
    assert found["health_status_reason"] == {"api": "ok", "a.Ready": "True", "b.Ready": "False"}


def test_an_api_that_is_not_well_says_why(stub: Stub, kept: Kept) -> None:
    stub.status, stub.healthz = 500, '{"kind": "Status", "message": "etcd\\nfailed"}'
    assert look(kept, stub.url) == {
        "health_status": "UNHEALTHY",
        "health_status_reason": {"api": "HTTP 500: etcd failed"},
    }


def test_many_nodes_are_read_by_pages_and_the_bad_ones_named(stub: Stub, kept: Kept) -> None:
    stub.nodes = [node(f"n{number:04}") for number in range(600)] + [node("zz", "False")]
    found = look(kept, stub.url)
    reason = found["health_status_reason"]
    assert (found["health_status"], reason["zz.Ready"]) == ("UNHEALTHY", "False")
    assert len(reason) == k8s_monitor.NAMED + 1
    assert len(stub.asked) == 4


@pytest.mark.parametrize(
    ("values", "accessible"),
    [
        ({"floating_ip_enabled": False}, False),
        ({"floating_ip_enabled": None}, False),
        ({"master_lb_enabled": True, "floating_ip_enabled": False}, False),
        ({"master_lb_enabled": True, "labels": {"master_lb_floating_ip_enabled": "no"}}, False),
        ({"master_lb_enabled": True}, True),
        (
            {
                "master_lb_enabled": True,
                "floating_ip_enabled": False,
                "labels": {"master_lb_floating_ip_enabled": "True"},
            },
            True,
        ),
    ],
)
def test_only_an_api_with_a_floating_address_is_asked(
    stub: Stub, kept: Kept, values: dict[str, Any], accessible: bool
) -> None:
    found = look(kept, stub.url, **values)
    if accessible:
        assert found["health_status"] == "HEALTHY"
    else:
        assert found == {
            "health_status": "UNKNOWN",
            "health_status_reason": {"api": "The cluster c is not accessible."},
        }
        assert stub.asked == []


def test_clusters_that_report_by_themselves_are_left_alone(stub: Stub, kept: Kept) -> None:
    labels = {"auto_healing_enabled": "true", "auto_healing_controller": "magnum-auto-healer"}
    assert look(kept, stub.url, labels=labels) == {}
    assert look(kept, None) == {}
    assert stub.asked == []
    draino = labels | {"auto_healing_controller": "draino"}
    assert look(kept, stub.url, labels=draino)["health_status"] == "HEALTHY"


def test_f9_f58_certificates_are_read_once_for_each_pair_of_references(
    stub: Stub, kept: Kept
) -> None:
    look(kept, stub.url)
    look(kept, stub.url)
    assert kept.reads == 2
    look(kept, stub.url, magnum_cert_ref="rotated")
    assert kept.reads == 4


def test_a_server_of_another_authority_is_not_spoken_to(
    tmp_path: Path, kept: Kept, authority: KeyPair
) -> None:
    with serving(tmp_path, x509.make_authority("c", RULES), trusts=authority) as stranger:
        found = look(kept, stranger.url)
    assert found["health_status"] == "UNHEALTHY"
    assert "is not accepted" in found["health_status_reason"]["api"]
    assert stranger.asked == []


def test_a_certificate_for_another_address_is_not_accepted(
    tmp_path: Path, kept: Kept, authority: KeyPair
) -> None:
    with serving(tmp_path, authority, host="192.0.2.1") as other:
        found = look(kept, other.url)
    assert "is not accepted" in found["health_status_reason"]["api"]


def test_certificates_that_cannot_be_read_leave_the_last_health(stub: Stub, kept: Kept) -> None:
    def missing(cluster: Any) -> KeyPair:
        raise NotFound("gone")

    kept.client = missing  # type: ignore[method-assign]
    with pytest.raises(NotFound):
        look(kept, stub.url)


def test_redirects_are_not_followed(stub: Stub, kept: Kept) -> None:
    stub.healthz = lambda handler: send(handler, 302, b"", Location=f"{stub.url}/elsewhere")
    found = look(kept, stub.url)
    assert found["health_status_reason"]["api"].startswith("HTTP 302")
    assert len(stub.asked) == 1


@pytest.mark.parametrize(
    "nodes",
    [
        {"items": 5},
        {"items": [{}]},
        {"items": [{"metadata": {}, "status": None}]},
        {"items": ["x"]},
    ],
)
def test_an_answer_that_is_no_list_of_nodes_is_said(stub: Stub, kept: Kept, nodes: Any) -> None:
    stub.nodes = nodes
    found = look(kept, stub.url)
    assert found["health_status_reason"] == {"api": "The list of nodes cannot be read."}


def test_an_endless_list_of_nodes_ends(stub: Stub, kept: Kept) -> None:
    stub.nodes = {"items": [node("a")], "metadata": {"continue": "again"}}
    assert look(kept, stub.url)["health_status"] == "HEALTHY"
    assert len(stub.asked) == k8s_monitor.PAGES + 1


def test_an_answer_is_read_up_to_its_limit(stub: Stub, authority: KeyPair, client: KeyPair) -> None:
    def endless(handler: Any) -> None:
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(b"x" * 65536)

    stub.healthz = endless
    tls = client_context(authority.certificate, client)
    with ClusterAPI(stub.url, tls) as api, pytest.raises(NoAnswer, match="larger than"):
        api.text("/healthz")


def test_a_dripping_server_does_not_stretch_the_deadline(
    stub: Stub, authority: KeyPair, client: KeyPair
) -> None:
    over = threading.Event()

    def drip(handler: Any) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not over.wait(0.05):
            handler.wfile.write(b"x")
            handler.wfile.flush()

    stub.healthz = drip
    tls = client_context(authority.certificate, client)
    began = time.monotonic()
    try:
        with (
            ClusterAPI(stub.url, tls, deadline=1) as api,
            pytest.raises(NoAnswer, match="No answer within"),
        ):
            api.text("/healthz")
        # Before the answer was larger than is read of one, which takes the server an hour.
        assert time.monotonic() - began < 60
    finally:
        over.set()


def test_f9_a_server_that_never_finishes_the_handshake_is_left(
    authority: KeyPair, client: KeyPair
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        tls = client_context(authority.certificate, client)
        with ClusterAPI(url, tls, connect=0.3) as api, pytest.raises(NoAnswer):
            api.text("/healthz")


def test_f62_nobody_listens(kept: Kept) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{taken.getsockname()[1]}"
        found = look(kept, url)
    assert found["health_status"] == "UNHEALTHY"
    assert "refused" in found["health_status_reason"]["api"]


def test_the_private_key_is_never_written_in_clear(
    authority: KeyPair, client: KeyPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    real = os.memfd_create

    def spied(name: str) -> int:
        descriptor = real(name)
        written.append(f"/proc/self/fd/{descriptor}")
        return descriptor

    monkeypatch.setattr(k8s_client.os, "memfd_create", spied)
    client_context(authority.certificate, client)
    [path] = written
    # Closed: nothing is there, or by now something of another thread's.
    assert not os.path.exists(path) or "memfd:" not in os.readlink(path)
    assert "BEGIN ENCRYPTED PRIVATE KEY" in client.private_key


def test_a_conductor_keeps_the_health_of_a_cluster(tmp_path: Path, fleet: Fleet) -> None:
    magnum = Deployment(tmp_path, f"sqlite:///{tmp_path}/magnum.sqlite")
    conf = magnum.write_conf(
        "no-broker", NO_BROKER, kubernetes__health_polling_interval="1", x509__rsa_key_size="2048"
    )
    fleet.start(_conductor, conf, str(magnum.sandbox))
    cluster = magnum.create({"sandbox_health": "k8s"}, floating_ip_enabled=True)
    row = magnum.until_status(cluster, "CREATE_COMPLETE")
    manager = make_manager(magnum.conf, db=magnum.db, cloud=None, sealer=_sealer(magnum))
    authority = Certificates(manager, RULES).authority(row)
    with serving(tmp_path, authority) as stub:
        stub.nodes = [node("worker-0")]
        where = {"api_address": stub.url}
        magnum.db.write(lambda s: queries.update_cluster(s, cluster, where))
        ready = {"api": "ok", "worker-0.Ready": "True"}

        def healthy() -> bool:
            row = magnum.cluster(cluster)
            return (row.health_status, row.health_status_reason) == ("HEALTHY", ready)

        magnum.until(healthy)
        stub.nodes = [node("worker-0", "False")]
        magnum.until(lambda: magnum.cluster(cluster).health_status == "UNHEALTHY")
    magnum.db.dispose()


def _sealer(magnum: Deployment) -> Any:
    from trimaran.magnum.sealing import Sealer

    return Sealer.from_conf(magnum.conf)


def _conductor(link: Any, conf: str, folder: str) -> None:
    from tests.support.magnum_conductor import conductor

    conductor(link, conf, folder, 1.0)


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with Fleet() as started:
        yield started
