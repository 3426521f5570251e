"""The events of magnum 23.0.0 beside ours, made of the same cluster.

Skipped where TRIMARAN_UPSTREAM_MAGNUM does not name a virtual environment with
magnum==23.0.0.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from trimaran.magnum.context import RequestContext
from trimaran.magnum.notifications import cadf

VENV = os.environ.get("TRIMARAN_UPSTREAM_MAGNUM", "")
pytestmark = pytest.mark.skipif(not VENV, reason="TRIMARAN_UPSTREAM_MAGNUM is not set")

#: prints what upstream hands to its notifier
SCRIPT = """
import json, sys, datetime, warnings
warnings.simplefilter("ignore")
from magnum import objects
from magnum.common import context, rpc
from magnum.conductor import utils
import magnum.conf
magnum.conf.CONF([], project="magnum", default_config_files=[], default_config_dirs=[])
given = json.load(sys.stdin)
sent = []
class Notifier:
    def info(self, context, event, body): sent.append(["info", event, body])
    def error(self, context, event, body): sent.append(["error", event, body])
rpc.get_notifier = lambda *a, **k: Notifier()
sums = given.pop("sums")
for name, value in sums.items():
    setattr(objects.Cluster, name, value)
times = {n: datetime.datetime.fromisoformat(given.pop(n)) for n in ("created_at", "updated_at")}
cluster = objects.Cluster(**given, **times)
asked = context.RequestContext(user_id="u1", project_id="p1")
asked.domain_id = "d1"
for action in ("create", "update", "delete"):
    for outcome in ("pending", "success", "failure"):
        utils.notify_about_cluster_operation(asked, action, outcome, cluster)
utils.notify_about_cluster_operation(
    context.make_admin_context(all_tenants=True), "create", "success", cluster)
print(json.dumps(sent))
"""
CLUSTER = {
    "uuid": "5d12f6fd-a196-4bf0-ae4c-1f639a523a52",
    "name": "prod",
    "status": "CREATE_IN_PROGRESS",
    "status_reason": None,
    "project_id": "p1",
    "cluster_template_id": "e74c40e0-d825-11e2-a28f-0800200c9a66",
    "keypair": "kp",
    "docker_volume_size": 5,
    "labels": {"kube_tag": "v1.31.1"},
    "master_flavor_id": "m1.large",
    "flavor_id": "m1.small",
    "stack_id": "stack",
    "health_status": "HEALTHY",
    "create_timeout": 60,
    "api_address": "https://192.0.2.1:6443",
    "discovery_url": None,
    "created_at": "2026-01-02T03:04:05",
    "updated_at": "2026-01-02T03:05:06",
}
SUMS: dict[str, Any] = {
    "node_addresses": ["10.0.0.5"],
    "master_addresses": ["10.0.0.4"],
    "node_count": 1,
    "master_count": 1,
}


@pytest.fixture(scope="module")
def upstream() -> list[tuple[str, str, dict[str, Any]]]:
    """What upstream tells: level, event and body."""
    done = subprocess.run(
        [Path(VENV) / "bin" / "python", "-c", SCRIPT],
        input=json.dumps({**CLUSTER, "sums": SUMS}),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return [(level, event, body) for level, event, body in json.loads(done.stdout.splitlines()[-1])]


def anonymous(body: Any) -> Any:
    """A body with what is different each time replaced by its form."""
    if isinstance(body, dict):
        return {name: anonymous(value) for name, value in body.items()}
    if isinstance(body, list):
        return [anonymous(item) for item in body]
    if isinstance(body, str) and body != CLUSTER["uuid"]:
        known = {CLUSTER["cluster_template_id"]}
        if body not in known and re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", body):
            return "<uuid>"
        if re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}[+]0000", body):
            return "<time>"
    return body


def ours(context: RequestContext, action: str, outcome: str) -> Any:
    times = {
        name: datetime.fromisoformat(str(CLUSTER[name])) for name in ("created_at", "updated_at")
    }
    body = anonymous(cadf.payload(context, {**CLUSTER, **times, **SUMS}, action, outcome))
    # Ours has the right key beside the one with upstream's slip (F-56).
    del body["target"]["attachments"][0]["content"]["docker_volume_size"]
    return body


def test_the_events_are_field_by_field_the_same(
    upstream: list[tuple[str, str, dict[str, Any]]],
) -> None:
    *asked, periodic = upstream
    user = RequestContext(user_id="u1", project_id="p1", domain_id="d1")
    told = []
    for level, event, body in asked:
        action, outcome = body["action"], body["outcome"]
        assert (level, event) == (
            "error" if outcome == "failure" else "info",
            f"magnum.cluster.{action}",
        )
        assert anonymous(body) == ours(user, action, outcome)
        told.append((action, outcome))
    assert len(set(told)) == 9
    assert anonymous(periodic[2]) == ours(RequestContext.admin(), "create", "success")
