"""The kinds against a real OpenStack: through boto3, and straight for the counting of calls."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.cloud import ALT, CloudEnv
from tests.support.ec2 import Daemon, keys_of, running, write_conf
from tests.support.ec2_tenant import Tenant, tenant, until
from tests.support.ports import free_port
from trimaran.config import ec2 as ec2_config
from trimaran.db import migrate
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.instances.instance import describe_instances
from trimaran.ec2.parts import assemble
from trimaran.identity import count_calls

WAIT = {"Delay": 1, "MaxAttempts": 300}
FLAVOR = "cirros256"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("ec2-kinds")
    migrate.upgrade(f"sqlite:///{made}/ec2.sqlite", "ec2")
    return made


@pytest.fixture(scope="module")
def conf(home: Path, cloud_env: CloudEnv) -> tuple[Path, int]:
    port = free_port()
    url = f"sqlite:///{home}/ec2.sqlite"
    # With EC2-Classic a launch without subnet goes into the project's own network.
    options = {"ec2api_listen_port": port, "disable_ec2_classic": False}
    return write_conf(home, cloud_env, url, **options), port


@pytest.fixture(scope="module")
def api(conf: tuple[Path, int]) -> Iterator[Daemon]:
    with running("ec2-api", *conf) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def mine(cloud_env: CloudEnv) -> Iterator[Tenant]:
    """A project in which nobody else makes anything."""
    with tenant(cloud_env) as made:
        made.project.own_network()
        yield made


@pytest.fixture(scope="module")
def ec2(api: Daemon, mine: Tenant) -> Any:
    return api.client(mine.keys)


@pytest.fixture(scope="module")
def alt(api: Daemon, cloud_env: CloudEnv) -> Any:
    return api.client(keys_of(cloud_env, ALT))


def _image(client: Any) -> str:
    named = [{"Name": "name", "Values": ["cirros-sandbox"]}]
    [image] = client.describe_images(Filters=named)["Images"]
    return str(image["ImageId"])


def _instances(client: Any, **request: Any) -> dict[str, Any]:
    answer = client.describe_instances(**request)
    return {i["InstanceId"]: i for row in answer["Reservations"] for i in row["Instances"]}


def _boot_directly(mine: Tenant, name: str) -> str:
    """A server that Nova makes without us."""
    flavors = mine.nova("GET", "/flavors")["flavors"]
    [network] = mine.rows("networks", name="private")
    body = {
        "name": name,
        "flavorRef": next(row["id"] for row in flavors if row["name"] == FLAVOR),
        "imageRef": mine.glance("GET", "images?name=cirros-sandbox")["images"][0]["id"],
        "networks": [{"uuid": network["id"]}],
    }
    return str(mine.nova("POST", "/servers", json={"server": body})["server"]["id"])


def test_the_life_of_instances(ec2: Any, alt: Any, mine: Tenant) -> None:
    token = uuid.uuid4().hex
    request = {
        "ImageId": _image(ec2),
        "MinCount": 2,
        "MaxCount": 2,
        "InstanceType": FLAVOR,
        "ClientToken": token,
        "UserData": "#!/bin/sh\necho hello\n",
        "TagSpecifications": [
            {"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "<a> & 'ü'"}]}
        ],
    }
    answer = ec2.run_instances(**request)
    ids = [each["InstanceId"] for each in answer["Instances"]]
    assert [each["State"]["Name"] for each in answer["Instances"]] == ["pending", "pending"]
    again = ec2.run_instances(**request)
    assert [each["InstanceId"] for each in again["Instances"]] == ids
    ec2.get_waiter("instance_running").wait(InstanceIds=ids, WaiterConfig=WAIT)
    ec2.get_waiter("instance_status_ok").wait(InstanceIds=ids, WaiterConfig=WAIT)
    ours = mine.servers()
    assert set(ours) == set(ids)
    shown = _instances(ec2, InstanceIds=ids)
    for instance_id, instance in shown.items():
        assert instance["State"]["Name"] == "running"
        assert instance["Tags"] == [{"Key": "Name", "Value": "<a> & 'ü'"}]
        assert instance["PrivateDnsName"] == instance_id
        assert instance["SecurityGroups"][0]["GroupName"] == "default"
        fixed = ours[instance_id]["addresses"]["private"][0]["addr"]
        assert instance["PrivateIpAddress"] == fixed
    assert _instances(ec2).items() >= shown.items()

    assert not set(_instances(alt)) & set(ids)
    for call in (alt.describe_instances, alt.terminate_instances, alt.stop_instances):
        with pytest.raises(ClientError, match=r"InvalidInstanceID\.NotFound"):
            call(InstanceIds=ids[:1])
    with pytest.raises(ClientError, match=r"InvalidInstanceID\.NotFound"):
        alt.create_tags(Resources=ids[:1], Tags=[{"Key": "k", "Value": "v"}])
    assert not [tag for tag in alt.describe_tags()["Tags"] if tag["ResourceId"] in ids]

    [change] = ec2.stop_instances(InstanceIds=ids[:1])["StoppingInstances"]
    assert change["CurrentState"]["Name"] == "stopping"
    ec2.get_waiter("instance_stopped").wait(InstanceIds=ids[:1], WaiterConfig=WAIT)
    [change] = ec2.stop_instances(InstanceIds=ids[:1])["StoppingInstances"]
    assert change["CurrentState"]["Name"] == "stopped"
    ec2.start_instances(InstanceIds=ids[:1])
    ec2.get_waiter("instance_running").wait(InstanceIds=ids[:1], WaiterConfig=WAIT)

    changes = ec2.terminate_instances(InstanceIds=ids)["TerminatingInstances"]
    assert {change["CurrentState"]["Name"] for change in changes} == {"shutting-down"}
    ec2.get_waiter("instance_terminated").wait(InstanceIds=ids, WaiterConfig=WAIT)
    ended = _instances(ec2, InstanceIds=ids)
    for instance_id in ids:
        assert ended[instance_id]["ImageId"] == request["ImageId"]
        assert ended[instance_id]["LaunchTime"] == shown[instance_id]["LaunchTime"]
        assert ended[instance_id]["Tags"] == shown[instance_id]["Tags"]
    changes = ec2.terminate_instances(InstanceIds=ids)["TerminatingInstances"]
    assert {change["CurrentState"]["Name"] for change in changes} == {"terminated"}


def test_servers_of_others_appear_and_vanish(ec2: Any, mine: Tenant) -> None:
    name = f"direct-{uuid.uuid4().hex[:8]}"
    server_id = _boot_directly(mine, name)

    def direct() -> dict[str, Any]:
        return {k: v for k, v in _instances(ec2).items() if v["PrivateDnsName"] == name}

    [instance_id] = until(direct)
    ec2.get_waiter("instance_running").wait(InstanceIds=[instance_id], WaiterConfig=WAIT)
    assert list(direct()) == [instance_id]
    ec2.create_tags(Resources=[instance_id], Tags=[{"Key": "k", "Value": "v"}])
    mine.nova("DELETE", f"/servers/{server_id}")
    ec2.get_waiter("instance_terminated").wait(InstanceIds=[instance_id], WaiterConfig=WAIT)
    [ended] = _instances(ec2, InstanceIds=[instance_id]).values()
    assert ended["InstanceType"] == FLAVOR
    assert ended["Tags"] == [{"Key": "k", "Value": "v"}]


def test_a_launch_that_nova_refuses_leaves_nothing(ec2: Any, mine: Tenant) -> None:
    before = set(mine.servers())
    known = set(_instances(ec2))
    mine.nova_quota(instances=0)
    try:
        with pytest.raises(ClientError, match="ResourceLimitExceeded"):
            ec2.run_instances(ImageId=_image(ec2), MinCount=9, MaxCount=9, InstanceType=FLAVOR)
    finally:
        mine.nova_quota(instances=-1)
    # A volume type that Cinder does not have: Nova's own refusal.
    with pytest.raises(ClientError, match="InvalidParameterValue"):
        ec2.run_instances(
            ImageId=_image(ec2),
            MinCount=1,
            MaxCount=1,
            InstanceType=FLAVOR,
            BlockDeviceMappings=[
                {"DeviceName": "/dev/vdb", "Ebs": {"VolumeSize": 1, "VolumeType": "no-such-type"}}
            ],
        )
    assert set(mine.servers()) <= before
    assert set(_instances(ec2)) <= known


def test_calls_of_a_describe_do_not_grow(conf: tuple[Path, int], mine: Tenant) -> None:
    parts = assemble(ec2_config.load([str(conf[0])]))
    with contextlib.closing(parts):
        token = parts.identity.validate(mine.project.session.get_token())
        nothing: Any = None

        def describe(**request: Any) -> tuple[int, list[str]]:
            ctx = Context(
                token=token,
                request_id="req-1",
                action="DescribeInstances",
                region=parts.region,
                user=parts.cloud.as_user(token),
                admin=parts.cloud.as_service(),
                db=parts.db,
                conf=parts.conf,
                enforcer=nothing,
                policy_context=nothing,
            )
            with count_calls() as calls:
                answer = describe_instances(ctx, request)
            found = [i["InstanceId"] for row in answer["Reservations"] for i in row["Instances"]]
            return calls.total, found

        describe()
        counts = {describe()[0]}
        for number in range(2):
            server_id = _boot_directly(mine, f"count-{number}-{uuid.uuid4().hex[:6]}")
            path = f"/servers/{server_id}"
            # With its port, which is looked up once when it is first seen.
            until(lambda path=path: mine.nova("GET", path)["server"]["status"] == "ACTIVE")
            describe()
            total, found = describe()
            counts.add(total)
        assert counts == {3}
        one, found = describe(InstanceIds=found[:1])
        assert len(found) == 1
        assert one <= 3


def test_zones_types_and_regions_of_the_cloud(ec2: Any) -> None:
    zones = ec2.describe_availability_zones()["AvailabilityZones"]
    assert "nova" in {zone["ZoneName"] for zone in zones}
    assert "internal" not in {zone["ZoneName"] for zone in zones}
    [shown] = ec2.describe_instance_types(InstanceTypes=[FLAVOR])["InstanceTypes"]
    assert shown["MemoryInfo"]["SizeInMiB"] == 256
    with pytest.raises(ClientError, match="InvalidInstanceType"):
        ec2.describe_instance_types(InstanceTypes=["t3.micro"])
    offers = ec2.describe_instance_type_offerings(
        LocationType="availability-zone", Filters=[{"Name": "location", "Values": ["nova"]}]
    )["InstanceTypeOfferings"]
    assert FLAVOR in {offer["InstanceType"] for offer in offers}
    assert ec2.describe_regions()["Regions"][0]["RegionName"] == "RegionOne"
