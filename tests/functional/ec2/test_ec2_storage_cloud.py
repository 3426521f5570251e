"""Volumes, snapshots and key pairs on a real OpenStack; each change is looked at there as well."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.cloud import ADMIN, ALT, CloudEnv
from tests.support.ec2 import Daemon, keys_of, running, write_conf
from tests.support.ec2_tenant import Tenant, tenant, until
from tests.support.ports import free_port
from tests.support.quotas import quota

WAIT = {"Delay": 1, "MaxAttempts": 300}
VOLUMES = "block-storage"


@pytest.fixture
def api(
    request: pytest.FixtureRequest,
    cloud_env: CloudEnv,
    tmp_path: Path,
    migrated: Callable[[str, str], str],
) -> Iterator[Daemon]:
    """The API on the database server that the test names (MariaDB unless it does)."""
    kind = getattr(request, "param", "mariadb")
    database = migrated(request.getfixturevalue(f"{kind}_url"), "ec2")
    port = free_port()
    # With EC2-Classic a launch without subnet goes into the project's own network.
    options = {"ec2api_listen_port": port, "disable_ec2_classic": False}
    conf = write_conf(tmp_path, cloud_env, database, **options)
    with running("ec2-api", conf, port) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def mine(cloud_env: CloudEnv) -> Iterator[Tenant]:
    """A project in which nobody else makes anything."""
    with tenant(cloud_env) as made:
        made.project.own_network()
        yield made


@pytest.fixture
def ec2(api: Daemon, mine: Tenant) -> Any:
    return api.client(mine.keys)


@pytest.fixture
def alt(api: Daemon, cloud_env: CloudEnv) -> Any:
    return api.client(keys_of(cloud_env, ALT))


class Cloud:
    """What a test looks at directly, and clears away."""

    def __init__(self, mine: Tenant) -> None:
        self.mine = mine
        self.names: set[str] = set()

    def rows(self, what: str) -> dict[str, dict[str, Any]]:
        """Cinder's volumes or snapshots of this test by name."""
        return {row["name"]: row for row in self.mine.stored(what) if row["name"] in self.names}

    def note(self, name: str) -> str:
        """Remembers a name for the clearing."""
        self.names.add(name)
        return name

    def clear(self) -> None:
        for name, row in self.mine.servers().items():
            if name in self.names:
                self.mine.nova("DELETE", f"/servers/{row['id']}", raise_exc=False)
        until(lambda: not self.names & set(self.mine.servers()))
        for what in ("snapshots", "volumes"):
            for row in self.rows(what).values():
                self.mine.cinder("DELETE", f"/{what}/{row['id']}", raise_exc=False)
            until(lambda what=what: not self.rows(what))


@pytest.fixture
def cloud(mine: Tenant) -> Iterator[Cloud]:
    made = Cloud(mine)
    yield made
    made.clear()


def code(call: Any, **request: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(**request)
    return str(caught.value.response["Error"]["Code"])


def volume_of(client: Any, volume_id: str) -> dict[str, Any]:
    [row] = client.describe_volumes(VolumeIds=[volume_id])["Volumes"]
    return dict(row)


def wait(client: Any, waiter: str, **ids: Any) -> None:
    client.get_waiter(waiter).wait(**ids, WaiterConfig=WAIT)


@pytest.mark.parametrize("api", ["mariadb", "postgresql"], indirect=True)
def test_the_life_of_a_volume(ec2: Any, alt: Any, cloud: Cloud) -> None:
    token = uuid.uuid4().hex
    request = {
        "Size": 1,
        "AvailabilityZone": "nova",
        "VolumeType": "gp3",
        "ClientToken": token,
        "TagSpecifications": [
            {"ResourceType": "volume", "Tags": [{"Key": "a:b", "Value": "<007> ü"}]}
        ],
    }
    assert code(ec2.create_volume, **request, DryRun=True) == "DryRunOperation"
    made = ec2.create_volume(**request)
    volume = cloud.note(made["VolumeId"])
    assert ec2.create_volume(**request)["VolumeId"] == volume
    wait(ec2, "volume_available", VolumeIds=[volume])
    row = cloud.rows("volumes")[volume]
    assert (row["size"], row["status"], row["availability_zone"]) == (1, "available", "nova")
    shown = volume_of(ec2, volume)
    assert shown["Tags"] == [{"Key": "a:b", "Value": "<007> ü"}]
    assert (shown["VolumeType"], shown["Encrypted"]) == ("gp3", False)
    by_tag = [{"Name": "tag:a:b", "Values": ["<00?>*"]}]
    assert [row["VolumeId"] for row in ec2.describe_volumes(Filters=by_tag)["Volumes"]] == [volume]

    unknown = "InvalidVolume.NotFound"
    assert code(alt.describe_volumes, VolumeIds=[volume]) == unknown
    assert code(alt.create_snapshot, VolumeId=volume) == unknown
    assert code(alt.delete_volume, VolumeId=volume) == unknown
    assert volume not in str(alt.describe_volumes()) + str(alt.describe_tags())

    snapshot = cloud.note(ec2.create_snapshot(VolumeId=volume, Description="123")["SnapshotId"])
    wait(ec2, "snapshot_completed", SnapshotIds=[snapshot])
    [taken] = ec2.describe_snapshots(SnapshotIds=[snapshot])["Snapshots"]
    told = (taken["State"], taken["Progress"], taken["Description"], taken["VolumeId"])
    assert told == ("completed", "100%", "123", volume)
    assert cloud.rows("snapshots")[snapshot]["description"] == "123"
    assert code(alt.create_volume, SnapshotId=snapshot, AvailabilityZone="nova") == (
        "InvalidSnapshot.NotFound"
    )
    assert code(ec2.delete_volume, VolumeId=volume) == "IncorrectState"

    larger = ec2.create_volume(SnapshotId=snapshot, Size=2, AvailabilityZone="nova")
    copy = cloud.note(larger["VolumeId"])
    wait(ec2, "volume_available", VolumeIds=[copy])
    assert cloud.rows("volumes")[copy]["size"] == 2
    assert volume_of(ec2, copy)["SnapshotId"] == snapshot

    assert ec2.delete_snapshot(SnapshotId=snapshot)
    until(lambda: not cloud.rows("snapshots"))
    assert code(ec2.describe_snapshots, SnapshotIds=[snapshot]) == "InvalidSnapshot.NotFound"
    for each in (volume, copy):
        assert ec2.delete_volume(VolumeId=each)
        # One by one: of several ids, the waiter is content with the first that is gone.
        wait(ec2, "volume_deleted", VolumeIds=[each])
    assert cloud.rows("volumes") == {}
    assert volume not in str(ec2.describe_tags())


def test_a_volume_is_changed(ec2: Any, cloud: Cloud) -> None:
    volume = cloud.note(ec2.create_volume(Size=1, AvailabilityZone="nova")["VolumeId"])
    wait(ec2, "volume_available", VolumeIds=[volume])
    before = cloud.rows("volumes")[volume]["volume_type"]

    def ended() -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            [row] = ec2.describe_volumes_modifications(VolumeIds=[volume])["VolumesModifications"]
            return None if row["ModificationState"] == "modifying" else dict(row)

        return dict(until(look))

    ec2.modify_volume(VolumeId=volume, Size=2)
    row = ended()
    told = (row["ModificationState"], row["OriginalSize"], row["TargetSize"])
    assert told == ("completed", 1, 2)
    assert cloud.rows("volumes")[volume]["size"] == volume_of(ec2, volume)["Size"] == 2
    ec2.modify_volume(VolumeId=volume, VolumeType="__DEFAULT__")
    assert ended()["ModificationState"] == "completed"
    assert cloud.rows("volumes")[volume]["volume_type"] == "__DEFAULT__" != before
    assert code(ec2.modify_volume, VolumeId=volume, Size=1) == "InvalidParameterValue"
    with quota(cloud.mine.env, VOLUMES, cloud.mine.project.person, gigabytes=1000):
        assert code(ec2.modify_volume, VolumeId=volume, Size=2000) in (
            "ResourceLimitExceeded",
            "IncorrectState",
        )
        large = {"Size": 2000, "AvailabilityZone": "nova"}
        assert code(ec2.create_volume, **large) == "ResourceLimitExceeded"
    assert code(ec2.create_volume, Size=1, AvailabilityZone="mars") == (
        "InvalidAvailabilityZone.NotFound"
    )
    typed = {"Size": 1, "AvailabilityZone": "nova"}
    assert code(ec2.create_volume, **typed, VolumeType="mars") == "InvalidParameterValue"
    assert code(ec2.create_volume, **typed, Encrypted=True) == "UnsupportedOperation"
    assert set(cloud.rows("volumes")) == {volume}


def test_types_are_chosen_by_what_they_can_do(ec2: Any, cloud: Cloud, cloud_env: CloudEnv) -> None:
    def admin(method: str, path: str, **body: Any) -> Any:
        return cloud_env.call(ADMIN, VOLUMES, method, path, **({"json": body} if body else {}))

    def new_type(word: str) -> tuple[str, str]:
        made = admin("POST", "/types", volume_type={"name": f"{word}-{uuid.uuid4().hex[:8]}"})
        return made["volume_type"]["id"], made["volume_type"]["name"]

    size = {"Size": 1, "AvailabilityZone": "nova"}
    shared, shared_name = new_type("shared")
    secret, _ = new_type("secret")
    try:
        specs = {"multiattach": "<is> True"}
        admin("POST", f"/types/{shared}/extra_specs", extra_specs=specs)
        luks = {"provider": "luks", "control_location": "front-end", "key_size": 256}
        admin("POST", f"/types/{secret}/encryption", encryption={**luks, "cipher": "aes-xts"})
        # Making one would take a driver that can encrypt.
        assert code(ec2.create_volume, **size, Encrypted=True, DryRun=True) == "DryRunOperation"
        answer = ec2.create_volume(**size, MultiAttachEnabled=True)
        volume = cloud.note(answer["VolumeId"])
        assert (answer["VolumeType"], answer["MultiAttachEnabled"]) == (shared_name, True)
        row = cloud.rows("volumes")[volume]
        assert (row["volume_type"], row["multiattach"]) == (shared_name, True)
    finally:
        cloud.clear()
        for each in (shared, secret):
            admin("DELETE", f"/types/{each}")
    assert code(ec2.create_volume, **size, Encrypted=True) == "UnsupportedOperation"
    assert code(ec2.create_volume, **size, MultiAttachEnabled=True) == "UnsupportedOperation"


@pytest.fixture
def instance(ec2: Any, cloud: Cloud) -> str:
    named = [{"Name": "name", "Values": ["cirros-sandbox"]}]
    [image] = ec2.describe_images(Filters=named)["Images"]
    request = {"ImageId": image["ImageId"], "InstanceType": "cirros256"}
    answer = ec2.run_instances(MinCount=1, MaxCount=1, **request)
    made = cloud.note(answer["Instances"][0]["InstanceId"])
    wait(ec2, "instance_running", InstanceIds=[made])
    return made


def test_volumes_and_instances(ec2: Any, cloud: Cloud, instance: str) -> None:
    volume = cloud.note(ec2.create_volume(Size=1, AvailabilityZone="nova")["VolumeId"])
    other = cloud.note(ec2.create_volume(Size=1, AvailabilityZone="nova")["VolumeId"])
    wait(ec2, "volume_available", VolumeIds=[volume, other])
    place = {"VolumeId": volume, "InstanceId": instance, "Device": "/dev/sdh"}
    assert code(ec2.attach_volume, **{**place, "Device": "xyz!"}) == "InvalidParameterValue"
    assert code(ec2.attach_volume, **place, DryRun=True) == "DryRunOperation"
    answer = ec2.attach_volume(**place)
    assert (answer["State"], answer["DeleteOnTermination"]) == ("attaching", False)
    [attachment] = volume_of(ec2, volume)["Attachments"]
    assert {name: attachment[name] for name in place} == place
    wait(ec2, "volume_in_use", VolumeIds=[volume])
    by = [{"Name": "attachment.instance-id", "Values": [instance]}]
    by += [{"Name": "attachment.device", "Values": ["/dev/sdh"]}]

    def attached() -> Any:
        rows = ec2.describe_volumes(Filters=by)["Volumes"]
        return rows and rows[0]["Attachments"][0]["State"] == "attached" and rows[0]

    shown = until(attached)
    assert shown["Attachments"][0]["DeleteOnTermination"] is False
    row = cloud.rows("volumes")[volume]
    server = row["attachments"][0]["server_id"]
    path = f"/servers/{server}/os-volume_attachments"
    listed = cloud.mine.nova("GET", path)["volumeAttachments"]
    assert [each["volumeId"] for each in listed] == [row["id"]]

    assert code(ec2.attach_volume, **place) == "VolumeInUse"
    assert code(ec2.delete_volume, VolumeId=volume) == "VolumeInUse"
    assert code(ec2.attach_volume, **{**place, "VolumeId": other}) == "InvalidParameterValue"
    assert code(ec2.detach_volume, VolumeId=other) == "IncorrectState"
    ec2.modify_volume(VolumeId=volume, Size=2)
    until(lambda: cloud.rows("volumes")[volume]["status"] == "in-use")
    assert cloud.rows("volumes")[volume]["size"] == 2
    taken = cloud.note(ec2.create_snapshot(VolumeId=volume)["SnapshotId"])
    wait(ec2, "snapshot_completed", SnapshotIds=[taken])

    answer = ec2.detach_volume(VolumeId=volume, InstanceId=instance)
    assert (answer["State"], answer["Device"]) == ("detaching", "/dev/sdh")
    wait(ec2, "volume_available", VolumeIds=[volume])
    assert volume_of(ec2, volume)["Attachments"] == []
    assert cloud.mine.nova("GET", path)["volumeAttachments"] == []

    # Attached behind our back, in another way than we do it.
    other_os = cloud.rows("volumes")[other]["id"]
    body = {"volumeId": other_os, "delete_on_termination": True}
    headers = {"OpenStack-API-Version": "compute 2.79"}
    cloud.mine.nova("POST", path, json={"volumeAttachment": body}, headers=headers)
    until(lambda: cloud.rows("volumes")[other]["status"] == "in-use")
    [attachment] = volume_of(ec2, other)["Attachments"]
    told = (attachment["InstanceId"], attachment["DeleteOnTermination"])
    assert told == (instance, True)
    ec2.terminate_instances(InstanceIds=[instance])
    wait(ec2, "instance_terminated", InstanceIds=[instance])
    wait(ec2, "volume_deleted", VolumeIds=[other])


def test_cinders_own_appear_and_vanish(ec2: Any, cloud: Cloud, mine: Tenant) -> None:
    name = cloud.note(f"direct-{uuid.uuid4().hex[:8]}")
    body = {"volume": {"size": 1, "name": name}}
    os_id = mine.cinder("POST", "/volumes", json=body)["volume"]["id"]
    until(lambda: cloud.rows("volumes")[name]["status"] == "available")
    before = {row["VolumeId"] for row in ec2.describe_volumes()["Volumes"]}
    assert {row["VolumeId"] for row in ec2.describe_volumes()["Volumes"]} == before
    body = {"snapshot": {"volume_id": os_id, "name": name, "description": name}}
    snapshot = mine.cinder("POST", "/snapshots", json=body)["snapshot"]["id"]
    until(lambda: cloud.rows("snapshots")[name]["status"] == "available")
    by = [{"Name": "description", "Values": [name]}]
    [seen] = ec2.describe_snapshots(OwnerIds=["self"], Filters=by)["Snapshots"]
    assert seen["VolumeId"] in before
    mine.cinder("DELETE", f"/snapshots/{snapshot}")
    until(lambda: not cloud.rows("snapshots"))
    after = ec2.describe_snapshots()["Snapshots"]
    assert seen["SnapshotId"] not in {row["SnapshotId"] for row in after}
    mine.cinder("DELETE", f"/volumes/{os_id}")
    until(lambda: not cloud.rows("volumes"))
    assert seen["VolumeId"] not in {row["VolumeId"] for row in ec2.describe_volumes()["Volumes"]}


def test_key_pairs(ec2: Any, alt: Any, mine: Tenant) -> None:
    name = f"p1@{uuid.uuid4().hex[:8]}.test"
    path = f"/os-keypairs/{name}"
    try:
        assert code(ec2.create_key_pair, KeyName=name, DryRun=True) == "DryRunOperation"
        made = ec2.create_key_pair(KeyName=name, KeyType="ed25519")
        stored = mine.nova("GET", path)["keypair"]
        assert stored["fingerprint"] == made["KeyFingerprint"]
        assert code(ec2.create_key_pair, KeyName=name) == "InvalidKeyPair.Duplicate"
        wait(ec2, "key_pair_exists", KeyNames=[name])
        [shown] = ec2.describe_key_pairs(KeyNames=[name], IncludePublicKey=True)["KeyPairs"]
        assert shown["PublicKey"] == stored["public_key"]
        assert shown["KeyPairId"] == made["KeyPairId"]
        assert shown["CreateTime"].year >= 2024
        ec2.create_tags(Resources=[made["KeyPairId"]], Tags=[{"Key": "k", "Value": "v"}])
        [shown] = ec2.describe_key_pairs(KeyPairIds=[made["KeyPairId"]])["KeyPairs"]
        assert shown["Tags"] == [{"Key": "k", "Value": "v"}]
        assert code(alt.describe_key_pairs, KeyNames=[name]) == "InvalidKeyPair.NotFound"
        assert code(ec2.import_key_pair, KeyName=f"{name}2", PublicKeyMaterial=b"junk") == (
            "InvalidKey.Format"
        )
        assert ec2.delete_key_pair(KeyName=name)["Return"] is True
        answer = mine.project.session.get(
            path, endpoint_filter={"service_type": "compute"}, raise_exc=False
        )
        assert answer.status_code == 404
        again = ec2.import_key_pair(KeyName=name, PublicKeyMaterial=stored["public_key"].encode())
        assert again["KeyPairId"] == made["KeyPairId"]
        assert "Tags" not in ec2.describe_key_pairs(KeyNames=[name])["KeyPairs"][0]
        assert ec2.delete_key_pair(KeyPairId=again["KeyPairId"])["Return"] is True
        assert ec2.delete_key_pair(KeyPairId=again["KeyPairId"])["Return"] is True
        assert code(ec2.describe_key_pairs, KeyNames=[name]) == "InvalidKeyPair.NotFound"
    finally:
        with contextlib.suppress(ClientError):
            ec2.delete_key_pair(KeyName=name)
