"""Checks of a cluster template (spec section 2.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oslo_config import cfg

from trimaran.errors import BadRequest
from trimaran.magnum.drivers.lookup import Drivers
from trimaran.magnum.validation.resources import Resources

COES = ("kubernetes",)
NETWORK_DRIVERS = ("flannel", "calico", "cilium")
VOLUME_DRIVERS = ("cinder",)
#: GB that docker's devicemapper needs
DEVICEMAPPER_MINIMUM = 3


def _expected(kind: str, value: Any, known: tuple[str, ...]) -> BadRequest:
    choices = "/".join((*known, "unspecified"))
    return BadRequest(
        f"{kind} type {value} is not supported, expecting a {choices} {kind[0].lower()}{kind[1:]}."
    )


def check_coe(coe: str | None) -> None:
    """Only Kubernetes is left; upstream's text says Unset for an absent one.

    Raises:
        BadRequest: another one, or none.
    """
    if coe not in COES:
        raise BadRequest(f"Requested COE type {coe or 'Unset'} is not supported.")


def network_driver(conf: cfg.ConfigOpts, wanted: str | None) -> str:
    """The network driver to use.

    Args:
        conf: section ``cluster_template`` has the default and what is allowed.
        wanted: the client's choice.

    Raises:
        BadRequest: not known, or not allowed here.
    """
    options = conf.cluster_template
    driver: str = wanted or options.kubernetes_default_network_driver
    if driver not in NETWORK_DRIVERS:
        raise _expected("Network driver", driver, NETWORK_DRIVERS)
    allowed = list(options.kubernetes_allowed_network_drivers)
    if "all" not in allowed and driver not in allowed:
        choices = "/".join([*allowed, "unspecified"])
        # The space at the end is on upstream's wire.
        raise BadRequest(
            f"Network driver type {driver} is not allowed, expecting a {choices} network driver. "
        )
    return driver


def check_volume_driver(driver: str | None) -> None:
    """Cinder or nothing.

    Raises:
        BadRequest: something else.
    """
    if driver and driver not in VOLUME_DRIVERS:
        raise _expected("Volume driver", driver, VOLUME_DRIVERS)


def check_volume_size(storage_driver: str | None, size: int | None) -> None:
    """The devicemapper storage driver needs room.

    Raises:
        BadRequest: too little.
    """
    if storage_driver == "devicemapper" and (not size or size < DEVICEMAPPER_MINIMUM):
        raise BadRequest(
            f"docker volume size {size} GB is not valid, expecting minimum value "
            f"{DEVICEMAPPER_MINIMUM}GB for {storage_driver} storage driver."
        )


def driver(drivers: Drivers, resources: Resources, values: Mapping[str, Any]) -> str | None:
    """The name of the cluster driver that a template gets, checked.

    The body's choice counts before the image's property ``magnum_driver``, and
    that before a default that provides the image's type (F-37).

    Args:
        drivers: what is installed.
        resources: look-ups of this request.
        values: of the template.

    Raises:
        BadRequest: no such driver, or no driver provides this type.
    """
    distro, name = values.get("cluster_distro"), values.get("driver")
    if not distro or not name:
        image = resources.image(values["image_id"])
        distro = distro or resources.distro(values["image_id"])
        name = name or image.get("magnum_driver")
    kind = (values["server_type"], distro, values["coe"])
    name = name or drivers.default_for(*kind)
    drivers.get(*kind, name=name)
    return name
