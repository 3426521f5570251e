"""From a guest as NSX names it to its server: asked of Neutron, kept a while (spec ec2.md 6.1)."""

from __future__ import annotations

import logging
import threading

from cachetools import TTLCache

from trimaran.cloud import Cloud
from trimaran.ec2.metadata.caller import Caller, Provider
from trimaran.ec2.reconcile_kind import as_admin
from trimaran.errors import NotFound

LOG = logging.getLogger(__name__)

_MOST_KEPT = 10_000
# An address that is given to another server must not lead to the former one for long.
_SECONDS = 15


class Providers:
    """Finds servers by provider and address; one per application.

    Args:
        cloud: where Neutron is.
        seconds: how long an answer is kept at most.
    """

    def __init__(self, cloud: Cloud, seconds: int) -> None:
        self._cloud = cloud
        self._lock = threading.Lock()
        self._kept: TTLCache[Provider, Caller] = TTLCache(_MOST_KEPT, min(seconds, _SECONDS))

    def at_hand(self, provider: Provider) -> Caller | None:
        """The server, if it is known."""
        with self._lock:
            return self._kept.get(provider)

    def caller(self, provider: Provider) -> Caller:
        """The server behind an address in a provider's networks.

        Raises:
            NotFound: none, or more than one.
            Unavailable: Neutron does not answer.
        """
        found = self.at_hand(provider) or self._ask(provider)
        with self._lock:
            self._kept[provider] = found
        return found

    def _ask(self, provider: Provider) -> Caller:
        network = self._cloud.as_service().network

        def subnets() -> list[str]:
            rows = network.subnets(
                advanced_service_providers=[provider.provider_id], fields=["network_id"]
            )
            return sorted({row["network_id"] for row in rows})

        def servers(networks: list[str]) -> set[tuple[str, str]]:
            rows = network.ports(
                fixed_ips=f"ip_address={provider.address}",
                network_id=networks,
                fields=["device_id", "tenant_id"],
            )
            return {(row["device_id"], row["tenant_id"]) for row in rows if row.get("device_id")}

        networks = as_admin(subnets, service="network")()
        found = as_admin(lambda: servers(networks), service="network")()
        if len(found) != 1:
            LOG.warning(
                "%d servers have the address %s in networks of provider %s",
                len(found),
                provider.address,
                provider.provider_id,
            )
            raise NotFound()
        [(server_id, project_id)] = found
        return Caller(server_id, project_id, provider.address)
