"""Regions, availability zones, instance types and their offerings."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.ec2_openstack import Caller, OpenStack
from trimaran.ec2.kinds.availability_zone import describe_availability_zones
from trimaran.ec2.kinds.instances.instance_type import (
    describe_instance_type_offerings,
    describe_instance_types,
)
from trimaran.ec2.kinds.region import describe_regions
from trimaran.ec2.protocol.errors import EC2Error


def test_without_a_list_there_is_the_one_region(me: Caller, openstack: OpenStack) -> None:
    assert me(describe_regions)["Regions"] == [
        {
            "RegionName": "RegionOne",
            "Endpoint": "http://192.0.2.9:8788/",
            "OptInStatus": "opt-in-not-required",
        }
    ]
    assert openstack.seen == []


def test_regions_of_the_configuration(me: Caller) -> None:
    me.conf.set_override("region_list", ["north=n.example", "south = s.example", "bare"])
    names = {row["RegionName"]: row["Endpoint"] for row in me(describe_regions)["Regions"]}
    assert names == {
        "north": "http://n.example:8788/",
        "south": "http://s.example:8788/",
        "bare": "http://192.0.2.9:8788/",
    }
    chosen = me(describe_regions, RegionNames=["south"], AllRegions=True)["Regions"]
    assert [row["RegionName"] for row in chosen] == ["south"]
    filters = [{"Name": "endpoint", "Values": ["*n.example*"]}]
    assert [row["RegionName"] for row in me(describe_regions, Filters=filters)["Regions"]] == [
        "north"
    ]
    with pytest.raises(EC2Error) as caught:
        me(describe_regions, RegionNames=["south", "west"])
    assert caught.value.code == "InvalidParameterValue"


def test_zones_but_for_the_internal_one(me: Caller, openstack: OpenStack) -> None:
    openstack.zones = ["nova", "second", "internal"]
    zones = me(describe_availability_zones)["AvailabilityZones"]
    assert [zone["ZoneName"] for zone in zones] == ["nova", "second"]
    assert zones[0] == {
        "ZoneName": "nova",
        "ZoneId": "nova",
        "ZoneType": "availability-zone",
        "State": "available",
        "RegionName": "RegionOne",
        "GroupName": "RegionOne",
        "GroupLongName": "RegionOne",
        "NetworkBorderGroup": "RegionOne",
        "OptInStatus": "opt-in-not-required",
        "Messages": [],
    }

    def named(**request: Any) -> list[str]:
        found = me(describe_availability_zones, **request)["AvailabilityZones"]
        return [zone["ZoneName"] for zone in found]

    assert named(ZoneNames=["second"], AllAvailabilityZones=True) == ["second"]
    assert named(ZoneIds=["nova"]) == ["nova"]
    assert named(Filters=[{"Name": "zone-name", "Values": ["s*"]}]) == ["second"]
    assert named(Filters=[{"Name": "state", "Values": ["unavailable"]}]) == []
    for wrong in ({"ZoneNames": ["nova", "none"]}, {"ZoneIds": ["internal"]}):
        with pytest.raises(EC2Error) as caught:
            named(**wrong)
        assert caught.value.code == "InvalidAvailabilityZone.NotFound"


def test_types_are_flavors(me: Caller, openstack: OpenStack) -> None:
    openstack.flavors.append(openstack.flavor("diskless", 4096, 0))
    openstack.flavors.append({**openstack.flavor("off", 1, 1), "OS-FLV-DISABLED:disabled": True})
    types = {row["InstanceType"]: row for row in me(describe_instance_types)["InstanceTypes"]}
    assert list(types) == ["diskless", "m1.small", "m1.tiny"]
    small = types["m1.small"]
    assert small["MemoryInfo"] == {"SizeInMiB": 2048}
    assert small["VCpuInfo"]["DefaultVCpus"] == 1
    assert small["InstanceStorageInfo"]["TotalSizeInGB"] == 20
    assert small["BurstablePerformanceSupported"] is False
    assert types["diskless"]["SupportedRootDeviceTypes"] == ["ebs"]
    assert "InstanceStorageInfo" not in types["diskless"]


def test_types_by_name_and_filter(me: Caller, openstack: OpenStack) -> None:
    def names(**request: Any) -> list[str]:
        return [r["InstanceType"] for r in me(describe_instance_types, **request)["InstanceTypes"]]

    assert names(InstanceTypes=["m1.tiny"]) == ["m1.tiny"]
    assert names(Filters=[{"Name": "memory-info.size-in-mib", "Values": ["2048"]}]) == ["m1.small"]
    assert names(Filters=[{"Name": "instance-type", "Values": ["m1.t*"]}]) == ["m1.tiny"]
    assert names(Filters=[{"Name": "bare-metal", "Values": ["true"]}]) == []
    with pytest.raises(EC2Error) as caught:
        names(InstanceTypes=["m1.tiny", "t3.micro"])
    assert caught.value.code == "InvalidInstanceType"
    assert "t3.micro" in caught.value.message
    with pytest.raises(EC2Error) as caught:
        names(InstanceTypes=["m1.tiny"], MaxResults=5)
    assert caught.value.code == "InvalidParameterCombination"


def test_types_in_pages(me: Caller, openstack: OpenStack) -> None:
    openstack.flavors = [openstack.flavor(f"f{n:02}", 1, 1) for n in range(12)]
    page = me(describe_instance_types, MaxResults=10)
    rest = me(describe_instance_types, MaxResults=10, NextToken=page["NextToken"])
    assert len(page["InstanceTypes"]) == 10
    assert [row["InstanceType"] for row in rest["InstanceTypes"]] == ["f10", "f11"]
    assert rest["NextToken"] is None


def test_offerings_are_types_by_places(me: Caller, openstack: OpenStack) -> None:
    openstack.zones = ["nova", "second", "internal"]

    def offered(**request: Any) -> set[tuple[str, str]]:
        rows = me(describe_instance_type_offerings, **request)["InstanceTypeOfferings"]
        return {(row["InstanceType"], row["Location"]) for row in rows}

    assert offered() == {("m1.small", "RegionOne"), ("m1.tiny", "RegionOne")}
    assert len(offered(LocationType="availability-zone")) == 4
    filters = [
        {"Name": "location", "Values": ["second"]},
        {"Name": "instance-type", "Values": ["m1.t*"]},
    ]
    wanted = offered(LocationType="availability-zone-id", Filters=filters)
    assert wanted == {("m1.tiny", "second")}
    with pytest.raises(EC2Error):
        offered(LocationType="moon")
