"""What is left of a job that an operator cancelled (``trimaran jobs cancel``).

A cancelled job ends where it stands: an instance may be stopped, an image be
shown as pending for ever.  What the job's own failure would have set right is
set right here, by a job recorded in the transaction that cancels the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from trimaran import work
from trimaran.db.models import work as states
from trimaran.db.queries import work_jobs
from trimaran.ec2 import journal
from trimaran.ec2.context import Context

REASON = "cancelled by an operator"


@dataclass(frozen=True)
class _Ended:
    """The cancelled job as far as its ``on_failed`` looks at it."""

    id: str
    payload: Mapping[str, Any]
    step: str
    commit: Callable[..., Any]


def run(
    ctx: Context,
    job: work.JobRun,
    failures: Mapping[str, Callable[[Context, work.JobRun, str], None]],
) -> None:
    """One run of the job ``ec2.cancelled``.

    Args:
        ctx: of the project.
        job: names the cancelled one and has what that had.
        failures: what to do when a job of a kind has failed.
    """
    told = job.payload
    # Its process notices only when it notes its next step.
    silence = journal.patience(ctx.conf) if told["running"] else 0.0
    if job.age < silence:
        raise work.Retry(silence - job.age, "the cancelled job's process to notice")
    other = ctx.db.read(lambda session: work_jobs.show(session, told["job"]))
    if other is not None and other.state != states.CANCELLED:
        return  # somebody has it run again
    ended = _Ended(told["job"], told["payload"], told["step"], job.commit)
    failures[told["kind"]](ctx, cast("work.JobRun", ended), REASON)
