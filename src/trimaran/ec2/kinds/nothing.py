"""Things of AWS that this cloud has none of: an empty list, so that inventories go through.

An id that is asked for does not exist, and says so with AWS's code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trimaran.ec2.context import Context
from trimaran.ec2.protocol.errors import EC2Error, not_found

Action = Callable[[Context, Mapping[str, Any]], dict[str, Any]]


def _none(result: str, code: str, *named_by: str) -> Action:
    """An action whose list is always empty.

    Args:
        result: the list's name in the answer.
        code: what it is called when a thing that is asked for does not exist.
        named_by: the parameters that ask for things.
    """

    def describe(ctx: Context, request: Mapping[str, Any]) -> dict[str, Any]:
        for entry in request.get("Filters") or ():
            if not entry.get("Name"):
                raise EC2Error("InvalidFilter", "A filter has no name.")
        for parameter in named_by:
            if request.get(parameter):
                raise not_found(code, "ID", request[parameter])
        return {result: []}

    return describe


describe_capacity_reservations = _none(
    "CapacityReservations", "InvalidCapacityReservationId.NotFound", "CapacityReservationIds"
)
describe_hosts = _none("Hosts", "InvalidHostID.NotFound", "HostIds")
describe_iam_instance_profile_associations = _none(
    "IamInstanceProfileAssociations", "InvalidAssociationID.NotFound", "AssociationIds"
)
describe_launch_templates = _none(
    "LaunchTemplates",
    "InvalidLaunchTemplateId.NotFound",
    "LaunchTemplateIds",
    "LaunchTemplateNames",
)
describe_placement_groups = _none(
    "PlacementGroups", "InvalidPlacementGroup.Unknown", "GroupIds", "GroupNames"
)
describe_reserved_instances = _none(
    "ReservedInstances", "InvalidReservedInstancesId", "ReservedInstancesIds"
)
describe_spot_instance_requests = _none(
    "SpotInstanceRequests", "InvalidSpotInstanceRequestID.NotFound", "SpotInstanceRequestIds"
)


def get_ebs_encryption_by_default(ctx: Context, request: Mapping[str, Any]) -> dict[str, Any]:
    """Volumes are encrypted where their type says so, never by an account's setting."""
    return {"EbsEncryptionByDefault": False}
