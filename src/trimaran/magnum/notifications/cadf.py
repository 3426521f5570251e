"""The payload of a notification: a CADF event about a cluster.

The key with the colon is upstream's slip, which listeners may rely on; the
right key stands beside it (F-56).
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

from trimaran.magnum.context import RequestContext

CLUSTER_TYPE = "service/magnum/cluster"
_COPIED = (
    "status",
    "status_reason",
    "project_id",
    "cluster_template_id",
    "keypair",
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
)


def _time(value: datetime | None) -> str | None:
    return value.strftime("%Y-%m-%dT%H:%M:%S.%f") if value else None


def _initiator(context: RequestContext) -> dict[str, str]:
    known = {
        "user_id": context.user_id,
        "project_id": context.project_id,
        "domain_id": context.domain_id,
    }
    return {
        "id": str(uuid.uuid4()),
        "typeURI": "service/security/account/user",
        **{name: value for name, value in known.items() if value},
    }


def payload(
    context: RequestContext,
    cluster: dict[str, Any],
    action: str,
    outcome: str,
    *,
    event_id: str | None = None,
) -> dict[str, Any]:
    """Returns the event.

    Args:
        context: who asked; nobody for periodic work.
        cluster: the cluster's fields with sizes and addresses (``as_dict``).
        action: ``create``, ``update`` or ``delete``.
        outcome: ``pending``, ``success`` or ``failure``.
        event_id: fixed, where the event might be sent again after a crash.
    """
    content = {name: cluster.get(name) for name in _COPIED}
    content["docker_volume_size:"] = content["docker_volume_size"]
    content["created_at"] = _time(cluster.get("created_at"))
    content["updated_at"] = _time(cluster.get("updated_at"))
    return {
        "typeURI": "http://schemas.dmtf.org/cloud/audit/1.0/event",
        "eventType": "activity",
        "id": event_id or str(uuid.uuid4()),
        "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f+0000"),
        "action": action,
        "outcome": outcome,
        "observer": {"id": str(uuid.uuid4()), "typeURI": CLUSTER_TYPE},
        "initiator": _initiator(context),
        "target": {
            "id": cluster["uuid"],
            "typeURI": CLUSTER_TYPE,
            "name": cluster.get("name"),
            "attachments": [{"typeURI": CLUSTER_TYPE, "name": "cluster_data", "content": content}],
        },
    }
