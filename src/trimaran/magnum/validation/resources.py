"""Do the named images, flavors, networks, subnets and key pairs exist for the caller?

Upstream asks for one after the other, and for flavors up to four times.  Here
independent questions go out together and each is asked once per request; the
error told is still the one that upstream would have found first.  Names of
networks and subnets are filtered by Neutron, so that a cloud with thousands of
them costs no more.  Spec sections 2.2 and 2.3; faults F-27, F-32, F-70.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from trimaran.cloud import CloudSession, gather
from trimaran.db.queries.magnum import as_uuid
from trimaran.errors import BadRequest, Conflict, Forbidden, NotFound, TrimaranError

T = TypeVar("T")
Found = dict[str, Any]


class Resources:
    """What one request looked up; answers are kept as long as the request.

    Args:
        cloud: OpenStack with the caller's token.
    """

    def __init__(self, cloud: CloudSession) -> None:
        self._cloud = cloud
        self._lock = threading.Lock()
        self._kept: dict[Hashable, Future[Any]] = {}

    def _once(self, key: Hashable, ask: Callable[[], T]) -> T:
        with self._lock:
            mine = key not in self._kept
            future: Future[Any] = self._kept.setdefault(key, Future())
        if mine:
            try:
                future.set_result(ask())
            except Exception as error:  # noqa: BLE001 - kept and raised to all who ask
                future.set_exception(error)
        found: T = future.result()
        return found

    def image(self, ident: str) -> Found:
        """The image of this id or name.

        Raises:
            BadRequest: there is none.
            Conflict: several have the name.
            Forbidden: Glance refuses.
        """
        return self._once(("image", ident), lambda: self._image(ident))

    def _image(self, ident: str) -> Found:
        try:
            if as_uuid(ident):
                try:
                    return self._cloud.image.image(ident)
                except NotFound:
                    pass  # a UUID may be a name as well
            images = self._cloud.image.images(name=ident)
        except Forbidden:
            raise Forbidden(f"Not authorized for image {ident}.") from None
        if not images:
            raise BadRequest(f"Image {ident} could not be found.")
        if len(images) > 1:
            raise Conflict(
                f"Multiple images exist with same name '{ident}'. Please use the image ID instead."
            )
        return dict(images[0])

    def distro(self, ident: str) -> str:
        """The ``os_distro`` of an image.

        Raises:
            BadRequest: as for :meth:`image`, or the image does not say it.
        """
        distro = self.image(ident).get("os_distro")
        if not distro:
            raise BadRequest(f"Image {ident} doesn't contain os_distro field.")
        return str(distro)

    def flavor(self, ident: str) -> Found:
        """The flavor of this id or name.

        Raises:
            BadRequest: there is none.
        """
        for flavor in self._once("flavors", self._cloud.compute.flavors):
            if ident in (flavor["name"], flavor["id"]):
                return dict(flavor)
        raise BadRequest(f"Unable to find flavor {ident}.")

    def external_network(self, ident: str) -> Found:
        """The external network of this id or name.

        Raises:
            BadRequest: there is none.
            Conflict: several have the name.
        """
        return self._one_of(
            self._cloud.network.networks, "external network", ident, {"router:external": True}
        )

    def fixed_network(self, ident: str) -> Found:
        """The network of this id or name; errors as for :meth:`external_network`."""
        return self._one_of(self._cloud.network.networks, "network", ident, {})

    def fixed_subnet(self, ident: str) -> Found:
        """The subnet of this id or name; errors as for :meth:`external_network`."""
        return self._one_of(self._cloud.network.subnets, "subnet", ident, {})

    def _one_of(
        self,
        ask: Callable[..., list[Found]],
        kind: str,
        ident: str,
        query: Mapping[str, Any],
    ) -> Found:
        found = self._once((kind, ident), lambda: _by_name_or_id(ask, ident, query))
        if not found:
            word = kind if kind.startswith("external") else f"fixed {kind}"
            raise BadRequest(f"Unable to find {word} {ident}.")
        if len(found) > 1:
            raise Conflict(
                f"Multiple {kind}s exist with same name '{ident}'. "
                f"Please use the {kind} ID instead."
            )
        return found[0]

    def keypair(self, name: str) -> Found:
        """The caller's key pair.

        Raises:
            NotFound: there is none.
        """
        try:
            return self._once(("keypair", name), lambda: self._cloud.compute.keypair(name))
        except NotFound:
            raise NotFound(f"Unable to find keypair {name}.") from None

    def check(self, template: Mapping[str, Any], cluster: Mapping[str, Any] | None = None) -> None:
        """All checks of spec 2.2, together.

        Args:
            template: values of the cluster template.
            cluster: values of the cluster; what it has counts before the template's.

        Raises:
            TrimaranError: the first that upstream would have told.
        """
        asked: dict[str, Callable[[], Any]] = {}
        for name, ask in (
            ("image_id", self.distro),
            ("flavor_id", self.flavor),
            ("master_flavor_id", self.flavor),
            ("external_network_id", self.external_network),
            ("fixed_network", self.fixed_network),
            ("fixed_subnet", self.fixed_subnet),
        ):
            value = (cluster or {}).get(name) or template.get(name)
            if value is not None:
                asked[name] = _deferred(ask, value)
        keypair = (cluster or {}).get("keypair")
        if keypair is not None:
            asked["keypair"] = _deferred(self.keypair, keypair)
        first_error(asked)

    def check_root_volume(
        self, flavor: str | None, labels: Mapping[str, Any], default: int
    ) -> None:
        """Nodes without a boot volume need a flavor with a disk (spec 2.3).

        Args:
            flavor: id or name; None: not chosen, nothing to check (F-32).
            labels: where ``boot_volume_size`` may be.
            default: ``[cinder] default_boot_volume_size``.

        Raises:
            BadRequest: no such flavor, a flavor without disk, or no number (F-27).
        """
        size = integer_label(labels, "boot_volume_size", default)
        if size > 0 or flavor is None:
            return
        if self.flavor(flavor).get("disk") == 0 and size == 0:
            raise BadRequest(
                "Flavor with zero root volume size is not supported when boot_volume_size is zero."
            )


def integer_label(labels: Mapping[str, Any], name: str, default: int) -> int:
    """The number in a label.

    Args:
        labels: of a cluster or cluster template.
        name: which label.
        default: value when it is not there.

    Raises:
        BadRequest: it is not a whole number.
    """
    value = str(labels.get(name, default))
    try:
        return int(value)
    except ValueError:
        raise BadRequest(f"{name} must be an integer") from None


def _by_name_or_id(
    ask: Callable[..., list[Found]], ident: str, query: Mapping[str, Any]
) -> list[Found]:
    # One after the other: this runs inside a fan-out already, and a fan-out in a
    # fan-out could wait for ever for a thread of the bounded pool.
    found = ask(**{**query, "id": ident}) if as_uuid(ident) else []
    return found or ask(**{**query, "name": ident})


def _deferred(ask: Callable[[str], Any], value: str) -> Callable[[], Any]:
    return lambda: ask(value)


def first_error(asked: Mapping[str, Callable[[], Any]]) -> None:
    """Asks all at once, then raises what the first of them, in their order, raised.

    Args:
        asked: questions in the order in which their errors count.
    """

    def kept(ask: Callable[[], Any]) -> Callable[[], TrimaranError | None]:
        def attempt() -> TrimaranError | None:
            try:
                ask()
            except TrimaranError as error:
                return error
            return None

        return attempt

    if not asked:
        return
    outcomes = gather(**{name: kept(ask) for name, ask in asked.items()})
    for name in asked:
        error = outcomes[name]
        if error is not None:
            raise error
