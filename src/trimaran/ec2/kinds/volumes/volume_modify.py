"""ModifyVolume and DescribeVolumesModifications: Cinder's extend and retype (spec ec2.md 9.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.ec2 import ids, journal
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.volumes import volume_retype
from trimaran.ec2.kinds.volumes import volume_states as states
from trimaran.ec2.kinds.volumes.volume import one_volume
from trimaran.ec2.kinds.volumes.volume_create import check_size
from trimaran.ec2.kinds.volumes.volume_kind import TYPE, Volumes
from trimaran.ec2.kinds.volumes.volume_modification import (
    MODIFICATION,
    MODIFYING,
    WAITS,
    shown,
    state_of,
)
from trimaran.ec2.kinds.volumes.volume_types import Choice, choose_type, refuse_promises
from trimaran.ec2.kinds.volumes.volume_view import body_of, type_of
from trimaran.ec2.protocol import filters, paging
from trimaran.ec2.protocol.errors import (
    EC2Error,
    invalid_combination,
    invalid_value,
    unsupported,
)
from trimaran.ec2.reconcile import reconcile
from trimaran.ec2.reconcile_kind import Pair
from trimaran.errors import BadRequest, Conflict, NotFound, TrimaranError, Unavailable

Request = Mapping[str, Any]

#: Since then Cinder extends attached volumes.
EXTEND_ATTACHED = "3.42"
#: Cinder's id for the type that volumes get when none is named.
DEFAULT = "default"

FILTERS: filters.Table = {
    "modification-state": "ModificationState",
    "original-iops": "OriginalIops",
    "original-size": "OriginalSize",
    "original-volume-type": "OriginalVolumeType",
    "originalMultiAttachEnabled": "OriginalMultiAttachEnabled",
    "start-time": "StartTime",
    "target-iops": "TargetIops",
    "target-size": "TargetSize",
    "target-volume-type": "TargetVolumeType",
    "targetMultiAttachEnabled": "TargetMultiAttachEnabled",
    "volume-id": "VolumeId",
}


def modify_volume(ctx: Context, request: Request) -> dict[str, Any]:
    """Make a volume larger, and give it another type.

    Cinder does one at a time: of both, the type follows by a job once the
    volume has grown (`volume_retype`).
    """
    refuse_promises(request)
    size, kind = request.get("Size"), request.get("VolumeType")
    shared = request.get("MultiAttachEnabled")
    if size is None and not kind and shared is None:
        raise invalid_combination("At least one of Size, VolumeType has to be given.")
    if size is not None:
        check_size(size)
    pair = one_volume(ctx, request.get("VolumeId"))
    volume = body_of(pair)
    _check_state(pair, volume)
    if shared is not None and shared != bool(volume.get("multiattach")):
        raise unsupported("Multi-attach cannot be changed on an existing volume.")
    if size is not None and size < (volume.get("size") or 0):
        raise invalid_value("Size", size, "New size cannot be smaller than existing size.")
    larger = size is not None and size > (volume.get("size") or 0)
    choice = Choice()
    if kind:
        types = ctx.user.volume.volume_types()
        choice = choose_type(ctx, {"VolumeType": kind}, types)
        if choice.name is None:
            choice = Choice(ctx.user.volume.volume_type(DEFAULT)["name"], choice.alias)
    retype = bool(choice.name) and choice.name != volume.get("volume_type")
    ctx.commit_point()
    note = {
        "size": size,
        "type": choice.name,
        "alias": choice.alias,
        "was": {"size": volume.get("size"), "type": type_of(pair.item.data, volume)},
        "start": ctx.now.isoformat(),
    }
    if not larger and not retype:
        note |= {"state": "completed", "end": ctx.now.isoformat()}
    extend: dict[str, Any] = {"os-extend": {"new_size": size}}
    if larger and retype:
        _both(ctx, pair, note, extend)
    else:
        if larger:
            _change(ctx, pair, extend)
        elif retype:
            _change(
                ctx, pair, {"os-retype": {"new_type": choice.name, "migration_policy": "on-demand"}}
            )
        _note(ctx, pair, note, choice if kind else None)
    going = {**volume, "status": "extending"} if larger or retype else volume
    return {"VolumeModification": shown(pair.item.id, note, going)}


def describe_volumes_modifications(ctx: Context, request: Request) -> dict[str, Any]:
    """The last change of each volume that was changed."""
    page = paging.Page(ctx.action, request)
    matches = filters.compile_filters(request.get("Filters"), FILTERS, taggable=False)
    wanted = ids.check_ids(request.get("VolumeIds"), "volumeId", "vol")
    rows = []
    for pair in reconcile(ctx, Volumes(), wanted or None).pairs:
        note = pair.item.data.get(MODIFICATION)
        if note:
            ended = {} if note.get("end") or _goes_on(pair) else {"end": ctx.now.isoformat()}
            rows.append(shown(pair.item.id, {**note, **ended}, body_of(pair)))
        elif wanted:
            raise EC2Error(
                "InvalidVolumeModification.NotFound",
                f"Modification for volume '{pair.item.id}' does not exist.",
            )
    rows, token = page.slice(matches.apply(rows), key=lambda row: row["VolumeId"])
    return {"VolumesModifications": rows, "NextToken": token}


def _goes_on(pair: Pair) -> bool:
    return state_of(pair.item.data[MODIFICATION], body_of(pair)) == MODIFYING


def _both(ctx: Context, pair: Pair, note: dict[str, Any], extend: dict[str, Any]) -> None:
    """Lets the volume grow; what follows is on record before."""
    before = pair.item.data.get(MODIFICATION)

    def begin(session: Session) -> str:
        _set(session, ctx, pair, {**note, WAITS: True})
        return volume_retype.begin(session, ctx, pair.item.id, pair.item.os_id or "", note)

    def undo(session: Session) -> None:
        _set(session, ctx, pair, before)
        journal.end(session, job_id)

    job_id = ctx.db.write(begin)
    try:
        _change(ctx, pair, extend)
    except Unavailable:
        raise  # nobody knows: the job will see
    except TrimaranError:
        ctx.db.write(undo)
        raise
    ctx.db.write(lambda s: journal.hasten(s, job_id, volume_retype.PAUSE))


def _set(session: Session, ctx: Context, pair: Pair, note: Mapping[str, Any] | None) -> None:
    for item in queries.items_by_ids(session, ctx.project_id, [pair.item.id]):
        data = {name: value for name, value in item.data.items() if name != MODIFICATION}
        data |= {MODIFICATION: dict(note)} if note else {}
        queries.update_item(session, ctx.project_id, item.id, data=data)


def _check_state(pair: Pair, volume: Mapping[str, Any]) -> None:
    waits = (pair.item.data.get(MODIFICATION) or {}).get(WAITS)
    if pair.found is not None and (waits or states.status_of(volume) in states.MODIFYING):
        raise EC2Error(
            "IncorrectModificationState",
            f"The volume '{pair.item.id}' is being modified already.",
        )
    if pair.found is None or states.state_of(volume) not in (states.AVAILABLE, states.IN_USE):
        raise _wrong_state(pair)


def _wrong_state(pair: Pair) -> EC2Error:
    return EC2Error(
        "IncorrectState", f"The volume '{pair.item.id}' is not in a state to be modified."
    )


def _change(ctx: Context, pair: Pair, action: dict[str, Any]) -> None:
    try:
        ctx.user.volume.volume_action(pair.item.os_id or "", action, microversion=EXTEND_ATTACHED)
    except NotFound as error:
        raise ids.missing_ids([pair.item.id]) from error
    except BadRequest as error:
        words = str(getattr(error, "remote_message", "")).lower()
        if "retype" in words or "migrat" in words:
            raise unsupported("The volume cannot be given this type.") from error
        raise _wrong_state(pair) from error
    except Conflict as error:
        raise _wrong_state(pair) from error


def _note(ctx: Context, pair: Pair, note: dict[str, Any], choice: Choice | None) -> None:
    """Remember the change, and under which name the new type was asked for."""

    def write(session: Session) -> None:
        for item in queries.items_by_ids(session, ctx.project_id, [pair.item.id]):
            data = {**item.data, MODIFICATION: note}
            if choice is not None:
                data.pop(TYPE, None)
                actual = choice.name or pair.body.get("volume_type")
                data |= choice.noted(actual)
            queries.update_item(session, ctx.project_id, item.id, data=data)

    ctx.db.write(write)
