"""The rest of a launch whose process died, or which left something to do.

It looks which of the launch's servers Nova has, decides the launch as its own
process would have (`kinds.launch_settle`), deletes the servers of one that
failed with what was plugged into them, and gives the volumes that Nova made
their tags.  All of it may be done twice.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.db.queries import ec2_tags as tag_queries
from trimaran.db.queries.ec2_tags import Tag
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.instances import instance_states as states
from trimaran.ec2.kinds.instances import launch_interfaces
from trimaran.ec2.kinds.instances.instance_kind import attached_volumes, hint
from trimaran.ec2.kinds.instances.instance_launch import delete_servers
from trimaran.ec2.kinds.instances.launch_settle import Conclusion, Launch, conclude
from trimaran.ec2.kinds.volumes.volume_kind import Volumes
from trimaran.ec2.reconcile import reconcile

LOG = logging.getLogger(__name__)

#: Seconds between two looks at servers that are being made.
PAUSE = 2.0

Row = Mapping[str, Any]


def run(ctx: Context, job: work.JobRun) -> None:
    """One run of the job ``ec2.launch``."""
    launch = Launch(**job.payload["launch"])
    servers = _servers(ctx)
    known: dict[str, str | None] = dict.fromkeys(launch.item_ids, "")
    known |= {item_id: row["id"] for item_id, row in servers.items() if item_id in known}

    def also(session: Session, made: Conclusion) -> bool:
        launch_interfaces.settle(session, ctx, launch, made)
        return False  # the job ends when this run does

    made = conclude(ctx, launch, known, job.commit, also=also)
    if made.doomed:
        LOG.warning("Undoing %s of launch %s", len(made.doomed), launch.reservation_id)
        if not all(delete_servers(ctx, made.doomed, ctx.admin.compute.delete_server)):
            raise work.Retry(PAUSE, "servers that Nova did not delete")
    unplugged = launch_interfaces.to_release(launch, made)
    if unplugged:
        launch_interfaces.release(ctx, launch, unplugged)
    if made.success and launch.volume_tags:
        _tag_volumes(ctx, job, launch, made, servers)


def _servers(ctx: Context) -> dict[str, Row]:
    """The project's servers by the instance id that each was made for."""
    rows = ctx.admin.compute.servers(all_tenants=True, project_id=ctx.project_id)
    mine = [row for row in rows if row.get("tenant_id") == ctx.project_id]
    return {item_id: row for row in mine if (item_id := hint(row))}


def _tag_volumes(
    ctx: Context, job: work.JobRun, launch: Launch, made: Conclusion, servers: Mapping[str, Row]
) -> None:
    """Volumes appear while Nova builds the servers; they are tagged as they come."""
    there = [servers[item.id] for item in made.stay if item.id in servers]
    tagged = set(job.payload.get("tagged") or ())
    volumes = sorted({os_id for row in there for os_id in attached_volumes(row)} - tagged)
    if volumes:
        view = reconcile(ctx, Volumes(), objects=volumes)
        found = [pair.item.id for pair in view.pairs if pair.found is not None]
        tags = [Tag(i, key, value) for i in found for key, value in launch.volume_tags.items()]
        job.commit(
            lambda s: tag_queries.set_tags(s, ctx.project_id, tags),
            tagged=[*tagged, *volumes],
        )
    if any(states.vm_state(row) in ("", "building") for row in there):
        raise work.Retry(PAUSE, "servers that are being built")
