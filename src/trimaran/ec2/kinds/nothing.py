"""Things of AWS that this cloud has none of: an empty list, so that inventories go through.

A request is checked all the same: filters by their names (which are AWS's, from
its API reference), pages by their rules, and an id that is asked for does not
exist, which is said with AWS's code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trimaran.ec2.context import Context
from trimaran.ec2.protocol import filters, paging
from trimaran.ec2.protocol.errors import not_found

Action = Callable[[Context, Mapping[str, Any]], dict[str, Any]]


def none_of(
    result: str,
    code: str = "InvalidID",
    *named_by: str,
    names: str = "",
    tags: bool = True,
    open_names: bool = False,
    module: str = __name__,
) -> Action:
    """An action whose list is always empty.

    Args:
        result: the list's name in the answer.
        code: what it is called when a thing that is asked for does not exist.
        named_by: the parameters that ask for things.
        names: the filters' names, separated by spaces.
        tags: filters by tag are known as well.
        open_names: AWS does not say which filters there are: any is taken.
        module: whose action it is.
    """
    table = {name: name for name in names.split()}

    def describe(ctx: Context, request: Mapping[str, Any]) -> dict[str, Any]:
        asked = request.get("Filters") or request.get("Filter")
        known = {str(row.get("Name")): "" for row in asked or ()} if open_names else table
        filters.compile_filters(asked, known, taggable=tags)
        paging.Page(ctx.action, request)
        for parameter in named_by:
            if wanted := request.get(parameter):
                raise not_found(code, "ID", [wanted] if isinstance(wanted, str) else wanted)
        return {result: []}

    describe.__module__ = module
    return describe


describe_bundle_tasks = none_of(
    "BundleTasks",
    "InvalidBundleID.NotFound",
    "BundleIds",
    names="bundle-id error-code error-message instance-id progress s3-bucket s3-prefix start-time "
    "state update-time",
    tags=False,
)
describe_capacity_reservations = none_of(
    "CapacityReservations",
    "InvalidCapacityReservationId.NotFound",
    "CapacityReservationIds",
    names="availability-zone end-date end-date-type instance-match-criteria instance-platform "
    "instance-type outpost-arn owner-id placement-group-arn start-date state tenancy",
)
describe_conversion_tasks = none_of(
    "ConversionTasks", "InvalidConversionTaskId", "ConversionTaskIds"
)
describe_elastic_gpus = none_of(
    "ElasticGpuSet",
    "InvalidElasticGpuID.NotFound",
    "ElasticGpuIds",
    names="availability-zone elastic-gpu-health elastic-gpu-state elastic-gpu-type instance-id",
    tags=False,
)
describe_export_tasks = none_of(
    "ExportTasks", "InvalidExportTaskID.NotFound", "ExportTaskIds", open_names=True
)
describe_fast_snapshot_restores = none_of(
    "FastSnapshotRestores",
    names="availability-zone availability-zone-id owner-id snapshot-id state",
    tags=False,
)
describe_fleets = none_of(
    "Fleets",
    "InvalidFleetId.NotFound",
    "FleetIds",
    names="activity-status excess-capacity-termination-policy fleet-state "
    "replace-unhealthy-instances type",
)
describe_fpga_images = none_of(
    "FpgaImages",
    "InvalidFpgaImageID.NotFound",
    "FpgaImageIds",
    names="create-time fpga-image-global-id fpga-image-id name owner-id product-code "
    "shell-version state update-time",
)
describe_host_reservations = none_of(
    "HostReservationSet",
    "InvalidHostReservationId.NotFound",
    "HostReservationIdSet",
    names="instance-family payment-option state",
)
describe_hosts = none_of(
    "Hosts",
    "InvalidHostID.NotFound",
    "HostIds",
    names="auto-placement availability-zone client-token host-reservation-id instance-type state",
)
describe_iam_instance_profile_associations = none_of(
    "IamInstanceProfileAssociations",
    "InvalidAssociationID.NotFound",
    "AssociationIds",
    names="instance-id state",
    tags=False,
)
describe_import_image_tasks = none_of(
    "ImportImageTasks", "InvalidConversionTaskId", "ImportTaskIds", open_names=True
)
describe_import_snapshot_tasks = none_of(
    "ImportSnapshotTasks", "InvalidConversionTaskId", "ImportTaskIds", open_names=True
)
describe_instance_event_windows = none_of(
    "InstanceEventWindows",
    "InvalidInstanceEventWindowID.NotFound",
    "InstanceEventWindowIds",
    names="dedicated-host-id event-window-name instance-id instance-tag instance-tag-key "
    "instance-tag-value",
)
describe_launch_template_versions = none_of(
    "LaunchTemplateVersions",
    "InvalidLaunchTemplateId.NotFound",
    "LaunchTemplateId",
    "LaunchTemplateName",
    names="create-time ebs-optimized host-resource-group-arn http-endpoint http-protocol-ipv4 "
    "http-tokens iam-instance-profile image-id instance-type is-default-version kernel-id "
    "license-configuration-arn network-card-index ram-disk-id",
    tags=False,
)
describe_launch_templates = none_of(
    "LaunchTemplates",
    "InvalidLaunchTemplateId.NotFound",
    "LaunchTemplateIds",
    "LaunchTemplateNames",
    names="create-time launch-template-name",
)
describe_placement_groups = none_of(
    "PlacementGroups",
    "InvalidPlacementGroup.Unknown",
    "GroupIds",
    "GroupNames",
    names="group-arn group-name spread-level state strategy",
)
describe_reserved_instances = none_of(
    "ReservedInstances",
    "InvalidReservedInstancesId",
    "ReservedInstancesIds",
    names="availability-zone availability-zone-id duration end fixed-price instance-type "
    "product-description reserved-instances-id scope start state usage-price",
)
describe_reserved_instances_listings = none_of(
    "ReservedInstancesListings",
    "InvalidReservedInstancesId",
    "ReservedInstancesId",
    "ReservedInstancesListingId",
    names="reserved-instances-id reserved-instances-listing-id status status-message",
    tags=False,
)
describe_reserved_instances_modifications = none_of(
    "ReservedInstancesModifications",
    "InvalidReservedInstancesId",
    "ReservedInstancesModificationIds",
    names="client-token create-date effective-date reserved-instances-id "
    "reserved-instances-modification-id status status-message update-date",
    tags=False,
)
describe_reserved_instances_offerings = none_of(
    "ReservedInstancesOfferings",
    "InvalidReservedInstancesOfferingId",
    "ReservedInstancesOfferingIds",
    names="availability-zone availability-zone-id duration fixed-price instance-type marketplace "
    "product-description reserved-instances-offering-id scope usage-price",
    tags=False,
)
describe_scheduled_instances = none_of(
    "ScheduledInstanceSet",
    "InvalidScheduledInstance",
    "ScheduledInstanceIds",
    names="availability-zone instance-type platform",
    tags=False,
)
describe_spot_fleet_requests = none_of(
    "SpotFleetRequestConfigs", "InvalidSpotFleetRequestId.NotFound", "SpotFleetRequestIds"
)
describe_spot_instance_requests = none_of(
    "SpotInstanceRequests",
    "InvalidSpotInstanceRequestID.NotFound",
    "SpotInstanceRequestIds",
    names="availability-zone-group create-time fault-code fault-message instance-id launch-group "
    "launch.block-device-mapping.delete-on-termination launch.block-device-mapping.device-name "
    "launch.block-device-mapping.snapshot-id launch.block-device-mapping.volume-size "
    "launch.block-device-mapping.volume-type launch.group-id launch.group-name launch.image-id "
    "launch.instance-type launch.kernel-id launch.key-name launch.monitoring-enabled "
    "launch.ramdisk-id launched-availability-zone launched-availability-zone-id "
    "network-interface.addresses.primary network-interface.delete-on-termination "
    "network-interface.description network-interface.device-index network-interface.group-id "
    "network-interface.network-interface-id network-interface.private-ip-address "
    "network-interface.subnet-id product-description spot-instance-request-id spot-price state "
    "status-code status-message type valid-from valid-until",
)
describe_spot_price_history = none_of(
    "SpotPriceHistory",
    names="availability-zone availability-zone-id instance-type product-description spot-price "
    "timestamp",
    tags=False,
)


def get_ebs_encryption_by_default(ctx: Context, request: Mapping[str, Any]) -> dict[str, Any]:
    """Volumes are encrypted where their type says so, never by an account's setting."""
    return {"EbsEncryptionByDefault": False}
