"""The kinds against a real OpenStack: through boto3, and straight for the counting of calls."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.cloud import ALT, DEMO, CloudEnv
from tests.support.ec2 import Daemon, keys_of, running, write_conf
from tests.support.ports import free_port
from tests.support.quotas import quota
from trimaran.config import ec2 as ec2_config
from trimaran.db import migrate
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.instances.instance import describe_instances
from trimaran.ec2.parts import assemble
from trimaran.identity import count_calls

WAIT = {"Delay": 1, "MaxAttempts": 120}
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
def demo(api: Daemon, cloud_env: CloudEnv) -> Any:
    return api.client(keys_of(cloud_env, DEMO))


@pytest.fixture(scope="module")
def alt(api: Daemon, cloud_env: CloudEnv) -> Any:
    return api.client(keys_of(cloud_env, ALT))


@pytest.fixture
def made(cloud_env: CloudEnv) -> Iterator[list[str]]:
    """Nova ids (or names) of servers to be deleted afterwards."""
    names: list[str] = []
    yield names
    rows = cloud_env.call(DEMO, "compute", "GET", "/servers")["servers"]
    for row in rows:
        if row["id"] in names or row["name"] in names:
            cloud_env.call(DEMO, "compute", "DELETE", f"/servers/{row['id']}", raise_exc=False)


def _image(client: Any) -> str:
    images = client.describe_images(Filters=[{"Name": "state", "Values": ["available"]}])["Images"]
    found = [image for image in images if image["RootDeviceType"] == "instance-store"]
    return str(found[0]["ImageId"])


def _instances(client: Any, **request: Any) -> dict[str, Any]:
    answer = client.describe_instances(**request)
    return {i["InstanceId"]: i for row in answer["Reservations"] for i in row["Instances"]}


def _boot_directly(cloud_env: CloudEnv, name: str) -> str:
    """A server that Nova makes without us."""
    flavors = cloud_env.call(DEMO, "compute", "GET", "/flavors")["flavors"]
    images = cloud_env.call(DEMO, "image", "GET", "/v2/images")["images"]
    networks = cloud_env.call(DEMO, "network", "GET", "/v2.0/networks?name=private")["networks"]
    body = {
        "name": name,
        "flavorRef": next(row["id"] for row in flavors if row["name"] == FLAVOR),
        "imageRef": next(row["id"] for row in images if row["disk_format"] == "qcow2"),
        "networks": [{"uuid": networks[0]["id"]}],
    }
    answer = cloud_env.call(DEMO, "compute", "POST", "/servers", json={"server": body})
    return str(answer["server"]["id"])


def _until(question: Callable[[], Any], seconds: float = 120) -> Any:
    deadline = time.monotonic() + seconds
    while not (answer := question()):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    return answer


def test_the_life_of_instances(demo: Any, alt: Any, cloud_env: CloudEnv, made: list[str]) -> None:
    token = uuid.uuid4().hex
    request = {
        "ImageId": _image(demo),
        "MinCount": 2,
        "MaxCount": 2,
        "InstanceType": FLAVOR,
        "ClientToken": token,
        "UserData": "#!/bin/sh\necho hello\n",
        "TagSpecifications": [
            {"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "<a> & 'ü'"}]}
        ],
    }
    answer = demo.run_instances(**request)
    ids = [each["InstanceId"] for each in answer["Instances"]]
    made += ids
    assert [each["State"]["Name"] for each in answer["Instances"]] == ["pending", "pending"]
    again = demo.run_instances(**request)
    assert [each["InstanceId"] for each in again["Instances"]] == ids
    demo.get_waiter("instance_running").wait(InstanceIds=ids, WaiterConfig=WAIT)
    demo.get_waiter("instance_status_ok").wait(InstanceIds=ids, WaiterConfig=WAIT)
    servers = cloud_env.call(DEMO, "compute", "GET", "/servers/detail")["servers"]
    ours = {row["name"]: row for row in servers if row["name"] in ids}
    assert set(ours) == set(ids)
    shown = _instances(demo, InstanceIds=ids)
    for instance_id, instance in shown.items():
        assert instance["State"]["Name"] == "running"
        assert instance["Tags"] == [{"Key": "Name", "Value": "<a> & 'ü'"}]
        assert instance["PrivateDnsName"] == instance_id
        assert instance["SecurityGroups"][0]["GroupName"] == "default"
        fixed = ours[instance_id]["addresses"]["private"][0]["addr"]
        assert instance["PrivateIpAddress"] == fixed
    assert _instances(demo).items() >= shown.items()

    assert not set(_instances(alt)) & set(ids)
    for call in (alt.describe_instances, alt.terminate_instances, alt.stop_instances):
        with pytest.raises(ClientError, match=r"InvalidInstanceID\.NotFound"):
            call(InstanceIds=ids[:1])
    with pytest.raises(ClientError, match=r"InvalidInstanceID\.NotFound"):
        alt.create_tags(Resources=ids[:1], Tags=[{"Key": "k", "Value": "v"}])
    assert not [tag for tag in alt.describe_tags()["Tags"] if tag["ResourceId"] in ids]

    [change] = demo.stop_instances(InstanceIds=ids[:1])["StoppingInstances"]
    assert change["CurrentState"]["Name"] == "stopping"
    demo.get_waiter("instance_stopped").wait(InstanceIds=ids[:1], WaiterConfig=WAIT)
    [change] = demo.stop_instances(InstanceIds=ids[:1])["StoppingInstances"]
    assert change["CurrentState"]["Name"] == "stopped"
    demo.start_instances(InstanceIds=ids[:1])
    demo.get_waiter("instance_running").wait(InstanceIds=ids[:1], WaiterConfig=WAIT)

    changes = demo.terminate_instances(InstanceIds=ids)["TerminatingInstances"]
    assert {change["CurrentState"]["Name"] for change in changes} == {"shutting-down"}
    demo.get_waiter("instance_terminated").wait(InstanceIds=ids, WaiterConfig=WAIT)
    ended = _instances(demo, InstanceIds=ids)
    for instance_id in ids:
        assert ended[instance_id]["ImageId"] == request["ImageId"]
        assert ended[instance_id]["LaunchTime"] == shown[instance_id]["LaunchTime"]
        assert ended[instance_id]["Tags"] == shown[instance_id]["Tags"]
    changes = demo.terminate_instances(InstanceIds=ids)["TerminatingInstances"]
    assert {change["CurrentState"]["Name"] for change in changes} == {"terminated"}


def test_servers_of_others_appear_and_vanish(
    demo: Any, cloud_env: CloudEnv, made: list[str]
) -> None:
    name = f"direct-{uuid.uuid4().hex[:8]}"
    server_id = _boot_directly(cloud_env, name)
    made.append(server_id)

    def mine() -> dict[str, Any]:
        return {k: v for k, v in _instances(demo).items() if v["PrivateDnsName"] == name}

    [instance_id] = _until(mine)
    demo.get_waiter("instance_running").wait(InstanceIds=[instance_id], WaiterConfig=WAIT)
    assert list(mine()) == [instance_id]
    demo.create_tags(Resources=[instance_id], Tags=[{"Key": "k", "Value": "v"}])
    cloud_env.call(DEMO, "compute", "DELETE", f"/servers/{server_id}")
    demo.get_waiter("instance_terminated").wait(InstanceIds=[instance_id], WaiterConfig=WAIT)
    [ended] = _instances(demo, InstanceIds=[instance_id]).values()
    assert ended["InstanceType"] == FLAVOR
    assert ended["Tags"] == [{"Key": "k", "Value": "v"}]


def test_a_launch_that_nova_refuses_leaves_nothing(demo: Any, cloud_env: CloudEnv) -> None:
    before = {row["id"] for row in cloud_env.call(DEMO, "compute", "GET", "/servers")["servers"]}
    known = set(_instances(demo))
    with (
        quota(cloud_env, "compute", instances=0),
        pytest.raises(ClientError, match="ResourceLimitExceeded"),
    ):
        demo.run_instances(ImageId=_image(demo), MinCount=9, MaxCount=9, InstanceType=FLAVOR)
    # A volume type that Cinder does not have: Nova's own refusal.
    with pytest.raises(ClientError, match="InvalidParameterValue"):
        demo.run_instances(
            ImageId=_image(demo),
            MinCount=1,
            MaxCount=1,
            InstanceType=FLAVOR,
            BlockDeviceMappings=[
                {"DeviceName": "/dev/vdb", "Ebs": {"VolumeSize": 1, "VolumeType": "no-such-type"}}
            ],
        )
    after = {row["id"] for row in cloud_env.call(DEMO, "compute", "GET", "/servers")["servers"]}
    assert after <= before
    assert set(_instances(demo)) <= known


def test_calls_of_a_describe_do_not_grow(
    conf: tuple[Path, int], home: Path, cloud_env: CloudEnv, made: list[str]
) -> None:
    parts = assemble(ec2_config.load([str(conf[0])]))
    with contextlib.closing(parts):
        token = parts.identity.validate(cloud_env.session(DEMO).get_token())
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
            made.append(_boot_directly(cloud_env, f"count-{number}-{uuid.uuid4().hex[:6]}"))
            describe()
            total, found = describe()
            counts.add(total)
        assert counts == {3}
        one, found = describe(InstanceIds=found[:1])
        assert len(found) == 1
        assert one <= 3


def test_zones_types_and_regions_of_the_cloud(demo: Any) -> None:
    zones = demo.describe_availability_zones()["AvailabilityZones"]
    assert "nova" in {zone["ZoneName"] for zone in zones}
    assert "internal" not in {zone["ZoneName"] for zone in zones}
    [shown] = demo.describe_instance_types(InstanceTypes=[FLAVOR])["InstanceTypes"]
    assert shown["MemoryInfo"]["SizeInMiB"] == 256
    with pytest.raises(ClientError, match="InvalidInstanceType"):
        demo.describe_instance_types(InstanceTypes=["t3.micro"])
    offers = demo.describe_instance_type_offerings(
        LocationType="availability-zone", Filters=[{"Name": "location", "Values": ["nova"]}]
    )["InstanceTypeOfferings"]
    assert FLAVOR in {offer["InstanceType"] for offer in offers}
    assert demo.describe_regions()["Regions"][0]["RegionName"] == "RegionOne"
