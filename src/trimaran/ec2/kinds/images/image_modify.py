"""ModifyImageAttribute and DeregisterImage (spec ec2.md 3.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimaran.cloud import CloudError, gather
from trimaran.db.queries import ec2 as queries
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.images.image_devices import devices
from trimaran.ec2.kinds.images.image_kind import LONGEST_TEXT
from trimaran.ec2.kinds.images.image_own import being_made, finished_image, own_image
from trimaran.ec2.kinds.images.image_permission import Permissions, change_permissions, distinct
from trimaran.ec2.protocol.errors import (
    EC2Error,
    check_length,
    invalid_combination,
    invalid_value,
    missing,
    unsupported,
)
from trimaran.ec2.reconcile_kind import View
from trimaran.errors import Conflict, Forbidden, NotFound, TrimaranError

Request = Mapping[str, Any]

_CONSTANT = frozenset({"kernel", "ramdisk", "productCodes", "blockDeviceMapping"})
_BY_PERMISSION = ("LaunchPermission", "UserGroups", "UserIds", "OperationType")


def modify_image_attribute(ctx: Context, request: Request) -> dict[str, Any]:
    """Change one attribute of an own image: its description or its launch permissions."""
    attribute = _attribute(request)
    if attribute == "launchPermission":
        wanted = _permissions(request)
        _, pair = finished_image(ctx, request.get("ImageId"))
        ctx.commit_point()
        change_permissions(ctx, pair, wanted)
        return {}
    text = _description(request)
    _, pair = finished_image(ctx, request.get("ImageId"))
    ctx.commit_point()
    data = {**pair.item.data, "description": text}
    ctx.db.write(lambda s: queries.update_item(s, ctx.project_id, pair.item.id, data=data))
    return {}


def _attribute(request: Request) -> str:
    """The one attribute that a request is about.

    Raises:
        EC2Error: ``InvalidParameterCombination`` for none, several or an
            unknown one; ``InvalidParameter`` for one that never changes.
    """
    if not request.get("ImageId"):
        raise missing("ImageId")
    for name in ("OrganizationArns", "OrganizationalUnitArns", "ImdsSupport"):
        if request.get(name):
            raise unsupported(f"The parameter {name} is not supported.")
    given = set()
    if request.get("Attribute"):
        given.add(request["Attribute"])
    if any(request.get(name) for name in _BY_PERMISSION):
        given.add("launchPermission")
    if request.get("Description") is not None:
        given.add("description")
    if request.get("ProductCodes"):
        given.add("productCodes")
    if len(given) != 1:
        raise invalid_combination("Exactly one attribute is to be given.")
    [name] = given
    if name in _CONSTANT:
        raise EC2Error("InvalidParameter", f"The attribute {name} cannot be changed.")
    if name not in ("description", "launchPermission"):
        raise invalid_combination("No known attribute is given.")
    return str(name)


def _description(request: Request) -> str:
    text = (request.get("Description") or {}).get("Value")
    text = request.get("Value") if text is None else text
    if not text:
        raise missing("Description.Value")
    check_length("Description", text, LONGEST_TEXT)
    return str(text)


def _permissions(request: Request) -> Permissions:
    wanted = Permissions()
    operation = request.get("OperationType")
    if operation and operation not in ("add", "remove"):
        raise invalid_value("OperationType", operation, "It is add or remove.")
    flat: list[tuple[str | None, str | None]]
    flat = [(group, None) for group in distinct(request.get("UserGroups"))]
    flat += [(None, user) for user in distinct(request.get("UserIds"))]
    if flat and not operation:
        raise missing("OperationType")
    for group, user in flat:
        wanted.add(group, user, remove=operation == "remove")
    structure = request.get("LaunchPermission") or {}
    for key in ("Add", "Remove"):
        for entry in structure.get(key) or ():
            if entry.get("OrganizationArn") or entry.get("OrganizationalUnitArn"):
                raise unsupported("There are no organizations.")
            wanted.add(entry.get("Group"), entry.get("UserId"), remove=key == "Remove")
    if not wanted:
        raise invalid_combination("No group and no user is given.")
    return wanted


def deregister_image(ctx: Context, request: Request) -> dict[str, Any]:
    """Delete an own image; its snapshots go with it when that is asked for."""
    view, pair = own_image(ctx, request.get("ImageId"))
    if pair.found is None and pair.item.data.get("state") != "failed":
        raise being_made(pair)
    ctx.commit_point()
    if pair.found is not None:
        try:
            ctx.user.image.delete_image(pair.found.os_id)
        except NotFound:
            pass  # somebody was quicker
        except Conflict as error:
            raise EC2Error("IncorrectState", f"The image '{pair.item.id}' is in use.") from error
        except Forbidden as error:
            if not pair.body.get("protected"):
                raise
            raise EC2Error(
                "OperationNotPermitted", f"The image '{pair.item.id}' is protected."
            ) from error
    ctx.db.write(lambda s: queries.delete_items(s, ctx.project_id, [pair.item.id]))
    answer: dict[str, Any] = {"Return": True}
    if request.get("DeleteAssociatedSnapshots"):
        answer["DeleteSnapshotResults"] = _delete_snapshots(ctx, view, pair.body)
    return answer


def _delete_snapshots(ctx: Context, view: View, image: Mapping[str, Any]) -> list[dict[str, str]]:
    found = {
        device.os_id: snapshot_id
        for device in devices(image)
        if device.source == "snapshot" and (snapshot_id := view.id_of(device.os_id))
    }
    codes = gather(**{os_id: _deleter(ctx, os_id) for os_id in found})
    return [{"SnapshotId": found[os_id], "ReturnCode": codes[os_id]} for os_id in found]


def _deleter(ctx: Context, os_id: str) -> Any:
    def delete() -> str:
        try:
            ctx.user.volume.delete_snapshot(os_id)
        except NotFound:
            return "success"
        except Forbidden:
            return "missing-permissions"
        except TrimaranError as error:
            status = error.remote_status if isinstance(error, CloudError) else 500
            return "client-error" if 400 <= status < 500 else "internal-error"
        return "success"

    return delete
