"""The default VPC: made once, by whoever may, not when it is not wanted, and never in halves."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.support import keystone
from tests.support.ec2_deaths import Death, Deaths, dying, run_all
from tests.support.ec2_neutron import Neutron
from tests.support.ec2_openstack import MINE, NEUTRON, Caller, code_of
from trimaran import work
from trimaran.cloud import Cloud
from trimaran.cloud.network import Network
from trimaran.db import Database
from trimaran.db.models.ec2 import DefaultVpcRow
from trimaran.db.models.work import Lease
from trimaran.db.queries import ec2 as queries
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.account import describe_account_attributes
from trimaran.ec2.kinds.vpcs import default_vpc
from trimaran.ec2.kinds.vpcs.default_vpc import ensure_default_vpc, lease_name
from trimaran.ec2.kinds.vpcs.default_vpc_create import create_default_subnet, create_default_vpc
from trimaran.ec2.kinds.vpcs.internet_gateway import (
    delete_internet_gateway,
    describe_internet_gateways,
    detach_internet_gateway,
)
from trimaran.ec2.kinds.vpcs.route_table import describe_route_tables
from trimaran.ec2.kinds.vpcs.subnet import delete_subnet, describe_subnets
from trimaran.ec2.kinds.vpcs.vpc import delete_vpc, describe_vpcs
from trimaran.identity import count_calls

CLOUD = Neutron


class Policy:
    """Lets some rules through."""

    def __init__(self, *refused: str) -> None:
        self._refused = refused

    def allowed(self, rule: str, context: Any, target: Any = None) -> bool:
        return rule not in self._refused


class VpcOnly(Caller):
    """A caller where there is no EC2-Classic."""

    policy = Policy()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conf.set_override("disable_ec2_classic", True)
        self.conf.set_override("external_network", "public")

    def context(self, action: str = "DescribeVpcs", **fields: Any) -> Context:
        made = super().context(action, **fields)
        made.enforcer = self.policy  # type: ignore[assignment]
        return made


@pytest.fixture
def mine(
    openstack: Neutron, ec2_cloud: Cloud, ec2_db: Database, tmp_path: Path, _address: None
) -> VpcOnly:
    return VpcOnly(ec2_cloud, ec2_db, keystone.token(), tmp_path)


def _vpcs(me: Caller) -> list[str]:
    return [row["VpcId"] for row in me(describe_vpcs)["Vpcs"]]


def _items(me: Caller) -> list[str]:
    kinds = ["vpc", "subnet", "rtb", "sg", "igw"]
    return sorted(item.kind for item in me.db.read(lambda s: queries.items_of(s, MINE, kinds)))


def _pass_time(me: Caller) -> None:
    """Lets the pause after a failure end."""
    me.db.write(lambda s: s.execute(sa.update(DefaultVpcRow).values(retry_at=0.0)))


def _delete(me: Caller, vpc: str) -> None:
    [subnet] = me(describe_subnets)["Subnets"]
    me(delete_subnet, SubnetId=subnet["SubnetId"])
    [igw] = me(describe_internet_gateways)["InternetGateways"]
    me(detach_internet_gateway, InternetGatewayId=igw["InternetGatewayId"], VpcId=vpc)
    me(delete_internet_gateway, InternetGatewayId=igw["InternetGatewayId"])
    me(delete_vpc, VpcId=vpc)


def test_it_takes_at_most_twelve_calls_of_neutron(openstack: Neutron, mine: VpcOnly) -> None:
    with count_calls() as calls:
        assert ensure_default_vpc(mine.context()) is not None
    network = openstack.calls(NEUTRON)
    assert len(network) <= 12, network
    assert calls.total <= 13
    seen = len(openstack.calls())
    assert ensure_default_vpc(mine.context()) is not None
    assert len(openstack.calls()) == seen, "one that is there is not asked for"


def test_all_of_it_is_there(openstack: Neutron, mine: VpcOnly) -> None:
    [vpc] = mine(describe_vpcs)["Vpcs"]
    assert (vpc["CidrBlock"], vpc["IsDefault"]) == ("172.31.0.0/16", True)
    [subnet] = mine(describe_subnets)["Subnets"]
    assert (subnet["CidrBlock"], subnet["AvailabilityZone"]) == ("172.31.0.0/20", "nova")
    assert (subnet["DefaultForAz"], subnet["MapPublicIpOnLaunch"]) == (True, True)
    [igw] = mine(describe_internet_gateways)["InternetGateways"]
    [table] = mine(describe_route_tables)["RouteTables"]
    assert [route["State"] for route in table["Routes"]] == ["active", "active"]
    assert table["Routes"][1]["GatewayId"] == igw["InternetGatewayId"]
    assert openstack.routes(subnet["SubnetId"]) == {
        "172.31.0.0/16": "172.31.0.1",
        "0.0.0.0/0": "172.31.0.1",
    }
    router = openstack.named(vpc["VpcId"], "routers")
    assert router["external_gateway_info"] == {"network_id": openstack.external["id"]}
    assert _items(mine) == ["igw", "rtb", "sg", "subnet", "vpc"]
    wanted = {"AttributeNames": ["default-vpc"]}
    [attribute] = mine(describe_account_attributes, **wanted)["AccountAttributes"]
    assert attribute["AttributeValues"] == [{"AttributeValue": vpc["VpcId"]}]
    assert run_all(mine) == 0, "the journal holds nothing"


def test_twenty_first_looks_make_one(openstack: Neutron, mine: VpcOnly) -> None:
    looks = [describe_subnets, describe_vpcs, describe_route_tables, describe_internet_gateways]
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda number: mine(looks[number % 4]), range(20)))
    rows = [row for answer in answers for row in answer.get("Vpcs", ())]
    assert len(rows) == 5
    assert len({row["VpcId"] for row in rows}) == 1
    assert [len(openstack.all(what)) for what in ("routers", "networks")] == [1, 1]
    assert _items(mine) == ["igw", "rtb", "sg", "subnet", "vpc"]


@pytest.mark.parametrize("classic", [True, False])
def test_where_it_is_never_made(
    openstack: Neutron, mine: VpcOnly, me: Caller, classic: bool
) -> None:
    if classic:
        assert _vpcs(me) == []
        assert code_of(me, create_default_vpc) == "UnsupportedOperation"
    else:
        # Who may not make one, a dry run, and the service itself.
        mine.policy = Policy("ec2:CreateDefaultVpc")
        assert _vpcs(mine) == []
        mine.policy = Policy()
        assert code_of(mine, describe_vpcs, DryRun=True) == "DryRunOperation"
        service = mine.context()
        service.token = keystone.token(user={"id": "", "name": ""})
        assert ensure_default_vpc(service) is None
    assert openstack.all("routers") == []
    assert mine.db.read(lambda s: s.scalars(sa.select(DefaultVpcRow)).all()) == []


def test_a_failure_is_not_repeated_by_each_describe(openstack: Neutron, mine: VpcOnly) -> None:
    before = openstack.left()
    external = openstack.topology["networks"].pop(openstack.external["id"])
    assert _vpcs(mine) == []
    seen = len(openstack.calls())
    assert _vpcs(mine) == []
    assert len(openstack.calls()) == seen
    _pass_time(mine)
    assert _vpcs(mine) == []
    [row] = mine.db.read(lambda s: s.scalars(sa.select(DefaultVpcRow)).all())
    assert row.failures == 2
    _pass_time(mine)
    openstack.topology["networks"][external["id"]] = external
    openstack.most["ports"] = 0
    assert _vpcs(mine) == []
    assert (openstack.left(), _items(mine)) == (before, [])
    openstack.most = {}
    assert _vpcs(mine) == [], "the pause grows with each failure"
    _pass_time(mine)
    assert len(_vpcs(mine)) == 1
    assert mine.db.read(lambda s: s.scalars(sa.select(DefaultVpcRow)).all()) == []


def test_a_wish_is_not_held_off_and_tells_its_failure(openstack: Neutron, mine: VpcOnly) -> None:
    openstack.most["routers"] = 0
    assert _vpcs(mine) == []
    assert code_of(mine, create_default_vpc) == "VpcLimitExceeded"
    openstack.most = {}
    made = mine(create_default_vpc)["Vpc"]
    assert made["IsDefault"]
    assert _vpcs(mine) == [made["VpcId"]]


def test_what_was_deleted_stays_away(openstack: Neutron, mine: VpcOnly) -> None:
    [vpc] = _vpcs(mine)
    before = {name: set[str]() for name in openstack.left()}
    _delete(mine, vpc)
    assert openstack.left() == before
    _pass_time(mine)
    assert (_vpcs(mine), openstack.left()) == ([], before)
    assert code_of(mine, create_default_subnet, AvailabilityZone="nova") == "DefaultVpcDoesNotExist"
    [again] = [mine(create_default_vpc)["Vpc"]["VpcId"]]
    assert _vpcs(mine) == [again]
    assert code_of(mine, create_default_vpc) == "DefaultVpcAlreadyExists"


@pytest.mark.parametrize("at", [0, 3])
def test_a_deletion_that_another_process_completes_is_a_deletion(
    openstack: Neutron, mine: VpcOnly, at: int
) -> None:
    [vpc] = _vpcs(mine)
    [subnet] = mine(describe_subnets)["Subnets"]
    mine(delete_subnet, SubnetId=subnet["SubnetId"])
    [igw] = mine(describe_internet_gateways)["InternetGateways"]
    mine(detach_internet_gateway, InternetGatewayId=igw["InternetGatewayId"], VpcId=vpc)
    mine(delete_internet_gateway, InternetGatewayId=igw["InternetGatewayId"])
    calls = [(Network, "delete_router"), (Database, "write")]
    with dying(Deaths(at), *calls), pytest.raises(Death):
        mine(delete_vpc, VpcId=vpc)
    run_all(mine)
    assert _vpcs(mine) == ([vpc] if at == 0 else [])


def test_default_subnets_find_a_free_range(openstack: Neutron, mine: VpcOnly) -> None:
    openstack.zones = ["nova", "zone-2", "internal"]
    [vpc] = _vpcs(mine)
    twice = code_of(mine, create_default_subnet, AvailabilityZone="nova")
    assert twice == "DefaultSubnetAlreadyExistsInAvailabilityZone"
    unknown = code_of(mine, create_default_subnet, AvailabilityZone="mars")
    assert unknown == "InvalidAvailabilityZone.NotFound"
    made = mine(create_default_subnet, AvailabilityZone="zone-2")["Subnet"]
    assert (made["CidrBlock"], made["VpcId"]) == ("172.31.16.0/20", vpc)
    assert (made["DefaultForAz"], made["AvailabilityZone"]) == (True, "zone-2")
    wanted = [
        {"Name": "availability-zone", "Values": ["zone-2"]},
        {"Name": "defaultForAz", "Values": ["true"]},
    ]
    [shown] = mine(describe_subnets, Filters=wanted)["Subnets"]
    assert shown["SubnetId"] == made["SubnetId"]


_MOMENTS = [
    (Network, name)
    for name in (
        "create_router",
        "create_security_group",
        "create_network",
        "create_subnet",
        "create_port",
        "add_router_interface",
    )
]


@pytest.mark.parametrize("first", ["describe", "job"])
@pytest.mark.parametrize("at", range(12))
def test_a_maker_that_died_leaves_nothing_to_the_next_one(
    openstack: Neutron, mine: VpcOnly, at: int, first: str
) -> None:
    deaths = Deaths(at)
    with dying(deaths, *_MOMENTS), pytest.raises(Death):
        mine(describe_vpcs)
    assert deaths.fired
    if first == "job":
        run_all(mine)
    # A dead holder's lease ends by itself.
    mine.db.write(lambda s: s.execute(sa.update(Lease).values(expires_at=0.0)))
    [vpc] = _vpcs(mine)
    run_all(mine)
    assert _vpcs(mine) == [vpc]
    counted = {what: len(openstack.all(what)) for what in ("routers", "networks", "subnets")}
    assert counted == {"routers": 1, "networks": 1, "subnets": 1}
    assert [row["name"] for row in openstack.groups] == [vpc]
    assert len(openstack.all("ports")) == 1
    assert _items(mine) == ["igw", "rtb", "sg", "subnet", "vpc"]


def test_halves_are_not_shown(openstack: Neutron, mine: VpcOnly) -> None:
    with dying(Deaths(10), *_MOMENTS), pytest.raises(Death):
        mine(describe_vpcs)
    mine.policy = Policy("ec2:CreateDefaultVpc")
    assert _vpcs(mine) == []
    assert mine(describe_subnets)["Subnets"] == []
    assert mine(describe_route_tables)["RouteTables"] == []
    assert mine(describe_internet_gateways)["InternetGateways"] == []


def test_whoever_waits_too_long_goes_on_without(
    openstack: Neutron, mine: VpcOnly, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(default_vpc, "WAIT", 0.0)
    assert work.acquire(mine.db, lease_name(mine.context()), "another", 60)
    assert _vpcs(mine) == []
    assert openstack.all("routers") == []
