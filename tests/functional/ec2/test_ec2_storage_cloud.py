"""Volumes, snapshots and key pairs on a real OpenStack; each change is looked at there as well."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.cloud import ADMIN, ALT, DEMO, CloudEnv
from tests.support.ec2 import Daemon, keys_of, running, write_conf
from tests.support.ports import free_port
from tests.support.quotas import quota

WAIT = {"Delay": 1, "MaxAttempts": 120}
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


@pytest.fixture
def demo(api: Daemon, cloud_env: CloudEnv) -> Any:
    return api.client(keys_of(cloud_env, DEMO))


@pytest.fixture
def alt(api: Daemon, cloud_env: CloudEnv) -> Any:
    return api.client(keys_of(cloud_env, ALT))


class Cloud:
    """What a test looks at directly, and clears away."""

    def __init__(self, env: CloudEnv) -> None:
        self.env = env
        self.names: set[str] = set()

    def rows(self, what: str) -> dict[str, dict[str, Any]]:
        """Cinder's volumes or snapshots of this test by name."""
        listed = self.env.call(DEMO, VOLUMES, "GET", f"/{what}/detail")[what]
        return {row["name"]: row for row in listed if row["name"] in self.names}

    def note(self, name: str) -> str:
        """Remembers a name for the clearing."""
        self.names.add(name)
        return name

    def clear(self) -> None:
        for row in self.env.call(DEMO, "compute", "GET", "/servers")["servers"]:
            if row["name"] in self.names:
                self.delete("compute", f"/servers/{row['id']}")
        until(lambda: not self._servers())
        for what in ("snapshots", "volumes"):
            for row in self.rows(what).values():
                self.delete(VOLUMES, f"/{what}/{row['id']}")
            until(lambda what=what: not self.rows(what))

    def _servers(self) -> set[str]:
        rows = self.env.call(DEMO, "compute", "GET", "/servers")["servers"]
        return {row["name"] for row in rows} & self.names

    def delete(self, service: str, path: str) -> None:
        self.env.call(DEMO, service, "DELETE", path, raise_exc=False)


@pytest.fixture
def cloud(cloud_env: CloudEnv) -> Iterator[Cloud]:
    made = Cloud(cloud_env)
    yield made
    made.clear()


def until(question: Callable[[], Any], seconds: float = 120) -> Any:
    deadline = time.monotonic() + seconds
    while not (answer := question()):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    return answer


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
def test_the_life_of_a_volume(demo: Any, alt: Any, cloud: Cloud) -> None:
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
    assert code(demo.create_volume, **request, DryRun=True) == "DryRunOperation"
    made = demo.create_volume(**request)
    volume = cloud.note(made["VolumeId"])
    assert demo.create_volume(**request)["VolumeId"] == volume
    wait(demo, "volume_available", VolumeIds=[volume])
    row = cloud.rows("volumes")[volume]
    assert (row["size"], row["status"], row["availability_zone"]) == (1, "available", "nova")
    shown = volume_of(demo, volume)
    assert shown["Tags"] == [{"Key": "a:b", "Value": "<007> ü"}]
    assert (shown["VolumeType"], shown["Encrypted"]) == ("gp3", False)
    by_tag = [{"Name": "tag:a:b", "Values": ["<00?>*"]}]
    assert [row["VolumeId"] for row in demo.describe_volumes(Filters=by_tag)["Volumes"]] == [volume]

    unknown = "InvalidVolume.NotFound"
    assert code(alt.describe_volumes, VolumeIds=[volume]) == unknown
    assert code(alt.create_snapshot, VolumeId=volume) == unknown
    assert code(alt.delete_volume, VolumeId=volume) == unknown
    assert volume not in str(alt.describe_volumes()) + str(alt.describe_tags())

    snapshot = cloud.note(demo.create_snapshot(VolumeId=volume, Description="123")["SnapshotId"])
    wait(demo, "snapshot_completed", SnapshotIds=[snapshot])
    [taken] = demo.describe_snapshots(SnapshotIds=[snapshot])["Snapshots"]
    told = (taken["State"], taken["Progress"], taken["Description"], taken["VolumeId"])
    assert told == ("completed", "100%", "123", volume)
    assert cloud.rows("snapshots")[snapshot]["description"] == "123"
    assert code(alt.create_volume, SnapshotId=snapshot, AvailabilityZone="nova") == (
        "InvalidSnapshot.NotFound"
    )
    assert code(demo.delete_volume, VolumeId=volume) == "IncorrectState"

    larger = demo.create_volume(SnapshotId=snapshot, Size=2, AvailabilityZone="nova")
    copy = cloud.note(larger["VolumeId"])
    wait(demo, "volume_available", VolumeIds=[copy])
    assert cloud.rows("volumes")[copy]["size"] == 2
    assert volume_of(demo, copy)["SnapshotId"] == snapshot

    assert demo.delete_snapshot(SnapshotId=snapshot)
    until(lambda: not cloud.rows("snapshots"))
    assert code(demo.describe_snapshots, SnapshotIds=[snapshot]) == "InvalidSnapshot.NotFound"
    for each in (volume, copy):
        assert demo.delete_volume(VolumeId=each)
        # One by one: of several ids, the waiter is content with the first that is gone.
        wait(demo, "volume_deleted", VolumeIds=[each])
    assert cloud.rows("volumes") == {}
    assert volume not in str(demo.describe_tags())


def test_a_volume_is_changed(demo: Any, cloud: Cloud) -> None:
    volume = cloud.note(demo.create_volume(Size=1, AvailabilityZone="nova")["VolumeId"])
    wait(demo, "volume_available", VolumeIds=[volume])
    before = cloud.rows("volumes")[volume]["volume_type"]

    def ended() -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            [row] = demo.describe_volumes_modifications(VolumeIds=[volume])["VolumesModifications"]
            return None if row["ModificationState"] == "modifying" else dict(row)

        return dict(until(look))

    demo.modify_volume(VolumeId=volume, Size=2)
    row = ended()
    told = (row["ModificationState"], row["OriginalSize"], row["TargetSize"])
    assert told == ("completed", 1, 2)
    assert cloud.rows("volumes")[volume]["size"] == volume_of(demo, volume)["Size"] == 2
    demo.modify_volume(VolumeId=volume, VolumeType="__DEFAULT__")
    assert ended()["ModificationState"] == "completed"
    assert cloud.rows("volumes")[volume]["volume_type"] == "__DEFAULT__" != before
    assert code(demo.modify_volume, VolumeId=volume, Size=1) == "InvalidParameterValue"
    with quota(cloud.env, VOLUMES, gigabytes=1000):
        assert code(demo.modify_volume, VolumeId=volume, Size=2000) in (
            "ResourceLimitExceeded",
            "IncorrectState",
        )
        large = {"Size": 2000, "AvailabilityZone": "nova"}
        assert code(demo.create_volume, **large) == "ResourceLimitExceeded"
    assert code(demo.create_volume, Size=1, AvailabilityZone="mars") == (
        "InvalidAvailabilityZone.NotFound"
    )
    typed = {"Size": 1, "AvailabilityZone": "nova"}
    assert code(demo.create_volume, **typed, VolumeType="mars") == "InvalidParameterValue"
    assert code(demo.create_volume, **typed, Encrypted=True) == "UnsupportedOperation"
    assert set(cloud.rows("volumes")) == {volume}


def test_types_are_chosen_by_what_they_can_do(demo: Any, cloud: Cloud, cloud_env: CloudEnv) -> None:
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
        assert code(demo.create_volume, **size, Encrypted=True, DryRun=True) == "DryRunOperation"
        answer = demo.create_volume(**size, MultiAttachEnabled=True)
        volume = cloud.note(answer["VolumeId"])
        assert (answer["VolumeType"], answer["MultiAttachEnabled"]) == (shared_name, True)
        row = cloud.rows("volumes")[volume]
        assert (row["volume_type"], row["multiattach"]) == (shared_name, True)
    finally:
        cloud.clear()
        for each in (shared, secret):
            admin("DELETE", f"/types/{each}")
    assert code(demo.create_volume, **size, Encrypted=True) == "UnsupportedOperation"
    assert code(demo.create_volume, **size, MultiAttachEnabled=True) == "UnsupportedOperation"


@pytest.fixture
def instance(demo: Any, cloud: Cloud) -> str:
    images = demo.describe_images(Filters=[{"Name": "state", "Values": ["available"]}])["Images"]
    image = next(row["ImageId"] for row in images if row["RootDeviceType"] == "instance-store")
    answer = demo.run_instances(ImageId=image, MinCount=1, MaxCount=1, InstanceType="cirros256")
    made = cloud.note(answer["Instances"][0]["InstanceId"])
    wait(demo, "instance_running", InstanceIds=[made])
    return made


def test_volumes_and_instances(demo: Any, cloud: Cloud, instance: str) -> None:
    volume = cloud.note(demo.create_volume(Size=1, AvailabilityZone="nova")["VolumeId"])
    other = cloud.note(demo.create_volume(Size=1, AvailabilityZone="nova")["VolumeId"])
    wait(demo, "volume_available", VolumeIds=[volume, other])
    place = {"VolumeId": volume, "InstanceId": instance, "Device": "/dev/sdh"}
    assert code(demo.attach_volume, **{**place, "Device": "xyz!"}) == "InvalidParameterValue"
    assert code(demo.attach_volume, **place, DryRun=True) == "DryRunOperation"
    answer = demo.attach_volume(**place)
    assert (answer["State"], answer["DeleteOnTermination"]) == ("attaching", False)
    [attachment] = volume_of(demo, volume)["Attachments"]
    assert {name: attachment[name] for name in place} == place
    wait(demo, "volume_in_use", VolumeIds=[volume])
    by = [{"Name": "attachment.instance-id", "Values": [instance]}]
    by += [{"Name": "attachment.device", "Values": ["/dev/sdh"]}]

    def attached() -> Any:
        rows = demo.describe_volumes(Filters=by)["Volumes"]
        return rows and rows[0]["Attachments"][0]["State"] == "attached" and rows[0]

    shown = until(attached)
    assert shown["Attachments"][0]["DeleteOnTermination"] is False
    row = cloud.rows("volumes")[volume]
    server = row["attachments"][0]["server_id"]
    path = f"/servers/{server}/os-volume_attachments"
    listed = cloud.env.call(DEMO, "compute", "GET", path)["volumeAttachments"]
    assert [each["volumeId"] for each in listed] == [row["id"]]

    assert code(demo.attach_volume, **place) == "VolumeInUse"
    assert code(demo.delete_volume, VolumeId=volume) == "VolumeInUse"
    assert code(demo.attach_volume, **{**place, "VolumeId": other}) == "InvalidParameterValue"
    assert code(demo.detach_volume, VolumeId=other) == "IncorrectState"
    demo.modify_volume(VolumeId=volume, Size=2)
    until(lambda: cloud.rows("volumes")[volume]["status"] == "in-use")
    assert cloud.rows("volumes")[volume]["size"] == 2
    taken = cloud.note(demo.create_snapshot(VolumeId=volume)["SnapshotId"])
    wait(demo, "snapshot_completed", SnapshotIds=[taken])

    answer = demo.detach_volume(VolumeId=volume, InstanceId=instance)
    assert (answer["State"], answer["Device"]) == ("detaching", "/dev/sdh")
    wait(demo, "volume_available", VolumeIds=[volume])
    assert volume_of(demo, volume)["Attachments"] == []
    assert cloud.env.call(DEMO, "compute", "GET", path)["volumeAttachments"] == []

    # Attached behind our back, in another way than we do it.
    other_os = cloud.rows("volumes")[other]["id"]
    body = {"volumeId": other_os, "delete_on_termination": True}
    headers = {"OpenStack-API-Version": "compute 2.79"}
    cloud.env.call(DEMO, "compute", "POST", path, json={"volumeAttachment": body}, headers=headers)
    until(lambda: cloud.rows("volumes")[other]["status"] == "in-use")
    [attachment] = volume_of(demo, other)["Attachments"]
    told = (attachment["InstanceId"], attachment["DeleteOnTermination"])
    assert told == (instance, True)
    demo.terminate_instances(InstanceIds=[instance])
    wait(demo, "instance_terminated", InstanceIds=[instance])
    wait(demo, "volume_deleted", VolumeIds=[other])


def test_cinders_own_appear_and_vanish(demo: Any, cloud: Cloud, cloud_env: CloudEnv) -> None:
    name = cloud.note(f"direct-{uuid.uuid4().hex[:8]}")
    body = {"volume": {"size": 1, "name": name}}
    os_id = cloud_env.call(DEMO, VOLUMES, "POST", "/volumes", json=body)["volume"]["id"]
    until(lambda: cloud.rows("volumes")[name]["status"] == "available")
    before = {row["VolumeId"] for row in demo.describe_volumes()["Volumes"]}
    assert {row["VolumeId"] for row in demo.describe_volumes()["Volumes"]} == before
    body = {"snapshot": {"volume_id": os_id, "name": name, "description": name}}
    snapshot = cloud_env.call(DEMO, VOLUMES, "POST", "/snapshots", json=body)["snapshot"]["id"]
    until(lambda: cloud.rows("snapshots")[name]["status"] == "available")
    by = [{"Name": "description", "Values": [name]}]
    [mine] = demo.describe_snapshots(OwnerIds=["self"], Filters=by)["Snapshots"]
    assert mine["VolumeId"] in before
    cloud_env.call(DEMO, VOLUMES, "DELETE", f"/snapshots/{snapshot}")
    until(lambda: not cloud.rows("snapshots"))
    after = demo.describe_snapshots()["Snapshots"]
    assert mine["SnapshotId"] not in {row["SnapshotId"] for row in after}
    cloud_env.call(DEMO, VOLUMES, "DELETE", f"/volumes/{os_id}")
    until(lambda: not cloud.rows("volumes"))
    assert mine["VolumeId"] not in {row["VolumeId"] for row in demo.describe_volumes()["Volumes"]}


def test_key_pairs(demo: Any, alt: Any, cloud_env: CloudEnv) -> None:
    name = f"p1@{uuid.uuid4().hex[:8]}.test"
    path = f"/os-keypairs/{name}"
    try:
        assert code(demo.create_key_pair, KeyName=name, DryRun=True) == "DryRunOperation"
        made = demo.create_key_pair(KeyName=name, KeyType="ed25519")
        stored = cloud_env.call(DEMO, "compute", "GET", path)["keypair"]
        assert stored["fingerprint"] == made["KeyFingerprint"]
        assert code(demo.create_key_pair, KeyName=name) == "InvalidKeyPair.Duplicate"
        wait(demo, "key_pair_exists", KeyNames=[name])
        [shown] = demo.describe_key_pairs(KeyNames=[name], IncludePublicKey=True)["KeyPairs"]
        assert shown["PublicKey"] == stored["public_key"]
        assert shown["KeyPairId"] == made["KeyPairId"]
        assert shown["CreateTime"].year >= 2024
        demo.create_tags(Resources=[made["KeyPairId"]], Tags=[{"Key": "k", "Value": "v"}])
        [shown] = demo.describe_key_pairs(KeyPairIds=[made["KeyPairId"]])["KeyPairs"]
        assert shown["Tags"] == [{"Key": "k", "Value": "v"}]
        assert code(alt.describe_key_pairs, KeyNames=[name]) == "InvalidKeyPair.NotFound"
        assert code(demo.import_key_pair, KeyName=f"{name}2", PublicKeyMaterial=b"junk") == (
            "InvalidKey.Format"
        )
        assert demo.delete_key_pair(KeyName=name)["Return"] is True
        answer = cloud_env.session(DEMO).get(
            path, endpoint_filter={"service_type": "compute"}, raise_exc=False
        )
        assert answer.status_code == 404
        again = demo.import_key_pair(KeyName=name, PublicKeyMaterial=stored["public_key"].encode())
        assert again["KeyPairId"] == made["KeyPairId"]
        assert "Tags" not in demo.describe_key_pairs(KeyNames=[name])["KeyPairs"][0]
        assert demo.delete_key_pair(KeyPairId=again["KeyPairId"])["Return"] is True
        assert demo.delete_key_pair(KeyPairId=again["KeyPairId"])["Return"] is True
        assert code(demo.describe_key_pairs, KeyNames=[name]) == "InvalidKeyPair.NotFound"
    finally:
        with contextlib.suppress(ClientError):
            demo.delete_key_pair(KeyName=name)
