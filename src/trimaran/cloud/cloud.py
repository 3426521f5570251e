"""One cloud, seen as a user or as our service.

A ``Cloud`` lives as long as the process, a ``CloudSession`` as long as a
request; both are cheap, since connections belong to the shared transport.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType

from trimaran.cloud.client import Caller
from trimaran.cloud.compute import Compute
from trimaran.cloud.image import Image
from trimaran.cloud.keys import Keys
from trimaran.cloud.network import Network
from trimaran.cloud.volume import Volume
from trimaran.config.common import Own
from trimaran.identity import Identity, ServiceAuth, Token, TokenAuth

# Catalog types by the names of our clients.
SERVICE_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "compute": "compute",
        "network": "network",
        "image": "image",
        "volume": "volumev3",
        "keys": "key-manager",
    }
)


class CloudSession:
    """The clients of one caller.

    Args:
        caller: who calls, and where the services are.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    @cached_property
    def compute(self) -> Compute:
        """Nova."""
        return Compute(self._caller)

    @cached_property
    def network(self) -> Network:
        """Neutron."""
        return Network(self._caller)

    @cached_property
    def image(self) -> Image:
        """Glance."""
        return Image(self._caller)

    @cached_property
    def volume(self) -> Volume:
        """Cinder."""
        return Volume(self._caller)

    @cached_property
    def keys(self) -> Keys:
        """Barbican."""
        return Keys(self._caller)


class Cloud:
    """The OpenStack services of one cloud.

    Args:
        identity: Keystone, for sessions and our own token.
        region: region of the endpoints; None takes the first in the catalog.
        interface: public, internal or admin.
        service_types: catalog types that differ from ``SERVICE_TYPES``.
        own: the deck's options; None takes the identity's.
    """

    def __init__(
        self,
        identity: Identity,
        *,
        region: str | None = None,
        interface: str = "public",
        service_types: Mapping[str, str] | None = None,
        own: Own | None = None,
    ) -> None:
        self.identity = identity
        self.region = region
        self.interface = interface
        self.own = own or identity.own
        self.service_types = {**SERVICE_TYPES, **(service_types or {})}

    def as_user(
        self, token: Token, *, region: str | None = None, service_token: bool = False
    ) -> CloudSession:
        """Returns the clients that act with a caller's token.

        Args:
            token: the caller's token; endpoints come from its catalog.
            region: another region than the cloud's.
            service_token: also send our own token in ``X-Service-Token``;
                Neutron wants it to delete a server's port (spec/ec2.md 11.5).
        """
        return self._as(self.identity.auth_for(token, service_token=service_token), region)

    def as_service(self, *, region: str | None = None) -> CloudSession:
        """Returns the clients that act as our service user."""
        return self._as(self.identity.service_auth, region)

    def _as(self, auth: TokenAuth | ServiceAuth, region: str | None) -> CloudSession:
        return CloudSession(
            Caller(
                session=self.identity.service_session,
                auth=auth,
                region=region or self.region,
                interface=self.interface,
                service_types=self.service_types,
            )
        )
