"""boto3 against our daemon on a real cloud, with SQLite and with MariaDB behind it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.cloud import ALT, DEMO, CloudEnv
from tests.support.ec2 import Daemon, free_port, keys_of, running, write_conf

WAIT = {"Delay": 1, "MaxAttempts": 120}


@pytest.fixture(params=["sqlite", "mariadb"])
def database(request: pytest.FixtureRequest, tmp_path: Path, migrated: Callable[..., str]) -> str:
    """A fresh database of each kind, migrated."""
    if request.param == "mariadb":
        url = request.getfixturevalue("mariadb_url")
    else:
        url = f"sqlite:///{tmp_path}/ec2.sqlite"
    return migrated(url, "ec2")


def start(
    stack: contextlib.ExitStack, cloud: CloudEnv, home: Path, database: str, **options: Any
) -> Daemon:
    port = free_port()
    home.mkdir(exist_ok=True)
    # With EC2-Classic a launch without subnet goes into the project's own network.
    options = {"disable_ec2_classic": False, **options}
    conf = write_conf(home, cloud, database, ec2api_listen_port=port, **options)
    return stack.enter_context(running("ec2-api", conf, port))


@pytest.fixture
def api(cloud_env: CloudEnv, tmp_path: Path, database: str) -> Iterator[Daemon]:
    with contextlib.ExitStack() as stack:
        yield start(stack, cloud_env, tmp_path / "api", database)


@pytest.fixture
def ec2(api: Daemon, cloud_env: CloudEnv) -> Iterator[Any]:
    """A client of the demo member; what it launched is terminated at the end."""
    client = api.client(keys_of(cloud_env))
    yield client
    end_all(client)


def end_all(client: Any) -> None:
    mine = [
        instance["InstanceId"]
        for instance in instances(client, Filters=[{"Name": "tag:suite", "Values": ["e2e"]}])
        if instance["State"]["Name"] not in ("terminated", "shutting-down")
    ]
    if mine:
        client.terminate_instances(InstanceIds=mine)


def instances(client: Any, **arguments: Any) -> list[dict[str, Any]]:
    answer = client.describe_instances(**arguments)
    return [each for row in answer["Reservations"] for each in row["Instances"]]


def image_id(client: Any) -> str:
    # Public ones, which all projects see: others may have images of their own just now.
    images = client.describe_images(ExecutableUsers=["all"])
    ready = [row for row in images["Images"] if row["State"] == "available"]
    return str(sorted(ready, key=lambda row: row["Name"])[0]["ImageId"])


def launch(client: Any, count: int = 1, **arguments: Any) -> list[str]:
    tags = [{"Key": "suite", "Value": "e2e"}, {"Key": "Name", "Value": "é <&> 007"}]
    made = client.run_instances(
        ImageId=image_id(client),
        InstanceType="m1.tiny",
        MinCount=count,
        MaxCount=count,
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
        **arguments,
    )
    assert made["OwnerId"]
    assert {tag["Key"] for each in made["Instances"] for tag in each["Tags"]} == {"suite", "Name"}
    return [each["InstanceId"] for each in made["Instances"]]


def refused(call: Any, **arguments: Any) -> tuple[str, int]:
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    response = caught.value.response
    assert response["ResponseMetadata"]["RequestId"].startswith("req-")
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]


def test_the_life_of_instances(ec2: Any, cloud_env: CloudEnv) -> None:
    regions = ec2.describe_regions(AllRegions=True)["Regions"]
    assert [row["RegionName"] for row in regions] == ["RegionOne"]
    zones = ec2.describe_availability_zones()["AvailabilityZones"]
    assert [(row["ZoneName"], row["State"]) for row in zones] == [("nova", "available")]
    types = ec2.describe_instance_types(InstanceTypes=["m1.tiny"])["InstanceTypes"]
    assert types[0]["VCpuInfo"]["DefaultVCpus"] == 1
    assert types[0]["MemoryInfo"]["SizeInMiB"] > 0

    ids = launch(ec2, 2, ClientToken="e2e-" + "x" * 40)
    ec2.get_waiter("instance_running").wait(InstanceIds=ids, WaiterConfig=WAIT)
    running_ones = instances(ec2, InstanceIds=ids)
    assert {each["InstanceId"] for each in running_ones} == set(ids)
    assert [each["AmiLaunchIndex"] for each in running_ones] == [0, 1]
    assert all(each["PrivateIpAddress"] for each in running_ones)
    assert {each["ImageId"] for each in running_ones} == {image_id(ec2)}

    by_tag = [{"Name": "tag:Name", "Values": ["é <?> *"]}]
    by_state = [{"Name": "instance-state-name", "Values": ["running"]}]
    assert {each["InstanceId"] for each in instances(ec2, Filters=by_tag + by_state)} >= set(ids)
    assert instances(ec2, Filters=[{"Name": "tag:Name", "Values": ["é <?>"]}]) == []

    ec2.create_tags(Resources=ids, Tags=[{"Key": "a:b", "Value": "true"}])
    described = ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": ids}])["Tags"]
    assert {(tag["ResourceId"], tag["Key"], tag["Value"]) for tag in described} >= {
        (each, "a:b", "true") for each in ids
    }
    assert len(instances(ec2, Filters=[{"Name": "tag:a:b", "Values": ["true"]}])) == 2

    servers = {
        row["name"]: row for row in cloud_env.call(DEMO, "compute", "GET", "/servers")["servers"]
    }
    assert set(ids) <= set(servers), "servers carry the instance's id as their name"

    assert refused(ec2.terminate_instances, InstanceIds=ids, DryRun=True) == (
        "DryRunOperation",
        412,
    )
    ended = ec2.terminate_instances(InstanceIds=ids)["TerminatingInstances"]
    assert {row["CurrentState"]["Name"] for row in ended} <= {"shutting-down", "terminated"}
    ec2.get_waiter("instance_terminated").wait(InstanceIds=ids, WaiterConfig=WAIT)
    left = {row["name"] for row in cloud_env.call(DEMO, "compute", "GET", "/servers")["servers"]}
    assert not left & set(ids)


def test_a_client_token_launches_once(ec2: Any) -> None:
    first = launch(ec2, ClientToken="once")
    second = ec2.run_instances(
        ImageId=image_id(ec2),
        InstanceType="m1.tiny",
        MinCount=1,
        MaxCount=1,
        ClientToken="once",
        TagSpecifications=[
            {
                "ResourceType": "instance",
                "Tags": [{"Key": "suite", "Value": "e2e"}, {"Key": "Name", "Value": "é <&> 007"}],
            }
        ],
    )
    assert [each["InstanceId"] for each in second["Instances"]] == first


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_mistakes_have_their_codes(ec2: Any) -> None:
    describe, image = ec2.describe_instances, image_id(ec2)
    bad = "InvalidParameterValue"
    run = {"ImageId": image, "MinCount": 1, "MaxCount": 1}
    assert refused(describe, InstanceIds=["i-zzz"])[0] == bad
    assert refused(describe, InstanceIds=["vpc-00000001"])[0] == bad
    assert refused(describe, InstanceIds=["i-00000001"]) == ("InvalidInstanceID.NotFound", 400)
    assert refused(describe, Filters=[{"Name": "fake", "Values": ["x"]}]) == (bad, 400)
    assert refused(describe, MaxResults=4)[0] == bad
    assert refused(describe, NextToken="garbage") == ("InvalidNextToken", 400)
    both = refused(describe, InstanceIds=["i-00000001"], MaxResults=5)
    assert both[0] == "InvalidParameterCombination"
    assert refused(describe, DryRun=True) == ("DryRunOperation", 412)
    assert refused(ec2.describe_tags, MaxResults=4)[0] == bad
    assert ec2.describe_tags(MaxResults=1000)["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert refused(ec2.run_instances, **{**run, "MinCount": 2})[0] == bad
    assert refused(ec2.run_instances, **run, InstanceType="no-such")[0] == bad
    gone = {**run, "ImageId": "ami-00000001"}
    assert refused(ec2.run_instances, **gone)[0] == "InvalidAMIID.NotFound"
    assert refused(ec2.run_instances, **run, DryRun=True) == ("DryRunOperation", 412)
    assert refused(ec2.terminate_instances, InstanceIds=["i-00000001"])[0] == (
        "InvalidInstanceID.NotFound"
    )
    tag = {"Resources": ["i-00000001"], "Tags": [{"Key": "aws:x", "Value": "y"}]}
    assert refused(ec2.create_tags, **tag)[0] == bad
    assert refused(ec2.describe_id_format)[0] == "InvalidAction"


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_pages_of_tags(ec2: Any) -> None:
    (instance,) = launch(ec2)
    keys = [f"k{n}" for n in range(7)]
    ec2.create_tags(Resources=[instance], Tags=[{"Key": key, "Value": ""} for key in keys])
    mine = [{"Name": "resource-id", "Values": [instance]}, {"Name": "key", "Values": ["k?"]}]
    first = ec2.describe_tags(Filters=mine, MaxResults=5)
    rest = ec2.describe_tags(Filters=mine, MaxResults=5, NextToken=first["NextToken"])
    assert [tag["Key"] for tag in first["Tags"] + rest["Tags"]] == keys
    assert "NextToken" not in rest
    ec2.delete_tags(Resources=[instance], Tags=[{"Key": key} for key in keys])
    after = ec2.describe_tags(Filters=mine, NextToken=first["NextToken"])
    assert after["Tags"] == []
    assert "NextToken" not in after


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_projects_do_not_see_each_other(api: Daemon, ec2: Any, cloud_env: CloudEnv) -> None:
    (instance,) = launch(ec2)
    other = api.client(keys_of(cloud_env, ALT))
    assert instance not in [each["InstanceId"] for each in instances(other)]
    for call in (other.describe_instances, other.terminate_instances):
        assert refused(call, InstanceIds=[instance]) == ("InvalidInstanceID.NotFound", 400)
    assert image_id(other) == image_id(ec2), "a public image has one id for all"


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
def test_two_processes_agree_on_the_ids_of_what_nova_made(
    cloud_env: CloudEnv, tmp_path: Path, database: str
) -> None:
    images = cloud_env.call(DEMO, "image", "GET", "/v2/images")["images"]
    flavors = cloud_env.call(DEMO, "compute", "GET", "/flavors")["flavors"]
    networks = cloud_env.call(DEMO, "network", "GET", "/v2.0/networks?name=private")["networks"]
    body = {
        "name": "made-by-nova",
        "imageRef": images[0]["id"],
        "flavorRef": next(row["id"] for row in flavors if row["name"] == "m1.tiny"),
        "networks": [{"uuid": networks[0]["id"]}],
    }
    server = cloud_env.call(DEMO, "compute", "POST", "/servers", json={"server": body})["server"]
    try:
        with contextlib.ExitStack() as stack:
            daemons = [
                start(stack, cloud_env, tmp_path / name, database) for name in ("one", "two")
            ]
            keys = keys_of(cloud_env)
            clients = [daemon.client(keys) for daemon in daemons for _ in range(3)]
            with ThreadPoolExecutor(len(clients)) as pool:
                seen = list(pool.map(instances, clients))
            sets = [{each["InstanceId"] for each in answer} for answer in seen]
            assert all(each == sets[0] for each in sets)
            assert all(len(each) == len(answer) for each, answer in zip(sets, seen, strict=True))
            assert sets[0], "the server appears as an instance"
    finally:
        cloud_env.call(DEMO, "compute", "DELETE", f"/servers/{server['id']}")
