"""The metadata tree and who may read it."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import pytest

from trimaran.ec2.metadata import tree
from trimaran.ec2.metadata.caller import caller_of
from trimaran.ec2.metadata.tree import Facts, look_up, steps_of
from trimaran.errors import BadRequest, Forbidden, NotFound

SERVER = "11111111-2222-3333-4444-555555555555"
INSTANCE: dict[str, Any] = {
    "InstanceId": "i-1",
    "ImageId": "ami-1",
    "InstanceType": "m1.tiny",
    "AmiLaunchIndex": 2,
    "PrivateIpAddress": "10.0.0.5",
    "PrivateDnsName": "web-1",
    "PublicDnsName": "",
    "Placement": {"AvailabilityZone": "nova"},
    "SecurityGroups": [{"GroupName": "default"}, {"GroupName": "web"}],
    "RootDeviceName": "/dev/vda",
    "BlockDeviceMappings": [
        {"DeviceName": "/dev/vdc"},
        {"DeviceName": "/dev/vda"},
        {"DeviceName": "/dev/vdb"},
    ],
}
FACTS = Facts(INSTANCE, "r-1", "10.9.9.9", user_data=b"\x1f\x8b\x00", keys={"mine": "ssh-rsa AAAA"})


def read(path: str, facts: Facts = FACTS) -> Any:
    version, *rest = steps_of(path)
    return look_up(tree.tree(facts, version), rest)


def headers(secret: str = "s", **changed: str | None) -> dict[str, str]:
    made: dict[str, str | None] = {
        "x-instance-id": SERVER,
        "x-tenant-id": "a" * 32,
        "x-instance-id-signature": hmac.new(
            secret.encode(), SERVER.encode(), hashlib.sha256
        ).hexdigest(),
        "x-forwarded-for": "10.0.0.5, 10.0.0.1",
    }
    made.update({name.replace("_", "-"): value for name, value in changed.items()})
    return {name: value for name, value in made.items() if value is not None}


def test_the_agents_signature_says_who_asks() -> None:
    caller = caller_of(headers(), "s")
    assert (caller.server_id, caller.project_id, caller.address) == (SERVER, "a" * 32, "10.0.0.5")
    assert caller_of(headers(""), "").server_id == SERVER


@pytest.mark.parametrize("name", ["x_instance_id", "x_tenant_id", "x_forwarded_for"])
def test_a_missing_header_is_400(name: str) -> None:
    for value in (None, "", " "):
        with pytest.raises(BadRequest, match="missing"):
            caller_of(headers(**{name: value}), "s")


@pytest.mark.parametrize("signature", ["0" * 64, "é", "x", hashlib.sha256(b"").hexdigest()])
def test_a_wrong_signature_is_403(signature: str) -> None:
    with pytest.raises(Forbidden):
        caller_of(headers(x_instance_id_signature=signature), "s")
    with pytest.raises(Forbidden):
        caller_of(headers("other"), "s")


def test_ids_are_ids_even_when_signed() -> None:
    signature = hmac.new(b"s", b"../x", hashlib.sha256).hexdigest()
    changed = {"x_instance_id": "../x", "x_instance_id_signature": signature}
    with pytest.raises(BadRequest):
        caller_of(headers(**changed), "s")
    with pytest.raises(BadRequest):
        caller_of(headers(x_tenant_id="a/../b"), "s")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/latest", "meta-data/\nuser-data"),
        ("/ec2/latest//meta-data/instance-id/", "i-1"),
        ("/latest/user-data", b"\x1f\x8b\x00"),
        ("/latest/meta-data/ami-id", "ami-1"),
        ("/latest/meta-data/ami-launch-index", "2"),
        ("/latest/meta-data/placement", "availability-zone"),
        ("/latest/meta-data/placement/availability-zone", "nova"),
        ("/latest/meta-data/security-groups", "default\nweb"),
        ("/latest/meta-data/public-ipv4", ""),
        ("/latest/meta-data/block-device-mapping", "ami\nebs0\nebs1\nroot"),
        ("/latest/meta-data/block-device-mapping/ami", "vda"),
        ("/latest/meta-data/block-device-mapping/ebs1", "/dev/vdc"),
        ("/latest/meta-data/public-keys", "0=mine"),
        ("/latest/meta-data/public-keys/0", "openssh-key"),
        ("/latest/meta-data/public-keys/0=mine/openssh-key", "ssh-rsa AAAA"),
        ("/2008-09-01/meta-data/ami-id", "ami-1"),
        ("/1.0/meta-data/local-ipv4", "10.0.0.5"),
    ],
)
def test_paths(path: str, text: str | bytes) -> None:
    assert read(path) == text


@pytest.mark.parametrize(
    "path",
    [
        "/latest/meta-data/nothing",
        "/latest/meta-data/ami-id/x",
        "/latest/meta-data/security-groups/default",
        "/latest/meta-data/kernel-id",
        "/1.0/meta-data/placement",
        "/2007-12-15/meta-data/kernel-id",
        "/latest/iam/security-credentials/",
        "/latest/../latest",
        "/latest/user-data/x",
    ],
)
def test_paths_that_are_not_there(path: str) -> None:
    with pytest.raises(NotFound):
        read(path)


def test_every_listed_name_answers() -> None:
    def crawl(path: str) -> int:
        count = 0
        for line in read(path).split("\n"):
            if "=" in line:
                line = line.split("=")[0] + "/"
            found = read(f"{path}/{line}")
            count += 1 + (crawl(f"{path}/{line}") if line.endswith("/") else 0)
            assert found is not None
        return count

    assert crawl("/latest/meta-data") > 20


def test_what_is_absent_is_not_listed() -> None:
    bare = Facts({"InstanceId": "i-1"}, "r-1", "10.9.9.9")
    assert read("/latest", bare) == "meta-data/"
    names = read("/latest/meta-data", bare).split("\n")
    assert not {"ami-id", "kernel-id", "ramdisk-id", "public-keys/"} & set(names)
    assert read("/latest/meta-data/local-ipv4", bare) == "10.9.9.9"
    gone = Facts(INSTANCE, "r-1", keys={"mine": None})
    assert read("/latest/meta-data/public-keys/0", gone) == ""


def test_the_first_version_is_smaller_than_the_last() -> None:
    first = set(read("/1.0/meta-data").split("\n"))
    last = set(read("/2009-04-04/meta-data").split("\n"))
    assert first < last
    assert read("/latest/meta-data") == read("/2009-04-04/meta-data")
    assert tree.versions().split("\n")[0] == "1.0"
    assert tree.versions().endswith("latest")
