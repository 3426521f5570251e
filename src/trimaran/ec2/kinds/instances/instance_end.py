"""The end of an instance: what goes with it goes although nobody looks any more.

Nova deletes a server some time after it is told to.  Whoever describes the
instance then finds its server gone, which is when its interfaces go; this job
is somebody who looks in any case.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.db.queries import ec2 as queries
from trimaran.ec2 import journal
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.instances.instance_kind import FEW, Instances
from trimaran.ec2.kinds.interfaces import network_interface_kind as kind
from trimaran.ec2.kinds.interfaces.address_kind import AUTO
from trimaran.ec2.protocol.errors import EC2Error
from trimaran.ec2.reconcile import reconcile

#: Seconds between two looks at servers that are being deleted.
PAUSE = 2.0


def record_end(session: Session, ctx: Context, instance_ids: Sequence[str]) -> None:
    """Have somebody look after instances that were told to end, if they have anything to leave."""
    wanted = set(instance_ids)
    items = queries.items_of(session, ctx.project_id, [kind.PREFIX, kind.ELASTIC])
    holders = {item.data.get(kind.INSTANCE) or item.data.get(AUTO) for item in items}
    ending = sorted(each for each in holders if each in wanted)
    if not ending:
        return
    payload = {"project": ctx.project_id, "instances": ending}
    job_id = journal.begin(session, ctx.conf, journal.END, ctx.request_id, payload)
    journal.hasten(session, job_id, PAUSE)


def run(ctx: Context, job: work.JobRun) -> None:
    """One run of the job ``ec2.end``."""
    left = []
    # A few at a time are asked for one by one, which Nova answers also when a cell is down.
    for some in queries.chunks(job.payload["instances"], FEW):
        left += _living(ctx, some)
    if left:
        raise work.Retry(PAUSE, "servers that are being deleted")


def _living(ctx: Context, instance_ids: Sequence[str]) -> list[str]:
    items = ctx.db.read(lambda s: queries.items_by_ids(s, ctx.project_id, instance_ids))
    kind_of_them = Instances(groups=False, volumes=False)
    there = [i.id for i in items if i.dead_for is None and not kind_of_them.hidden(i)]
    if not there:
        return []
    try:
        pairs = reconcile(ctx, kind_of_them, there).pairs
    except EC2Error as error:
        if not error.code.endswith(".NotFound"):
            raise
        return list(instance_ids)  # one is no more, not even as terminated: look again
    return [pair.item.id for pair in pairs if pair.item.dead_for is None]
