"""The image that a request wants to change: it must be the project's own, and be there."""

from __future__ import annotations

from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.images.image_kind import Images
from trimaran.ec2.protocol.errors import EC2Error, missing
from trimaran.ec2.reconcile import reconcile
from trimaran.ec2.reconcile_kind import Pair, View


def own_image(ctx: Context, image_id: str | None) -> tuple[View, Pair]:
    """An image of the caller's project, with its view.

    Raises:
        EC2Error: ``MissingParameter``, ``InvalidParameterValue``,
            ``InvalidAMIID.NotFound``; ``AuthFailure`` for another project's.
    """
    if not image_id:
        raise missing("ImageId")
    ids.check_id(image_id, "imageId", *ids.IMAGE_PREFIXES)
    view = reconcile(ctx, Images(), [image_id])
    [pair] = view.pairs
    owner = pair.body.get("owner") if pair.found else pair.item.project_id
    if owner != ctx.project_id:
        raise EC2Error("AuthFailure", f"Not authorized for image:{image_id}")
    return view, pair


def finished_image(ctx: Context, image_id: str | None) -> tuple[View, Pair]:
    """The same for one that is not being made any more.

    Raises:
        EC2Error: see `own_image`; ``IncorrectState`` for a pending one.
    """
    view, pair = own_image(ctx, image_id)
    if pair.found is None:
        raise being_made(pair)
    return view, pair


def being_made(pair: Pair) -> EC2Error:
    """``IncorrectState`` of an image that has no data yet."""
    return EC2Error("IncorrectState", f"The image '{pair.item.id}' is being made.")
