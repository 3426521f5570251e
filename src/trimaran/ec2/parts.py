"""What the EC2 daemons are assembled from, out of one ``ec2api.conf``.

The API and the metadata service need the same Keystone, cloud and database;
making them in one place keeps the meaning of each option the same for both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trimaran.cloud import Cloud
from trimaran.config import common
from trimaran.config.common import Own
from trimaran.db import Database
from trimaran.identity import Identity, from_conf

if TYPE_CHECKING:
    from oslo_config import cfg

# Upstream's name of the only region when nothing is configured (spec ec2.md 3.2).
DEFAULT_REGION = "RegionOne"


@dataclass(frozen=True)
class Parts:
    """The deck's objects of one process."""

    conf: cfg.ConfigOpts
    own: Own
    identity: Identity
    cloud: Cloud
    db: Database
    region: str

    def close(self) -> None:
        """Close connections; the process ends or the application is thrown away."""
        self.db.dispose()
        self.identity.close()


def assemble(conf: cfg.ConfigOpts) -> Parts:
    """The parts that a loaded configuration describes; nothing is contacted yet.

    Raises:
        ConfigError: credentials or database cannot be used as configured.
    """
    own = common.own(conf)
    identity = identity_of(conf)
    cloud = Cloud(
        identity,
        region=identity.region,
        interface=identity.interface,
        service_types={"compute": conf.nova_service_type, "volume": conf.cinder_service_type},
        own=own,
    )
    db = Database(
        conf.database.connection,
        pool_size=own.database_pool_size,
        pool_timeout=own.database_pool_timeout,
    )
    return Parts(conf, own, identity, cloud, db, identity.region or DEFAULT_REGION)


def identity_of(conf: cfg.ConfigOpts) -> Identity:
    """Keystone alone, for a daemon that needs nothing else.

    Raises:
        ConfigError: ``[keystone_authtoken]`` cannot be used.
    """
    return from_conf(conf, own=common.own(conf), ec2_tokens_url=_tokens_url(conf))


def _tokens_url(conf: cfg.ConfigOpts) -> str | None:
    # The option's default names localhost, which is right nowhere but on one
    # machine: unless an operator wrote it, [keystone_authtoken] knows better.
    where = conf.get_location("keystone_ec2_tokens_url")
    written = where is not None and where.location.is_user_controlled
    return str(conf.keystone_ec2_tokens_url) if written else None
