"""The filters of DescribeInstances and DescribeInstanceStatus (spec ec2.md 1.11).

A table of names, apart from the code, because the list is what an operator or
a client's author wants to read.  Names of network interfaces are known even
while an instance has none: they match nothing, and are no error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimaran.ec2.protocol.filters import Table

_INTERFACE = "NetworkInterfaces"


def _tag_pairs(instance: Mapping[str, Any]) -> list[str]:
    return [f"{tag['Key']}={tag['Value']}" for tag in instance.get("Tags") or ()]


#: Filters of an instance as shown, with ReservationId and OwnerId beside its own fields.
INSTANCE: Table = {
    "architecture": "Architecture",
    "availability-zone": "Placement.AvailabilityZone",
    "availability-zone-id": "Placement.AvailabilityZone",
    "block-device-mapping.attach-time": "BlockDeviceMappings.Ebs.AttachTime",
    "block-device-mapping.delete-on-termination": "BlockDeviceMappings.Ebs.DeleteOnTermination",
    "block-device-mapping.device-name": "BlockDeviceMappings.DeviceName",
    "block-device-mapping.status": "BlockDeviceMappings.Ebs.Status",
    "block-device-mapping.volume-id": "BlockDeviceMappings.Ebs.VolumeId",
    "client-token": "ClientToken",
    "dns-name": "PublicDnsName",
    "group-id": "SecurityGroups.GroupId",
    "group-name": "SecurityGroups.GroupName",
    "hypervisor": "Hypervisor",
    "image-id": "ImageId",
    "instance-id": "InstanceId",
    "instance-state-code": "State.Code",
    "instance-state-name": "State.Name",
    "instance-type": "InstanceType",
    "instance.group-id": "SecurityGroups.GroupId",
    "instance.group-name": "SecurityGroups.GroupName",
    "ip-address": "PublicIpAddress",
    "kernel-id": "KernelId",
    "key-name": "KeyName",
    "launch-index": "AmiLaunchIndex",
    "launch-time": "LaunchTime",
    "monitoring-state": "Monitoring.State",
    "owner-id": "OwnerId",
    "platform": "Platform",
    "platform-details": "PlatformDetails",
    "private-dns-name": "PrivateDnsName",
    "private-ip-address": "PrivateIpAddress",
    "product-code": "ProductCodes.ProductCodeId",
    "ramdisk-id": "RamdiskId",
    "reason": "StateTransitionReason",
    "reservation-id": "ReservationId",
    "root-device-name": "RootDeviceName",
    "root-device-type": "RootDeviceType",
    "source-dest-check": "SourceDestCheck",
    "state-reason-code": "StateReason.Code",
    "state-reason-message": "StateReason.Message",
    "subnet-id": "SubnetId",
    "tag": _tag_pairs,
    "tenancy": "Placement.Tenancy",
    "virtualization-type": "VirtualizationType",
    "vpc-id": "VpcId",
    "association.public-ip": f"{_INTERFACE}.Association.PublicIp",
    "association.ip-owner-id": f"{_INTERFACE}.Association.IpOwnerId",
    "network-interface.description": f"{_INTERFACE}.Description",
    "network-interface.subnet-id": f"{_INTERFACE}.SubnetId",
    "network-interface.vpc-id": f"{_INTERFACE}.VpcId",
    "network-interface.owner-id": f"{_INTERFACE}.OwnerId",
    "network-interface.requester-managed": f"{_INTERFACE}.RequesterManaged",
    "network-interface.status": f"{_INTERFACE}.Status",
    "network-interface.mac-address": f"{_INTERFACE}.MacAddress",
    "network-interface.source-destination-check": f"{_INTERFACE}.SourceDestCheck",
    "network-interface.source-dest-check": f"{_INTERFACE}.SourceDestCheck",
    "network-interface.group-id": f"{_INTERFACE}.Groups.GroupId",
    "network-interface.group-name": f"{_INTERFACE}.Groups.GroupName",
    "network-interface.network-interface-id": f"{_INTERFACE}.NetworkInterfaceId",
    "network-interface.network-interface.id": f"{_INTERFACE}.NetworkInterfaceId",
    "network-interface.attachment.attachment-id": f"{_INTERFACE}.Attachment.AttachmentId",
    "network-interface.attachment.instance-id": "InstanceId",
    "network-interface.attachment.instance-owner-id": "OwnerId",
    "network-interface.attachment.device-index": f"{_INTERFACE}.Attachment.DeviceIndex",
    "network-interface.attachment.status": f"{_INTERFACE}.Attachment.Status",
    "network-interface.attachment.attach-time": f"{_INTERFACE}.Attachment.AttachTime",
    "network-interface.attachment.delete-on-termination": (
        f"{_INTERFACE}.Attachment.DeleteOnTermination"
    ),
    "network-interface.addresses.private-ip-address": (
        f"{_INTERFACE}.PrivateIpAddresses.PrivateIpAddress"
    ),
    "network-interface.addresses.primary": f"{_INTERFACE}.PrivateIpAddresses.Primary",
    "network-interface.addresses.association.public-ip": (
        f"{_INTERFACE}.PrivateIpAddresses.Association.PublicIp"
    ),
    "network-interface.addresses.association.ip-owner-id": (
        f"{_INTERFACE}.PrivateIpAddresses.Association.IpOwnerId"
    ),
}

#: Filters of an instance's status as shown.
STATUS: Table = {
    "availability-zone": "AvailabilityZone",
    "availability-zone-id": "AvailabilityZoneId",
    "event.code": "Events.Code",
    "event.description": "Events.Description",
    "event.instance-event-id": "Events.InstanceEventId",
    "event.not-after": "Events.NotAfter",
    "event.not-before": "Events.NotBefore",
    "event.not-before-deadline": "Events.NotBeforeDeadline",
    "instance-state-code": "InstanceState.Code",
    "instance-state-name": "InstanceState.Name",
    "instance-status.reachability": "InstanceStatus.Details.Status",
    "instance-status.status": "InstanceStatus.Status",
    "system-status.reachability": "SystemStatus.Details.Status",
    "system-status.status": "SystemStatus.Status",
}
