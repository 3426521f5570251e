"""Real processes of the EC2 service that do background work, one of which dies where it is told.

The faults are put in here, in the test's own child: the service has no switch for them.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from tests.support import processes
from tests.support.processes import Link
from trimaran.cloud.compute import Compute
from trimaran.cloud.image import Image
from trimaran.config import ec2 as ec2_config
from trimaran.ec2.jobs import Crew
from trimaran.ec2.parts import Parts, assemble
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
        _watch(die_at)
    parts = parts_of(Path(conf))
    crew = Crew(parts)
    link.tell("ready")
    link.wait()
    crew.start()
    link.wait()
    crew.stop()
    parts.close()
    link.tell("stopped")


def _watch(die_at: str) -> None:
    """Dies at "before X" or "after X": the note of a step, an action of Nova, a call of Glance."""

    def pass_(moment: str) -> None:
        if moment == die_at:
            os.kill(os.getpid(), signal.SIGKILL)

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
