"""The second half of a ModifyVolume of size and type, which Cinder does one at a time.

The request lets the volume grow; the job gives it its type as soon as it has
grown.  Until then the note in the volume's item says that something waits, so
that the change shows as going on in between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.db.queries import ec2 as queries
from trimaran.ec2 import journal
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.volumes import volume_states as states
from trimaran.ec2.kinds.volumes.volume_kind import OWNER, TYPE, unless_gone
from trimaran.ec2.kinds.volumes.volume_modification import FAILED, MODIFICATION, WAITS
from trimaran.ec2.kinds.volumes.volume_types import Choice
from trimaran.errors import BadRequest, Conflict, NotFound, QuotaExceeded

#: Seconds between two looks at a volume that grows.
PAUSE = 2.0


def begin(
    session: Session, ctx: Context, volume_id: str, os_id: str, note: Mapping[str, Any]
) -> str:
    """Record what is to follow; within the transaction that notes the change.

    Returns:
        The job's id.
    """
    payload = {
        "project": ctx.project_id,
        "volume": volume_id,
        "os_id": os_id,
        "size": note["size"],
        "type": note["type"],
        "alias": note["alias"],
    }
    return journal.begin(session, ctx.conf, journal.RETYPE, volume_id, payload)


def run(ctx: Context, job: work.JobRun) -> None:
    """One run of the job ``ec2.retype``: wait for the size, then ask for the type."""
    payload = job.payload
    volume = unless_gone(ctx.admin.volume.volume, payload["os_id"])
    if volume is None or volume.get(OWNER) != ctx.project_id:
        return
    status = states.status_of(volume)
    if status in states.MODIFYING:
        raise work.Retry(PAUSE, "Cinder to change the volume")
    usable = states.state_of(volume) in (states.AVAILABLE, states.IN_USE)
    if (volume.get("size") or 0) < payload["size"] or not usable:
        raise work.Fail("Cinder did not extend the volume")
    if volume.get("volume_type") != payload["type"]:
        _retype(ctx, payload)
    _settle(ctx, payload, _asked)


def failed(ctx: Context, job: work.JobRun, reason: str) -> None:
    """The type cannot be had: the change has failed, whatever the volume's size is now."""
    ended = {"state": FAILED, "end": ctx.now.isoformat()}
    _settle(ctx, job.payload, lambda data, note: {**data, MODIFICATION: {**note, **ended}})


def _retype(ctx: Context, payload: Mapping[str, Any]) -> None:
    body = {"os-retype": {"new_type": payload["type"], "migration_policy": "on-demand"}}
    try:
        ctx.admin.volume.volume_action(payload["os_id"], body)
    except Conflict as error:
        raise work.Retry(PAUSE, "Cinder to be ready for the type") from error
    except (BadRequest, NotFound, QuotaExceeded) as error:
        raise work.Fail("Cinder refuses the type") from error


def _settle(
    ctx: Context,
    payload: Mapping[str, Any],
    change: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]],
) -> None:
    ctx.db.write(partial(_write, ctx, payload["volume"], partial(_unless_over, payload, change)))


def _unless_over(
    payload: Mapping[str, Any],
    change: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]],
    data: dict[str, Any],
) -> dict[str, Any]:
    note = dict(data.get(MODIFICATION) or {})
    if not note.pop(WAITS, None):
        return data
    made = change(data, note)
    if made[MODIFICATION].get("state") != FAILED:
        made.pop(TYPE, None)
        made |= Choice(payload["type"], payload["alias"]).noted(payload["type"])
    return made


def _asked(data: dict[str, Any], note: dict[str, Any]) -> dict[str, Any]:
    return {**data, MODIFICATION: note}


def _write(
    ctx: Context,
    volume_id: str,
    change: Callable[[dict[str, Any]], dict[str, Any]],
    session: Session,
) -> None:
    for item in queries.items_by_ids(session, ctx.project_id, [volume_id]):
        made = change(dict(item.data))
        if made != item.data:
            queries.update_item(session, ctx.project_id, item.id, data=made)
