"""Finds the driver of a cluster (spec/magnum.md 8.2).

Disabled drivers and beta drivers that nobody enabled do not exist, by
whichever way they are asked for (F-40), and without a name only a driver that
provides the type is chosen (F-37).
"""

from __future__ import annotations

import logging
import threading
from typing import Any

import stevedore

from trimaran.errors import BadRequest
from trimaran.magnum.drivers.base import Driver

LOG = logging.getLogger(__name__)

GROUP = "magnum.drivers"
Type = tuple[str | None, str | None, str | None]


class Drivers:
    """The drivers that are installed.

    Args:
        conf: loaded ``magnum.conf``; ``[drivers]`` is read at use.
        group: entry point group.
    """

    def __init__(self, conf: Any, group: str = GROUP) -> None:
        self._conf = conf
        self._group = group
        self._lock = threading.Lock()
        self._classes: dict[str, type[Driver]] | None = None
        self._told: set[Type] = set()

    def get(
        self,
        server_type: str | None,
        os: str | None,
        coe: str | None,
        name: str | None = None,
    ) -> Driver:
        """Returns the driver of a cluster type.

        Args:
            server_type: ``vm`` or ``bm``.
            os: the image's ``os_distro``.
            coe: ``kubernetes``.
            name: the template's driver; wins over the type.

        Raises:
            BadRequest: none, with upstream's texts.
        """
        wanted: Type = (server_type, os, coe)
        if name:
            cls = self._installed().get(name)
            if cls is None:
                raise self._unknown(name)
            if self._locked(name, cls):
                raise self._beta(name, wanted)
            return cls()
        usable = self._providing(wanted)
        if not usable:
            raise self._no_type(wanted)
        chosen = self._preferred(usable, wanted)
        return self._installed()[chosen]()

    def for_template(self, template: Any) -> Driver:
        """Returns the driver of a template's clusters.

        Raises:
            BadRequest: none.
        """
        return self.get(
            template.server_type, template.cluster_distro, template.coe, template.driver
        )

    def names_providing(
        self, server_type: str | None, os: str | None, coe: str | None
    ) -> list[str]:
        """Returns the names of the usable drivers of a type, in alphabetical order."""
        return self._providing((server_type, os, coe))

    def default_for(self, server_type: str | None, os: str | None, coe: str | None) -> str | None:
        """Returns the driver for a template that names none.

        ``[drivers] default_driver`` where it is set, otherwise the first by
        name of those that provide the type.

        Raises:
            BadRequest: the configured default is not installed.
        """
        configured = self._conf.drivers.default_driver
        if configured:
            if configured not in self._installed():
                LOG.error("[drivers] default_driver %s is not installed", configured)
                raise self._unknown(configured)
            return str(configured)
        usable = self._providing((server_type, os, coe))
        return usable[0] if usable else None

    def names(self) -> list[str]:
        """Returns the names of the drivers that may be used."""
        return sorted(n for n, cls in self._installed().items() if not self._locked(n, cls))

    def _installed(self) -> dict[str, type[Driver]]:
        with self._lock:
            if self._classes is None:
                self._classes = self._load()
            disabled = set(self._conf.drivers.disabled_drivers)
            return {
                name: cls
                for name, cls in self._classes.items()
                if name not in disabled and _offered(cls)
            }

    def _load(self) -> dict[str, type[Driver]]:
        def failed(_manager: Any, entry_point: Any, problem: BaseException) -> None:
            LOG.error("Driver %s cannot be loaded: %s", entry_point.name, problem)

        manager = stevedore.ExtensionManager(
            self._group, invoke_on_load=False, on_load_failure_callback=failed
        )
        return {item.name: item.plugin for item in manager}

    def _locked(self, name: str, cls: type[Driver]) -> bool:
        return bool(cls.beta) and name not in self._conf.drivers.enabled_beta_drivers

    def _types(self, cls: type[Driver]) -> list[Type]:
        return [(item["server_type"], item["os"], item["coe"]) for item in cls().provides]

    def _providing(self, wanted: Type) -> list[str]:
        return sorted(
            name
            for name, cls in self._installed().items()
            if not self._locked(name, cls) and wanted in self._types(cls)
        )

    def _preferred(self, usable: list[str], wanted: Type) -> str:
        configured = self._conf.drivers.default_driver
        if configured in usable:
            return str(configured)
        with self._lock:
            fresh = len(usable) > 1 and wanted not in self._told
            self._told.add(wanted)
        if fresh:
            LOG.warning(
                "Drivers %s all provide (%s, %s, %s); %s is used where a template names none. "
                "Set [drivers] default_driver, or a driver in the template.",
                ", ".join(usable),
                *wanted,
                usable[0],
            )
        return usable[0]

    def _no_type(self, wanted: Type) -> BadRequest:
        for name, cls in sorted(self._installed().items()):
            if self._locked(name, cls) and wanted in self._types(cls):
                return self._beta(name, wanted)
        types = sorted(
            {
                f"({item[0]}, {item[1]}, {item[2]})"
                for cls in self._installed().values()
                for item in self._types(cls)
            }
        )
        supported = ", ".join(types) or "none (no cluster drivers are loaded)"
        return BadRequest(
            f"Cluster type ({wanted[0]}, {wanted[1]}, {wanted[2]}) is not supported by any "
            f"loaded cluster driver. Loaded drivers support: {supported}.",
            code="ClusterTypeNotSupported",
        )

    @staticmethod
    def _beta(name: str, wanted: Type) -> BadRequest:
        return BadRequest(
            f"Cluster type ({wanted[0]}, {wanted[1]}, {wanted[2]}) is provided by the '{name}' "
            f"driver, which is a beta driver and is not enabled. Add '{name}' to the "
            "[drivers]/enabled_beta_drivers configuration option to use it.",
            code="ClusterTypeBetaNotEnabled",
        )

    @staticmethod
    def _unknown(name: str) -> BadRequest:
        return BadRequest(
            f"Cluster driver ({name}) not supported.", code="ClusterDriverNotSupported"
        )


def _offered(cls: type[Driver]) -> bool:
    # Drivers written for upstream's base class do not have the question.
    return bool(getattr(cls, "offered", lambda: True)())
