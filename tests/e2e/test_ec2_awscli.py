"""The AWS CLI against our daemon: the same life of an instance, as an operator types it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.support.cloud import CloudEnv
from tests.support.ec2_service import Aws, cli, service
from tests.support.ec2_tenant import Tenant, tenant


@pytest.fixture(scope="module")
def mine(cloud_env: CloudEnv) -> Iterator[Tenant]:
    with tenant(cloud_env) as made:
        yield made


@pytest.fixture(scope="module")
def aws(mine: Tenant, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aws]:
    with service(mine.env, tmp_path_factory.mktemp("ec2")) as api:
        yield cli(api, mine.keys)


def states(aws: Aws, ids: list[str]) -> set[str]:
    found = aws("ec2", "describe-instances", "--instance-ids", *ids)
    return {each["State"]["Name"] for row in found["Reservations"] for each in row["Instances"]}


def wait_for(aws: Aws, ids: list[str], wanted: str) -> None:
    deadline = time.monotonic() + 400
    while (seen := states(aws, ids)) != {wanted}:
        assert time.monotonic() < deadline, seen
        time.sleep(1)


def test_who_am_i(aws: Aws, mine: Tenant) -> None:
    who = aws("sts", "get-caller-identity")
    assert (who["Account"], who["UserId"]) == (mine.project.id, mine.project.user_id)


def test_the_life_of_an_instance(aws: Aws) -> None:
    assert (
        aws("ec2", "describe-regions", "--all-regions")["Regions"][0]["RegionName"] == "RegionOne"
    )
    assert aws("ec2", "describe-availability-zones")["AvailabilityZones"]
    types = aws("ec2", "describe-instance-types", "--filters", "Name=instance-type,Values=m1.*")
    assert "m1.tiny" in {row["InstanceType"] for row in types["InstanceTypes"]}
    public = ("Name=state,Values=available", "Name=is-public,Values=true")
    images = aws("ec2", "describe-images", "--filters", *public)["Images"]
    made = aws(
        "ec2", "run-instances",
        "--image-id", images[0]["ImageId"],
        "--instance-type", "m1.tiny",
        "--count", "1",
        "--user-data", "#!/bin/sh\necho hello",
        "--tag-specifications", "ResourceType=instance,Tags=[{Key=Name,Value=cli}]",
    )  # fmt: skip
    ids = [each["InstanceId"] for each in made["Instances"]]
    try:
        wait_for(aws, ids, "running")
        aws("ec2", "create-tags", "--resources", *ids, "--tags", "Key=answer,Value=042")
        tags = aws("ec2", "describe-tags", "--filters", f"Name=resource-id,Values={ids[0]}")["Tags"]
        assert {(tag["Key"], tag["Value"]) for tag in tags} == {("Name", "cli"), ("answer", "042")}
        found = aws("ec2", "describe-instances", "--filters", "Name=tag:answer,Values=04?")
        assert [
            each["InstanceId"] for row in found["Reservations"] for each in row["Instances"]
        ] == ids
        dry = aws("ec2", "terminate-instances", "--instance-ids", *ids, "--dry-run", fails=True)
        assert "DryRunOperation" in dry
    finally:
        aws("ec2", "terminate-instances", "--instance-ids", *ids)
    wait_for(aws, ids, "terminated")


def test_errors_are_readable(aws: Aws) -> None:
    unknown = aws("ec2", "describe-instances", "--instance-ids", "i-00000001", fails=True)
    assert "InvalidInstanceID.NotFound" in unknown
    absent = aws("ec2", "describe-id-format", fails=True)
    assert "(InvalidAction)" in absent
    assert "is not valid for this web service" in absent


def test_pages_are_followed(aws: Aws) -> None:
    types = aws("ec2", "describe-instance-types", "--page-size", "5")["InstanceTypes"]
    names = [row["InstanceType"] for row in types]
    assert len(names) == len(set(names)) > 5
