"""What the tree holds for one instance, in the newest version (spec ec2.md 6.3, 6.5)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from trimaran.ec2.kinds.instances.instance_metadata import Interface, Surroundings
from trimaran.ec2.kinds.item_options import TAG_KEY
from trimaran.ec2.metadata import interfaces as network
from trimaran.ec2.metadata.later import Later
from trimaran.ec2.metadata.tree import Deferred, Labelled, Node, cut

_IDENTITY_VERSION = "2017-09-30"


class Facts:
    """What is known about the instance that asks.

    Args:
        instance: as DescribeInstances shows it, in boto3's names, with
            ``ReservationId`` and ``OwnerId``.
        interfaces: its network interfaces by device index.
        around: what they are plugged into.
        key: text of the public key; None for one that Nova has no more.
        region: the region's name.
        domain: the host under which the region's services are reached.
        address: the address that it asked from.
        user_data: as the guest's owner gave it, None when there is none.
    """

    def __init__(
        self,
        instance: Mapping[str, Any],
        *,
        interfaces: Sequence[Interface] = (),
        around: Later[Surroundings],
        key: Later[str | None],
        region: str,
        domain: str,
        address: str = "",
        user_data: bytes | None = None,
    ) -> None:
        self.instance = instance
        self.interfaces = interfaces
        self.around = around
        self.key = key
        self.region = region
        self.domain = domain
        self.address = address
        self.user_data = user_data
        self._trees: dict[str, Mapping[str, Any]] = {}

    @property
    def options(self) -> Mapping[str, Any]:
        """The metadata options of the instance."""
        return self.instance.get("MetadataOptions") or {}

    def tree(self, version: str) -> Mapping[str, Any]:
        """The root directory of a version."""
        if version not in self._trees:
            self._trees[version] = cut(_root(self), version)
        return self._trees[version]


def _root(facts: Facts) -> dict[str, Any]:
    made: dict[str, Any] = {
        "dynamic": {"instance-identity": {"document": _document(facts)}},
        "meta-data": _meta_data(facts),
    }
    if facts.user_data is not None:
        made["user-data"] = facts.user_data
    return made


def _meta_data(facts: Facts) -> dict[str, Any]:
    shown = facts.instance
    zone = (shown.get("Placement") or {}).get("AvailabilityZone") or ""
    made: dict[str, Any] = {
        "ami-launch-index": str(shown.get("AmiLaunchIndex", 0)),
        "ami-manifest-path": "FIXME",  # the very value that ec2-api tells (spec ec2.md 6)
        "ancestor-ami-ids": "",
        "block-device-mapping": _devices(shown),
        "hostname": shown.get("PrivateDnsName") or "",
        "instance-action": "none",
        "instance-id": shown["InstanceId"],
        "instance-life-cycle": "on-demand",
        "instance-type": shown.get("InstanceType") or "",
        "local-hostname": shown.get("PrivateDnsName") or "",
        "local-ipv4": shown.get("PrivateIpAddress") or facts.address,
        "placement": {
            "availability-zone": zone,
            "availability-zone-id": zone,
            "region": facts.region,
        },
        "product-codes": "",
        "public-hostname": _public(facts, "PublicDnsName"),
        "public-ipv4": _public(facts, "PublicIpAddress"),
        "reservation-id": shown.get("ReservationId") or "",
        "security-groups": _groups(facts),
        "services": {"domain": facts.domain, "partition": "aws"},
    }
    for name, member in (("ami-id", "ImageId"), ("kernel-id", "KernelId")):
        if shown.get(member):
            made[name] = shown[member]
    if shown.get("RamdiskId"):
        made["ramdisk-id"] = shown["RamdiskId"]
    if shown.get("KeyName"):
        made["public-keys"] = Deferred(facts.key, lambda text: _keys(shown, text), True)
    if facts.interfaces:
        made["mac"] = str(facts.interfaces[0].port["mac_address"])
        made["network"] = network.network(facts.interfaces, facts.around, shown)
    if facts.options.get("InstanceMetadataTags") == "enabled":
        made["tags"] = {"instance": _tags(shown)}
    return made


def _groups(facts: Facts) -> Node:
    """The groups of the primary interface; those of the server where Neutron shows no port."""
    if not facts.interfaces:
        return [group["GroupName"] for group in facts.instance.get("SecurityGroups") or ()]
    first = facts.interfaces[0]
    return Deferred(
        facts.around, lambda around: network.group_names(first, around), is_directory=False
    )


def _public(facts: Facts, member: str) -> Node:
    """The address of the primary interface as Neutron has it: Nova hears of a change later."""
    if not facts.interfaces:
        return facts.instance.get(member) or ""
    first = facts.interfaces[0]
    return Deferred(
        facts.around, lambda around: network.public_address(first, around), is_directory=False
    )


def _devices(shown: Mapping[str, Any]) -> dict[str, str]:
    root = shown.get("RootDeviceName") or ""
    made = {"ami": root.removeprefix("/dev/"), "root": root} if root else {}
    names = sorted(
        mapping["DeviceName"]
        for mapping in shown.get("BlockDeviceMappings") or ()
        if mapping.get("DeviceName") and mapping["DeviceName"] != root
    )
    return made | {f"ebs{index}": name for index, name in enumerate(names)}


def _keys(shown: Mapping[str, Any], text: str | None) -> Labelled:
    """Nothing at all for a key that is gone: cloud-init reads the text of every key it sees."""
    if text is None:
        return Labelled({}, {})
    return Labelled({"0": {"openssh-key": text}}, {"0": f"0={shown['KeyName']}"})


def _tags(shown: Mapping[str, Any]) -> dict[str, str]:
    """Tags whose keys can be names in a path; upstream may have stored others."""
    tags = {str(tag["Key"]): str(tag["Value"]) for tag in shown.get("Tags") or ()}
    return {key: value for key, value in tags.items() if re.fullmatch(TAG_KEY, key)}


def _document(facts: Facts) -> str:
    """The identity document; it is not signed, so no signature is listed beside it."""
    shown = facts.instance
    document = {
        "accountId": shown.get("OwnerId"),
        "architecture": shown.get("Architecture"),
        "availabilityZone": (shown.get("Placement") or {}).get("AvailabilityZone"),
        "billingProducts": None,
        "devpayProductCodes": None,
        "imageId": shown.get("ImageId"),
        "instanceId": shown["InstanceId"],
        "instanceType": shown.get("InstanceType"),
        "kernelId": shown.get("KernelId"),
        "marketplaceProductCodes": None,
        "pendingTime": _second(shown.get("LaunchTime")),
        "privateIp": shown.get("PrivateIpAddress") or facts.address,
        "ramdiskId": shown.get("RamdiskId"),
        "region": facts.region,
        "version": _IDENTITY_VERSION,
    }
    return json.dumps(document, indent=2)


def _second(moment: Any) -> str | None:
    """A time as the document has it: UTC, whole seconds."""
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    if not isinstance(moment, datetime):
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
