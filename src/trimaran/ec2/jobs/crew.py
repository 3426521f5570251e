"""The runner of an EC2 API process, with its kinds of jobs and its periodic work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy.orm import Session

from trimaran import policy, work
from trimaran.db.queries import ec2_tokens
from trimaran.ec2 import journal
from trimaran.ec2.context import Context
from trimaran.ec2.jobs import cancelled, copy_image, create_image, import_bundle, launch, start
from trimaran.ec2.kinds.images import image_reserve
from trimaran.ec2.kinds.instances import instance_end, instance_resize
from trimaran.ec2.kinds.security_groups import (
    security_group_create,
    security_group_modify,
    security_group_revoke,
)
from trimaran.ec2.kinds.volumes import volume_retype
from trimaran.ec2.kinds.vpcs import topology, topology_raze
from trimaran.ec2.kinds.vpn import vpn_connection
from trimaran.ec2.parts import Parts
from trimaran.ec2.service_context import context_of

#: Seconds that a client token is remembered: longer than any client retries (AWS: a day or so).
TOKENS_KEPT = 7 * 86400.0
TOKENS_EVERY = 3600.0
TOKENS_AT_ONCE = 1000
#: Seconds after which a job that always waits or fails is given up, for operators to see.
LONGEST = 86400.0
#: Jobs that move whole images, at once in one process.
DATA_AT_ONCE = 2
#: Seconds between two looks for files that dead processes left.
FILES_EVERY = 600.0

Handler = Callable[[Context, work.JobRun], None]
OnFailed = Callable[[Context, work.JobRun, str], None]


class Crew:
    """Does the background work of one process.

    Args:
        parts: Keystone, cloud and database.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._enforcer = policy.Enforcer("ec2-jobs", ())
        self.runner = work.Runner(parts.db, own=parts.own, name="ec2-api")
        self._failures: dict[str, OnFailed] = {}
        self._add(journal.LAUNCH, launch.run)
        self._add(journal.RESIZE, instance_resize.run)
        self._add(journal.END, instance_end.run)
        self._add(journal.GROUP, security_group_create.run)
        self._add(journal.REVOKE, security_group_revoke.run)
        self._add(journal.MODIFY_RULES, security_group_modify.run)
        self._add(journal.VPN, vpn_connection.run)
        self._add(journal.RETYPE, volume_retype.run, volume_retype.failed)
        self._add(journal.IMAGE, image_reserve.run)
        self._add(journal.RAZE, topology_raze.run)
        self._add(journal.TOPOLOGY, topology.run)
        self._add(journal.CREATE_IMAGE, create_image.run, create_image.failed)
        self._add(journal.START, start.run)
        self._add(journal.CANCELLED, lambda ctx, job: cancelled.run(ctx, job, self._failures))
        data = {"timeout": LONGEST, "limit": DATA_AT_ONCE}
        self._add(journal.BUNDLE, import_bundle.run, import_bundle.failed, **data)
        self._add(journal.COPY_IMAGE, copy_image.run, copy_image.failed, **data)
        self.runner.periodic("ec2.tokens", TOKENS_EVERY, self._drop_old_tokens)
        # Each process looks after its own host.
        self.runner.periodic("ec2.bundles", FILES_EVERY, self._sweep, leased=False)

    def start(self) -> None:
        """Starts; nothing needs to answer yet."""
        self.runner.start()

    def stop(self) -> None:
        """Lets what runs end within ``shutdown_timeout`` and hands the rest over."""
        self.runner.stop()

    def _add(
        self, kind: str, handler: Handler, failed: OnFailed | None = None, **options: Any
    ) -> None:
        if failed is not None:
            self._failures[kind] = failed

        def run(job: work.JobRun) -> None:
            handler(self.context(job), job)

        def give_up(job: work.JobRun, reason: str) -> None:
            if failed is not None:
                failed(self.context(job), job, reason)

        self.runner.add_job(kind, run, max_age=LONGEST, on_failed=give_up, **options)

    def context(self, job: work.JobRun) -> Context:
        """The service's context of the project that a job is about."""
        return context_of(
            self._parts,
            job.payload["project"],
            enforcer=self._enforcer,
            action=job.kind,
            request_id=f"req-{job.id}",
        )

    def _sweep(self) -> None:
        import_bundle.sweep(self._parts.conf.image_decryption_dir, self._parts.db)

    def _drop_old_tokens(self) -> None:
        while self._parts.db.write(_drop_old_tokens) == TOKENS_AT_ONCE:
            pass


def _drop_old_tokens(session: Session) -> int:
    return ec2_tokens.drop_old_tokens(session, TOKENS_KEPT, TOKENS_AT_ONCE)
