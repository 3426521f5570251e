"""``up``: from whatever is there to a cloud that answers.

Every step looks first and acts on what is missing, so that the same path makes a new
cloud, repairs a half-made one and finds nothing to do on a running one.  What takes
long runs side by side: packages and pip, database and broker, and each service starts
as soon as its own database is there.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from trimaran.sandbox import (
    configs,
    describe,
    keys,
    mariadb,
    packages,
    postgresql,
    rabbitmq,
)
from trimaran.sandbox.databases import SEEDED, Databases
from trimaran.sandbox.problem import SandboxError
from trimaran.sandbox.processes import Processes
from trimaran.sandbox.progress import Progress
from trimaran.sandbox.seed import compute, identity, image, network
from trimaran.sandbox.seed.rest import Api
from trimaran.sandbox.services import Services, cloud_ready
from trimaran.sandbox.settings import DAEMONS, Settings
from trimaran.sandbox.venv import Environment

T = TypeVar("T")

# The data of services that is worth nothing without their databases
_WITH_DATABASES = ("glance", "volumes", "nova", "cinder", "conversion", "keystone")


def up(
    settings: Settings,
    processes: Processes,
    venv: Environment,
    say: Progress,
    own_servers: bool = False,
) -> None:
    """Bring the sandbox up.

    Args:
        own_servers: use no MariaDB or RabbitMQ of the machine (first ``up`` only).

    Raises:
        SandboxError: a prerequisite is missing or a step failed, in one sentence.
    """
    if not settings.path("settings.json").exists() and processes.groups():
        say("stopping what a removed state directory left running")
        processes.stop(processes.groups())
    check_ports(settings, processes, settings.apis)
    settings.state.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(16) as pool:
        servers = pool.submit(_servers, settings, processes, say, own_servers)
        venv.ensure(processes, say)
        servers.result()
        databases = Databases(settings, processes, venv, say)
        if not databases.adopt() or databases.lost():
            databases.forget()
            _start_over(settings, processes)
        keys.ensure(settings)
        settings.save()
        configs.write(settings, venv)
        describe.write_client_files(settings, venv)
        services = Services(settings, processes, venv, say)
        _start(settings, databases, services, processes, pool, say)
    say(f"ready: . {settings.path('openrc.demo')}")


def check_ports(settings: Settings, processes: Processes, names: Iterable[str]) -> None:
    """Refuse to start beside a stranger on one of our ports.

    Args:
        names: the parts whose ports are wanted.

    Raises:
        SandboxError: names the port and who has it.
    """
    ours = {pid for group in processes.groups().values() for pid in group.pids}
    for name in names:
        port = settings.port(name)
        if not processes.proc.listening(port):
            continue
        pid = processes.proc.listener(port)
        if pid not in ours:
            words = " ".join(processes.proc.command(pid))[:60] if pid else "another user's"
            raise SandboxError(
                f"Port {port} (for {name}) is taken by process {pid or '?'} ({words}): "
                "choose another --base-port."
            )


def _servers(settings: Settings, processes: Processes, say: Progress, own: bool) -> None:
    """Debian packages, then database, broker and PostgreSQL side by side."""
    mariadb.choose(settings, own)
    rabbitmq.choose(settings, processes, say, own)
    check_ports(settings, processes, settings.own_servers)
    missing = [
        *mariadb.missing(settings),
        *rabbitmq.missing(settings),
        *image.missing(),
        *postgresql.missing(settings),
    ]
    if missing:
        packages.install(missing, processes, say)
    settings.save()
    starters = [mariadb.ensure, rabbitmq.ensure]
    if "postgresql" in settings.extras:
        starters.append(postgresql.ensure)
    with ThreadPoolExecutor(len(starters)) as pool:
        for future in [pool.submit(start, settings, processes, say) for start in starters]:
            future.result()


def _start_over(settings: Settings, processes: Processes) -> None:
    """Databases and state directory do not belong together: keep neither's content."""
    processes.stop([*(f"{name}-api" for name in settings.apis), *DAEMONS])
    for name in _WITH_DATABASES:
        shutil.rmtree(settings.path("data", name), ignore_errors=True)


def _start(
    settings: Settings,
    databases: Databases,
    services: Services,
    processes: Processes,
    pool: ThreadPoolExecutor,
    say: Progress,
) -> None:
    waiting: dict[str, Future[None]] = {}
    fresh: set[str] = set()

    def ready(service: str) -> None:
        for api in settings.apis:
            if api.split("-")[0] == service:
                started = services.start_api(api)
                waiting[api] = pool.submit(services.wait_api, api, started)
        for daemon in DAEMONS:
            if daemon.split("-")[0] == service and services.start_daemon(daemon):
                fresh.add(daemon)

    gate = cloud_ready(settings)
    gate.unlink(missing_ok=True)
    complete = databases.seeded()
    databases.ensure(ready)
    waiting["keystone"].result()
    # in databases just made nobody has changed a password yet
    ids: dict[str, Any] = identity.seed(settings, check_passwords=complete)
    let_daemons_go_on(gate, waiting)
    if not complete:
        databases.keep_identity()
    with contextlib.ExitStack() as stack:
        admin, of_neutron, of_glance = (
            stack.enter_context(contextlib.closing(Api(settings, "admin", "admin")))
            for _ in range(3)
        )
        demo = stack.enter_context(contextlib.closing(Api(settings, "demo", "demo")))
        projects = ids["projects"]
        networks = pool.submit(_after, waiting["neutron"], network.seed, of_neutron, projects)
        images = pool.submit(_after, waiting["glance"], image.seed, of_glance, projects)
        for future in waiting.values():
            future.result()
        if fresh:
            compute.wait_for_daemons(admin, lambda: processes.must_run(DAEMONS))
            say("daemons have reported")
        ids["flavors"] = compute.flavors(admin)
        image.volume_type(admin)
        ids["images"] = images.result()
        ids["ebs"] = image.seed_volume_image(demo, ids["images"][image.EBS_SOURCE])
        ids["images"][image.EBS_NAME] = ids["ebs"]["image"]
        ids |= networks.result()
    databases.mark(SEEDED)
    describe.write_description(settings, services.venv, ids)


def let_daemons_go_on(gate: Path, answering: Mapping[str, Future[None]]) -> None:
    """Open the gate that the daemons wait at.

    Nova's ask Placement for its versions when they start, and end when nobody answers
    (the SDK makes "has no supported versions" of a refused connection, which they take
    for a mistake in their configuration).

    Args:
        gate: the file (see ``services.cloud_ready``).
        answering: by API, what ends when it answers.

    Raises:
        SandboxError: Placement does not answer.
    """
    answering["placement"].result()
    gate.touch()


def _after(ready: Future[None], seed: Callable[..., T], *arguments: Any) -> T:
    ready.result()
    return seed(*arguments)
