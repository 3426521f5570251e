"""A conductor killed at any point of an operation: what another one makes of it.

All operations run at the same time in conductors that die at their points and
take along what else they were at; docs/magnum-conductor.md has the table.
What a dead one held is free as soon as it is dead: that leases end by
themselves is shown in test_magnum_conductor_takeover.py.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import wait
from typing import Any

import pytest
import sqlalchemy as sa

from tests.support.magnum_conductor import NO_BROKER, Deployment
from tests.support.magnum_kill_points import FILE, doomed
from tests.support.processes import Fleet
from trimaran.db.models.magnum import X509KeyPair
from trimaran.db.models.work import Job
from trimaran.db.queries import magnum as queries
from trimaran.magnum.certificates import REFERENCES

CREATED = [("create", "pending"), ("create", "success")]
UPDATED = [*CREATED, ("update", "pending"), ("update", "success")]
DELETED = [*CREATED, ("delete", "pending"), ("delete", "success")]

#: operation, point → events that are told; the end state is the operation's
CASES: dict[tuple[str, str, str], list[tuple[str, str]]] = {
    ("cluster_create", "before", "certificates"): CREATED,
    ("cluster_create", "after", "certificates"): CREATED,
    ("cluster_create", "before", "certified"): CREATED,
    ("cluster_create", "before", "announced"): CREATED,
    ("cluster_create", "after", "announced"): CREATED,
    ("cluster_create", "before", "done"): CREATED,
    ("cluster_create", "before", "settled"): CREATED,
    ("cluster_create", "after", "settled"): CREATED,
    ("cluster_resize", "before", "announced"): UPDATED,
    ("cluster_resize", "after", "announced"): UPDATED,
    ("cluster_resize", "before", "done"): UPDATED,
    ("cluster_upgrade", "after", "announced"): UPDATED,
    ("cluster_upgrade", "before", "done"): UPDATED,
    ("rotate_ca_certificate", "after", "begun"): CREATED,
    ("rotate_ca_certificate", "before", "certificates"): CREATED,
    ("rotate_ca_certificate", "before", "replaced"): CREATED,
    ("rotate_ca_certificate", "after", "replaced"): CREATED,
    ("rotate_ca_certificate", "before", "done"): CREATED,
    ("cluster_delete", "before", "announced"): DELETED,
    ("cluster_delete", "after", "announced"): DELETED,
    ("cluster_delete", "before", "done"): DELETED,
    ("cluster_delete", "before", "settled"): DELETED,
    ("cluster_delete", "after", "settled"): DELETED,
    ("cluster_delete", "before", "rows"): DELETED,
}
PATIENCE = 600.0


@dataclass
class Outcome:
    """What became of the operations."""

    magnum: Deployment
    clusters: dict[tuple[str, str, str], str]
    before: dict[str, Any]
    newer: str
    died: set[str] = field(default_factory=set)


def ask(made: Outcome, operation: str, cluster: str) -> None:
    magnum = made.magnum
    group = magnum.groups(cluster)["default-worker"].uuid
    if operation == "cluster_delete":
        magnum.delete(cluster)
    elif operation == "cluster_resize":
        magnum.ask(operation, cluster, node_count=3, nodes_to_remove=[], nodegroup=group)
    elif operation == "cluster_upgrade":
        magnum.ask(operation, cluster, cluster_template=made.newer, nodegroup=group)
    else:
        magnum.ask(operation, cluster)


def survived(made: Outcome, operation: str, cluster: str) -> bool:
    """Whether the operation has come to its end."""
    row = made.magnum.cluster(cluster)
    if operation == "cluster_delete":
        return row is None
    if operation == "cluster_create":
        return bool(row.status == "CREATE_COMPLETE")
    return bool(row.status == "UPDATE_COMPLETE")


def idle(magnum: Deployment) -> bool:
    """Whether no job but notifications is left."""
    query = sa.select(sa.func.count()).select_from(Job)
    query = query.where(Job.due_at.is_not(None), Job.kind != "magnum.notify")
    return magnum.db.read(lambda s: s.scalar(query)) == 0


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory, module_mariadb_url: str) -> Iterator[Outcome]:
    # Nobody waits for the end of a lease here.
    magnum = Deployment(tmp_path_factory.mktemp("kill-points"), module_mariadb_url, lease=30)
    magnum.settings = {"oslo_messaging_notifications__driver": "log"}
    template = magnum.template(driver="sandbox_fcos", cluster_distro="fedora-coreos")
    labels = {"sandbox_polls": "1"}
    made = Outcome(magnum, {}, {}, magnum.template(name="newer").uuid)
    with Fleet() as fleet:
        first = magnum.start(fleet, "first-no-broker", NO_BROKER, interval=0.4)
        for case in CASES:
            if case[0] != "cluster_create":
                made.clusters[case] = magnum.create(labels, template=template)
        for cluster in made.clusters.values():
            made.before[cluster] = magnum.until_status(cluster, "CREATE_COMPLETE", PATIENCE)
        first.say("stop")
        fleet.until(lambda events: any(e.name == "stopped" for e in events))
        for case in CASES:
            if case[0] == "cluster_create":
                made.clusters[case] = magnum.create(labels, template=template)
        points = {cluster: case[1:] for case, cluster in made.clusters.items()}
        (magnum.sandbox / FILE).write_text(json.dumps(points))
        for (operation, *_), cluster in made.clusters.items():
            if operation != "cluster_create":
                ask(made, operation, cluster)

        limit = time.monotonic() + PATIENCE
        confs = [magnum.write_conf(f"doomed{n}-no-broker", NO_BROKER) for n in range(3)]
        alive: dict[Any, tuple[int, str]] = {}
        while len(made.died) < len(CASES):
            for conf in set(confs) - {conf for _, conf in alive.values()}:
                child = fleet.start(doomed, conf, str(magnum.sandbox), 0.4)
                alive[child.process.sentinel] = child.pid, conf
            for dead in wait(list(alive), timeout=1):
                pid, _ = alive.pop(dead)
                magnum.end_leases_of(pid)
            made.died = {path.name[5:] for path in magnum.sandbox.glob("died-*")}
            assert time.monotonic() < limit, sorted(
                case for case, cluster in made.clusters.items() if cluster not in made.died
            )
        # All have died for their cluster; those that live now are as good as any.
        for (operation, *_), cluster in made.clusters.items():
            magnum.until(partial(survived, made, operation, cluster), PATIENCE)
        magnum.until(lambda: idle(magnum), PATIENCE)
    yield made
    magnum.db.dispose()


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_another_conductor_brings_it_to_its_end(
    outcome: Outcome, case: tuple[str, str, str]
) -> None:
    magnum, cluster = outcome.magnum, outcome.clusters[case]
    told = [
        (job.payload["event"]["action"], job.payload["event"]["outcome"])
        for job in magnum.db.read(
            lambda s: s.scalars(
                sa.select(Job)
                .where(Job.kind == "magnum.notify", Job.key.like(f"{cluster}/%"))
                .order_by(Job.created_at, Job.id)
            ).all()
        )
    ]
    expected = CASES[case]
    if case[0] == "rotate_ca_certificate":
        # Upstream tells of the end of any update, and so do we (spec section 6.8).
        expected = [*expected, ("update", "success")]
    assert told == expected
    row, groups = magnum.cluster(cluster), magnum.groups(cluster)
    if case[0] == "cluster_delete":
        assert (row, groups) == (None, {})
        return
    assert {group.status for group in groups.values()} <= {"CREATE_COMPLETE", "UPDATE_COMPLETE"}
    assert groups["default-worker"].node_count == (3 if case[0] == "cluster_resize" else 1)
    assert row.stack_id == f"sandbox-{cluster}"
    references = [getattr(row, name) for name in REFERENCES]
    assert None not in references
    if case[0] == "rotate_ca_certificate":
        assert not set(references) & {getattr(outcome.before[cluster], n) for n in REFERENCES}
    elif case[0] == "cluster_upgrade":
        assert row.cluster_template_id == outcome.newer


def test_no_certificate_is_left_or_lost(outcome: Outcome) -> None:
    magnum = outcome.magnum
    held = {
        getattr(row, name)
        for row in magnum.db.read(lambda s: queries.list_clusters(s, queries.EVERYTHING))
        for name in REFERENCES
    }
    stored = set(magnum.db.read(lambda s: s.scalars(sa.select(X509KeyPair.uuid)).all()))
    assert stored == held
