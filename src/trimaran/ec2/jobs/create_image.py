"""CreateImage of a running instance: stop, snapshot, link, start (spec ec2.md 5.1).

A step is noted before it is taken and may be taken twice: a look at Nova or
Glance says whether it was.  What Nova makes is made with a fresh token of
whoever asked (`trimaran.ec2.on_behalf`), so that snapshots and image belong to
the project.  The instance is started again by a job of its own, recorded in the
very transaction that ends this one, whether it ends well or badly: so neither a
death nor a day without Nova can leave it stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.db.queries import ec2 as queries
from trimaran.ec2 import journal
from trimaran.ec2.context import Context
from trimaran.ec2.jobs.trouble import as_person, passing, will_pass
from trimaran.ec2.jobs.upload import items_of, with_failure, without_failure
from trimaran.ec2.kinds.images import image_snapshot
from trimaran.ec2.kinds.images.image_snapshot import Wish
from trimaran.ec2.kinds.instances import instance_states as states
from trimaran.errors import Conflict, NotFound, TrimaranError

LOG = logging.getLogger(__name__)

#: Seconds after which the image is given up (upstream's limit).
LIMIT = 3600.0
#: Seconds between two looks at what Nova is doing.
PAUSE = 1.0

# Steps, each noted before it is taken.
STOP = "stop"
SNAPSHOT = "snapshot"
LINK = "link"
LINKED = "linked"


def run(ctx: Context, job: work.JobRun) -> None:
    """One run of the job ``ec2.create_image``."""
    if job.step == LINKED:
        return
    if job.age > LIMIT:
        raise work.Fail(f"not done within {LIMIT:.0f} s")
    with passing():
        _Making(as_person(ctx, job), job).go_on()


def failed(ctx: Context, job: work.JobRun, reason: str) -> None:
    """The image will not be made: show it, and let the instance run again."""

    def write(session: Session) -> None:
        for item in items_of(session, ctx, job):
            # With an image behind it, it is one, whatever became of the job.
            if item.os_id is None:
                data = with_failure(item)
                queries.update_item(session, ctx.project_id, item.id, data=data)
        _start_again(session, job)

    job.commit(write)


class _Making:
    def __init__(self, ctx: Context, job: work.JobRun) -> None:
        self.ctx = ctx
        self.job = job
        self.item_id: str = job.payload["item"]
        self.wish = Wish(**job.payload["wish"])

    def go_on(self) -> None:
        """The steps from the one that is noted."""
        if not self.ctx.db.read(lambda session: items_of(session, self.ctx, self.job)):
            raise work.Fail("the image was deregistered")
        if not self.job.step:
            self._server()
            self.job.checkpoint(STOP)
        if self.job.step == STOP:
            self._stop()
            self.job.checkpoint(SNAPSHOT)
        if self.job.step == SNAPSHOT:
            os_id = self._snapshot()
            self.job.checkpoint(LINK, image=os_id)
        if self.job.step == LINK:
            self._link()

    def _server(self) -> Mapping[str, Any]:
        try:
            server = self.ctx.user.compute.server(self.wish.server)
        except NotFound:
            raise work.Fail("the instance is gone") from None
        if server.get("tenant_id") != self.ctx.project_id:
            raise work.Fail("the instance is another project's")
        return server

    def _stop(self) -> None:
        server = self._server()
        if states.task_state(server):
            raise work.Retry(PAUSE, "Nova to stop the instance")
        if states.vm_state(server) == "stopped":
            return
        if states.vm_state(server) != "active":
            raise work.Fail(f"the instance is {states.vm_state(server) or 'in no state'}")
        try:
            self.ctx.user.compute.action(self.wish.server, {"os-stop": None})
        except Conflict:
            LOG.debug("Server %s could not be stopped just now", self.wish.server)
        raise work.Retry(PAUSE, "Nova to stop the instance")

    def _snapshot(self) -> str:
        """Glance's id of the image; a second one is made only when surely none is on its way."""
        for image in image_snapshot.images_made_for(self.ctx, self.item_id):
            return str(image["id"])
        asked = self.job.payload.get("asked")
        own = self.ctx.conf.trimaran
        if asked is not None and self.job.age - asked < own.connect_timeout + own.read_timeout:
            raise work.Retry(PAUSE, "Nova's answer to an earlier request")
        server = self._server()
        if states.vm_state(server) != "stopped" or states.task_state(server):
            self.job.checkpoint(STOP)  # somebody started it
            raise work.Retry(PAUSE, "the instance to be stopped again")
        self.job.checkpoint(SNAPSHOT, asked=self.job.age)
        try:
            return image_snapshot.snapshot(self.ctx, self.wish, self.item_id)
        except Conflict:
            self.job.checkpoint(SNAPSHOT, asked=None)
            raise work.Retry(PAUSE, "the instance to be free") from None

    def _link(self) -> None:
        os_id = self._image_of_item() or self.job.payload["image"]
        try:
            image = self.ctx.user.image.image(os_id)
        except NotFound:
            raise work.Fail("the image was deleted") from None
        if image.get("status") in ("queued", "saving"):
            raise work.Retry(PAUSE, "the image to get its data")
        if image.get("status") in ("killed", "deleted", "pending_delete"):
            image_snapshot.take_back(self.ctx, os_id)
            raise work.Fail("Glance could not keep the image")
        for other in image_snapshot.images_made_for(self.ctx, self.item_id):
            if other["id"] != os_id:
                image_snapshot.take_back(self.ctx, other["id"])
        try:
            image_snapshot.complete(self.ctx, image, self.wish)
        except TrimaranError as error:
            if not will_pass(error):
                image_snapshot.take_back(self.ctx, os_id)
            raise

        def write(session: Session) -> None:
            for item in items_of(session, self.ctx, self.job):
                data = without_failure(item)
                queries.update_item(session, self.ctx.project_id, item.id, data=data, os_id=os_id)
            _start_again(session, self.job)

        self.job.commit(write, LINKED)

    def _image_of_item(self) -> str | None:
        """A describe may have linked one meanwhile, which then is the one."""
        items = self.ctx.db.read(lambda session: items_of(session, self.ctx, self.job))
        return items[0].os_id if items else None


def _start_again(session: Session, job: work.JobRun) -> None:
    server = job.payload["wish"]["server"]
    payload = {"project": job.payload["project"], "server": server}
    work.enqueue(session, journal.START, payload, key=server)
