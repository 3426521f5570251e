"""A snapshot's attributes: nobody else may use it, and Cinder knows no way to let others.

So a permission that is asked for is refused, and taking away what nobody has
is done at once (spec ec2.md 9.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimaran.ec2.context import Context
from trimaran.ec2.kinds.volumes.snapshot import one_snapshot
from trimaran.ec2.protocol.errors import (
    invalid_combination,
    invalid_value,
    missing,
    unsupported,
)

Request = Mapping[str, Any]

PERMISSION = "createVolumePermission"
CODES = "productCodes"


def describe_snapshot_attribute(ctx: Context, request: Request) -> dict[str, Any]:
    """``createVolumePermission`` or ``productCodes``; both are empty."""
    attribute = _attribute(request)
    pair = one_snapshot(ctx, request.get("SnapshotId"))
    empty = "CreateVolumePermissions" if attribute == PERMISSION else "ProductCodes"
    return {"SnapshotId": pair.item.id, empty: []}


def modify_snapshot_attribute(ctx: Context, request: Request) -> dict[str, Any]:
    """Take permissions away; giving one is ``UnsupportedOperation``."""
    if request.get("Attribute") and _attribute(request) != PERMISSION:
        raise unsupported("Only createVolumePermission can be modified.")
    change = request.get("CreateVolumePermission") or {}
    named = bool(request.get("UserIds") or request.get("GroupNames"))
    operation = request.get("OperationType")
    if operation not in (None, "", "add", "remove"):
        raise invalid_value("OperationType", operation, "Expected: add or remove")
    if named and not operation:
        raise missing("OperationType")
    if not change and not named:
        raise invalid_combination("No attribute to be modified was given.")
    one_snapshot(ctx, request.get("SnapshotId"))
    if change.get("Add") or (named and operation == "add"):
        raise unsupported("Snapshots cannot be shared with other projects by this cloud.")
    ctx.commit_point()
    return {}


def reset_snapshot_attribute(ctx: Context, request: Request) -> dict[str, Any]:
    """Back to private, which it is."""
    if _attribute(request) != PERMISSION:
        raise unsupported("Only createVolumePermission can be reset.")
    one_snapshot(ctx, request.get("SnapshotId"))
    ctx.commit_point()
    return {}


def _attribute(request: Request) -> str:
    attribute = request.get("Attribute")
    if not attribute:
        raise missing("Attribute")
    if attribute not in (PERMISSION, CODES):
        raise invalid_value("Attribute", attribute, f"Expected: {PERMISSION} or {CODES}")
    return str(attribute)
