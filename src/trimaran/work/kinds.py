"""What a runner knows of one kind of job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trimaran.work.run import JobRun

Handler = Callable[[JobRun], Any]
OnFailed = Callable[[JobRun, str], Any]


@dataclass(frozen=True)
class Kind:
    """A kind of job; the fields are the arguments of ``Runner.add_job``."""

    name: str
    handler: Handler
    timeout: float
    max_age: float | None
    limit: int | None
    on_failed: OnFailed | None
