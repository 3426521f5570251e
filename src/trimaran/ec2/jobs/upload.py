"""Data on its way into an image of Glance, as a step of a job that may be done twice.

Glance takes data for a queued image only, and makes it active with the last
byte; so a look at the image tells whether an earlier run was done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item
from trimaran.ec2.context import Context
from trimaran.errors import Conflict

#: What an image's item says of its state where Glance does not.
FAILED = "state"
PAUSE = 2.0
#: Uploads that are begun at most.
MOST = 10
#: Seconds that Glance may take for an upload's end: it may copy the data once more.
PATIENCE = 3600.0
#: Seconds that Glance may take nothing in.
STALL = 60.0


def upload(ctx: Context, job: work.JobRun, image: str, data: Callable[[], Iterator[bytes]]) -> None:
    """Upload an image's data unless it is there.

    Args:
        ctx: the job's, with the session of whoever asked.
        job: notes how often it was tried.
        image: Glance's id.
        data: begins the data anew.

    Raises:
        NotFound: the image is gone.
        work.Fail: it is in no state for data, or it was tried too often.
        work.Retry: an earlier upload is not over.
    """
    status = ctx.user.image.image(image).get("status")
    if status == "active":
        return
    if status in ("saving", "importing"):
        raise work.Retry(PAUSE, "Glance to end an earlier upload")
    if status != "queued":
        raise work.Fail(f"the image is {status}")
    tries = int(job.payload.get("uploads") or 0)
    if tries >= MOST:
        raise work.Fail(f"Glance did not take the data in {MOST} tries")
    job.checkpoint(job.step, uploads=tries + 1)
    try:
        ctx.user.image.upload_image(image, data(), timeout=(STALL, PATIENCE))
    except Conflict:
        raise work.Retry(PAUSE, "the image to be ready for data") from None


def alive(job: work.JobRun, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces, as long as the job is ours and the process is not to stop.

    Raises:
        work.LeaseLost, work.HandedOver: see `work.JobRun`.
    """
    for piece in pieces:
        if job.lost:
            raise work.LeaseLost(job.id)
        if job.stopping:
            job.checkpoint(job.step)
        yield piece


def mark_made(ctx: Context, job: work.JobRun) -> None:
    """Forget an earlier failure: an operator had the job run again, and the data came."""

    def write(session: Session) -> None:
        for item in items_of(session, ctx, job):
            queries.update_item(session, ctx.project_id, item.id, data=without_failure(item))

    if any(FAILED in item.data for item in ctx.db.read(lambda s: items_of(s, ctx, job))):
        job.commit(write)


def mark_failed(ctx: Context, job: work.JobRun) -> None:
    """Note in the image's item that its data will not come."""

    def write(session: Session) -> None:
        for item in items_of(session, ctx, job):
            queries.update_item(session, ctx.project_id, item.id, data=with_failure(item))

    job.commit(write)


def items_of(session: Session, ctx: Context, job: work.JobRun) -> list[Item]:
    """The item of the job's image; none when that was deregistered."""
    return queries.items_by_ids(session, ctx.project_id, [job.payload["item"]])


def with_failure(item: Item) -> dict[str, Any]:
    """The item's data, shown as failed."""
    return {**item.data, FAILED: "failed"}


def without_failure(item: Item) -> dict[str, Any]:
    """The item's data, shown as Glance has it: a job that has failed may be run again."""
    return {name: each for name, each in item.data.items() if name != FAILED}
