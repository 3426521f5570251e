"""What the API process holds: made once, shared by all requests.

Connections, sessions and caches are made here and ended by ``close``; nothing
is made per request (F-71).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from oslo_config import cfg
from sqlalchemy.orm import Session

from trimaran.cloud import Cloud
from trimaran.config import common
from trimaran.db import Database
from trimaran.identity import Identity, from_conf
from trimaran.magnum import policies
from trimaran.magnum.drivers.lookup import Drivers
from trimaran.magnum.operations import Operations
from trimaran.magnum.rpc import ConductorClient
from trimaran.policy import Enforcer

T = TypeVar("T")

#: how the client sections of magnum.conf name the interface
_INTERFACES = {"publicURL": "public", "internalURL": "internal", "adminURL": "admin"}
_CLIENTS = {
    "compute": "nova_client",
    "network": "neutron_client",
    "image": "glance_client",
    "volume": "cinder_client",
    "keys": "barbican_client",
}


@dataclass(frozen=True)
class Parts:
    """The parts that handlers use."""

    conf: cfg.ConfigOpts
    db: Database
    identity: Identity
    cloud: Cloud
    enforcer: Enforcer
    drivers: Drivers
    operations: Operations
    conductor: ConductorClient

    def accept(self, unit: Callable[[Session], T]) -> T:
        """Runs the unit of work that makes a request accepted: its rows and its operation.

        Before conductors of upstream's its checks hold and the rest is taken back: they
        write the rows themselves, and would not find an operation.

        Args:
            unit: a writing unit.

        Returns:
            What the unit returned.
        """
        if self.conf.api.upstream_conductor:
            return self.db.rehearse(unit)
        return self.db.write(unit)

    def close(self) -> None:
        """Ends connections and pools."""
        self.conductor.close()
        self.db.dispose()


def interface(conf: cfg.ConfigOpts) -> tuple[str | None, str]:
    """Region and interface of the clouds' endpoints.

    Upstream has a pair of options for each client; one catalog serves them all
    here, so the compute client's pair counts.
    """
    group = conf[_CLIENTS["compute"]]
    return group.region_name, _INTERFACES.get(group.endpoint_type, group.endpoint_type)


def build(conf: cfg.ConfigOpts, transport: Any = None) -> Parts:
    """Makes the parts that a configuration asks for.

    Args:
        conf: loaded ``magnum.conf``.
        transport: an oslo.messaging transport to share with a conductor in the
            same process; None makes one from the configuration.
    """
    own = common.own(conf)
    identity = from_conf(conf, "keystone_authtoken")
    region, face = interface(conf)
    return Parts(
        conf=conf,
        db=Database(
            conf.database.connection,
            pool_size=own.database_pool_size,
            pool_timeout=own.database_pool_timeout,
        ),
        identity=identity,
        cloud=Cloud(identity, region=region, interface=face, own=own),
        enforcer=Enforcer.from_conf("magnum", policies.all_rules(), conf),
        drivers=Drivers(conf),
        operations=Operations.from_conf(conf),
        conductor=ConductorClient.from_conf(conf, transport=transport),
    )
