"""Account attributes, verbose zones, and lists of what there is none of."""

from __future__ import annotations

import pytest
import requests_mock as mocking

from tests.support.ec2_openstack import MINE, Caller
from tests.support.ec2_workshop import Workshop
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import NewItem
from trimaran.ec2 import ids
from trimaran.ec2.kinds.account import describe_account_attributes
from trimaran.ec2.kinds.availability_zone import describe_availability_zones
from trimaran.ec2.protocol.errors import EC2Error
from trimaran.errors import Forbidden


@pytest.fixture
def openstack(requests_mock: mocking.Mocker) -> Workshop:
    return Workshop(requests_mock)


def _attributes(me: Caller, *names: str) -> dict[str, list[str]]:
    rows = me(describe_account_attributes, AttributeNames=list(names))["AccountAttributes"]
    return {
        row["AttributeName"]: [value["AttributeValue"] for value in row["AttributeValues"]]
        for row in rows
    }


def test_account_attributes_come_from_quotas(openstack: Workshop, me: Caller) -> None:
    openstack.limits["maxTotalInstances"] = 7
    assert _attributes(me) == {
        "supported-platforms": ["EC2", "VPC"],
        "default-vpc": ["none"],
        "max-instances": ["7"],
        "vpc-max-security-groups-per-interface": ["10"],
        "max-elastic-ips": ["50"],
        "vpc-max-elastic-ips": ["50"],
    }


def test_only_what_is_asked_for(openstack: Workshop, me: Caller) -> None:
    me.conf.set_override("disable_ec2_classic", True)
    new = NewItem("vpc", None, MINE, {"is_default": True})
    [vpc] = me.db.write(lambda s: queries.add_items(s, [new], ids.mint))
    assert _attributes(me, "supported-platforms", "default-vpc") == {
        "supported-platforms": ["VPC"],
        "default-vpc": [vpc.id],
    }
    assert openstack.calls() == []
    with pytest.raises(EC2Error) as caught:
        _attributes(me, "foo")
    assert caught.value.code == "InvalidParameter"


def test_verbose_zones_are_for_administrators(
    openstack: Workshop, me: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Forbidden):
        me(describe_availability_zones, ZoneNames=["verbose"])
    openstack.keystone.valid.add(me.token.id)
    rows = me(describe_availability_zones, ZoneNames=["verbose"])["AvailabilityZones"]
    assert [(row["ZoneName"], row["State"]) for row in rows] == [
        ("nova", "available"),
        ("|- host-1", ""),
        ("| |- nova-compute", "enabled :-) 2026-01-01T00:00:00"),
    ]
