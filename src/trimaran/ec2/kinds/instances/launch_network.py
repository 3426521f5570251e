"""Where a launch plugs its servers in (spec ec2.md 3.0, 3.6).

Into network interfaces, which are described in the request, exist already, or
follow from the subnet; without a subnet, from the default VPC's.  With
EC2-Classic a launch that names neither goes into the project's own network
(`launch_classic`).  Everything that the request names is looked up here, so
that what comes out can be made without another look.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.instances.instance_type import INTERFACES
from trimaran.ec2.kinds.interfaces import network_interface_kind as kind
from trimaran.ec2.kinds.interfaces.network_interface import settled_interfaces
from trimaran.ec2.kinds.interfaces.network_interface_attach import check_index
from trimaran.ec2.kinds.interfaces.network_interface_create import (
    check_description,
    dhcp_rows,
    interface_data,
    port_body,
)
from trimaran.ec2.kinds.interfaces.network_interface_groups import (
    groups_by_name,
    groups_in_vpc,
    shown_groups,
)
from trimaran.ec2.kinds.interfaces.network_interface_ips import (
    Addresses,
    asked_addresses,
    refuse_others,
)
from trimaran.ec2.kinds.vpcs.default_vpc import ensure_default_vpc
from trimaran.ec2.kinds.vpcs.subnet_kind import (
    DEFAULT_FOR_ZONE,
    MAP_PUBLIC,
    ZONE,
    subnet_items,
    subnets_by_ids,
)
from trimaran.ec2.kinds.vpcs.vpc_gateway import external_network
from trimaran.ec2.kinds.vpcs.vpc_kind import STAGE
from trimaran.ec2.protocol.errors import (
    EC2Error,
    invalid_combination,
    invalid_value,
    missing,
    unsupported,
)
from trimaran.ec2.reconcile_kind import Pair

Row = Mapping[str, Any]

_BESIDE = ("SubnetId", "PrivateIpAddress", "SecurityGroups", "SecurityGroupIds")
_NEW_ONLY = (
    "SubnetId",
    "PrivateIpAddress",
    "PrivateIpAddresses",
    "SecondaryPrivateIpAddressCount",
    "Groups",
    "DeleteOnTermination",
    "AssociatePublicIpAddress",
)


@dataclass(frozen=True)
class Interface:
    """An interface that each instance of a launch gets.

    Attributes:
        index: its place.
        deletes: it goes with the instance.
        existing: the interface that there is; None for one to be made.
        subnet: where a new one is made.
        data: what a new one's item holds.
        shown: how a new one's groups are shown.
        body: Neutron's create for a new one, but for the name.
        addresses: what a new one is asked for.
        public: it gets a public address.
    """

    index: int
    deletes: bool
    existing: Item | None = None
    subnet: Pair | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    shown: Sequence[Row] = ()
    body: Mapping[str, Any] = field(default_factory=dict)
    addresses: Addresses = field(default_factory=Addresses)
    public: bool = False


@dataclass(frozen=True)
class Network:
    """The network of a launch into a VPC.

    Attributes:
        vpc_id: the VPC.
        interfaces: what each instance gets, by place.
        external: Neutron's id of the network of public addresses, or "".
        tags: of each new interface.
        groups: the security groups in play, Neutron's ids by EC2's.
    """

    vpc_id: str
    interfaces: tuple[Interface, ...]
    external: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)

    @property
    def subnets(self) -> list[Item]:
        """The subnets of new interfaces."""
        found = (each.subnet.item for each in self.interfaces if each.subnet is not None)
        return list({item.id: item for item in found}.values())

    @property
    def existing(self) -> list[Item]:
        """Interfaces that there are."""
        return [each.existing for each in self.interfaces if each.existing is not None]


def check_placement(request: Row) -> None:
    """Refuse what is wrong with a launch's network by its form alone.

    Raises:
        EC2Error: ``InvalidParameterCombination``, ``InvalidParameterValue``,
            ``UnsupportedOperation``, ``MissingParameter``.
    """
    interfaces = request.get("NetworkInterfaces") or ()
    if interfaces and any(request.get(name) for name in _BESIDE):
        raise invalid_combination(
            "Network interfaces and an instance-level subnet, address or security groups may not "
            "be specified on the same request"
        )
    if request.get("SubnetId") and request.get("SecurityGroups"):
        raise invalid_combination(
            "The parameter groupName cannot be used with the parameter subnet"
        )
    indexes: set[int] = set()
    for interface in interfaces:
        _check_interface(interface, int(request.get("MaxCount") or 1))
        index = interface["DeviceIndex"]
        if index in indexes:
            raise invalid_value(
                "NetworkInterface.DeviceIndex", index, "Each device index must be unique."
            )
        indexes.add(index)
    if interfaces and 0 not in indexes:
        raise unsupported("When specifying network interfaces, you must include device index 0.")
    if len(indexes) > INTERFACES:
        raise EC2Error(
            "AttachmentLimitExceeded", f"An instance has at most {INTERFACES} network interfaces."
        )
    existing = [each["NetworkInterfaceId"] for each in interfaces if _exists(each)]
    if len(set(existing)) < len(existing):
        raise invalid_value("NetworkInterfaceId", existing[0], "An interface is given twice.")
    if request.get("PrivateIpAddress") and int(request.get("MaxCount") or 1) > 1:
        raise _one_only()


def _exists(interface: Row) -> bool:
    return bool(interface.get("NetworkInterfaceId"))


def _check_interface(interface: Row, most: int) -> None:
    if interface.get("DeviceIndex") is None:
        raise invalid_value("NetworkInterface.DeviceIndex", "", "A device index is required.")
    check_index(interface["DeviceIndex"], "NetworkInterface.DeviceIndex")
    refuse_others(interface)
    check_description(interface.get("Description"))
    ids.check_ids(interface.get("Groups"), "securityGroupId", "sg")
    if interface.get("SubnetId"):
        ids.check_id(interface["SubnetId"], "subnetId", "subnet")
    if _exists(interface):
        ids.check_id(interface["NetworkInterfaceId"], "networkInterfaceId", kind.PREFIX)
        for name in _NEW_ONLY:
            if interface.get(name):
                raise invalid_combination(
                    f"A network interface and {name} may not be specified together."
                )
    if most > 1 and (_exists(interface) or _names_addresses(interface)):
        raise _one_only()


def _names_addresses(interface: Row) -> bool:
    return bool(interface.get("PrivateIpAddress") or interface.get("PrivateIpAddresses"))


def _one_only() -> EC2Error:
    return invalid_combination(
        "Several instances cannot have the same network interface or private IP address."
    )


def plan_network(ctx: Context, request: Row, tags: Mapping[str, str]) -> Network | None:
    """The network of a launch whose form has been checked.

    Args:
        ctx: the request.
        request: RunInstances'.
        tags: of each new interface.

    Returns:
        None for a launch with EC2-Classic that names no subnet.

    Raises:
        EC2Error: the codes of spec ec2.md 3.6, step 6.
    """
    asked = list(request.get("NetworkInterfaces") or ())
    if not asked:
        subnet_id = request.get("SubnetId")
        if not subnet_id and not ctx.conf.disable_ec2_classic:
            if request.get("PrivateIpAddress"):
                raise invalid_combination(
                    "Specifying an IP address is only valid for VPC instances."
                )
            return None
        if subnet_id:
            ids.check_id(subnet_id, "subnetId", "subnet")
        asked = [_only_interface(ctx, request, subnet_id or _default_subnet(ctx, request))]
    asked = [
        each
        if _exists(each) or each.get("SubnetId")
        else {**each, "SubnetId": _subnet_of_none(ctx, request)}
        for each in asked
    ]
    asked.sort(key=lambda each: int(each["DeviceIndex"]))
    existing = _existing(ctx, [each["NetworkInterfaceId"] for each in asked if _exists(each)])
    wanted = [each["SubnetId"] for each in asked if not _exists(each)]
    subnets = {pair.item.id: pair for pair in subnets_by_ids(ctx, wanted)} if wanted else {}
    vpcs = {str(i.vpc_id) for i in existing.values()} | {
        str(s.item.vpc_id) for s in subnets.values()
    }
    if len(vpcs) > 1:
        raise invalid_value(
            "NetworkInterface", ", ".join(sorted(vpcs)), "They are of different VPCs."
        )
    [vpc_id] = vpcs
    return _Planner(ctx, vpc_id, existing, subnets).plan(asked, tags)


class _Planner:
    """Makes the interfaces of one launch; what they share is looked up once."""

    def __init__(
        self, ctx: Context, vpc_id: str, existing: Mapping[str, Item], subnets: Mapping[str, Pair]
    ) -> None:
        self._ctx = ctx
        self._vpc_id = vpc_id
        self._existing = existing
        self._subnets = subnets
        self._groups: dict[str, str] = {}
        self._options = dhcp_rows(ctx, [vpc_id])[vpc_id] if subnets else []

    def plan(self, asked: Sequence[Row], tags: Mapping[str, str]) -> Network:
        """The network of the launch."""
        alone = len(asked) == 1
        made = tuple(self._interface(each, alone=alone) for each in asked)
        public = any(each.public for each in made)
        external = str(external_network(self._ctx)["id"]) if public else ""
        return Network(self._vpc_id, made, external, tags, self._groups)

    def _interface(self, asked: Row, *, alone: bool) -> Interface:
        index = int(asked["DeviceIndex"])
        if _exists(asked):
            return Interface(index, False, existing=self._existing[asked["NetworkInterfaceId"]])
        subnet = self._subnets[asked["SubnetId"]]
        addresses = asked_addresses(asked, subnet.body["cidr"])
        groups = groups_in_vpc(self._ctx, asked.get("Groups"), self._vpc_id)
        self._groups |= {item.id: item.os_id or "" for item in groups}
        deletes = asked.get("DeleteOnTermination")
        return Interface(
            index,
            True if deletes is None else bool(deletes),
            subnet=subnet,
            data=interface_data(
                subnet.item, addresses, check_description(asked.get("Description"))
            ),
            shown=shown_groups(self._ctx, groups),
            body=port_body(subnet, addresses, groups, self._options),
            addresses=addresses,
            public=self._is_public(asked.get("AssociatePublicIpAddress"), subnet, alone=alone),
        )

    def _is_public(self, asked: bool | None, subnet: Pair, *, alone: bool) -> bool:
        """What the request says; else what the subnet says, where it can be had."""
        if asked is None:
            return alone and bool(subnet.item.data.get(MAP_PUBLIC)) and self._has_gateway
        if asked and not self._has_gateway:
            raise EC2Error(
                "Gateway.NotAttached",
                f"Network {self._vpc_id} is not attached to any internet gateway",
            )
        return asked

    @property
    def _has_gateway(self) -> bool:
        def read(session: Session) -> list[Item]:
            return queries.items_of(session, self._ctx.project_id, ["igw"])

        return self._vpc_id in {item.vpc_id for item in self._ctx.db.read(read)}


def _existing(ctx: Context, interface_ids: Sequence[str]) -> dict[str, Item]:
    """Interfaces that there are and that nothing has."""
    if not interface_ids:
        return {}
    pairs = settled_interfaces(ctx, interface_ids)
    for pair in pairs:
        if pair.found is None or not kind.is_free(pair.item.data, pair.body):
            raise busy(pair.item.id)
    return {pair.item.id: pair.item for pair in pairs}


def busy(interface_id: str) -> EC2Error:
    """The error for a launch with an interface that something has."""
    return EC2Error(
        "InvalidNetworkInterface.InUse", f"Network interface '{interface_id}' is currently in use."
    )


def _only_interface(ctx: Context, request: Row, subnet_id: str) -> dict[str, Any]:
    """The interface that a request without interfaces means."""
    groups = list(request.get("SecurityGroupIds") or ())
    names = request.get("SecurityGroups")
    if names:
        [pair] = subnets_by_ids(ctx, [subnet_id])
        groups += groups_by_name(ctx, names, pair.item.vpc_id or "")
    made = {
        "DeviceIndex": 0,
        "SubnetId": subnet_id,
        "PrivateIpAddress": request.get("PrivateIpAddress"),
        "Groups": list(dict.fromkeys(groups)),
    }
    return {name: value for name, value in made.items() if value not in (None, "", [])}


def _subnet_of_none(ctx: Context, request: Row) -> str:
    """The subnet of a described interface that names none."""
    if not ctx.conf.disable_ec2_classic:
        raise missing("NetworkInterface.SubnetId")
    return _default_subnet(ctx, request)


def _default_subnet(ctx: Context, request: Row) -> str:
    """The default VPC's subnet that a launch goes into.

    Raises:
        EC2Error: ``VPCIdNotSpecified``, ``MissingInput``.
    """
    vpc = ensure_default_vpc(ctx)
    if vpc is None:
        raise EC2Error(
            "VPCIdNotSpecified", "No default VPC for this user. Specify a subnet to launch into."
        )
    found = ctx.db.read(lambda s: subnet_items(s, ctx.project_id, vpc.id))
    usable = [item for item in found if STAGE not in item.data and item.dead_for is None]
    zone = (request.get("Placement") or {}).get("AvailabilityZone")

    def rank(item: Item) -> tuple[bool, bool, float, str]:
        elsewhere = bool(zone) and item.data.get(ZONE) not in (None, zone)
        return elsewhere, not item.data.get(DEFAULT_FOR_ZONE), -(item.age or 0.0), item.id

    if not usable:
        raise EC2Error(
            "MissingInput", f"No subnets found for the default VPC '{vpc.id}'. Specify a subnet."
        )
    return min(usable, key=rank).id
