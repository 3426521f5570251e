"""Checks of a new cluster, and what it takes from its template (spec sections 2.1 and 2.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oslo_config import cfg

from trimaran.db.models.magnum import Cluster, ClusterTemplate
from trimaran.errors import BadRequest, Forbidden
from trimaran.magnum import statuses
from trimaran.magnum.validation.resources import Resources, integer_label
from trimaran.magnum.validation.templates import check_volume_size

#: labels that the conductor reads as numbers (F-4, F-44)
_NUMBERS = ("min_node_count", "max_node_count")
_INHERITED = (
    "docker_volume_size",
    "master_flavor_id",
    "flavor_id",
    "fixed_network",
    "fixed_subnet",
)


def check_zero_nodes(count: int | None) -> None:
    """Before 1.10 there is always a node.

    Raises:
        BadRequest: no nodes are asked for.
    """
    if count == 0:
        raise BadRequest(
            "Resizing a nodegroup to zero is not supported in the provided microversion."
        )


def check_status(
    conf: cfg.ConfigOpts, cluster: Cluster | None, allowed: frozenset[str], doing: str
) -> None:
    """Asks the conductor's question before the conductor does, if the operator wants it (F-2).

    Args:
        conf: the configuration.
        cluster: as it is now, None when it is gone.
        allowed: statuses in which this can be done.
        doing: "Updating" or "Resizing", for the text.

    Raises:
        BadRequest: not in this one.
    """
    status = cluster.status if cluster else "DELETE_COMPLETE"
    if conf.api.check_status and status not in allowed:
        raise BadRequest(statuses.refusal(doing, status))


def check_storage(template: ClusterTemplate, size: int | None) -> None:
    """The storage rule of templates, with the cluster's own size.

    Raises:
        BadRequest: too little.
    """
    check_volume_size(template.docker_storage_driver, size or template.docker_volume_size)


def check_hidden(template: ClusterTemplate, *, is_admin: bool) -> None:
    """A hidden template makes no more clusters, but for administrators.

    Raises:
        Forbidden: so it is.
    """
    if template.hidden and not is_admin:
        raise Forbidden("Not authorized.")


def inherit(template: ClusterTemplate, given: Mapping[str, Any]) -> dict[str, Any]:
    """The cluster's values, completed by its template's.

    Args:
        template: the cluster's template.
        given: what the client sent, without nulls.
    """
    values = dict(given)
    values["cluster_template_id"] = template.uuid
    values.setdefault("keypair", template.keypair_id)
    values["labels"] = _labels(template, given)
    values.setdefault("floating_ip_enabled", template.floating_ip_enabled)
    values.setdefault("master_lb_enabled", template.master_lb_enabled)
    for name in _INHERITED:
        values[name] = values.get(name) or getattr(template, name)
    return values


def _labels(template: ClusterTemplate, given: Mapping[str, Any]) -> dict[str, str]:
    own = given.get("labels")
    if not own:
        return dict(template.labels)
    return {**template.labels, **own} if given.get("merge_labels") else dict(own)


def check_resources(
    conf: cfg.ConfigOpts,
    resources: Resources,
    template: ClusterTemplate,
    values: Mapping[str, Any],
    master_count: int,
) -> None:
    """Everything that has to exist and to fit together.

    Args:
        conf: the configuration.
        resources: look-ups of this request.
        template: the cluster's template.
        values: the cluster's, after :func:`inherit`.
        master_count: masters wanted.

    Raises:
        TrimaranError: the first that upstream would have told.
    """
    for name in _NUMBERS:
        if integer_label(values["labels"], name, 0) < 0:
            raise BadRequest(f"{name} must be zero or more")
    default = conf.cinder.default_boot_volume_size
    for name in ("flavor_id", "master_flavor_id"):
        resources.check_root_volume(values[name], values["labels"], default)
    resources.check(template.as_dict(), values)
    if master_count > 1 and not values["master_lb_enabled"]:
        raise BadRequest("master_count must be 1 when master_lb_enabled is False")
