"""The payload that listeners read, field by field."""

from __future__ import annotations

import uuid
from datetime import datetime

from trimaran.magnum.context import RequestContext
from trimaran.magnum.notifications import payload


def test_f56_the_event_is_upstreams() -> None:
    cluster = {
        "uuid": "c1",
        "name": "n",
        "status": "CREATE_IN_PROGRESS",
        "created_at": datetime(2026, 1, 2, 3, 4, 5),
        "docker_volume_size": 7,
        "node_count": 2,
        "ca_cert_ref": "secret-reference",
    }
    event = payload(RequestContext(user_id="u", project_id="p"), cluster, "create", "pending")
    assert event["typeURI"] == "http://schemas.dmtf.org/cloud/audit/1.0/event"
    assert (event["eventType"], event["action"], event["outcome"]) == (
        "activity",
        "create",
        "pending",
    )
    assert event["eventTime"].endswith("+0000")
    assert uuid.UUID(event["id"])
    assert event["observer"]["typeURI"] == "service/magnum/cluster"
    initiator = {k: v for k, v in event["initiator"].items() if k != "id"}
    assert initiator == {
        "typeURI": "service/security/account/user",
        "user_id": "u",
        "project_id": "p",
    }
    target = event["target"]
    assert (target["id"], target["typeURI"], target["name"]) == (
        "c1",
        "service/magnum/cluster",
        "n",
    )
    (attachment,) = target["attachments"]
    assert attachment["name"] == "cluster_data"
    content = attachment["content"]
    assert set(content) == {
        "status",
        "status_reason",
        "project_id",
        "created_at",
        "updated_at",
        "cluster_template_id",
        "keypair",
        "docker_volume_size:",
        "docker_volume_size",
        "labels",
        "master_flavor_id",
        "flavor_id",
        "stack_id",
        "health_status",
        "create_timeout",
        "api_address",
        "discovery_url",
        "node_addresses",
        "master_addresses",
        "node_count",
        "master_count",
    }
    assert content["docker_volume_size:"] == content["docker_volume_size"] == 7
    assert content["created_at"] == "2026-01-02T03:04:05.000000"


def test_a_repeated_event_keeps_its_id() -> None:
    made = payload(RequestContext(), {"uuid": "c"}, "update", "failure", event_id="e")
    assert made["id"] == "e"
