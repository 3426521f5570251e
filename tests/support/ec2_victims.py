"""Real processes of the EC2 service that do background work, with a fault where they are told.

The faults are put in here, in the test's own child: the service has no switch for them.
A moment is "before X" or "after X", where X is the note of a step ("note stop"),
an action of Nova ("os-stop"), "upload", or a change of an image ("set available").
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from tests.support import elsewhere, processes
from tests.support.processes import Link
from trimaran.cloud.compute import Compute
from trimaran.cloud.image import Image
from trimaran.config import ec2 as ec2_config
from trimaran.ec2.jobs import Crew
from trimaran.ec2.on_behalf import Deputies, Person
from trimaran.ec2.parts import Parts, assemble
from trimaran.identity import Token
from trimaran.work.run import JobRun

processes.preload("tests.support.ec2_victims")

LEASE = 3
POLL = 0.2


def parts_of(conf: Path) -> Parts:
    """A process's parts with the haste of a test."""
    made = assemble(ec2_config.load([str(conf)]))
    own = replace(made.own, work_lease_seconds=LEASE, work_poll_seconds=POLL, shutdown_timeout=10)
    return replace(made, own=own)


def work(link: Link, conf: str, die_at: str) -> None:
    """Does background work from one word to the next, or until the moment of its death."""
    if die_at:
        _watch(die_at, lambda: os.kill(os.getpid(), signal.SIGKILL))
    parts = parts_of(Path(conf))
    crew = Crew(parts)
    link.tell("ready")
    link.wait()
    crew.start()
    link.wait()
    crew.stop()
    parts.close()
    link.tell("stopped")


def interrupted(link: Link, conf: str, moment: str, places: Mapping[str, str]) -> None:
    """Does background work; at its moment it tells that, and waits for the word "go on".

    Args:
        link: to the test.
        conf: the configuration file.
        moment: where to wait; "" is never.
        places: where services are, see `elsewhere.led`.
    """
    go_on = threading.Event()

    def reached() -> None:
        if not go_on.is_set():
            link.tell("reached")
            go_on.wait()

    if moment:
        _watch(moment, reached)
    parts = parts_of(Path(conf))
    crew = Crew(parts)
    link.tell("ready")
    with elsewhere.led(places):
        link.wait()
        crew.start()
        while link.wait() == "go on":
            go_on.set()
        crew.stop()
    parts.close()
    link.tell("stopped")


def revoked(link: Link, conf: str, state: str, moments: tuple[str, ...]) -> None:
    """Does background work while its tokens end: the first at once, others at moments.

    Args:
        link: to the test, which is told of each end.
        conf: the configuration file.
        state: of the sandbox, whose administrator ends tokens.
        moments: when each first comes, the token in use ends.
    """
    # Not at the top: a benchmark measures the memory of children that need none of it.
    from tests.support.cloud import ADMIN, CloudEnv

    cloud = CloudEnv(Path(state))
    minted: list[Token] = []
    mint = Deputies.token

    def end() -> None:
        subject = {"X-Subject-Token": minted[-1].id}
        cloud.session(ADMIN).delete(f"{cloud.auth_url}/auth/tokens", headers=subject)
        link.tell("ended")

    def token(self: Deputies, person: Person) -> Token:
        minted.append(mint(self, person))
        if len(minted) == 1:
            end()
        return minted[-1]

    setattr(Deputies, "token", token)  # noqa: B010 - mypy knows that methods stay
    left = set(moments)

    def end_once(moment: str) -> None:
        if moment in left:
            left.remove(moment)
            end()

    for each in moments:
        _watch(each, partial(end_once, each))
    work(link, conf, "")


def _watch(wanted: str, then: Callable[[], None]) -> None:
    """Does something when a moment comes."""

    def pass_(moment: str) -> None:
        if moment == wanted:
            then()

    def wrap(owner: type, method: str, name: Callable[..., str]) -> None:
        call = getattr(owner, method)

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            what = name(*args, **kwargs)
            pass_(f"before {what}")
            result = call(*args, **kwargs)
            pass_(f"after {what}")
            return result

        setattr(owner, method, wrapped)

    def noted(job: JobRun, fn: Callable[[Session], Any], step: Any = None, **updates: Any) -> str:
        return f"note {step}"

    wrap(JobRun, "commit", noted)
    wrap(Compute, "action", lambda self, server, body, **_: next(iter(body)))
    wrap(Image, "upload_image", lambda self, image, data, **_: "upload")
    wrap(Image, "update_image", lambda self, image, patch: f"set {patch[0]['value']}")
