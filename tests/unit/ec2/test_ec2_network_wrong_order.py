"""Deletes in every wrong order: refused, with nothing half deleted."""

from __future__ import annotations

from typing import Any

from tests.support.ec2_openstack import MINE, Caller, code_of
from tests.support.ec2_ports import Ports
from tests.support.ec2_wrong_order import Topology
from trimaran.db.queries import ec2 as queries
from trimaran.ec2 import actions
from trimaran.ec2.protocol import model

CLOUD = Ports
KINDS = ["vpc", "subnet", "igw", "rtb", "sg", "sgr", "eni", "eipalloc", "dopt"]


def test_every_wrong_order(openstack: Ports, me: Caller) -> None:
    known = {model.snake_case(name): each.function for name, each in actions.find().items()}
    openstack.groups.clear()

    def items() -> dict[str, Any]:
        rows = me.db.read(lambda s: queries.items_of(s, MINE, KINDS))
        return {row.id: (row.vpc_id, row.data) for row in rows}

    def rules() -> list[str]:
        return [row["id"] for group in openstack.groups for row in group["security_group_rules"]]

    topology = Topology(
        do=lambda name, **request: me(known[name], **request),
        refused=lambda name, **request: code_of(me, known[name], **request),
        left=lambda: (openstack.left(), items(), rules()),
    )
    before = topology.left()
    topology.build()
    assert topology.raze() > 60
    assert topology.left() == before
