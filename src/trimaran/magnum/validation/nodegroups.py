"""Rules of node groups (spec section 1.11): sizes, labels, taints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trimaran.errors import BadRequest, Conflict

_ALLOWED_PREFIXES = ("kubelet.kubernetes.io", "node.kubernetes.io")
#: what a kubelet may set on itself below kubernetes.io (NodeRestriction admission)
_ALLOWED_LABELS = (
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "node.kubernetes.io/windows-build",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
)
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TAINT_FIELDS = ("key", "value", "effect")
_BUSY = ("CREATE_IN_PROGRESS", "DELETE_IN_PROGRESS", "DELETE_FAILED", "DELETE_COMPLETE")


def _invalid(attribute: str, name: str, why: str) -> Conflict:
    return Conflict(f"{attribute} for {name} is invalid ({why}).")


def check(values: Mapping[str, Any]) -> None:
    """All rules, in upstream's order.

    Args:
        values: ``name``, ``role``, the three counts, ``node_labels``, ``node_taints``.

    Raises:
        Conflict: a rule is broken.
    """
    name = values["name"]
    _check_counts(name, values["node_count"], values["min_node_count"], values["max_node_count"])
    if values["role"] == "master":
        for attribute in ("node_labels", "node_taints"):
            if values[attribute]:
                raise _invalid(attribute, name, f"{attribute} may not be set on master nodegroups")
    _check_labels(name, values["node_labels"])
    _check_taints(name, values["node_taints"])


def _check_counts(name: str, count: int, least: int, most: int | None) -> None:
    if most:
        if most < least:
            why = f"min_node_count ({least}) should be less or equal to max_node_count ({most})"
            raise _invalid("max_node_count", name, why)
        if count > most:
            why = f"node_count ({count}) should be less or equal to max_node_count ({most})"
            raise _invalid("max_node_count", name, why)
    if least > count:
        why = f"min_node_count ({least}) should be less or equal to node_count ({count})"
        raise _invalid("min_node_count", name, why)


def _check_labels(name: str, labels: Mapping[str, str]) -> None:
    for key in labels:
        prefix, slash, _ = key.partition("/")
        restricted = slash and (
            prefix in ("kubernetes.io", "k8s.io") or prefix.endswith((".kubernetes.io", ".k8s.io"))
        )
        if restricted and prefix not in _ALLOWED_PREFIXES and key not in _ALLOWED_LABELS:
            why = (
                f"node label '{key}' is in a restricted Kubernetes namespace; the kubelet will "
                "refuse to start. Labels in the kubernetes.io/ and k8s.io/ namespaces must use "
                f"one of the allowed prefixes ({', '.join(_ALLOWED_PREFIXES)}) or be one of the "
                f"allowed labels ({', '.join(_ALLOWED_LABELS)})."
            )
            raise _invalid("node_labels", name, why)


def _check_taints(name: str, taints: Sequence[Mapping[str, str]]) -> None:
    for index, taint in enumerate(taints):
        where = f"node_taints[{index}]"
        unknown = sorted(set(taint) - set(_TAINT_FIELDS))
        if unknown:
            why = (
                f"{where} contains unrecognised field(s) {', '.join(unknown)}; "
                f"allowed fields are {', '.join(_TAINT_FIELDS)}"
            )
            raise _invalid("node_taints", name, why)
        if not taint.get("key"):
            raise _invalid("node_taints", name, f"{where}.key is required")
        if taint.get("effect") not in _EFFECTS:
            why = f"{where}.effect must be one of {', '.join(_EFFECTS)}"
            raise _invalid("node_taints", name, why)


def check_cluster_status(status: str | None) -> None:
    """Node groups do not change while their cluster is made or removed (F-17).

    Raises:
        BadRequest: it is.
    """
    if status in _BUSY:
        raise BadRequest(f'Updating a cluster when status is "{status}" is not supported.')


def check_status(action: str, status: str | None) -> None:
    """What may be done to a node group in a status; the status told is its own (F-14).

    Raises:
        BadRequest: not in this one.
    """
    settled = status is None or status.endswith("_COMPLETE")
    if not settled and status not in ("UPDATE_IN_PROGRESS", "UPDATE_FAILED"):
        raise BadRequest(f'{action} when nodegroup status is "{status}" is not supported.')


def check_size(group: Any, count: int) -> None:
    """A worker group stays within its limits.

    Args:
        group: row of table ``nodegroup``.
        count: nodes wanted.

    Raises:
        BadRequest: too few or too many.
    """
    least, most = group.min_node_count or 0, group.max_node_count
    if count < least or (most and count > most):
        raise BadRequest(
            f"Resizing {group.name} outside the allowed range: min_node_count = {least}, "
            f"max_node_count = {most}"
        )
