"""What handlers and periodic work of one conductor share."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.orm import Session

from trimaran import identity, work
from trimaran.cloud import Cloud
from trimaran.config import common
from trimaran.config.common import Own
from trimaran.db import Database
from trimaran.errors import Unavailable
from trimaran.magnum.certificates import Certificates, Rules, make_manager
from trimaran.magnum.context import RequestContext
from trimaran.magnum.drivers import Drivers
from trimaran.magnum.notifications import Notifier
from trimaran.magnum.operations import Operations
from trimaran.magnum.sealing import Sealer, Unsealable

LOG = logging.getLogger(__name__)

LEASE = "magnum.cluster/"
_ACTIONS = {"CREATE": "create", "DELETE": "delete"}


@dataclass
class Crew:
    """The parts of a conductor.

    Attributes:
        sealer: opens the tokens of operations; None when none are kept.
    """

    conf: Any
    own: Own
    db: Database
    cloud: Cloud
    drivers: Drivers
    certificates: Certificates
    notifier: Notifier
    operations: Operations
    sealer: Sealer | None

    @classmethod
    def from_conf(cls, conf: Any) -> Crew:
        """Makes the parts; nothing is connected yet.

        Args:
            conf: loaded ``magnum.conf``.

        Raises:
            ConfigError: a part cannot be made of it.
        """
        own = common.own(conf)
        db = Database(
            conf.database.connection,
            pool_size=own.database_pool_size,
            pool_timeout=own.database_pool_timeout,
        )
        cloud = make_cloud(conf, own)
        sealer = Sealer.from_conf(conf)
        manager = make_manager(conf, db=db, cloud=cloud, sealer=sealer)
        return cls(
            conf=conf,
            own=own,
            db=db,
            cloud=cloud,
            drivers=Drivers(conf),
            certificates=Certificates(manager, Rules.from_conf(conf)),
            notifier=Notifier(conf, db),
            operations=Operations.from_conf(conf),
            sealer=sealer,
        )

    def admin(self) -> RequestContext:
        """Returns the context of periodic work; objects of it tell when an operation ends."""
        context = self._equipped(RequestContext.admin())

        def settled(session: Session, uuid: str, status: str) -> None:
            outcome = "success" if status.endswith("_COMPLETE") else "failure"
            self.notifier.record(session, context, uuid, action_of(status), outcome)

        return replace(context, settled=settled)

    def context(
        self, told: Mapping[str, Any], sealed_token: str | None, operation: str
    ) -> RequestContext:
        """Returns the context of a recorded operation.

        A driver that completes an operation at once is told of here; a failure
        is told of by the handler.

        Args:
            told: the members that were recorded.
            sealed_token: the user's token; one that cannot be opened is left out.
            operation: names the operation in notifications.
        """
        token = None
        if sealed_token and self.sealer is not None:
            try:
                token = self.sealer.open(sealed_token)
            except Unsealable as problem:
                LOG.error("The token of an operation is lost: %s", problem)
        context = self._equipped(RequestContext.from_dict({**told, "auth_token": token}))

        def settled(session: Session, uuid: str, status: str) -> None:
            if status.endswith("_COMPLETE"):
                action = action_of(status)
                self.notifier.record(session, context, uuid, action, "success", operation=operation)

        return replace(context, settled=settled)

    def _equipped(self, context: RequestContext) -> RequestContext:
        return replace(context, db=self.db, cloud=self.cloud, certificates=self.certificates)

    @contextlib.contextmanager
    def alone_with(self, cluster_uuid: str) -> Iterator[None]:
        """Keeps every other handler and poll off a cluster for a block.

        Raises:
            Retry: another conductor is at it; the operation is run a little later.
        """
        lease = work.acquire(
            self.db, LEASE + cluster_uuid, None, float(self.own.work_lease_seconds)
        )
        if lease is None:
            raise work.Retry(0.5, "the cluster is being worked on")
        with lease, work.kept(lease):
            yield

    def close(self) -> None:
        """Closes connections."""
        self.db.dispose()


def action_of(status: str) -> str:
    """Returns what notifications call the operation behind a status (spec/magnum.md 7.2, F-12)."""
    return _ACTIONS.get(status.partition("_")[0], "update")


def make_cloud(conf: Any, own: Own) -> Cloud:
    """Returns the cloud with the service user's credentials.

    ``[keystone_auth]`` where upstream's file has it, otherwise
    ``[keystone_authtoken]``.
    """
    from keystoneauth1 import loading

    loading.register_auth_conf_options(conf, "keystone_auth")
    section = conf.keystone_auth
    own_section = section.auth_type or section.auth_section
    group = "keystone_auth" if own_section else "keystone_authtoken"
    interface = str(conf.nova_client.endpoint_type).removesuffix("URL")
    ours = identity.from_conf(
        conf, group, own=own, region=conf.nova_client.region_name, interface=interface
    )
    return Cloud(ours, region=conf.nova_client.region_name, interface=interface, own=own)


def infrastructure(problem: BaseException) -> bool:
    """Whether an error is of our own parts, so that the same run may work later."""
    return isinstance(problem, Unavailable) and problem.service in ("database", "work")
