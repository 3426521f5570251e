"""boto3 against our daemon on a real cloud, with each kind of database behind it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.cloud import CloudEnv
from tests.support.databases import KINDS
from tests.support.ec2 import Daemon, running
from tests.support.ec2_project import Project, fresh_project
from tests.support.ec2_service import service
from tests.support.ec2_tenant import Tenant, tenant
from tests.support.ports import free_port

WAIT = {"Delay": 1, "MaxAttempts": 300}


@pytest.fixture(scope="module")
def mine(cloud_env: CloudEnv) -> Iterator[Tenant]:
    with tenant(cloud_env) as made:
        yield made


@pytest.fixture(scope="module")
def theirs(cloud_env: CloudEnv) -> Iterator[Project]:
    with fresh_project(cloud_env) as made:
        yield made


@pytest.fixture(scope="module", params=KINDS)
def api(
    request: pytest.FixtureRequest, mine: Tenant, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Daemon]:
    with service(mine.env, tmp_path_factory.mktemp("boto3"), request.param) as daemon:
        yield daemon


#: For what does not depend on the database.
once = pytest.mark.parametrize("api", ["sqlite"], indirect=True)


@pytest.fixture
def ec2(api: Daemon, mine: Tenant) -> Any:
    return api.client(mine.keys)


@contextlib.contextmanager
def second(api: Daemon) -> Iterator[Daemon]:
    """Another process of the same service, with the same database."""
    first, home = api.log.parent, api.log.parent / "second"
    home.mkdir()
    port, conf = free_port(), home / "ec2api.conf"
    text = (first / conf.name).read_text().replace(str(first), str(home))
    listen = "ec2api_listen_port ="
    conf.write_text(re.sub(rf"(?m)^{listen}.*$", f"{listen} {port}", text))
    with running("ec2-api", conf, port) as daemon:
        yield daemon


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


def test_the_life_of_instances(ec2: Any, mine: Tenant) -> None:
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

    assert set(ids) <= set(mine.servers()), "servers carry the instance's id as their name"

    assert refused(ec2.terminate_instances, InstanceIds=ids, DryRun=True) == (
        "DryRunOperation",
        412,
    )
    ended = ec2.terminate_instances(InstanceIds=ids)["TerminatingInstances"]
    assert {row["CurrentState"]["Name"] for row in ended} <= {"shutting-down", "terminated"}
    ec2.get_waiter("instance_terminated").wait(InstanceIds=ids, WaiterConfig=WAIT)
    assert not set(mine.servers()) & set(ids)


@once
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


@once
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


@once
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


@once
def test_projects_do_not_see_each_other(api: Daemon, ec2: Any, theirs: Project) -> None:
    (instance,) = launch(ec2)
    other = api.client(theirs.keys)
    assert instance not in [each["InstanceId"] for each in instances(other)]
    for call in (other.describe_instances, other.terminate_instances):
        assert refused(call, InstanceIds=[instance]) == ("InvalidInstanceID.NotFound", 400)
    assert image_id(other) == image_id(ec2), "a public image has one id for all"


@pytest.mark.parametrize("api", ["mariadb"], indirect=True)
def test_two_processes_agree_on_the_ids_of_what_nova_made(api: Daemon, mine: Tenant) -> None:
    # The default VPC's, of which each database has made one.
    subnet = api.client(mine.keys).describe_subnets()["Subnets"][0]["SubnetId"]
    [network] = mine.rows("networks", name=subnet)
    flavors = mine.nova("GET", "/flavors")["flavors"]
    body = {
        "name": "made-by-nova",
        "imageRef": mine.glance("GET", "images?visibility=public")["images"][0]["id"],
        "flavorRef": next(row["id"] for row in flavors if row["name"] == "m1.tiny"),
        "networks": [{"uuid": network["id"]}],
    }
    mine.nova("POST", "/servers", json={"server": body})
    with second(api) as twin:
        clients = [each.client(mine.keys) for each in (api, twin) for _ in range(3)]
        with ThreadPoolExecutor(len(clients)) as pool:
            seen = list(pool.map(instances, clients))
    sets = [{each["InstanceId"] for each in answer} for answer in seen]
    assert all(each == sets[0] for each in sets)
    assert all(len(each) == len(answer) for each, answer in zip(sets, seen, strict=True))
    assert sets[0], "the server appears as an instance"
