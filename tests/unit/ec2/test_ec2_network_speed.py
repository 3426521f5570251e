"""What describes of networks cost with many objects: calls of OpenStack and statements of SQL."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from tests.support.ec2_openstack import MINE, Caller
from tests.support.ec2_ports import Ports
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_tags as tag_queries
from trimaran.db.queries.ec2 import NewItem
from trimaran.db.queries.ec2_tags import Tag
from trimaran.ec2 import ids
from trimaran.ec2.kinds.interfaces.address import describe_addresses
from trimaran.ec2.kinds.interfaces.network_interface import describe_network_interfaces
from trimaran.ec2.kinds.security_groups.security_group import describe_security_groups
from trimaran.ec2.kinds.vpcs.route_table import describe_route_tables
from trimaran.ec2.kinds.vpcs.subnet import describe_subnets
from trimaran.ec2.kinds.vpcs.vpc import describe_vpcs
from trimaran.identity import count_calls

CLOUD = Ports
FEW, MANY = 3, 200


def _build(openstack: Ports, me: Caller, numbers: range) -> None:
    """VPCs with a default group, a table, a subnet, and an instance's interface with an address."""
    items: list[NewItem] = []
    for number in numbers:
        last = f"{number:08x}"
        vpc, subnet, eni = f"vpc-{last}", f"subnet-{last}", f"eni-{last}"
        table, instance = f"rtb-{last}", f"i-{last}"
        router = openstack.put("routers", name=vpc, external_gateway_info=None)
        group = openstack.group(vpc)
        openstack.rule(group, remote_group_id=group["id"])
        network = openstack.put("networks", name=subnet)
        made = openstack.put(
            "subnets", name=subnet, network_id=network["id"], cidr="10.0.1.0/24", host_routes=[]
        )
        server = openstack.server(name=instance)
        port = openstack.port(
            network["id"],
            "10.0.1.9",
            name=eni,
            device_id=server["id"],
            device_owner="compute:nova",
            security_groups=[group["id"]],
        )
        public = openstack.put(
            "floatingips",
            port_id=port["id"],
            fixed_ip_address="10.0.1.9",
            floating_ip_address=f"192.0.{number // 250}.{number % 250}",
            description="",
        )
        routes = [
            {"destination_cidr_block": "10.0.0.0/16", "gateway_id": None},
            {"destination_cidr_block": "0.0.0.0/0", "network_interface_id": eni},
        ]
        attached = {"subnet_id": subnet, "instance_id": instance, "device_index": 0}
        default = {"is_default": number == 0}
        cidr = {"cidr_block": "10.0.0.0/16", "route_table_id": table}
        items += [
            NewItem("vpc", router["id"], MINE, cidr | default, id=vpc),
            NewItem("rtb", None, MINE, {"routes": routes}, vpc_id=vpc, id=table),
            NewItem("sg", group["id"], MINE, vpc_id=vpc, id=f"sg-{last}"),
            NewItem("subnet", made["id"], MINE, {"availability_zone": "nova"}, vpc, id=subnet),
            NewItem("i", server["id"], MINE, {"reservation_id": "r-1"}, vpc, id=instance),
            NewItem("eni", port["id"], MINE, attached | {"server": server["id"]}, vpc, id=eni),
            NewItem("eipalloc", public["id"], MINE, id=f"eipalloc-{last}"),
        ]
    tags = [Tag(str(item.id), "Name", str(uuid.uuid4())) for item in items]
    me.db.write(lambda s: queries.add_items(s, items, ids.mint))
    me.db.write(lambda s: tag_queries.set_tags(s, MINE, tags))


def _cost(me: Caller, action: Callable[..., Any]) -> tuple[int, int, int, list[dict[str, Any]]]:
    """Calls, statements about items, statements about tags; and the answer."""
    statements: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    me(action)  # whatever has to be repaired is
    sa.event.listen(me.db.engine, "before_cursor_execute", note)
    try:
        with count_calls() as calls:
            answer = me(action)
    finally:
        sa.event.remove(me.db.engine, "before_cursor_execute", note)
    [rows] = [value for value in answer.values() if isinstance(value, list)]
    items = [each for each in statements if " items" in each]
    tags = [each for each in statements if " tags" in each]
    assert len(statements) - statements.count("BEGIN") == len(items) + len(tags), statements
    return calls.total, len(items), len(tags), rows


@pytest.mark.parametrize(
    ("action", "calls"),
    [
        (describe_vpcs, 1),
        (describe_subnets, 2),
        (describe_route_tables, 1),
        (describe_network_interfaces, 3),
        (describe_security_groups, 1),
        (describe_addresses, 1),
    ],
)
def test_describes_cost_the_same_for_many(
    openstack: Ports, me: Caller, action: Callable[..., Any], calls: int
) -> None:
    me.conf.set_override("disable_ec2_classic", True)
    openstack.groups.clear()
    _build(openstack, me, range(FEW))
    *few, rows = _cost(me, action)
    assert len(rows) == FEW
    _build(openstack, me, range(FEW, MANY))
    *many, rows = _cost(me, action)
    assert len(rows) == MANY
    assert all(row.get("Tags") or row.get("TagSet") for row in rows)
    assert few == many == [calls, 1, 1]
