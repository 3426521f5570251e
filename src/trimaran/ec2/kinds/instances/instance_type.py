"""Instance types: Nova's flavors by their names (spec ec2.md 9.2).

What a flavor does not say is answered so that tools draw no wrong conclusion:
no burstable type, no bare metal, no placement groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trimaran.ec2.context import Context
from trimaran.ec2.kinds.availability_zone import zones
from trimaran.ec2.protocol import filters, paging
from trimaran.ec2.protocol.errors import EC2Error, invalid_value

FILTERS: filters.Table = {
    "auto-recovery-supported": "AutoRecoverySupported",
    "bare-metal": "BareMetal",
    "burstable-performance-supported": "BurstablePerformanceSupported",
    "current-generation": "CurrentGeneration",
    "dedicated-hosts-supported": "DedicatedHostsSupported",
    "ebs-info.ebs-optimized-support": "EbsInfo.EbsOptimizedSupport",
    "ebs-info.encryption-support": "EbsInfo.EncryptionSupport",
    "ebs-info.nvme-support": "EbsInfo.NvmeSupport",
    "free-tier-eligible": "FreeTierEligible",
    "hibernation-supported": "HibernationSupported",
    "hypervisor": "Hypervisor",
    "instance-storage-info.total-size-in-gb": "InstanceStorageInfo.TotalSizeInGB",
    "instance-storage-supported": "InstanceStorageSupported",
    "instance-type": "InstanceType",
    "memory-info.size-in-mib": "MemoryInfo.SizeInMiB",
    "network-info.ipv4-addresses-per-interface": "NetworkInfo.Ipv4AddressesPerInterface",
    "network-info.ipv6-supported": "NetworkInfo.Ipv6Supported",
    "network-info.maximum-network-interfaces": "NetworkInfo.MaximumNetworkInterfaces",
    "processor-info.supported-architecture": "ProcessorInfo.SupportedArchitectures",
    "supported-boot-mode": "SupportedBootModes",
    "supported-root-device-type": "SupportedRootDeviceTypes",
    "supported-usage-class": "SupportedUsageClasses",
    "supported-virtualization-type": "SupportedVirtualizationTypes",
    "vcpu-info.default-cores": "VCpuInfo.DefaultCores",
    "vcpu-info.default-threads-per-core": "VCpuInfo.DefaultThreadsPerCore",
    "vcpu-info.default-vcpus": "VCpuInfo.DefaultVCpus",
}

OFFERING_FILTERS: filters.Table = {"instance-type": "InstanceType", "location": "Location"}

#: AWS's own number for most types; Nova sets no limit of its own.
INTERFACES = 8
ADDRESSES = 30


def flavors(ctx: Context) -> dict[str, dict[str, Any]]:
    """The flavors that the project may use, by name; of equal names the first."""
    found: dict[str, dict[str, Any]] = {}
    for row in ctx.once("flavors", ctx.user.compute.flavors):
        if not row.get("OS-FLV-DISABLED:disabled"):
            found.setdefault(row["name"], row)
    return found


def describe_instance_types(ctx: Context, request: Mapping[str, Any]) -> dict[str, Any]:
    """Instance types, paged and filtered; an unknown one is ``InvalidInstanceType``."""
    page = paging.Page(ctx.action, request, ids="InstanceTypes")
    matches = filters.compile_filters(request.get("Filters"), FILTERS, taggable=False)
    found = flavors(ctx)
    wanted = dict.fromkeys(request.get("InstanceTypes") or ())
    absent = sorted(name for name in wanted if name not in found)
    if absent:
        shown = ", ".join(absent[:10])[:255]
        raise EC2Error(
            "InvalidInstanceType", f"The following supplied instance types do not exist: [{shown}]"
        )
    chosen = wanted or found
    types = matches.apply(_shown(name, found[name]) for name in chosen)
    types, token = page.slice(types, key=lambda row: row["InstanceType"])
    return {"InstanceTypes": types, "NextToken": token}


def describe_instance_type_offerings(ctx: Context, request: Mapping[str, Any]) -> dict[str, Any]:
    """Which type is offered where: every flavor in the region and in each of its zones."""
    page = paging.Page(ctx.action, request)
    matches = filters.compile_filters(request.get("Filters"), OFFERING_FILTERS, taggable=False)
    kind = request.get("LocationType") or "region"
    offerings = [
        {"InstanceType": name, "LocationType": kind, "Location": place}
        for place in _places(ctx, kind)
        for name in flavors(ctx)
    ]
    rows, token = page.slice(
        matches.apply(offerings), key=lambda row: (row["InstanceType"], row["Location"])
    )
    return {"InstanceTypeOfferings": rows, "NextToken": token}


def _places(ctx: Context, kind: str) -> Iterable[str]:
    if kind == "region":
        return [ctx.region]
    fields = {"availability-zone": "ZoneName", "availability-zone-id": "ZoneId"}
    if kind not in fields:
        raise invalid_value("LocationType", kind)
    return [zone[fields[kind]] for zone in zones(ctx) if zone["State"] == "available"]


def _shown(name: str, flavor: Mapping[str, Any]) -> dict[str, Any]:
    disk = int(flavor.get("disk") or 0)
    vcpus = int(flavor.get("vcpus") or 1)
    made: dict[str, Any] = {
        "InstanceType": name,
        "CurrentGeneration": True,
        "FreeTierEligible": False,
        "SupportedUsageClasses": ["on-demand"],
        "SupportedRootDeviceTypes": ["ebs", "instance-store"] if disk else ["ebs"],
        "SupportedVirtualizationTypes": ["hvm"],
        "BareMetal": False,
        "Hypervisor": "xen",
        "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]},
        "VCpuInfo": {
            "DefaultVCpus": vcpus,
            "DefaultCores": vcpus,
            "DefaultThreadsPerCore": 1,
            "ValidCores": [vcpus],
            "ValidThreadsPerCore": [1],
        },
        "MemoryInfo": {"SizeInMiB": int(flavor.get("ram") or 0)},
        "InstanceStorageSupported": disk > 0,
        "EbsInfo": {
            "EbsOptimizedSupport": "unsupported",
            "EncryptionSupport": "unsupported",
            "NvmeSupport": "unsupported",
        },
        "NetworkInfo": {
            "NetworkPerformance": "Moderate",
            "MaximumNetworkInterfaces": INTERFACES,
            "MaximumNetworkCards": 1,
            "DefaultNetworkCardIndex": 0,
            "Ipv4AddressesPerInterface": ADDRESSES,
            "Ipv6AddressesPerInterface": 0,
            "Ipv6Supported": False,
            "EnaSupport": "supported",
            "EfaSupported": False,
            "EncryptionInTransitSupported": False,
        },
        "PlacementGroupInfo": {"SupportedStrategies": []},
        "HibernationSupported": False,
        "BurstablePerformanceSupported": False,
        "DedicatedHostsSupported": False,
        "AutoRecoverySupported": False,
        "SupportedBootModes": ["legacy-bios"],
        "NitroEnclavesSupport": "unsupported",
        "NitroTpmSupport": "unsupported",
    }
    if disk:
        made["InstanceStorageInfo"] = {
            "TotalSizeInGB": disk,
            "Disks": [{"SizeInGB": disk, "Count": 1, "Type": "hdd"}],
            "NvmeSupport": "unsupported",
            "EncryptionSupport": "unsupported",
        }
    return made
