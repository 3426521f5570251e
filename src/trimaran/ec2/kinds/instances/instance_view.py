"""How an instance looks on the wire (spec ec2.md appendix B).

A description is made from three things: Nova's server, the item with what only
EC2 knows, and the facts that were noted at launch.  The facts stand in while
the server is not there yet, and after it is gone: a tombstone shows what the
instance was, as AWS does for an hour.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trimaran.ec2 import ids
from trimaran.ec2.kinds.instances import instance_states as states
from trimaran.ec2.kinds.instances.instance_kind import (
    ENDING,
    FACTS,
    LAUNCHING,
    STAGE,
    attached_volumes,
    facts_of,
    os_image_of,
    rows_of,
    volume_image,
)
from trimaran.ec2.kinds.interfaces.network_interface_view import shown_name
from trimaran.ec2.kinds.item_options import MONITORING, metadata_options
from trimaran.ec2.kinds.volumes.volume_kind import ATTACHED, attachments
from trimaran.ec2.kinds.volumes.volume_states import ATTACHING, status_of
from trimaran.ec2.reconcile_kind import Pair, View

if TYPE_CHECKING:
    from trimaran.ec2.kinds.instances.instance_network import Networks

#: Set in the item's blob when TerminateInstances was called for it.
TERMINATED_BY_USER = "terminated_by_user"

_ATTACHMENT = {"in-use": "attached", "attaching": "attaching", "detaching": "detaching"}


class Instance:
    """One instance and everything it is described from.

    Args:
        pair: item and server.
        of: the describer that it belongs to.
    """

    def __init__(self, pair: Pair, of: Describer) -> None:
        self.pair = pair
        self.item = pair.item
        self.server = pair.body
        self.of = of
        self.facts: Mapping[str, Any] = pair.item.data.get(FACTS) or {}

    @property
    def id(self) -> str:
        """The instance id."""
        return self.item.id

    @property
    def is_dead(self) -> bool:
        """Whether this is a tombstone."""
        return self.pair.found is None and self.item.dead_for is not None

    @property
    def state(self) -> states.State:
        """The EC2 state."""
        if self.is_dead:
            return states.TERMINATED
        if self.item.data.get(STAGE) == ENDING:
            return states.SHUTTING_DOWN
        return states.state_of(self.server)

    @property
    def reservation_id(self) -> str:
        """The reservation; rows that never got one form one each."""
        return str(self.item.data.get("reservation_id") or ids.derive(self.id, "r"))

    @property
    def launch_index(self) -> int:
        """Place within the reservation."""
        return int(self.item.data.get("launch_index") or 0)

    @property
    def zone(self) -> str | None:
        """The availability zone; Nova has none before a host was chosen."""
        return self.server.get("OS-EXT-AZ:availability_zone") or self.facts.get("zone")

    @property
    def image_id(self) -> str | None:
        """The image it was made from, also when that went by way of a volume."""
        for os_id in (os_image_of(self.server), self.facts.get("os_image")):
            if image := self.of.view.id_of(os_id):
                return image
        if self.facts.get("image_id"):
            return str(self.facts["image_id"])
        for volume in self._volumes:
            if image := self.of.view.id_of(volume_image(volume)):
                return image
        return None

    @cached_property
    def interfaces(self) -> list[dict[str, Any]]:
        """Its network interfaces as they are shown, the first one first; none outside a VPC."""
        networks = self.of.networks
        return networks.shown(self.id) if networks is not None and not self.is_dead else []

    @property
    def groups(self) -> list[dict[str, str]]:
        """Security groups of the first interface; else by name, with id if only one bears it."""
        if self.interfaces:
            return list(self.interfaces[0]["Groups"])
        if "security_groups" not in self.server:
            return list(self.facts.get("groups") or [])
        names = dict.fromkeys(group["name"] for group in self.server["security_groups"])
        return [self.of.group(name) for name in names]

    @property
    def launch_time(self) -> str | None:
        """When it was made: the time that the launch was answered with, so that it never moves."""
        return self.facts.get("launch_time") or self.server.get("created")

    @cached_property
    def _volumes(self) -> list[Mapping[str, Any]]:
        known = self.of.volumes
        return [known[os_id] for os_id in attached_volumes(self.server) if os_id in known]

    @property
    def volumes_by_id(self) -> dict[str, str]:
        """Cinder's ids of the attached volumes by their EC2 ids."""
        shown = ((self.of.view.id_of(volume["id"]), volume["id"]) for volume in self._volumes)
        return {volume_id: os_id for volume_id, os_id in shown if volume_id}

    def facts_now(self) -> dict[str, Any]:
        """What to remember of it for when the server is gone."""
        now = {"image_id": self.image_id, "zone": self.zone, "launch_time": self.launch_time}
        told = {name: value for name, value in now.items() if value}
        return {**self.facts, **facts_of(self.server), **told}

    def shown(self) -> dict[str, Any]:
        """The instance as boto3 shows it."""
        made = {
            "InstanceId": self.id,
            "ImageId": self.image_id,
            "State": self.state.shown(),
            "StateTransitionReason": "",
            "InstanceType": self._instance_type,
            "KeyName": self.server.get("key_name") or self.facts.get("key_name"),
            "AmiLaunchIndex": self.launch_index,
            "LaunchTime": self.launch_time,
            "Placement": {
                "AvailabilityZone": self.zone,
                "AvailabilityZoneId": self.zone,
                "GroupName": "",
                "Tenancy": "default",
            },
            "ProductCodes": [],
            "Monitoring": {"State": "enabled" if self.item.data.get(MONITORING) else "disabled"},
            "Architecture": "x86_64",
            "Hypervisor": "xen",
            "VirtualizationType": "hvm",
            "EbsOptimized": False,
            "EnaSupport": True,
            "PlatformDetails": "Linux/UNIX",
            "UsageOperation": "RunInstances",
            "CurrentInstanceBootMode": "legacy-bios",
            "ClientToken": self.item.data.get("client_token"),
            "StateReason": self._state_reason,
            "Tags": self.of.view.tags.get(self.id),
        }
        made.update(self._gone() if self.is_dead else self._there())
        return {name: value for name, value in made.items() if value is not None}

    def _gone(self) -> dict[str, Any]:
        user = bool(self.item.data.get(TERMINATED_BY_USER))
        return {
            "StateTransitionReason": "User initiated" if user else "",
            "PrivateDnsName": "",
            "PublicDnsName": "",
            "BlockDeviceMappings": [],
            "SecurityGroups": [],
            "RootDeviceName": self.facts.get("root_device_name"),
            "RootDeviceType": self.facts.get("root_device_type"),
        }

    def _there(self) -> dict[str, Any]:
        private, public, ipv6 = self._addresses
        network: dict[str, Any] = {}
        if self.interfaces:
            first = self.interfaces[0]
            private = first.get("PrivateIpAddress")
            public = (first.get("Association") or {}).get("PublicIp")
            network = {
                "VpcId": first.get("VpcId"),
                "SubnetId": first.get("SubnetId"),
                "SourceDestCheck": first.get("SourceDestCheck"),
                "NetworkInterfaces": self.interfaces,
            }
        devices = [
            device for volume in self._volumes if (device := self._block_device(volume)) is not None
        ]
        root = self.server.get("OS-EXT-SRV-ATTR:root_device_name")
        root = root or self.facts.get("root_device_name")
        kind = self.facts.get("root_device_type")
        if self.pair.found is not None and root:
            named = {_bare(device["DeviceName"]) for device in devices}
            kind = "ebs" if _bare(root) in named else "instance-store"
        name = private if self.of.show_ip else self.server.get("OS-EXT-SRV-ATTR:hostname")
        return {
            "PrivateIpAddress": private,
            "PrivateDnsName": name or "",
            "PublicIpAddress": public,
            "PublicDnsName": public or "",
            "Ipv6Address": ipv6,
            **network,
            "RootDeviceName": root,
            "RootDeviceType": kind,
            "BlockDeviceMappings": sorted(devices, key=lambda device: device["DeviceName"]),
            "SecurityGroups": self.groups,
            "KernelId": self.of.view.id_of(self.server.get("OS-EXT-SRV-ATTR:kernel_id")),
            "RamdiskId": self.of.view.id_of(self.server.get("OS-EXT-SRV-ATTR:ramdisk_id")),
            "CpuOptions": self._cpu_options,
            "MetadataOptions": metadata_options(self.item.data),
        }

    @property
    def _instance_type(self) -> str:
        flavor = self.server.get("flavor") or {}
        return str(flavor.get("original_name") or self.facts.get("instance_type") or "unknown")

    @property
    def _cpu_options(self) -> dict[str, int] | None:
        vcpus = (self.server.get("flavor") or {}).get("vcpus")
        return {"CoreCount": vcpus, "ThreadsPerCore": 1} if vcpus else None

    @property
    def _addresses(self) -> tuple[str | None, str | None, str | None]:
        """First fixed IPv4, first floating IPv4, first fixed IPv6."""
        first: dict[tuple[str, int], str] = {}
        for network in (self.server.get("addresses") or {}).values():
            for address in network:
                kind = address.get("OS-EXT-IPS:type") or "fixed"
                first.setdefault((kind, address.get("version") or 4), address["addr"])
        return first.get(("fixed", 4)), first.get(("floating", 4)), first.get(("fixed", 6))

    def _block_device(self, volume: Mapping[str, Any]) -> dict[str, Any] | None:
        """A device under the name that it was asked for, from the moment that it was."""
        volume_id = self.of.view.id_of(volume["id"])
        row = attachments(volume).get(self.server.get("id") or "")
        note = self._note(volume, row)
        coming = row is None and note and status_of(volume) in ATTACHING
        if not volume_id or not (row or coming):
            return None
        there = row or {}
        status = "attaching" if coming else _ATTACHMENT.get(status_of(volume), "attached")
        return {
            "DeviceName": note.get("device") or there.get("device") or "",
            "Ebs": {
                "VolumeId": volume_id,
                "Status": status,
                "DeleteOnTermination": self._deletes(volume["id"]),
                "AttachTime": there.get("attached_at") or note.get("since"),
            },
        }

    def _note(self, volume: Mapping[str, Any], row: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """What AttachVolume noted of an attachment; not of a former one to the same server."""
        item = self.of.view.referred.get(volume["id"])
        noted = (item.data.get(ATTACHED) or {}) if item else {}
        note: Mapping[str, Any] = noted.get(self.server.get("id")) or {}
        seen = (row or {}).get("attachment_id")
        return note if seen is None or note.get("attachment") in (None, seen) else {}

    def _deletes(self, volume_os_id: str) -> bool:
        for row in self.server.get("os-extended-volumes:volumes_attached") or ():
            if row["id"] == volume_os_id:
                return bool(row.get("delete_on_termination"))
        return False

    @property
    def _state_reason(self) -> dict[str, str] | None:
        if self.is_dead and self.item.data.get(TERMINATED_BY_USER):
            code = "Client.UserInitiatedShutdown"
            return {"Code": code, "Message": f"{code}: User initiated shutdown"}
        lost = self.is_dead and not self.item.os_id and self.item.data.get(STAGE) == LAUNCHING
        if lost or (self.pair.found is not None and states.has_failed(self.server)):
            code = "Server.InternalError"
            return {"Code": code, "Message": f"{code}: Internal error on launch"}
        return None


class Describer:
    """Describes the instances of one view; what they share is looked at once.

    Args:
        view: of `Instances`.
        networks: the interfaces of these instances, if they are to be shown.
    """

    def __init__(self, view: View, networks: Networks | None = None) -> None:
        self.view = view
        self.networks = networks
        self.show_ip: bool = view.ctx.conf.ec2_private_dns_show_ip
        self.volumes: dict[str, Mapping[str, Any]] = {
            row["id"]: row for row in rows_of(view.listed, "volume")
        }
        self._named: dict[str, list[str]] = defaultdict(list)
        for group in view.listed.get("groups") or ():
            self._named[group["name"]].append(group["id"])

    def group(self, name: str) -> dict[str, str]:
        """A security group by the name that Nova tells; Neutron allows a name twice."""
        found = self._named.get(name, [])
        group_id = self.view.id_of(found[0]) if len(found) == 1 else None
        return {"GroupName": shown_name(name), **({"GroupId": group_id} if group_id else {})}

    def instances(self) -> list[Instance]:
        """All instances of the view."""
        return [Instance(pair, self) for pair in self.view.pairs]


def reservations(
    shown: Iterable[tuple[str, dict[str, Any]]], owner_id: str
) -> list[dict[str, Any]]:
    """Groups instances by reservation.

    Args:
        shown: (reservation id, instance as shown), in the order of the page.
        owner_id: the project.

    Returns:
        Reservations in the order in which they first occur, instances by launch index.
    """
    grouped: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for reservation_id, instance in shown:
        grouped[reservation_id].append(instance)
    made = []
    for reservation_id, instances in grouped.items():
        instances.sort(key=lambda instance: (instance["AmiLaunchIndex"], instance["InstanceId"]))
        groups = {
            group["GroupName"]: group
            for instance in instances
            if not instance.get("VpcId")
            for group in instance.get("SecurityGroups") or ()
        }
        made.append(
            {
                "ReservationId": reservation_id,
                "OwnerId": owner_id,
                "Groups": list(groups.values()),
                "Instances": instances,
            }
        )
    return made


def _bare(device: str) -> str:
    return device.removeprefix("/dev/")
