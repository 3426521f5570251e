"""Another instance type for a stopped instance: Nova's resize and its confirmation (F28).

Nova works for a while and then wants a confirmation, without which the server
cannot be started.  The job in the journal sees to that, whatever becomes of
this request; the request waits for the job for as long as a client does, since
the usual next call is StartInstances.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

from trimaran import work
from trimaran.db.models import work as job_states
from trimaran.db.models.work import Job
from trimaran.db.queries import work_jobs
from trimaran.ec2 import journal
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.instances import instance_states as states
from trimaran.ec2.kinds.instances.instance_type import flavors
from trimaran.ec2.kinds.instances.instance_view import Instance
from trimaran.ec2.protocol.errors import EC2Error, invalid_value, missing
from trimaran.errors import BadRequest, Conflict, NotFound, TrimaranError, Unavailable

#: Seconds that a request waits for its resize; boto3 itself gives up after 60.
WAIT = 50.0
LOOK_EVERY = 0.3
#: Seconds between two looks of the job at a server that is being resized.
PAUSE = 1.0


def resize(ctx: Context, instance: Instance, name: Any) -> None:
    """Give a stopped instance another type.

    Raises:
        EC2Error: ``IncorrectInstanceState`` unless it is stopped;
            ``InvalidParameterValue`` for a type that is unknown or does not fit;
            ``InsufficientInstanceCapacity`` when no host takes it.
    """
    if not name:
        raise missing("InstanceType.Value")
    flavor = flavors(ctx).get(name)
    if flavor is None:
        raise invalid_value("InstanceType", name, "Unknown instance type.")
    server = instance.server
    if states.vm_state(server) != "stopped" or states.task_state(server):
        raise _wrong_state(instance)
    if (server.get("flavor") or {}).get("original_name") == name:
        return
    ctx.commit_point()
    payload = {
        "project": ctx.project_id,
        "instance": instance.id,
        "server": server["id"],
        "type": name,
    }
    job_id = ctx.db.write(
        lambda s: journal.begin(s, ctx.conf, journal.RESIZE, instance.id, payload)
    )
    try:
        ctx.user.compute.action(server["id"], {"resize": {"flavorRef": flavor["id"]}})
    except Unavailable:
        raise  # nobody knows: the job will see
    except TrimaranError as error:
        ctx.db.write(lambda s: journal.end(s, job_id))
        raise _refusal(error, instance, name) from error
    ctx.db.write(lambda s: journal.hasten(s, job_id))
    _await(ctx, job_id, name)


def run(ctx: Context, job: work.JobRun) -> None:
    """One run of the job ``ec2.resize``: look, confirm what is to be confirmed, look again."""
    payload = job.payload
    try:
        server = ctx.admin.compute.server(payload["server"])
    except NotFound:
        return
    if server.get("tenant_id") != ctx.project_id:
        return
    if states.task_state(server):
        raise work.Retry(PAUSE, "Nova to resize the server")
    if states.vm_state(server) == "resized":
        with contextlib.suppress(BadRequest, Conflict):  # the next look tells
            ctx.admin.compute.action(server["id"], {"confirmResize": None})
        raise work.Retry(PAUSE, "Nova to confirm the resize")
    if (server.get("flavor") or {}).get("original_name") != payload["type"]:
        raise work.Fail(f"Nova did not resize the server to {payload['type']}")


def _await(ctx: Context, job_id: str, name: str) -> None:
    """Waits for the end of the job; one that takes longer goes on by itself."""
    deadline = time.monotonic() + WAIT
    while time.monotonic() < deadline:
        job: Job | None = ctx.db.read(lambda s: work_jobs.show(s, job_id))
        if job is None or job.state == job_states.DONE:
            return
        if job.state in job_states.FINISHED:
            raise EC2Error(
                "InsufficientInstanceCapacity",
                f"The instance could not be given the type '{name}'.",
                500,
            )
        time.sleep(LOOK_EVERY)


def _wrong_state(instance: Instance) -> EC2Error:
    return EC2Error(
        "IncorrectInstanceState", f"The instance '{instance.id}' is not in the 'stopped' state."
    )


def _refusal(error: TrimaranError, instance: Instance, name: str) -> TrimaranError:
    if isinstance(error, Conflict):
        return _wrong_state(instance)
    if isinstance(error, BadRequest):
        return invalid_value("InstanceType", name, "The instance cannot have this type.")
    return error
