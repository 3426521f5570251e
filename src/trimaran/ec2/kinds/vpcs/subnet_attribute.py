"""ModifySubnetAttribute: what launches in a subnet get (spec ec2.md 9.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.vpcs.subnet_kind import MAP_PUBLIC, one_subnet
from trimaran.ec2.kinds.vpcs.vpc_kind import usable
from trimaran.ec2.protocol.errors import invalid_combination, unsupported

#: What a subnet can be told, and the one value that it has here (None: kept in the item).
_ATTRIBUTES: Mapping[str, Any] = {
    "AssignIpv6AddressOnCreation": False,
    "CustomerOwnedIpv4Pool": "",
    "DisableLniAtDeviceIndex": True,
    "EnableDns64": False,
    "EnableLniAtDeviceIndex": 0,
    "EnableResourceNameDnsAAAARecordOnLaunch": False,
    "EnableResourceNameDnsARecordOnLaunch": False,
    "MapCustomerOwnedIpOnLaunch": False,
    "MapPublicIpOnLaunch": None,
    "PrivateDnsHostnameTypeOnLaunch": "ip-name",
}


def modify_subnet_attribute(ctx: Context, request: Mapping[str, Any]) -> dict[str, Any]:
    """Change one attribute; those that have one value here may be set to it."""
    given = {name: _plain(request[name]) for name in _ATTRIBUTES if request.get(name) is not None}
    if len(given) != 1:
        raise invalid_combination("Exactly one attribute of the subnet must be given.")
    subnet = one_subnet(ctx, request.get("SubnetId")).item
    [(name, value)] = given.items()
    if name != "MapPublicIpOnLaunch" and value != _ATTRIBUTES[name]:
        raise unsupported(f"The attribute {name} of a subnet cannot be {value} here.")
    ctx.commit_point()
    if name != "MapPublicIpOnLaunch":
        return {}

    def store(session: Session) -> None:
        items = queries.locked_items(session, ctx.project_id, [subnet.id])
        data = {**usable(items, subnet.id).data, MAP_PUBLIC: value}
        queries.update_item(session, ctx.project_id, subnet.id, data=data)

    ctx.db.write(store)
    return {}


def _plain(value: Any) -> Any:
    return value.get("Value") if isinstance(value, Mapping) else value
