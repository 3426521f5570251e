"""The two node groups that every cluster begins with (spec/magnum.md 6.1)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from trimaran.errors import BadRequest


def _get(source: Any, name: str) -> Any:
    return source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)


def count_label(labels: Mapping[str, Any], name: str) -> int | None:
    """Reads a label that holds a number of nodes.

    Raises:
        BadRequest: it is no number of nodes; upstream accepted the cluster
            and left it in creation for ever (F-4).
    """
    text = labels.get(name)
    if text is None or text == "":
        return None
    try:
        value = int(str(text))
    except ValueError:
        value = -1
    if value < 0:
        raise BadRequest(
            f"Invalid input for field/attribute labels[{name}]. Value: '{text}'. "
            "Value should be an integer greater or equal to 0"
        )
    return value


def default_nodegroups(
    cluster: Any, template: Any, master_count: int, node_count: int
) -> list[dict[str, Any]]:
    """Returns the values of default-master and default-worker.

    Args:
        cluster: values, row or object of the cluster.
        template: row or object of its template.
        master_count: masters.
        node_count: workers.

    Raises:
        BadRequest: a label that sets a number of nodes holds none.
    """
    labels = dict(_get(cluster, "labels") or {})
    common = {
        "cluster_id": _get(cluster, "uuid"),
        "project_id": _get(cluster, "project_id"),
        "image_id": _get(template, "image_id"),
        "docker_volume_size": _get(cluster, "docker_volume_size")
        or _get(template, "docker_volume_size"),
        "is_default": True,
        "status": "CREATE_IN_PROGRESS",
        "node_addresses": [],
        "node_labels": {},
        "node_taints": [],
    }
    least = count_label(labels, "min_node_count") or 0
    # A maximum of 0 means that there is none (F-44).
    most = count_label(labels, "max_node_count") or None
    return [
        common
        | {
            "uuid": str(uuid.uuid4()),
            "name": "default-master",
            "role": "master",
            "node_count": master_count,
            "flavor_id": _get(cluster, "master_flavor_id") or _get(template, "master_flavor_id"),
            "min_node_count": 0,
            "max_node_count": None,
            "labels": dict(labels),
        },
        common
        | {
            "uuid": str(uuid.uuid4()),
            "name": "default-worker",
            "role": "worker",
            "node_count": node_count,
            "flavor_id": _get(cluster, "flavor_id") or _get(template, "flavor_id"),
            "min_node_count": least,
            "max_node_count": most,
            "labels": dict(labels),
        },
    ]
