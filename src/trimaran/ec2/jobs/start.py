"""Starting an instance that was stopped for its image, until Nova has done it.

This gives back what was taken, so it uses the service's own rights: neither a
revoked credential nor an image that failed may leave the instance stopped.
"""

from __future__ import annotations

import contextlib

from trimaran import work
from trimaran.ec2.context import Context
from trimaran.ec2.jobs.trouble import passing
from trimaran.ec2.kinds.instances import instance_states as states
from trimaran.errors import Conflict, NotFound

#: Seconds between two looks.
PAUSE = 1.0


def run(ctx: Context, job: work.JobRun) -> None:
    """One run of the job ``ec2.start``."""
    server_id = job.payload["server"]
    with passing(final=False):
        try:
            server = ctx.admin.compute.server(server_id)
        except NotFound:
            return
        if server.get("tenant_id") != ctx.project_id:
            return
        if states.task_state(server):
            raise work.Retry(PAUSE, "Nova to start the instance")
        if states.vm_state(server) != "stopped":
            return
        with contextlib.suppress(Conflict, NotFound):  # the next look tells
            ctx.admin.compute.action(server_id, {"os-start": None})
        raise work.Retry(PAUSE, "Nova to start the instance")
