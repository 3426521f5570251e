"""Key pairs: made, imported in every form, found by name and id, deleted."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest
import requests_mock as mocking
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.ec2_openstack import Caller
from tests.support.ec2_storage import Storage
from trimaran.ec2.kinds.instances import key_pair_material as material
from trimaran.ec2.kinds.instances.key_pair import (
    create_key_pair,
    delete_key_pair,
    describe_key_pairs,
    import_key_pair,
)
from trimaran.ec2.kinds.tag import create_tags, delete_tags, describe_tags
from trimaran.ec2.protocol.errors import EC2Error
from trimaran.errors import QuotaExceeded
from trimaran.identity import count_calls

TAGS = [{"ResourceType": "key-pair", "Tags": [{"Key": "k", "Value": "007"}]}]


@pytest.fixture
def openstack(requests_mock: mocking.Mocker) -> Storage:
    return Storage(requests_mock)


def _public() -> Any:
    return ed25519.Ed25519PrivateKey.generate().public_key()


def _openssh(key: Any) -> str:
    made: bytes = key.public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return made.decode()


def _code(me: Caller, action: Any, **request: Any) -> str:
    with pytest.raises(EC2Error) as caught:
        me(action, **request)
    return caught.value.code


def test_a_made_key_fits_the_public_half_that_nova_got(openstack: Storage, me: Caller) -> None:
    made = me(create_key_pair, KeyName="a@b.c", TagSpecifications=TAGS)
    private = serialization.load_pem_private_key(made["KeyMaterial"].encode(), None)
    assert isinstance(private, rsa.RSAPrivateKey)
    assert private.key_size == 2048
    assert private.public_key().public_numbers().e == 65537
    assert made["KeyMaterial"].startswith("-----BEGIN RSA PRIVATE KEY-----")
    assert openstack.pairs["a@b.c"]["public_key"] == _openssh(private.public_key())
    assert re.fullmatch(r"key-[0-9a-f]{17}", made["KeyPairId"])
    assert made["Tags"] == [{"Key": "k", "Value": "007"}]
    assert "KeyMaterial" not in str(me(describe_key_pairs))


def test_an_ed25519_key_comes_in_openssh_form(openstack: Storage, me: Caller) -> None:
    made = me(create_key_pair, KeyName="k", KeyType="ed25519")
    private = serialization.load_ssh_private_key(made["KeyMaterial"].encode(), None)
    assert openstack.pairs["k"]["public_key"] == _openssh(private.public_key())
    assert me(describe_key_pairs)["KeyPairs"][0]["KeyType"] == "ed25519"


def _rfc4716(text: str) -> str:
    body = text.split(" ")[1]
    lines = [body[start : start + 70] for start in range(0, len(body), 70)]
    return "\n".join(
        [
            "---- BEGIN SSH2 PUBLIC KEY ----",
            'Comment: "a key \\',
            'of mine"',
            *lines,
            "---- END SSH2 PUBLIC KEY ----",
        ]
    )


@pytest.mark.parametrize("form", ["openssh", "comment", "crlf", "rfc4716", "der", "pem"])
def test_every_form_of_a_public_key_is_understood(form: str) -> None:
    key = rsa.generate_private_key(65537, 2048).public_key()
    text = _openssh(key)
    pem = key.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    sent = {
        "openssh": text,
        "comment": f"{text} me@here",
        "crlf": f"\n{text}\r\n",
        "rfc4716": _rfc4716(text),
        "der": "".join(pem.decode().splitlines()[1:-1]),
        "pem": pem.decode(),
    }[form]
    assert material.public_key(sent.encode()).split(" ")[:2] == text.split(" ")


@pytest.mark.parametrize(
    "junk",
    [
        b"junk",
        b"ssh-rsa junk",
        b"ssh-rsa AAAA",
        b"\xff\xfe",
        b"---- BEGIN SSH2 PUBLIC KEY ----\n!\n---- END SSH2 PUBLIC KEY ----",
        b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
        b"A" * (material.LONGEST + 1),
        b"ssh-rsa \0",
        base64.b64encode(b"\0" * 64),
    ],
)
def test_junk_is_no_key(openstack: Storage, me: Caller, junk: bytes) -> None:
    assert _code(me, import_key_pair, KeyName="k", PublicKeyMaterial=junk) == "InvalidKey.Format"
    assert openstack.pairs == {}


@given(
    st.one_of(
        st.binary(max_size=300),
        st.text(max_size=300).map(lambda text: text.encode()),
        st.binary(max_size=300).map(lambda raw: b"ssh-rsa " + base64.b64encode(raw)),
        st.binary(max_size=300).map(base64.b64encode),
    )
)
@settings(deadline=None)
def test_nothing_but_a_key_is_a_key(sent: bytes) -> None:
    with pytest.raises(EC2Error) as caught:
        material.public_key(sent)
    assert caught.value.code == "InvalidKey.Format"


def test_two_lines_are_not_one_key() -> None:
    text = f"{_openssh(_public())}\n{_openssh(_public())}"
    with pytest.raises(EC2Error):
        material.public_key(text.encode())


def test_mistakes(openstack: Storage, me: Caller) -> None:
    key = _openssh(_public()).encode()
    good = {"KeyName": "k", "PublicKeyMaterial": key}
    me(import_key_pair, **good)
    assert _code(me, import_key_pair, **good) == "InvalidKeyPair.Duplicate"
    assert _code(me, import_key_pair, **good, DryRun=True) == "InvalidKeyPair.Duplicate"
    assert _code(me, import_key_pair, KeyName="k", PublicKeyMaterial=b"") == "MissingParameter"
    assert _code(me, import_key_pair, **{**good, "KeyName": ""}) == "MissingParameter"
    assert _code(me, create_key_pair, KeyName="x" * 256) == "ValidationError"
    assert _code(me, create_key_pair, KeyName="x/y") == "InvalidParameterValue"
    assert _code(me, create_key_pair, KeyName="n", KeyType="dsa") == "InvalidParameterValue"
    assert _code(me, create_key_pair, KeyName="n", KeyFormat="ppk") == "UnsupportedOperation"
    assert _code(me, create_key_pair, KeyName="n", KeyFormat="x") == "InvalidParameterValue"
    wrong = [{"ResourceType": "volume", "Tags": []}]
    named = {"KeyName": "n", "TagSpecifications": wrong}
    assert _code(me, create_key_pair, **named) == "InvalidParameterValue"
    assert _code(me, delete_key_pair) == "MissingParameter"
    assert _code(me, delete_key_pair, KeyPairId="vol-1") == "InvalidParameterValue"
    assert _code(me, describe_key_pairs, KeyNames=["nope"]) == "InvalidKeyPair.NotFound"
    assert _code(me, describe_key_pairs, KeyPairIds=["key-1"]) == "InvalidKeyPair.NotFound"
    odd = [{"Name": "odd", "Values": ["x"]}]
    assert _code(me, describe_key_pairs, Filters=odd) == "InvalidParameterValue"
    assert list(openstack.pairs) == ["k"]


def test_a_dry_run_makes_and_deletes_nothing(openstack: Storage, me: Caller) -> None:
    assert _code(me, create_key_pair, KeyName="k", DryRun=True) == "DryRunOperation"
    assert openstack.pairs == {}
    me(create_key_pair, KeyName="k", KeyType="ed25519")
    assert _code(me, delete_key_pair, KeyName="k", DryRun=True) == "DryRunOperation"
    assert list(openstack.pairs) == ["k"]


def test_a_quota_of_nova(openstack: Storage, me: Caller) -> None:
    openstack.before = lambda method, path: openstack.fail.update({"os-keypairs$": 413})
    with pytest.raises(QuotaExceeded):
        me(create_key_pair, KeyName="k", KeyType="ed25519")


def _pair(openstack: Storage, name: str, **fields: Any) -> None:
    key = {"name": name, "public_key": _openssh(_public()), "fingerprint": f"f:{name}"}
    openstack.pairs[name] = {**key, "type": "ssh", **fields}


def test_the_id_is_the_same_until_the_key_is_another(openstack: Storage, me: Caller) -> None:
    _pair(openstack, "k")
    [first] = me(describe_key_pairs)["KeyPairs"]
    [again] = me(describe_key_pairs, KeyNames=["k"])["KeyPairs"]
    assert first["KeyPairId"] == again["KeyPairId"]
    assert "PublicKey" not in again
    assert again["CreateTime"] == "2026-01-02T03:04:05.000000"
    [full] = me(describe_key_pairs, KeyPairIds=[first["KeyPairId"]], IncludePublicKey=True)[
        "KeyPairs"
    ]
    assert full["PublicKey"] == openstack.pairs["k"]["public_key"]
    _pair(openstack, "k", fingerprint="another")
    [other] = me(describe_key_pairs)["KeyPairs"]
    assert other["KeyPairId"] != first["KeyPairId"]


def test_filters_and_order(openstack: Storage, me: Caller) -> None:
    for name in ("b1", "a1", "b2"):
        _pair(openstack, name)
    me(create_key_pair, KeyName="tagged", KeyType="ed25519", TagSpecifications=TAGS)

    def names(**request: Any) -> list[str]:
        return [row["KeyName"] for row in me(describe_key_pairs, **request)["KeyPairs"]]

    def by(name: str, value: str) -> list[str]:
        return names(Filters=[{"Name": name, "Values": [value]}])

    assert names() == ["a1", "b1", "b2", "tagged"]
    assert by("key-name", "b?") == ["b1", "b2"]
    assert by("fingerprint", "f:a1") == ["a1"]
    assert by("tag:k", "007") == by("tag-key", "k") == ["tagged"]
    assert names(KeyNames=["b1", "b1", "a1"]) == ["a1", "b1"]


def test_a_describe_costs_one_call(openstack: Storage, me: Caller) -> None:
    for number in range(40):
        _pair(openstack, f"k{number}")
    with count_calls() as calls:
        assert len(me(describe_key_pairs)["KeyPairs"]) == 40
    assert calls.total == 1
    with count_calls() as calls:
        me(describe_key_pairs, KeyNames=["k1"])
    assert calls.total == 1


def test_deleting_takes_the_tags_along(openstack: Storage, me: Caller) -> None:
    _pair(openstack, "k")
    [shown] = me(describe_key_pairs)["KeyPairs"]
    assert me(delete_key_pair, KeyPairId=shown["KeyPairId"]) == {"KeyPairId": shown["KeyPairId"]}
    assert openstack.pairs == {}
    assert me(delete_key_pair, KeyName="k") == {}
    assert me(delete_key_pair, KeyPairId=shown["KeyPairId"]) == {}
    me(create_key_pair, KeyName="t", KeyType="ed25519", TagSpecifications=TAGS)
    key = dict(openstack.pairs["t"])
    me(delete_key_pair, KeyName="t")
    openstack.pairs["t"] = key
    assert "Tags" not in me(describe_key_pairs)["KeyPairs"][0]


def test_tags_are_set_and_taken_by_id(openstack: Storage, me: Caller, them: Caller) -> None:
    _pair(openstack, "k")
    [shown] = me(describe_key_pairs)["KeyPairs"]
    resources, tags = [shown["KeyPairId"]], [{"Key": "a", "Value": "b"}]
    me(create_tags, Resources=resources, Tags=tags)
    assert me(describe_key_pairs)["KeyPairs"][0]["Tags"] == tags
    [listed] = me(describe_tags)["Tags"]
    assert (listed["ResourceId"], listed["ResourceType"]) == (shown["KeyPairId"], "key-pair")
    absent = {"Resources": ["key-00000001"], "Tags": tags}
    assert _code(me, create_tags, **absent) == "InvalidKeyPair.NotFound"
    mine = {"Resources": resources, "Tags": tags}
    assert _code(them, create_tags, **mine) == "InvalidKeyPair.NotFound"
    me(delete_tags, Resources=resources)
    assert "Tags" not in me(describe_key_pairs)["KeyPairs"][0]
