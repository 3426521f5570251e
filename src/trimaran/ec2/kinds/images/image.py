"""Images: DescribeImages (spec ec2.md 3.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.images.image_kind import Images
from trimaran.ec2.kinds.images.image_view import shown_image
from trimaran.ec2.protocol import filters, paging
from trimaran.ec2.protocol.errors import invalid_value
from trimaran.ec2.reconcile import reconcile

_DEVICE = "BlockDeviceMappings"

FILTERS: filters.Table = {
    "architecture": "Architecture",
    "block-device-mapping.delete-on-termination": f"{_DEVICE}.Ebs.DeleteOnTermination",
    "block-device-mapping.device-name": f"{_DEVICE}.DeviceName",
    "block-device-mapping.encrypted": f"{_DEVICE}.Ebs.Encrypted",
    "block-device-mapping.snapshot-id": f"{_DEVICE}.Ebs.SnapshotId",
    "block-device-mapping.volume-size": f"{_DEVICE}.Ebs.VolumeSize",
    "block-device-mapping.volume-type": f"{_DEVICE}.Ebs.VolumeType",
    "creation-date": "CreationDate",
    "description": "Description",
    "ena-support": "EnaSupport",
    "hypervisor": "Hypervisor",
    "image-allowed": "ImageAllowed",
    "image-id": "ImageId",
    "image-type": "ImageType",
    "is-public": "Public",
    "kernel-id": "KernelId",
    # Upstream's spelling, which its users had to write.
    "kernel_id": "KernelId",
    "manifest-location": "ImageLocation",
    "name": "Name",
    "owner-alias": "ImageOwnerAlias",
    "owner-id": "OwnerId",
    "platform": "Platform",
    "platform-details": "PlatformDetails",
    "product-code": "ProductCodes.ProductCodeId",
    "ramdisk-id": "RamdiskId",
    "root-device-name": "RootDeviceName",
    "root-device-type": "RootDeviceType",
    "state": "State",
    "state-reason-code": "StateReason.Code",
    "state-reason-message": "StateReason.Message",
    "virtualization-type": "VirtualizationType",
}

#: Owners that AWS publishes its images under: here, the public ones.
PUBLISHERS = frozenset({"amazon", "aws-marketplace", "aws-backup-vault"})


def describe_images(ctx: Context, request: Mapping[str, Any]) -> dict[str, Any]:
    """The images that the caller may use, by owner, user, id and filter."""
    page = paging.Page(ctx.action, request, ids="ImageIds")
    matches = filters.compile_filters(request.get("Filters"), FILTERS)
    wanted = ids.check_ids(request.get("ImageIds"), "imageId", *ids.IMAGE_PREFIXES)
    owners = set(request.get("Owners") or ())
    users = set(request.get("ExecutableUsers") or ())
    if "" in owners | users:
        raise invalid_value("Owner" if "" in owners else "ExecutableBy", "")
    view = reconcile(ctx, Images(), wanted or None)
    images = [
        image
        for image in (shown_image(view, pair) for pair in view.pairs)
        if _is_owned_by(image, owners, ctx.project_id)
        and _is_usable_by(image, users, ctx.project_id)
    ]
    images, token = page.slice(matches.apply(images), key=lambda image: image["ImageId"])
    return {"Images": images, "NextToken": token}


def _is_owned_by(image: Mapping[str, Any], owners: set[str], project_id: str) -> bool:
    if not owners:
        return True
    owner = image["OwnerId"]
    if owner in owners or ("self" in owners and owner == project_id):
        return True
    return bool(image["Public"]) and not owners.isdisjoint(PUBLISHERS)


def _is_usable_by(image: Mapping[str, Any], users: set[str], project_id: str) -> bool:
    """``all``: public; ``self`` or an id: shared with the project by another one."""
    if not users:
        return True
    if image["Public"]:
        return "all" in users
    shared = image["OwnerId"] != project_id
    return shared and not users.isdisjoint({"self", project_id})
