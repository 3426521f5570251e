"""The parts that the console is made of, built once per process.

Nothing here talks to anybody when it is made: a service that starts before
its database and its Keystone works as soon as they do.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from trimaran.cloud import Cloud
from trimaran.config.common import Own, own
from trimaran.config.console import Settings
from trimaran.console.belongings import Memory
from trimaran.console.domains import Domains
from trimaran.console.extensions import Extensions
from trimaran.console.guard import LoginGuard
from trimaran.console.listings.foresight import Foresight
from trimaran.console.policies.answers import Policies
from trimaran.console.projects import ProjectNames
from trimaran.console.prometheus.client import Prometheus
from trimaran.console.sessions import Sessions
from trimaran.db import Database
from trimaran.db.queries import console as queries
from trimaran.identity import Identity, from_password
from trimaran.work import Runner

LOG = logging.getLogger(__name__)

PURGE_SECONDS = 60.0


@dataclass(frozen=True)
class Parts:
    """What handlers use.

    Attributes:
        settings: skyline.yaml.
        own: the deck's options.
        db: revocations and settings.
        identity: Keystone.
        cloud: the other services.
        sessions: the cookie.
        extensions: Neutron's, remembered for a while.
        domains: Keystone's, by name, remembered for a while.
        projects: their names, for listings of all projects.
        belongings: the users' projects, remembered as long as their tokens.
        foresight: what listings were joined with the last time.
        policies: the rules of the services behind the console.
        prometheus: for the charts.
        guard: the limit to failed logins.
        runner: the purge of ended revocations.
    """

    settings: Settings
    own: Own
    db: Database
    identity: Identity
    cloud: Cloud
    sessions: Sessions
    extensions: Extensions
    domains: Domains
    projects: ProjectNames
    belongings: Memory
    foresight: Foresight
    policies: Policies
    prometheus: Prometheus
    guard: LoginGuard
    runner: Runner


def build(settings: Settings) -> Parts:
    """Builds the parts from the settings."""
    options = own(settings)
    stack = settings.openstack
    if settings.default.database_url.startswith("sqlite"):
        # F9: right for one host, and for two it is a logout that does not hold.
        LOG.info(
            "default.database_url is SQLite: replicas on other hosts do not learn of logouts here"
        )
    database = Database(
        settings.default.database_url,
        pool_size=options.database_pool_size,
        pool_timeout=options.database_pool_timeout,
    )
    identity = identity_of(settings, options)
    cloud = Cloud(
        identity, region=stack.default_region, interface=stack.interface_type, own=options
    )
    runner = Runner(database, own=options, name="console")
    runner.periodic(
        "console.revocations.purge",
        PURGE_SECONDS,
        lambda: database.write(queries.purge_expired),
    )
    return Parts(
        settings=settings,
        own=options,
        db=database,
        identity=identity,
        cloud=cloud,
        sessions=Sessions(settings.default),
        extensions=Extensions(cloud, settings.openstack.extension_mapping),
        domains=Domains(identity),
        projects=ProjectNames(),
        belongings=Memory(options.token_cache_seconds),
        foresight=Foresight(),
        policies=Policies(settings, identity, options),
        prometheus=Prometheus(settings, options),
        guard=LoginGuard(settings.trimaran.failed_logins_per_minute),
        runner=runner,
    )


def identity_of(settings: Settings, options: Own) -> Identity:
    """Builds Keystone as our system user sees it."""
    stack = settings.openstack
    return from_password(
        auth_url=stack.keystone_url,
        username=stack.system_user_name,
        password=stack.system_user_password,
        project_name=stack.system_project,
        user_domain_name=stack.system_user_domain,
        project_domain_name=stack.system_project_domain,
        own=options,
        region=stack.default_region,
        interface=stack.interface_type,
        verify=False if settings.trimaran.insecure else settings.default.cafile or True,
    )


async def of_request(request: Request) -> Parts:
    """Returns the parts of the application that handles a request.

    Asynchronous, because a plain function would wait for a free thread.
    """
    parts: Parts = request.app.state.parts
    return parts


CurrentParts = Annotated[Parts, Depends(of_request)]
