"""Instances as the reconciliation engine sees them: Nova's servers of one project.

Servers are read with the service user, because what EC2 shows (root device,
reservation, launch index) Nova shows to administrators only; every row's
project is checked (F60).  One listing serves any number of instances: the
flavor comes embedded, images, volumes and security groups become ids by one
query.  A few instances are asked for one by one instead, so that their cost
does not grow with the project.

Nova leaves out the servers of a cell that is down whenever a listing is
filtered, and an administrator that is none sees another project's servers or
nothing.  So nothing is buried on the word of that listing alone: the caller's
own token is asked whether the server is really gone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from trimaran.cloud import gather
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.interfaces.network_interface_end import take_along
from trimaran.ec2.kinds.interfaces.network_interface_kind import group_rows
from trimaran.ec2.reconcile_kind import (
    Fate,
    Found,
    Kind,
    Reference,
    Selection,
    Thunks,
    as_admin,
)
from trimaran.errors import Forbidden, NotFound, Unavailable
from trimaran.identity import NoEndpoint

LOG = logging.getLogger(__name__)

#: Up to so many servers are asked for one by one; more are read with the whole listing.
FEW = 4
#: The same for volumes of selected servers.
FEW_VOLUMES = 3
#: The oldest that embeds the flavor.  Newer ones tell nothing that EC2 shows, and cost: from
#: 2.71 on Nova looks for the group of a single server, from 2.73 on a listing reads all system
#: metadata.
MICROVERSION = "2.47"

#: Server metadata that says which instance the server was made for.
MARK = "ec2_instance_id"

# What an item's blob says about a launch (see instance_launch).
STAGE = "stage"
LAUNCHING = "launching"
UNDONE = "undone"
ENDING = "ending"
FACTS = "launch"


class Instances(Kind):
    """The instances of the caller's project.

    Args:
        groups: also read security groups, to show their ids.
        volumes: also read volumes, to show the block devices.
    """

    prefixes = ("i",)

    def __init__(self, *, groups: bool = True, volumes: bool = True) -> None:
        self.groups = groups
        self.volumes = volumes

    def listings(self, ctx: Context, selection: Selection | None) -> Thunks:
        thunks: dict[str, Callable[[], Any]] = {}
        if selection is None or len(selection) > FEW:
            thunks["servers"] = as_admin(
                lambda: ctx.admin.compute.servers(
                    all_tenants=True, project_id=ctx.project_id, microversion=MICROVERSION
                ),
                service="compute",
            )
        else:
            for os_id in selection.os_ids:
                thunks[f"server:{os_id}"] = as_admin(_one(ctx, os_id), service="compute")
            for item in selection.waiting:
                thunks[f"servers:{item.id}"] = as_admin(_named(ctx, item.id), service="compute")
        if self.groups:
            thunks["groups"] = lambda: group_rows(ctx)
        if self.volumes and selection is None:
            thunks["volumes"] = all_volumes(ctx)
        return thunks

    def details(
        self, ctx: Context, listed: Mapping[str, Any], found: Sequence[Found], selective: bool
    ) -> Thunks:
        if not (self.volumes and selective):
            return {}
        attached = sorted({volume for thing in found for volume in attached_volumes(thing.body)})
        if len(attached) > FEW_VOLUMES:
            return {"volumes": all_volumes(ctx)}
        return {f"volume:{volume_id}": _volume(ctx, volume_id) for volume_id in attached}

    def found(self, ctx: Context, listed: Mapping[str, Any]) -> list[Found]:
        things: dict[str, Found] = {}
        for row in rows_of(listed, "server"):
            if row.get("tenant_id") != ctx.project_id:
                LOG.error(
                    "Nova answered a server of project %s when asked for those of %s: "
                    "does the user of [keystone_authtoken] have the role admin?",
                    row.get("tenant_id"),
                    ctx.project_id,
                )
                raise Unavailable(service="compute")
            if row.get("status") == "UNKNOWN" or "OS-EXT-STS:vm_state" not in row:
                LOG.error("Nova cannot tell the state of server %s: is a cell down?", row["id"])
                raise Unavailable(service="compute")
            things[row["id"]] = Found("i", row["id"], row, hint=hint(row))
        return list(things.values())

    def new_item(self, ctx: Context, found: Found) -> NewItem:
        body = found.body
        data = {
            "reservation_id": body.get("OS-EXT-SRV-ATTR:reservation_id") or ids.mint_reservation(),
            "launch_index": body.get("OS-EXT-SRV-ATTR:launch_index") or 0,
            FACTS: facts_of(body),
        }
        return NewItem("i", found.os_id, ctx.project_id, data)

    def fate(self, ctx: Context, item: Item) -> Fate:
        stage = item.data.get(STAGE)
        if item.os_id is None:
            # Its server may still come: Nova did not answer, or was not asked yet.
            if not stage:
                return Fate.DELETE
            if item.age is not None and item.age < ctx.conf.trimaran.launch_deadline_seconds:
                return Fate.KEEP
        if stage == UNDONE:
            return Fate.DELETE
        return Fate.BURY if ctx.conf.trimaran.terminated_instances_seconds else Fate.DELETE

    def confirm_gone(self, ctx: Context, items: Sequence[Item]) -> None:
        suspects = [item.os_id for item in items if item.os_id]
        if len(suspects) > FEW:
            try:
                seen = {row["id"] for row in ctx.user.compute.servers()}
            except Forbidden as error:
                raise Unavailable(service="compute") from error
        else:
            answers = gather(**{os_id: _user_sees(ctx, os_id) for os_id in suspects})
            seen = {os_id for os_id, there in answers.items() if there}
        left = seen.intersection(suspects)
        if left:
            LOG.error(
                "Nova's listing of project %s lacks servers that exist (%s): is a cell down, or "
                "does the user of [keystone_authtoken] lack the role admin?",
                ctx.project_id,
                ", ".join(sorted(left)[:5]),
            )
            raise Unavailable(service="compute")

    def gone(self, ctx: Context, items: Sequence[Item]) -> None:
        """Their interfaces go with them, or are free."""
        take_along(ctx, [item.id for item in items])

    def expired(self, ctx: Context, item: Item) -> bool:
        shown: int = ctx.conf.trimaran.terminated_instances_seconds
        return (item.dead_for or 0.0) >= shown

    def hidden(self, item: Item) -> bool:
        return item.data.get(STAGE) == UNDONE

    def references(
        self, ctx: Context, listed: Mapping[str, Any], found: Sequence[Found]
    ) -> Iterable[Reference]:
        attached: set[str] = set()
        for thing in found:
            attached.update(attached_volumes(thing.body))
            if image := os_image_of(thing.body):
                yield Reference("ami", image, own=False, alike=ids.IMAGE_PREFIXES)
            for name, kind in (("kernel_id", "aki"), ("ramdisk_id", "ari")):
                if os_id := thing.body.get(f"OS-EXT-SRV-ATTR:{name}"):
                    yield Reference(kind, os_id, own=False, alike=ids.IMAGE_PREFIXES)
        for volume in rows_of(listed, "volume"):
            if volume["id"] in attached:
                yield Reference("vol", volume["id"])
                if image := volume_image(volume):
                    yield Reference("ami", image, own=False, alike=ids.IMAGE_PREFIXES)
        for group in listed.get("groups") or ():
            # The id of a VPC's default group follows from the VPC's: it is not minted here.
            default = ids.is_id(group["name"], ["vpc"])
            yield Reference("sg", group["id"], known_only=default)

    def remembered(self, item: Item) -> Iterable[Reference]:
        image = (item.data.get(FACTS) or {}).get("os_image")
        if image:
            yield Reference("ami", image, own=False, alike=ids.IMAGE_PREFIXES)


def facts_of(server: Mapping[str, Any]) -> dict[str, Any]:
    """What is worth remembering of a server, for when it is gone."""
    facts = {
        "instance_type": (server.get("flavor") or {}).get("original_name"),
        "key_name": server.get("key_name"),
        "zone": server.get("OS-EXT-AZ:availability_zone"),
        "launch_time": server.get("created"),
        "os_image": os_image_of(server),
    }
    return {name: value for name, value in facts.items() if value}


def rows_of(listed: Mapping[str, Any], noun: str) -> Iterable[dict[str, Any]]:
    """The rows of a kind in what was listed: whole listings and single objects."""
    for name, result in listed.items():
        if name == f"{noun}s" or name.startswith(f"{noun}s:"):
            yield from result
        elif name.startswith(f"{noun}:") and result is not None:
            yield result


def attached_volumes(server: Mapping[str, Any]) -> list[str]:
    """Cinder ids of the volumes that are attached to a server."""
    return [row["id"] for row in server.get("os-extended-volumes:volumes_attached") or ()]


def os_image_of(server: Mapping[str, Any]) -> str:
    """Glance id of the image that a server was made from; "" when it boots from a volume."""
    image = server.get("image")
    return str(image.get("id") or "") if isinstance(image, Mapping) else ""


def volume_image(volume: Mapping[str, Any]) -> str:
    """Glance id of the image that a volume was made from, or ""."""
    return str((volume.get("volume_image_metadata") or {}).get("image_id") or "")


def hint(server: Mapping[str, Any]) -> str:
    """The instance id that a server was made for, by its metadata or its name; or ""."""
    for text in ((server.get("metadata") or {}).get(MARK), server.get("name")):
        if isinstance(text, str) and ids.is_id(text, ["i"]):
            return text
    return ""


def _one(ctx: Context, os_id: str) -> Callable[[], dict[str, Any] | None]:
    def read() -> dict[str, Any] | None:
        try:
            return ctx.admin.compute.server(os_id, microversion=MICROVERSION)
        except NotFound:
            return None

    return read


def _named(ctx: Context, item_id: str) -> Callable[[], list[dict[str, Any]]]:
    # Nova takes the name for a regular expression; an id has no character that means anything.
    return lambda: ctx.admin.compute.servers(
        all_tenants=True,
        project_id=ctx.project_id,
        name=f"^{item_id}$",
        microversion=MICROVERSION,
    )


def all_volumes(ctx: Context) -> Callable[[], list[dict[str, Any]]]:
    """All volumes of the caller; none in a cloud without a volume service."""

    def read() -> list[dict[str, Any]]:
        try:
            return ctx.user.volume.volumes()
        except NoEndpoint:
            return []

    return read


def _volume(ctx: Context, volume_id: str) -> Callable[[], dict[str, Any] | None]:
    def read() -> dict[str, Any] | None:
        try:
            return ctx.user.volume.volume(volume_id)
        except (NotFound, NoEndpoint):
            return None

    return read


def _user_sees(ctx: Context, os_id: str) -> Callable[[], bool]:
    def read() -> bool:
        try:
            ctx.user.compute.server(os_id)
        except NotFound:
            return False
        except Forbidden as error:
            raise Unavailable(service="compute") from error
        return True

    return read
