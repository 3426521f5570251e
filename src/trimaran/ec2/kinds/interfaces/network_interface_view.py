"""How network interfaces look on the wire, alone and in instances (spec ec2.md appendix B)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trimaran.db.queries.ec2 import Item
from trimaran.ec2 import ids
from trimaran.ec2.kinds.interfaces import network_interface_kind as kind
from trimaran.ec2.kinds.interfaces.address_kind import AUTO, association_id
from trimaran.ec2.kinds.interfaces.network_interface_kind import Interfaces
from trimaran.ec2.reconcile_kind import Pair, View

Row = Mapping[str, Any]

#: Whose an address is that came with an instance and goes with it, in AWS's words.
THE_CLOUDS = "amazon"


class InterfaceDescriber:
    """Describes the interfaces of one view; what they share is looked at once.

    Args:
        view: of `Interfaces`.
        of: the kind that the view is of.
    """

    def __init__(self, view: View, of: Interfaces) -> None:
        self.view = view
        self._elastic = of.elastic
        self._names = {row["id"]: row["name"] for row in view.listed.get("groups", ())}
        self._floating: dict[tuple[str, str], Row] = {}
        for row in view.listed.get("floating_ips", ()):
            if row.get("port_id"):
                self._floating[row["port_id"], row.get("fixed_ip_address") or ""] = row

    def groups(self, pair: Pair) -> list[dict[str, str]]:
        """The security groups of an interface."""
        if pair.found is None:
            return list((pair.item.data.get(kind.DRAFT) or {}).get("groups") or [])
        shown = [
            {"GroupName": shown_name(self._names.get(os_id, "")), "GroupId": group_id}
            for os_id in pair.body.get("security_groups") or ()
            if (group_id := self.view.id_of(os_id))
        ]
        return sorted(shown, key=lambda group: (group["GroupName"], group["GroupId"]))

    def instance_of(self, pair: Pair) -> str | None:
        """The instance that has an interface; Neutron's word counts for more than our note."""
        server = kind.server_of(pair.body)
        told = self.view.id_of(server) if server else None
        noted: str | None = pair.item.data.get(kind.INSTANCE)
        if server and server != pair.item.data.get(kind.SERVER, server):
            return told
        return told or noted

    def attachment(self, pair: Pair) -> dict[str, Any] | None:
        """The attachment, or None."""
        instance_id = self.instance_of(pair)
        return self._attachment(pair, pair.item.data, instance_id) if instance_id else None

    def ended_attachment(self, pair: Pair) -> dict[str, Any] | None:
        """The attachment that ended a moment ago, for who waits for that; or None."""
        last = kind.ended(self.view.ctx, pair.item.data)
        return self._attachment(pair, last, str(last.get(kind.INSTANCE))) if last else None

    def _attachment(self, pair: Pair, data: Row, instance_id: str) -> dict[str, Any]:
        made = {
            "AttachmentId": ids.derive(pair.item.id, "eni-attach"),
            "InstanceId": instance_id,
            "InstanceOwnerId": self.view.ctx.project_id,
            "DeviceIndex": data.get(kind.INDEX, 0),
            "NetworkCardIndex": 0,
            "Status": data.get(kind.ATTACHMENT) or "attached",
            "AttachTime": data.get(kind.SINCE),
            "DeleteOnTermination": bool(data.get(kind.DELETES)),
        }
        return {name: value for name, value in made.items() if value is not None}

    def status(self, pair: Pair) -> str:
        """``pending``, ``available`` or ``in-use``."""
        if self.instance_of(pair) or pair.body.get("device_id"):
            return "in-use"
        return "available" if pair.found is not None else "pending"

    def shown(self, pair: Pair) -> dict[str, Any]:
        """The interface as boto3 shows it."""
        item, view = pair.item, self.view
        draft: Row = item.data.get(kind.DRAFT) or {}
        addresses = self._addresses(pair)
        primary = addresses[0] if addresses else {}
        made = {
            "NetworkInterfaceId": item.id,
            "SubnetId": item.data.get(kind.SUBNET),
            "VpcId": item.vpc_id,
            "AvailabilityZone": item.data.get("availability_zone"),
            "AvailabilityZoneId": item.data.get("availability_zone"),
            "Description": item.data.get("description") or "",
            "OwnerId": view.ctx.project_id,
            "RequesterManaged": False,
            "InterfaceType": "interface",
            "Status": self.status(pair),
            "MacAddress": pair.body.get("mac_address") or draft.get("mac_address"),
            "PrivateIpAddress": primary.get("PrivateIpAddress"),
            "PrivateDnsName": primary.get("PrivateDnsName"),
            "PrivateIpAddresses": addresses,
            "Ipv6Addresses": [],
            "SourceDestCheck": bool(item.data.get("source_dest_check", True)),
            "Groups": self.groups(pair),
            "Attachment": self.attachment(pair),
            "Association": primary.get("Association"),
            "TagSet": view.tags.get(item.id) or [],
        }
        return {name: value for name, value in made.items() if value is not None}

    def shown_in_instance(self, pair: Pair) -> dict[str, Any]:
        """The interface as DescribeInstances shows it inside its instance."""
        made = self.shown(pair)
        for name in _ALONE_ONLY:
            made.pop(name, None)
        attachment = dict(made.get("Attachment") or {})
        for name in ("InstanceId", "InstanceOwnerId"):
            attachment.pop(name, None)
        made["Attachment"] = attachment
        made["PrivateIpAddresses"] = [_in_instance(row) for row in made["PrivateIpAddresses"]]
        return _in_instance(made)

    def _addresses(self, pair: Pair) -> list[dict[str, Any]]:
        """The private addresses, the primary one first."""
        there = kind.addresses_of(pair.body)
        first = pair.item.data.get(kind.PRIMARY)
        if pair.found is None:
            there = [first] if first else []
        if first not in there:
            first = there[0] if there else None
        names = {
            row.get("ip_address"): str(row.get("fqdn") or "").rstrip(".")
            for row in pair.body.get("dns_assignment") or ()
        }
        rows = []
        for address in sorted(there, key=lambda each: each != first):
            row = {
                "PrivateIpAddress": address,
                "Primary": address == first,
                "PrivateDnsName": names.get(address) or None,
                "Association": self._association(pair, address),
            }
            rows.append({name: value for name, value in row.items() if value is not None})
        return rows

    def _association(self, pair: Pair, address: str) -> dict[str, Any] | None:
        floating = self._floating.get((pair.item.os_id or "", address))
        if floating is None:
            return None
        public = floating["floating_ip_address"]
        item = self._elastic.get(floating["id"])
        owner = self.view.ctx.project_id
        made = {"PublicIp": public, "PublicDnsName": "", "IpOwnerId": owner}
        if item is not None and item.data.get(AUTO):
            return {**made, "IpOwnerId": THE_CLOUDS}
        return {**made, **(_named(item, floating) if item is not None else {})}


_ALONE_ONLY = (
    "AvailabilityZone",
    "AvailabilityZoneId",
    "RequesterManaged",
    "TagSet",
)


def _named(item: Item, floating: Row) -> dict[str, Any]:
    return {"AllocationId": item.id, "AssociationId": association_id(item, floating)}


def _in_instance(row: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(row)
    if "Association" in made:
        shown = ("PublicIp", "PublicDnsName", "IpOwnerId")
        made["Association"] = {name: made["Association"][name] for name in shown}
    return made


def shown_name(name: str) -> str:
    """A group's name; the default group of a VPC bears the VPC's id in Neutron."""
    return "default" if ids.is_id(name, ["vpc"]) else name


def by_index(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Interfaces of an instance by their device index."""
    return sorted(
        rows, key=lambda row: (row["Attachment"]["DeviceIndex"], row["NetworkInterfaceId"])
    )
