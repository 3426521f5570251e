"""What EC2 shows of an attachment and Cinder does not know.

Cinder knows server and device.  The instance's id, the device name that the
caller asked for (libvirt chooses its own, while terraform looks for the one in
its configuration) and whether the volume dies with the instance are noted in
the volume's item: by AttachVolume, and for attachments that came about
otherwise by the first describe that sees them, which asks Nova.  So a describe
of all volumes costs one listing of Cinder, however many are attached.  A note
names Cinder's attachment; one of another attachment is not believed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.instances.instance_kind import Instances
from trimaran.ec2.kinds.instances.launch_types import name_of_volume
from trimaran.ec2.kinds.volumes import volume_states as states
from trimaran.ec2.kinds.volumes.volume_kind import ATTACHED, TYPE, attachments
from trimaran.ec2.kinds.volumes.volume_types import Choice
from trimaran.ec2.kinds.volumes.volume_view import moment
from trimaran.ec2.reconcile import reconcile
from trimaran.ec2.reconcile_kind import Pair, View

LOG = logging.getLogger(__name__)

Notes = dict[str, dict[str, Any]]


def shown_attachments(ctx: Context, view: View) -> dict[str, list[dict[str, Any]]]:
    """The attachments of all volumes of a view as boto3 shows them, by volume id.

    A volume that Nova made with an instance is also given the name of its type
    that the launch asked for.
    """
    notes = {pair.item.id: _notes(pair) for pair in view.pairs}
    unknown = {
        server
        for pair in view.pairs
        for server in attachments(pair.body)
        if "instance" not in notes[pair.item.id].get(server, {})
    }
    if unknown:
        _learn(ctx, view.pairs, notes, sorted(unknown))
    return {pair.item.id: _shown(pair, notes[pair.item.id]) for pair in view.pairs}


def shown_attachment(
    volume_id: str, note: Mapping[str, Any], row: Mapping[str, Any], state: str
) -> dict[str, Any]:
    """One attachment as boto3 shows it.

    Args:
        volume_id: the volume.
        note: ours.
        row: Cinder's, empty when it has none yet.
        state: EC2's word.
    """
    made = {
        "VolumeId": volume_id,
        "InstanceId": note.get("instance"),
        "Device": note.get("device") or row.get("device"),
        "State": state,
        "AttachTime": moment(row.get("attached_at") or note.get("since")),
        "DeleteOnTermination": note.get("deletes"),
    }
    return {name: value for name, value in made.items() if value is not None}


def note_attachment(ctx: Context, volume_id: str, server: str, note: Mapping[str, Any]) -> None:
    """Remember an attachment that was just made."""

    def write(session: Session) -> None:
        for item in queries.items_by_ids(session, ctx.project_id, [volume_id]):
            noted = {**(item.data.get(ATTACHED) or {}), server: dict(note)}
            queries.update_item(
                session, ctx.project_id, volume_id, data={**item.data, ATTACHED: noted}
            )

    ctx.db.write(write)


def note_deletes(ctx: Context, volume_id: str, server: str, deletes: bool) -> None:
    """Remember that an attachment was told to end (or not) with its instance."""

    def write(session: Session) -> None:
        for item in queries.items_by_ids(session, ctx.project_id, [volume_id]):
            noted = dict(item.data.get(ATTACHED) or {})
            if server in noted:
                noted[server] = {**noted[server], "deletes": deletes}
                data = {**item.data, ATTACHED: noted}
                queries.update_item(session, ctx.project_id, volume_id, data=data)

    ctx.db.write(write)


def _notes(pair: Pair) -> Notes:
    """The item's notes that may be believed."""
    there = attachments(pair.body)
    noted: Notes = pair.item.data.get(ATTACHED) or {}
    return {
        server: note
        for server, note in noted.items()
        if server not in there
        or note.get("attachment") in (None, there[server].get("attachment_id"))
    }


def _learn(
    ctx: Context, pairs: Sequence[Pair], notes: dict[str, Notes], servers: Sequence[str]
) -> None:
    """Asks Nova about servers, gives them instance ids, and notes the answers."""
    seen = reconcile(ctx, Instances(groups=False, volumes=False), objects=servers)
    known = {pair.found.os_id: pair for pair in seen.pairs if pair.found is not None}
    fresh: list[tuple[Pair, Notes]] = []
    for pair in pairs:
        mine = notes[pair.item.id]
        for server, row in attachments(pair.body).items():
            if server in known and "instance" not in mine.get(server, {}):
                mine[server] = {
                    **mine.get(server, {}),
                    "instance": known[server].item.id,
                    "deletes": _deletes(known[server].body, pair.body["id"]),
                    "attachment": row.get("attachment_id"),
                }
                _name_type(pair, known[server], row)
                if not fresh or fresh[-1][0] is not pair:
                    fresh.append((pair, mine))
    if not fresh:
        return

    def write(session: Session) -> None:
        # One read for all: what the reconciliation has just repaired counts.
        items = queries.items_by_ids(session, ctx.project_id, [pair.item.id for pair, _ in fresh])
        now = {item.id: item for item in items}
        for pair, mine in fresh:
            item = now.get(pair.item.id)
            if item is not None:
                data = {**item.data, ATTACHED: {**(item.data.get(ATTACHED) or {}), **mine}}
                if TYPE in pair.item.data:
                    data.setdefault(TYPE, pair.item.data[TYPE])
                queries.update_item(
                    session, ctx.project_id, item.id, version=item.version, data=data
                )

    ctx.db.write(write)


def _name_type(pair: Pair, instance: Pair, row: Mapping[str, Any]) -> None:
    """Notes in the pair at hand what a launch called the type of a volume that came with it."""
    name = name_of_volume(instance.item.data, instance.body, row.get("device"))
    if name and TYPE not in pair.item.data:
        pair.item.data.update(Choice(alias=name).noted(pair.body.get("volume_type")))


def _deletes(server: Mapping[str, Any], volume_os_id: str) -> bool:
    return any(
        bool(row.get("delete_on_termination"))
        for row in server.get("os-extended-volumes:volumes_attached") or ()
        if row["id"] == volume_os_id
    )


def _shown(pair: Pair, notes: Notes) -> list[dict[str, Any]]:
    there = attachments(pair.body)
    state = states.attachment_state(pair.body)
    made = [
        shown_attachment(pair.item.id, notes.get(server, {}), row, state)
        for server, row in there.items()
        # Without instance there is nothing to show: its server is gone, Cinder lags behind.
        if "instance" in notes.get(server, {})
    ]
    if states.status_of(pair.body) in states.ATTACHING:
        made += [
            shown_attachment(pair.item.id, note, {}, "attaching")
            for server, note in notes.items()
            if server not in there and "instance" in note
        ]
    return sorted(made, key=lambda row: (str(row.get("AttachTime")), row["InstanceId"]))
