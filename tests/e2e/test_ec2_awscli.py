"""The AWS CLI against our daemon: the same life of an instance, as an operator types it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cloud import CloudEnv
from tests.support.ec2 import Daemon, free_port, keys_of, running, write_conf


@pytest.fixture(scope="module")
def api(cloud_env: CloudEnv, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    from trimaran.db import migrate

    home = tmp_path_factory.mktemp("ec2")
    database = f"sqlite:///{home}/ec2.sqlite"
    migrate.upgrade(database, "ec2")
    port = free_port()
    conf = write_conf(home, cloud_env, database, ec2api_listen_port=port)
    with running("ec2-api", conf, port) as daemon:
        yield daemon


Aws = Callable[..., Any]


@pytest.fixture(scope="module")
def aws(api: Daemon, cloud_env: CloudEnv) -> Aws:
    """A function that runs ``aws`` and returns its JSON, or its stderr where it must fail."""
    keys = keys_of(cloud_env)
    program = shutil.which("aws", path=str(Path(sys.executable).parent)) or shutil.which("aws")
    assert program, "the AWS CLI is not installed"
    environment = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": keys[0],
        "AWS_SECRET_ACCESS_KEY": keys[1],
        "AWS_DEFAULT_REGION": "RegionOne",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_MAX_ATTEMPTS": "1",
        "AWS_PAGER": "",
    }

    def run(*arguments: str, fails: bool = False) -> Any:
        done = subprocess.run(
            [program, "--endpoint-url", api.url, "--output", "json", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=180,
        )
        if fails:
            assert done.returncode != 0, done.stdout
            return done.stderr
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout.strip() else {}

    return run


def states(aws: Aws, ids: list[str]) -> set[str]:
    found = aws("ec2", "describe-instances", "--instance-ids", *ids)
    return {each["State"]["Name"] for row in found["Reservations"] for each in row["Instances"]}


def wait_for(aws: Aws, ids: list[str], wanted: str) -> None:
    deadline = time.monotonic() + 180
    while (seen := states(aws, ids)) != {wanted}:
        assert time.monotonic() < deadline, seen
        time.sleep(1)


def test_who_am_i(aws: Aws, cloud_env: CloudEnv) -> None:
    who = aws("sts", "get-caller-identity")
    assert who["Account"] == cloud_env.session().get_project_id()
    assert who["UserId"] == cloud_env.session().get_user_id()


def test_the_life_of_an_instance(aws: Aws) -> None:
    assert (
        aws("ec2", "describe-regions", "--all-regions")["Regions"][0]["RegionName"] == "RegionOne"
    )
    assert aws("ec2", "describe-availability-zones")["AvailabilityZones"]
    types = aws("ec2", "describe-instance-types", "--filters", "Name=instance-type,Values=m1.*")
    assert "m1.tiny" in {row["InstanceType"] for row in types["InstanceTypes"]}
    images = aws("ec2", "describe-images", "--filters", "Name=state,Values=available")["Images"]
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
