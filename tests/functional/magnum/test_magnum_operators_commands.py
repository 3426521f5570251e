"""``trimaran magnum``: what an operator sees and does, on a deployment with a real conductor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
import sqlalchemy as sa
from click.testing import CliRunner

from tests.support.magnum_conductor import NO_BROKER, Deployment
from tests.support.processes import Fleet
from trimaran.cli.magnum import magnum as command
from trimaran.db.models.magnum import MagnumService, utcnow
from trimaran.db.queries import magnum as queries
from trimaran.db.queries import work_jobs
from trimaran.magnum.conductor import metrics

Ask = Callable[..., tuple[int, str]]


@pytest.fixture
def magnum(tmp_path: Path, migrated: Callable[[str, str], str]) -> Iterator[Deployment]:
    made = Deployment(tmp_path, f"sqlite:///{tmp_path}/magnum.sqlite")
    yield made
    made.db.dispose()


@pytest.fixture
def ask(magnum: Deployment) -> Ask:
    def run(*words: str) -> tuple[int, str]:
        arguments = [*words[:2], "--url", magnum.url, *words[2:]]
        done = CliRunner().invoke(command, arguments)
        return done.exit_code, done.output

    return run


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with Fleet() as started:
        yield started


def test_operations_are_listed_and_shown_without_token_or_arguments(
    magnum: Deployment, ask: Ask
) -> None:
    assert ask("operations", "list") == (0, "no operations\n")
    magnum.context.auth_token = "hush"
    cluster = magnum.create(timeout=4711)
    other = magnum.create()
    code, listed = ask("operations", "list", "--cluster", cluster)
    assert (code, cluster in listed, other in listed, "queued" in listed) == (0, True, False, True)
    assert ask("operations", "list", "--operation", "cluster_delete") == (0, "no operations\n")
    id_ = listed.splitlines()[1].split()[0]
    code, shown = ask("operations", "show", id_)
    assert (code, "CREATE_IN_PROGRESS" in shown) == (0, True)
    assert not any(word in listed + shown for word in ("hush", "4711", "token"))


@pytest.mark.parametrize("word", ["show", "retry", "fail"])
def test_an_unknown_operation_is_a_sentence_and_exit_1(ask: Ask, word: str) -> None:
    assert ask("operations", word, "nothing") == (1, "trimaran: there is no operation nothing\n")


def test_a_failed_operation_says_so_on_its_cluster_and_is_told_of(
    magnum: Deployment, ask: Ask
) -> None:
    cluster = magnum.create()
    id_ = magnum.db.read(lambda s: work_jobs.listing(s, kind="magnum.cluster_create"))[0].id
    code, said = ask("operations", "fail", id_, "--reason", "No rack is free.")
    assert (code, said) == (0, f"{id_} is ended, its cluster is CREATE_FAILED\n")
    row = magnum.cluster(cluster)
    assert (row.status, row.status_reason) == ("CREATE_FAILED", "No rack is free.")
    assert {g.status for g in magnum.groups(cluster).values()} == {"CREATE_FAILED"}
    job = magnum.db.read(lambda s: work_jobs.show(s, id_))
    assert job is not None
    assert (job.state, job.error, job.payload["token"]) == ("failed", "No rack is free.", None)
    events = magnum.db.read(lambda s: work_jobs.listing(s, kind="magnum.notify"))
    assert [(e.payload["event"]["action"], e.payload["event"]["outcome"]) for e in events] == [
        ("create", "failure")
    ]
    code, said = ask("operations", "fail", id_)
    assert (code, "is failed" in said) == (1, True)
    assert magnum.cluster(cluster).status_reason == "No rack is free."


def test_an_operation_that_waits_behind_another_does_not_touch_the_status(
    magnum: Deployment, ask: Ask
) -> None:
    cluster = magnum.create()
    waiting = magnum.ask("cluster_update", cluster, node_count=3)
    code, said = ask("operations", "fail", waiting)
    assert (code, "left as it is" in said) == (0, True)
    assert magnum.cluster(cluster).status == "CREATE_IN_PROGRESS"


def test_a_create_that_failed_runs_again_from_its_beginning(
    magnum: Deployment, ask: Ask, fleet: Fleet
) -> None:
    magnum.begin(fleet, "no-broker", NO_BROKER)
    cluster = magnum.create({"sandbox_fail": "create"})
    magnum.until_status(cluster, "CREATE_FAILED")
    id_ = magnum.db.read(lambda s: work_jobs.listing(s, kind="magnum.cluster_create"))[0].id
    magnum.until(lambda: ask("operations", "list", "--state", "failed")[1].count(id_))
    healed = {"labels": {"sandbox_polls": "1"}}
    magnum.db.write(lambda s: queries.update_cluster(s, cluster, healed))

    assert ask("operations", "retry", id_) == (0, f"{id_} of cluster {cluster} is queued\n")

    row = magnum.until_status(cluster, "CREATE_COMPLETE")
    assert row.status_reason is None
    assert {g.status for g in magnum.groups(cluster).values()} == {"CREATE_COMPLETE"}
    code, said = ask("operations", "retry", id_)
    assert (code, "CREATE_COMPLETE by now" in said) == (1, True)


def test_a_failed_upgrade_runs_again_although_the_cluster_is_in_failure(
    magnum: Deployment, ask: Ask, fleet: Fleet
) -> None:
    magnum.begin(fleet, "no-broker", NO_BROKER)
    cluster = magnum.create({"sandbox_fail": "upgrade"})
    magnum.until_status(cluster, "CREATE_COMPLETE")
    target = magnum.template(name="newer")
    group = magnum.groups(cluster)["default-worker"].uuid
    id_ = magnum.ask(
        "cluster_upgrade", cluster, cluster_template=target.uuid, max_batch_size=1, nodegroup=group
    )
    magnum.until_status(cluster, "UPDATE_FAILED")
    magnum.until(lambda: ask("operations", "list", "--state", "failed")[1].count(id_))
    healed = {"labels": {"sandbox_polls": "1"}}
    magnum.db.write(lambda s: queries.update_cluster(s, cluster, healed))
    assert ask("operations", "retry", id_)[0] == 0
    assert magnum.until_status(cluster, "UPDATE_COMPLETE").cluster_template_id == target.uuid


def test_a_cluster_whose_driver_never_ends_is_ended(
    magnum: Deployment, ask: Ask, fleet: Fleet
) -> None:
    magnum.begin(fleet, "no-broker", NO_BROKER)
    cluster = magnum.create({"sandbox_hang": "create"})
    magnum.until(lambda: ask("operations", "list", "--state", "done")[1].count(cluster))
    id_ = magnum.db.read(lambda s: work_jobs.listing(s, kind="magnum.cluster_create"))[0].id
    code, said = ask("operations", "fail", id_)
    assert (code, said) == (0, f"{id_} is ended, its cluster is CREATE_FAILED\n")
    assert magnum.cluster(cluster).status_reason == "Ended by an operator."


def test_dead_conductors_are_shown_and_removed_and_living_ones_kept(
    magnum: Deployment, ask: Ask
) -> None:
    assert ask("services", "list") == (0, "no conductors\n")
    for host in ("dead", "deader", "alive"):
        magnum.db.write(lambda s, host=host: queries.beat(s, host, "magnum-conductor"))
    long_ago = utcnow().replace(year=2020)
    magnum.db.write(
        lambda s: s.execute(
            sa.update(MagnumService)
            .where(MagnumService.host != "alive")
            .values(last_seen_up=long_ago)
        )
    )
    listed = ask("services", "list")[1].splitlines()[1:]
    assert [line.split()[::2][:2] for line in listed] == [
        ["dead", "down"],
        ["deader", "down"],
        ["alive", "up"],
    ]
    code, said = ask("services", "remove", "alive")
    assert (code, "that is down" in said) == (1, True)
    assert ask("services", "remove", "dead") == (0, "dead is removed\n")
    assert ask("services", "remove", "--all-down") == (0, "deader is removed\n")
    assert ask("services", "remove")[0] == 2
    left = magnum.db.read(queries.list_services)
    assert [row.host for row in left] == ["alive"]


def test_metrics_of_a_conductor_are_served(
    magnum: Deployment, free_port: Callable[[], int]
) -> None:
    cluster = magnum.create()
    magnum.db.write(lambda s: queries.update_cluster(s, cluster, {"status": "CREATE_COMPLETE"}))
    metrics.Measure(magnum.db)()
    port = free_port()
    metrics.serve("127.0.0.1", 0)
    metrics.serve("127.0.0.1", port)
    said = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=60).text
    assert 'trimaran_magnum_clusters{status="CREATE_COMPLETE"} 1.0' in said
    queued = 'trimaran_magnum_operations{operation="cluster_create",state="queued"} 1.0'
    assert queued in said

    magnum.db.write(lambda s: queries.update_cluster(s, cluster, {"status": "CREATE_FAILED"}))
    metrics.Measure(magnum.db)()
    said = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=60).text
    assert 'trimaran_magnum_clusters{status="CREATE_FAILED"} 1.0' in said
    assert "CREATE_COMPLETE" not in said
