"""Storage with the clients that people use: boto3's own flow, and the AWS CLI as one types it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from cryptography.hazmat.primitives import serialization

from tests.support.cloud import CloudEnv
from tests.support.ec2 import Daemon
from tests.support.ec2_service import Aws, cli, service
from tests.support.ec2_tenant import Tenant, tenant, until

WAIT = {"Delay": 1, "MaxAttempts": 300}
TAG = {"Key": "suite", "Value": "storage e2e"}


@pytest.fixture(scope="module")
def mine(cloud_env: CloudEnv) -> Iterator[Tenant]:
    with tenant(cloud_env) as made:
        yield made


@pytest.fixture(scope="module")
def api(mine: Tenant, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with service(mine.env, tmp_path_factory.mktemp("storage")) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def ec2(api: Daemon, mine: Tenant) -> Any:
    return api.client(mine.keys)


@pytest.fixture(scope="module")
def aws(api: Daemon, mine: Tenant) -> Aws:
    run = cli(api, mine.keys)
    return lambda *arguments, **options: run("ec2", *arguments, **options)


def tagged(kind: str, *more: dict[str, str]) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": [TAG, *more]}]


def refused(call: Any, **request: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(**request)
    return str(caught.value.response["Error"]["Code"])


def test_boto3_keeps_data_on_a_volume(ec2: Any, mine: Tenant) -> None:
    """Key, instance, volume, attach, grow, snapshot, restore, detach, delete."""
    key = ec2.create_key_pair(KeyName="e2e@storage.key", TagSpecifications=tagged("key-pair"))
    serialization.load_pem_private_key(key["KeyMaterial"].encode(), None)
    public = [{"Name": "is-public", "Values": ["true"]}]
    images = ec2.describe_images(Filters=public)["Images"]
    image = next(row["ImageId"] for row in images if row["RootDeviceType"] == "instance-store")
    launched = ec2.run_instances(
        ImageId=image,
        InstanceType="cirros256",
        KeyName=key["KeyName"],
        MinCount=1,
        MaxCount=1,
        TagSpecifications=tagged("instance"),
    )
    instance = launched["Instances"][0]["InstanceId"]
    volume = ec2.create_volume(
        AvailabilityZone="nova",
        Size=1,
        VolumeType="gp3",
        TagSpecifications=tagged("volume", {"Key": "Name", "Value": "data & more"}),
    )["VolumeId"]
    ec2.get_waiter("volume_available").wait(VolumeIds=[volume], WaiterConfig=WAIT)
    ec2.get_waiter("instance_running").wait(InstanceIds=[instance], WaiterConfig=WAIT)
    ec2.attach_volume(VolumeId=volume, InstanceId=instance, Device="/dev/sdf")
    ec2.get_waiter("volume_in_use").wait(
        VolumeIds=[volume],
        Filters=[{"Name": "attachment.status", "Values": ["attached", "attaching"]}],
        WaiterConfig=WAIT,
    )

    def attached() -> Any:
        [row] = ec2.describe_volumes(VolumeIds=[volume])["Volumes"]
        return [each for each in row["Attachments"] if each["State"] == "attached"]

    [attachment] = until(attached)
    assert (attachment["InstanceId"], attachment["Device"]) == (instance, "/dev/sdf")
    assert refused(ec2.delete_volume, VolumeId=volume) == "VolumeInUse"

    change = ec2.modify_volume(VolumeId=volume, Size=2)["VolumeModification"]
    assert (change["OriginalSize"], change["TargetSize"]) == (1, 2)
    finished = [{"Name": "modification-state", "Values": ["completed"]}]
    until(lambda: ec2.describe_volumes_modifications(VolumeIds=[volume], Filters=finished)[
        "VolumesModifications"
    ])  # fmt: skip
    snapshot = ec2.create_snapshot(
        VolumeId=volume, Description="before", TagSpecifications=tagged("snapshot")
    )["SnapshotId"]
    ec2.get_waiter("snapshot_completed").wait(SnapshotIds=[snapshot], WaiterConfig=WAIT)
    restored = ec2.create_volume(
        AvailabilityZone="nova", SnapshotId=snapshot, TagSpecifications=tagged("volume")
    )
    ec2.get_waiter("volume_available").wait(VolumeIds=[restored["VolumeId"]], WaiterConfig=WAIT)
    assert (restored["Size"], restored["SnapshotId"]) == (2, snapshot)
    status = ec2.describe_volume_status(VolumeIds=[volume])["VolumeStatuses"]
    assert status[0]["VolumeStatus"]["Status"] == "ok"

    pages = ec2.get_paginator("describe_volumes").paginate(PaginationConfig={"PageSize": 5})
    seen = [row["VolumeId"] for page in pages for row in page["Volumes"]]
    assert {volume, restored["VolumeId"]} <= set(seen)
    assert len(seen) == len(set(seen))

    ec2.detach_volume(VolumeId=volume)
    ec2.get_waiter("volume_available").wait(VolumeIds=[volume], WaiterConfig=WAIT)
    ec2.delete_snapshot(SnapshotId=snapshot)
    gone = [{"Name": "snapshot-id", "Values": [snapshot]}]
    until(lambda: not ec2.describe_snapshots(Filters=gone)["Snapshots"])
    ec2.delete_volume(VolumeId=volume)
    ec2.get_waiter("volume_deleted").wait(VolumeIds=[volume], WaiterConfig=WAIT)
    names = {row["name"] for row in mine.stored("volumes")}
    assert volume not in names
    assert restored["VolumeId"] in names


def test_the_cli_makes_and_deletes_volumes(aws: Aws) -> None:
    tags = f"Tags=[{{Key={TAG['Key']},Value={TAG['Value']}}}]"
    made = aws(
        "create-volume", "--availability-zone", "nova", "--size", "1",
        "--tag-specifications", f"ResourceType=volume,{tags}",
    )  # fmt: skip
    volume = made["VolumeId"]
    assert made["Tags"] == [TAG]
    aws("wait", "volume-available", "--volume-ids", volume)
    snapshot = aws(
        "create-snapshot", "--volume-id", volume, "--description", "123",
        "--tag-specifications", f"ResourceType=snapshot,{tags}",
    )["SnapshotId"]  # fmt: skip
    aws("wait", "snapshot-completed", "--snapshot-ids", snapshot)
    [shown] = aws("describe-snapshots", "--owner-ids", "self", "--snapshot-ids", snapshot)[
        "Snapshots"
    ]
    assert (shown["Description"], shown["VolumeId"]) == ("123", volume)
    assert "(IncorrectState)" in aws("delete-volume", "--volume-id", volume, fails=True)
    assert "(DryRunOperation)" in aws(
        "delete-snapshot", "--snapshot-id", snapshot, "--dry-run", fails=True
    )
    aws("delete-snapshot", "--snapshot-id", snapshot)
    gone = ("describe-snapshots", "--filters", f"Name=snapshot-id,Values={snapshot}")
    until(lambda: not aws(*gone)["Snapshots"])
    aws("delete-volume", "--volume-id", volume)
    aws("wait", "volume-deleted", "--volume-ids", volume)
    assert "(InvalidVolume.NotFound)" in aws("describe-volumes", "--volume-ids", volume, fails=True)
    refusal = aws("create-volume", "--availability-zone", "nova", "--size", "1",
                  "--encrypted", fails=True)  # fmt: skip
    assert "(UnsupportedOperation)" in refusal


def test_the_cli_imports_a_key(aws: Aws, ec2: Any, tmp_path: Path) -> None:
    name, tags = "e2e-storage-import", f"Tags=[{{Key={TAG['Key']},Value={TAG['Value']}}}]"
    blob = b"\0\0\0\x0bssh-ed25519\0\0\0 " + bytes(range(32))
    public = tmp_path / "key.pub"
    public.write_text(f"ssh-ed25519 {base64.b64encode(blob).decode()} me@here\n")
    made = aws(
        "import-key-pair", "--key-name", name, "--public-key-material", f"fileb://{public}",
        "--tag-specifications", f"ResourceType=key-pair,{tags}",
    )  # fmt: skip
    aws("wait", "key-pair-exists", "--key-names", name)
    [shown] = aws("describe-key-pairs", "--key-names", name, "--include-public-key")["KeyPairs"]
    assert (shown["KeyPairId"], shown["KeyType"]) == (made["KeyPairId"], "ed25519")
    assert shown["PublicKey"].startswith(public.read_text().rsplit(" ", 1)[0])
    assert shown["Tags"] == [TAG]
    again = aws("create-key-pair", "--key-name", name, fails=True)
    assert "(InvalidKeyPair.Duplicate)" in again
    assert aws("delete-key-pair", "--key-name", name)["Return"] is True
    absent = aws("describe-key-pairs", "--key-names", name, fails=True)
    assert "(InvalidKeyPair.NotFound)" in absent
