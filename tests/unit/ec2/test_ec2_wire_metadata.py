"""The metadata tree, who may read it, and its session tokens."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
from typing import Any

import pytest

from trimaran.db.queries.ec2 import Item
from trimaran.ec2.kinds.instances.instance_metadata import Interface, Surroundings
from trimaran.ec2.metadata import tree
from trimaran.ec2.metadata.admission import TTL_HEADER, Admission
from trimaran.ec2.metadata.caller import Caller, Provider, caller_of
from trimaran.ec2.metadata.contents import Facts
from trimaran.ec2.metadata.later import Later
from trimaran.ec2.metadata.tokens import LONGEST, Tokens
from trimaran.ec2.metadata.tree import look_up, steps_of
from trimaran.errors import BadRequest, Forbidden, NotFound, Unauthenticated, Unavailable

SERVER = "11111111-2222-3333-4444-555555555555"
GUEST = Caller(SERVER, "a" * 32, "10.0.0.5")
MAC = "fa:16:3e:00:00:01"
INSTANCE: dict[str, Any] = {
    "InstanceId": "i-1",
    "ImageId": "ami-1",
    "InstanceType": "m1.tiny",
    "Architecture": "x86_64",
    "KeyName": "mine",
    "AmiLaunchIndex": 2,
    "LaunchTime": "2026-01-02T03:04:05Z",
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
    "MetadataOptions": {"InstanceMetadataTags": "enabled"},
    "Tags": [
        {"Key": "Name", "Value": "web"},
        {"Key": "a/b", "Value": "no name in a path"},
        {"Key": "..", "Value": "nor this"},
    ],
    "ReservationId": "r-1",
    "OwnerId": "p1",
}
PORT = {
    "id": "port-1",
    "mac_address": MAC,
    "fixed_ips": [
        {"subnet_id": "net-1", "ip_address": "10.0.0.9"},
        {"subnet_id": "net-1", "ip_address": "10.0.0.5"},
        {"subnet_id": "net-6", "ip_address": "fd00::5"},
    ],
    "security_groups": ["group-2", "group-1", "group-of-nobody"],
}
ITEM = Item("eni-1", "p1", "port-1", "vpc-1", {"private_ip_address": "10.0.0.5"})
AROUND = Surroundings(
    subnets={"net-1": {"cidr": "10.0.0.0/24", "ip_version": 4}},
    groups={"group-1": "default", "group-2": "web"},
    floating=[
        {
            "port_id": "port-1",
            "floating_ip_address": "172.24.4.7",
            "fixed_ip_address": "10.0.0.5",
        },
        {"port_id": "port-of-others", "floating_ip_address": "172.24.4.8"},
    ],
    ids={"net-1": "subnet-1", "group-1": "sg-1"},
    vpcs={"vpc-1": "10.0.0.0/16"},
)


def facts(instance: dict[str, Any] = INSTANCE, **changes: Any) -> Facts:
    made: dict[str, Any] = {
        "interfaces": [Interface(PORT, ITEM, 0)],
        "around": Later(lambda: AROUND),
        "key": Later(lambda: "ssh-rsa AAAA"),
        "region": "RegionOne",
        "domain": "ec2.example.org",
        "address": "10.9.9.9",
        "user_data": b"\x1f\x8b\x00",
    }
    return Facts(instance, **{**made, **changes})


FACTS = facts()


def read(path: str, of: Facts = FACTS, **how: Any) -> Any:
    version, *rest = steps_of(path)
    return look_up(of.tree(version), rest, **how)


def sign(name: str, secret: str = "s") -> str:
    return hmac.new(secret.encode(), name.encode(), hashlib.sha256).hexdigest()


def headers(secret: str = "s", /, **changed: str | None) -> dict[str, str]:
    made: dict[str, str | None] = {
        "x-instance-id": SERVER,
        "x-tenant-id": "a" * 32,
        "x-instance-id-signature": sign(SERVER, secret),
        "x-forwarded-for": "10.0.0.5",
    }
    made.update({name.replace("_", "-"): value for name, value in changed.items()})
    return {name: value for name, value in made.items() if value is not None}


# -- who asks --------------------------------------------------------------------


def test_the_agents_signature_says_who_asks() -> None:
    assert caller_of(headers(), "s") == GUEST
    assert caller_of(headers(""), "") == GUEST
    relayed = caller_of(headers(x_forwarded_for="10.0.0.5, 10.0.0.1"), "s")
    assert relayed == Caller(SERVER, "a" * 32, "10.0.0.5", direct=False)


@pytest.mark.parametrize(
    "name", ["x_instance_id", "x_tenant_id", "x_forwarded_for", "x_instance_id_signature"]
)
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
    changed: dict[str, str | None] = {
        "x_instance_id": "../x",
        "x_instance_id_signature": sign("../x"),
    }
    with pytest.raises(BadRequest):
        caller_of(headers(**changed), "s")
    with pytest.raises(BadRequest):
        caller_of(headers(x_tenant_id="a/../b"), "s")


def nsx(**changed: str | None) -> dict[str, str]:
    made: dict[str, str | None] = {
        "x-metadata-provider": "provider-1",
        "x-metadata-provider-signature": sign("provider-1"),
        "x-forwarded-for": "10.0.0.5, 10.0.0.1",
    }
    made.update({name.replace("_", "-"): value for name, value in changed.items()})
    return {name: value for name, value in made.items() if value is not None}


def test_a_provider_names_its_guest_by_address() -> None:
    assert caller_of(nsx(), "s") == Provider("provider-1", "10.0.0.5")
    unsigned = nsx(x_metadata_provider_signature=None)
    assert caller_of(unsigned, "") == Provider("provider-1", "10.0.0.5")
    with pytest.raises(BadRequest, match="missing"):
        caller_of(unsigned, "s")
    with pytest.raises(Forbidden):
        caller_of(nsx(x_metadata_provider_signature="0" * 64), "s")
    with pytest.raises(BadRequest, match="missing"):
        caller_of(nsx(x_forwarded_for=None), "s")
    with pytest.raises(BadRequest, match="not valid"):
        caller_of(nsx(x_forwarded_for="10.0.0.5&network_id=x"), "s")


# -- tokens and options ------------------------------------------------------------


def test_a_token_is_good_for_its_server_and_its_time() -> None:
    now = [1000.0]
    tokens, elsewhere = (Tokens("s", lambda: now[0]) for _ in range(2))
    token = tokens.make(SERVER, 60)
    assert len(token) == 56
    assert token != tokens.make(SERVER, 60)
    assert elsewhere.accepts(token, SERVER)
    assert not tokens.accepts(token, SERVER.replace("1", "2"))
    assert not Tokens("other", lambda: now[0]).accepts(token, SERVER)
    now[0] += 59.9
    assert tokens.accepts(token, SERVER)
    now[0] += 0.1
    assert not tokens.accepts(token, SERVER)


@pytest.mark.parametrize("token", ["", "x", "é" * 56, "A" * 56, "A" * 55, "=" * 8, "A" * 4000])
def test_what_is_no_token_is_not_accepted(token: str) -> None:
    assert not Tokens("s").accepts(token, SERVER)


def test_a_token_cannot_be_prolonged() -> None:
    tokens = Tokens("s")
    made = tokens.make(SERVER, 60)
    longer = tokens.make(SERVER, LONGEST)
    assert not tokens.accepts(longer[:8] + made[8:], SERVER)


ADMISSION = Admission(Tokens("s"))


def test_the_options_decide_who_may_read() -> None:
    token, seconds = ADMISSION.token(GUEST, {}, {TTL_HEADER: "60"})
    assert seconds == 60
    with_token = {"x-aws-ec2-metadata-token": token}
    ADMISSION.check(GUEST, {}, {})
    ADMISSION.check(GUEST, {}, with_token)
    ADMISSION.check(GUEST, {"HttpTokens": "required"}, with_token)
    with pytest.raises(Unauthenticated, match="required"):
        ADMISSION.check(GUEST, {"HttpTokens": "required"}, {})
    for options in ({}, {"HttpTokens": "required"}):
        with pytest.raises(Unauthenticated, match="not valid"):
            ADMISSION.check(GUEST, options, {"x-aws-ec2-metadata-token": token[:-2] + "AA"})
    with pytest.raises(Forbidden):
        ADMISSION.check(GUEST, {"HttpEndpoint": "disabled"}, with_token)
    with pytest.raises(Forbidden):
        ADMISSION.token(GUEST, {"HttpEndpoint": "disabled"}, {TTL_HEADER: "60"})


@pytest.mark.parametrize(
    "seconds", [None, "", "0", "-1", "21601", "60.0", "x", "\u0669", "1" * 5000]
)
def test_a_token_lives_for_1_to_21600_seconds(seconds: str | None) -> None:
    with pytest.raises(BadRequest):
        ADMISSION.token(GUEST, {}, {} if seconds is None else {TTL_HEADER: seconds})
    assert ADMISSION.token(GUEST, {}, {TTL_HEADER: "21600"})[1] == LONGEST


def test_a_request_through_a_foreign_proxy_gets_no_token() -> None:
    relayed = Caller(SERVER, "a" * 32, "10.0.0.5", direct=False)
    with pytest.raises(Forbidden, match="proxies"):
        ADMISSION.token(relayed, {}, {TTL_HEADER: "60"})


# -- the tree ----------------------------------------------------------------------

NETWORK = f"/latest/meta-data/network/interfaces/macs/{MAC}"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/latest", "dynamic/\nmeta-data/\nuser-data"),
        ("/2009-04-04", "meta-data/\nuser-data"),
        ("/ec2/latest//meta-data/instance-id/", "i-1"),
        ("/latest/user-data", b"\x1f\x8b\x00"),
        ("/latest/meta-data/ami-id", "ami-1"),
        ("/latest/meta-data/ami-launch-index", "2"),
        ("/2009-04-04/meta-data/placement", "availability-zone"),
        ("/2021-03-23/meta-data/placement", "availability-zone\navailability-zone-id\nregion"),
        ("/latest/meta-data/placement/availability-zone", "nova"),
        ("/latest/meta-data/placement/region", "RegionOne"),
        ("/latest/meta-data/security-groups", "default\nweb"),
        ("/latest/meta-data/public-ipv4", "172.24.4.7"),
        ("/latest/meta-data/block-device-mapping", "ami\nebs0\nebs1\nroot"),
        ("/latest/meta-data/block-device-mapping/ami", "vda"),
        ("/latest/meta-data/block-device-mapping/ebs1", "/dev/vdc"),
        ("/latest/meta-data/public-keys", "0=mine"),
        ("/latest/meta-data/public-keys/0", "openssh-key"),
        ("/latest/meta-data/public-keys/0=mine/openssh-key", "ssh-rsa AAAA"),
        ("/2008-09-01/meta-data/ami-id", "ami-1"),
        ("/1.0/meta-data/local-ipv4", "10.0.0.5"),
        ("/latest/meta-data/mac", MAC),
        ("/latest/meta-data/network/interfaces/macs/", f"{MAC}/"),
        ("/latest/meta-data/services/domain", "ec2.example.org"),
        ("/latest/meta-data/instance-life-cycle", "on-demand"),
        ("/latest/meta-data/tags/instance", "Name"),
        ("/latest/meta-data/tags/instance/Name", "web"),
        (f"{NETWORK}/device-number", "0"),
        (f"{NETWORK}/interface-id", "eni-1"),
        (f"{NETWORK}/ipv4-associations", "172.24.4.7"),
        (f"{NETWORK}/ipv4-associations/172.24.4.7", "10.0.0.5"),
        (f"{NETWORK}/ipv6s", "fd00::5"),
        (f"{NETWORK}/local-ipv4s", "10.0.0.5\n10.0.0.9"),
        (f"{NETWORK}/local-hostname", "web-1"),
        (f"{NETWORK}/owner-id", "p1"),
        (f"{NETWORK}/public-ipv4s", "172.24.4.7"),
        (f"{NETWORK}/security-group-ids", "sg-1"),
        (f"{NETWORK}/security-groups", "default\nweb"),
        (f"{NETWORK}/subnet-id", "subnet-1"),
        (f"{NETWORK}/subnet-ipv4-cidr-block", "10.0.0.0/24"),
        (f"{NETWORK}/vpc-id", "vpc-1"),
        (f"{NETWORK}/vpc-ipv4-cidr-block", "10.0.0.0/16"),
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
        "/2009-04-04/meta-data/mac",
        "/2018-09-24/meta-data/placement/region",
        "/2018-09-24/meta-data/tags",
        "/2009-04-04/dynamic",
        "/latest/meta-data/iam/security-credentials/",
        "/latest/../latest",
        "/latest/user-data/x",
        "/latest/meta-data/tags/instance/a/b",
        "/latest/meta-data/network/interfaces/macs/fa:16:3e:00:00:02/",
        "/latest/meta-data/public-keys/1",
        "/latest/dynamic/instance-identity/signature",
    ],
)
def test_paths_that_are_not_there(path: str) -> None:
    with pytest.raises(NotFound):
        read(path)


def crawl(path: str, of: Facts) -> int:
    """Reads what is listed, as cloud-init does; returns how many texts there were."""
    count = 0
    for line in filter(None, read(path, of).split("\n")):
        ident, label, _ = line.partition("=")
        name = f"{ident}/openssh-key" if label and ident.isdigit() else line
        if name.endswith("/"):
            count += crawl(f"{path}/{name}", of)
        else:
            assert read(f"{path}/{name}", of) is not None
            count += 1
    return count


@pytest.mark.parametrize("version", [*tree.VERSIONS, tree.LATEST])
def test_every_listed_name_answers(version: str) -> None:
    bare = facts({"InstanceId": "i-1"}, interfaces=(), user_data=None)
    for of in (FACTS, bare, facts(key=Later(lambda: None))):
        assert crawl(f"/{version}/meta-data", of) > 5


def test_the_document_says_what_the_instance_is() -> None:
    document = json.loads(read("/latest/dynamic/instance-identity/document"))
    told = {
        "accountId": "p1",
        "architecture": "x86_64",
        "availabilityZone": "nova",
        "imageId": "ami-1",
        "instanceId": "i-1",
        "instanceType": "m1.tiny",
        "privateIp": "10.0.0.5",
        "region": "RegionOne",
        "version": "2017-09-30",
        "pendingTime": "2026-01-02T03:04:05Z",
    }
    assert {name: document[name] for name in told} == told
    assert read("/latest/dynamic/instance-identity") == "document"


def test_what_is_absent_is_not_listed() -> None:
    bare = facts({"InstanceId": "i-1"}, interfaces=(), user_data=None)
    assert read("/2009-04-04", bare) == "meta-data/"
    names = set(read("/latest/meta-data", bare).split("\n"))
    absent = {"ami-id", "kernel-id", "ramdisk-id", "public-keys/", "mac", "network/", "tags/"}
    assert not absent & names
    assert read("/latest/meta-data/local-ipv4", bare) == "10.9.9.9"


def test_a_key_that_nova_has_no_more_is_not_listed() -> None:
    gone = facts(key=Later(lambda: None))
    assert "public-keys/" in read("/latest/meta-data", gone).split("\n")
    assert read("/latest/meta-data/public-keys", gone) == ""
    with pytest.raises(NotFound):
        read("/latest/meta-data/public-keys/0/openssh-key", gone)


def test_interfaces_outside_a_vpc_have_no_ids_that_ec2_knows() -> None:
    around = Surroundings(AROUND.subnets, AROUND.groups, (), {}, {})
    plain = facts(interfaces=[Interface(PORT, None, 0)], around=Later(lambda: around))
    names = set(read(NETWORK, plain).split("\n"))
    assert {"device-number", "local-ipv4s", "mac", "security-groups"} <= names
    assert not {"interface-id", "subnet-id", "vpc-id", "security-group-ids"} & names
    assert read("/latest/meta-data/public-ipv4", plain) == ""


def test_tags_are_shown_only_where_the_owner_wants_it() -> None:
    options = {**INSTANCE, "MetadataOptions": {"InstanceMetadataTags": "disabled"}}
    with pytest.raises(NotFound):
        read("/latest/meta-data/tags", facts(options))


def test_versions_grow() -> None:
    names = [set(read(f"/{version}/meta-data").split("\n")) for version in tree.VERSIONS]
    assert all(before <= after for before, after in itertools.pairwise(names))
    assert read("/latest/meta-data") == read("/2021-03-23/meta-data")
    assert tree.versions().split("\n")[0] == "1.0"
    assert tree.versions().endswith("latest")


def test_who_cannot_wait_is_told_that_something_has_to_be_asked() -> None:
    asked: list[str] = []

    def ask() -> str:
        asked.append("key")
        if len(asked) == 1:
            raise Unavailable(service="compute")
        return "ssh-rsa AAAA"

    slow = facts(key=Later(ask))
    path = "/latest/meta-data/public-keys/0/openssh-key"
    assert "public-keys/" in read("/latest/meta-data", slow, wait=False)
    with pytest.raises(tree.NotAtHand):
        read(path, slow, wait=False)
    with pytest.raises(Unavailable):
        read(path, slow)
    assert read(path, slow) == "ssh-rsa AAAA"
    assert read(path, slow, wait=False) == "ssh-rsa AAAA"
    assert len(asked) == 2
