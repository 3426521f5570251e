"""Flavors, and waiting for the daemons to report."""

from __future__ import annotations

import time
from collections.abc import Callable

from trimaran.sandbox import amqp
from trimaran.sandbox.problem import SandboxError
from trimaran.sandbox.seed.rest import Api
from trimaran.sandbox.settings import DAEMONS

# id, name, MiB, GiB, vCPUs
FLAVORS = (
    ("1", "m1.tiny", 512, 1, 1),
    ("2", "m1.small", 2048, 20, 1),
    ("3", "m1.medium", 4096, 40, 2),
    ("4", "m1.large", 8192, 80, 4),
    ("5", "m1.xlarge", 16384, 160, 8),
    ("c1", "cirros256", 256, 1, 1),
    ("d1", "ds512M", 512, 5, 1),
    ("d2", "ds1G", 1024, 10, 1),
)

# the queue that each daemon opens last, for calls to itself
QUEUES = (
    "conductor.sandbox",
    "scheduler.sandbox",
    "compute.sandbox",
    "cinder-scheduler.sandbox",
    "cinder-volume.sandbox@sandbox.sandbox",
)


def flavors(api: Api) -> dict[str, str]:
    """Make missing flavors; returns ids by name."""
    found = api.get("nova", "/flavors/detail?is_public=None")["flavors"]
    have = {flavor["name"]: flavor["id"] for flavor in found}
    for ident, name, ram, disk, cpus in FLAVORS:
        if name not in have:
            body = {"id": ident, "name": name, "ram": ram, "disk": disk, "vcpus": cpus}
            have[name] = api.post("nova", "/flavors", {"flavor": body})["flavor"]["id"]
    return have


def wait_for_daemons(
    api: Api, check: Callable[[], None], seconds: float = 240.0, pause: float = 0.2
) -> None:
    """Wait until every daemon takes calls, has reported, and there is room for servers and volumes.

    The queues come first: an API that calls a daemon which has no queue yet loses the
    call, and waits a minute for the answer.

    Args:
        check: raises when a daemon's process has ended, for which no wait helps.

    Raises:
        SandboxError: a daemon died, or is not ready in time.
    """
    end = time.monotonic() + seconds
    settings = api.settings
    while missing := (
        amqp.without_consumer(settings.amqp_port, settings.amqp_vhost, QUEUES)
        or _not_reported(api)
        or _without_room(api)
        or _without_pool(api)
    ):
        check()
        if time.monotonic() > end:
            listed = ", ".join(sorted(missing))
            raise SandboxError(f"Not ready after {seconds:.0f} seconds: {listed}.")
        time.sleep(pause)


def _not_reported(api: Api) -> set[str]:
    compute = api.get("nova", "/os-services")["services"]
    volume = api.get("cinder", "/os-services")["services"]
    return set(DAEMONS) - {
        service["binary"] for service in compute + volume if service["state"] == "up"
    }


def _without_room(api: Api) -> set[str]:
    found = api.get("placement", "/resource_providers?resources=VCPU:1")["resource_providers"]
    return set() if found else {"the inventory of the compute host"}


def _without_pool(api: Api) -> set[str]:
    found = api.get("cinder", "/scheduler-stats/get_pools")["pools"]
    return set() if found else {"the capacity of the volume back end"}
