"""CopyImage: the data of one image into another, as a stream from Glance to Glance."""

from __future__ import annotations

from trimaran import work
from trimaran.ec2.context import Context
from trimaran.ec2.jobs.trouble import as_person, passing
from trimaran.ec2.jobs.upload import alive, mark_failed, mark_made, upload
from trimaran.errors import NotFound


def run(ctx: Context, job: work.JobRun) -> None:
    """One run of the job ``ec2.copy_image``."""
    with passing():
        mine = as_person(ctx, job)
        glance = mine.user.image
        try:
            image = glance.image(job.payload["image"])
        except NotFound:
            return  # deregistered meanwhile
        if image.get("owner") != ctx.project_id:
            raise work.Fail("the image is another project's")
        # Asked as the person, who may not see the source any more.
        upload(
            mine,
            job,
            image["id"],
            lambda: alive(job, glance.download_image(job.payload["source"])),
        )
        mark_made(mine, job)


def failed(ctx: Context, job: work.JobRun, reason: str) -> None:
    """Show that the copy will not come."""
    mark_failed(ctx, job)
