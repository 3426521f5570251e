"""Attributes of images: describe and reset (spec ec2.md 3.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trimaran.ec2.context import Context
from trimaran.ec2.kinds.images.image_kind import is_public
from trimaran.ec2.kinds.images.image_own import finished_image
from trimaran.ec2.kinds.images.image_permission import reset_permissions, users_of
from trimaran.ec2.kinds.images.image_view import shown_image
from trimaran.ec2.protocol.errors import EC2Error, missing
from trimaran.ec2.reconcile_kind import Pair, View

Request = Mapping[str, Any]


def describe_image_attribute(ctx: Context, request: Request) -> dict[str, Any]:
    """One attribute of an own image."""
    name = request.get("Attribute")
    if not name:
        raise missing("Attribute")
    show = _SHOW.get(name)
    if show is None:
        raise _not_offered(name)
    view, pair = finished_image(ctx, request.get("ImageId"))
    return {"ImageId": pair.item.id, **show(ctx, view, pair)}


def reset_image_attribute(ctx: Context, request: Request) -> dict[str, Any]:
    """Take all launch permissions back."""
    name = request.get("Attribute")
    if not name:
        raise missing("Attribute")
    if name != "launchPermission":
        raise _not_offered(name)
    _, pair = finished_image(ctx, request.get("ImageId"))
    ctx.commit_point()
    reset_permissions(ctx, pair)
    return {}


def _not_offered(name: str) -> EC2Error:
    return EC2Error("InvalidRequest", f"The attribute '{name[:255]}' is not supported.")


def _field(member: str, field: str) -> Callable[[Context, View, Pair], dict[str, Any]]:
    def show(ctx: Context, view: View, pair: Pair) -> dict[str, Any]:
        value = shown_image(view, pair).get(field)
        return {} if value is None else {member: {"Value": value}}

    return show


def _permissions(ctx: Context, view: View, pair: Pair) -> dict[str, Any]:
    if is_public(pair.body):
        return {"LaunchPermissions": [{"Group": "all"}]}
    return {"LaunchPermissions": [{"UserId": user} for user in users_of(ctx, pair)]}


def _devices(ctx: Context, view: View, pair: Pair) -> dict[str, Any]:
    return {"BlockDeviceMappings": shown_image(view, pair)["BlockDeviceMappings"]}


_SHOW: Mapping[str, Callable[[Context, View, Pair], dict[str, Any]]] = {
    "blockDeviceMapping": _devices,
    "description": _field("Description", "Description"),
    "kernel": _field("KernelId", "KernelId"),
    "launchPermission": _permissions,
    "productCodes": lambda ctx, view, pair: {"ProductCodes": []},
    "ramdisk": _field("RamdiskId", "RamdiskId"),
}
