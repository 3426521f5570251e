"""Images as the reconciliation engine sees them: what Glance shows to the caller.

An own image has an item; a foreign one only a mapping row without project, so
that all projects see one id.  Whether an image may be seen at all is Glance's
word, asked with the caller's own token: the database alone shows nothing.
Images that their owner has hidden are listed apart, because they are left out
of Glance's normal listing and would otherwise lose their ids.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.images.image_devices import SOURCES, devices
from trimaran.ec2.reconcile_kind import Fate, Found, Kind, Reference, Selection, Thunks
from trimaran.errors import NotFound

#: Up to so many images are asked for one by one; more by one listing for each so many ids.
FEW = 6
IDS_IN_ONE_QUESTION = 50

#: Characters of an image's name and of its description.
LONGEST_TEXT = 255
#: Stage of an item whose image is being made by a request (see `image_reserve`).
STAGE = "stage"
MAKING = "making"
#: Glance property that says which item an image was made for.
MARK = "ec2_id"

_KINDS = {"aki": "aki", "kernel": "aki", "ari": "ari", "ramdisk": "ari"}


def kind_of_image(image: Mapping[str, Any]) -> str:
    """The id prefix of a Glance image, by its container format."""
    return _KINDS.get(str(image.get("container_format") or "").lower(), "ami")


def is_public(image: Mapping[str, Any]) -> bool:
    """Whether every project may use it."""
    return image.get("visibility") in ("public", "community")


class Images(Kind):
    """The images that the caller may see."""

    prefixes = ids.IMAGE_PREFIXES

    def load(self, session: Session, ctx: Context, wanted: Collection[str] | None) -> list[Item]:
        if wanted is None:
            return queries.items_of(session, ctx.project_id, self.prefixes)
        return [
            item
            for item in queries.mapped_by_ids(session, wanted)
            # What is not in Glance yet can only be its owner's.
            if item.os_id or item.project_id == ctx.project_id
        ]

    def listings(self, ctx: Context, selection: Selection | None) -> Thunks:
        glance = ctx.user.image
        if selection is None:
            return {
                "images": glance.images,
                "images:hidden": lambda: glance.images(owner=ctx.project_id, os_hidden="true"),
            }
        if not selection.os_ids:
            # Only images that are still being made: one may have arrived meanwhile.
            return {"images": lambda: glance.images(owner=ctx.project_id)}
        if len(selection.os_ids) <= FEW:
            return {f"image:{os_id}": _one(ctx, os_id) for os_id in selection.os_ids}
        return {
            f"images:{number}": _some(ctx, some)
            for number, some in enumerate(queries.chunks(selection.os_ids, IDS_IN_ONE_QUESTION))
        }

    def found(self, ctx: Context, listed: Mapping[str, Any]) -> list[Found]:
        things: dict[str, Found] = {}
        for image in images_of(listed):
            things[image["id"]] = Found(
                kind_of_image(image),
                image["id"],
                image,
                own=image.get("owner") == ctx.project_id,
                hint=str(image.get(MARK) or ""),
            )
        return list(things.values())

    def new_item(self, ctx: Context, found: Found) -> NewItem:
        if not found.own:
            return NewItem(found.kind, found.os_id, None, alike=self.prefixes)
        public = is_public(found.body)
        return NewItem(
            found.kind,
            found.os_id,
            ctx.project_id,
            {"is_public": public},
            is_public=public,
            alike=self.prefixes,
        )

    def repair(self, ctx: Context, item: Item, found: Found) -> Mapping[str, Any]:
        public = is_public(found.body)
        # One without data yet is still being made, or was left behind (`image_reserve`).
        data = item.data if found.body.get("status") == "queued" else made(item.data)
        data = {**data, "is_public": public}
        if item.is_public == public and data == {"is_public": False, **item.data}:
            return {}
        return {"is_public": public, "data": data}

    def fate(self, ctx: Context, item: Item) -> Fate:
        if item.os_id:
            return Fate.DELETE
        if item.data.get(STAGE) != MAKING:
            return Fate.KEEP  # a job makes its image
        young = item.age is not None and item.age < ctx.conf.trimaran.launch_deadline_seconds
        return Fate.KEEP if young else Fate.DELETE

    def references(
        self, ctx: Context, listed: Mapping[str, Any], found: Sequence[Found]
    ) -> Iterable[Reference]:
        for thing in found:
            image = thing.body
            for name, kind in (("kernel_id", "aki"), ("ramdisk_id", "ari")):
                os_id = image.get(name)
                if isinstance(os_id, str) and len(os_id) == 36:
                    yield Reference(kind, os_id, own=False, alike=self.prefixes)
            for device in devices(image):
                prefix = SOURCES.get(device.source)
                if prefix and len(device.os_id) == 36:
                    alike = self.prefixes if prefix == "ami" else ()
                    yield Reference(prefix, device.os_id, own=False, alike=alike)


def made(data: Mapping[str, Any]) -> dict[str, Any]:
    """The blob of an item whose image is there."""
    return {name: value for name, value in data.items() if name != STAGE}


def images_of(listed: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """The rows of all listings and single answers."""
    for name, result in listed.items():
        if name.startswith("images"):
            yield from result
        elif name.startswith("image:") and result is not None:
            yield result


def _one(ctx: Context, os_id: str) -> Callable[[], dict[str, Any] | None]:
    def read() -> dict[str, Any] | None:
        try:
            return ctx.user.image.image(os_id)
        except NotFound:
            return None

    return read


def _some(ctx: Context, os_ids: Collection[str]) -> Callable[[], list[dict[str, Any]]]:
    # visibility=all adds community images, which a look at one image would also show.
    return lambda: ctx.user.image.images(id="in:" + ",".join(os_ids), visibility="all")
