"""EC2 signatures and the tokens that Keystone mints for them, on the real cloud."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.support.cloud import DEMO, CloudEnv
from trimaran import errors
from trimaran.identity import Identity, Token, count_calls

URL = "http://127.0.0.1:8788/"
BODY = "Action=DescribeInstances&Version=2016-11-15"


def signed(access: str, secret: str, **changes: Any) -> dict[str, Any]:
    """What a SigV4 request of boto3 becomes for Keystone (spec/ec2.md 2.2)."""
    request = AWSRequest(
        "POST",
        URL,
        data=BODY,
        headers={
            "Content-Type": "application/x-www-form-urlencoded; charset=utf-8",
            "Host": "127.0.0.1:8788",
        },
    )
    SigV4Auth(Credentials(access, secret), "ec2", "RegionOne").add_auth(request)
    headers = dict(request.headers.items())
    return {
        "access": access,
        "signature": headers["Authorization"].rsplit("Signature=", 1)[1],
        "host": "127.0.0.1:8788",
        "verb": "POST",
        "path": "/",
        "params": {},
        "headers": headers,
        "body_hash": hashlib.sha256(BODY.encode()).hexdigest(),
    } | changes


@pytest.fixture(scope="module")
def keys(cloud_env: CloudEnv) -> tuple[str, str]:
    return cloud_env.ec2_credentials(DEMO)


@pytest.fixture
def minted(ours: Identity, keys: tuple[str, str]) -> Token:
    return ours.ec2(signed(*keys))


def test_token_of_the_key_s_project(minted: Token, cloud_env: CloudEnv) -> None:
    assert minted.user_name == "demo"
    assert minted.project_name == "demo"
    assert minted.methods == ("ec2credential",)
    assert "member" in minted.roles
    assert minted.endpoint("compute", region=cloud_env.region, interface="public")


def test_one_call_a_signature(ours: Identity, keys: tuple[str, str]) -> None:
    ours.service_token()
    with count_calls() as calls:
        ours.ec2(signed(*keys))
    assert [(call.method, call.path) for call in calls.seen] == [("POST", "/v3/ec2tokens")]


def test_a_session_of_the_minted_token_calls_no_keystone(
    ours: Identity, minted: Token, cloud_env: CloudEnv
) -> None:
    session = ours.session_for(minted)
    where = {"region_name": cloud_env.region, "interface": "public"}
    with count_calls() as calls:
        session.get("/servers", endpoint_filter={"service_type": "compute", **where})
        session.get("/v2.0/networks", endpoint_filter={"service_type": "network", **where})
        session.get("/v2/images", endpoint_filter={"service_type": "image", **where})
        session.get("/volumes", endpoint_filter={"service_type": "volumev3", **where})
    assert calls.by_service == {"compute": 1, "network": 1, "image": 1, "volumev3": 1}
    assert {call.status for call in calls.seen} == {"200"}


def test_the_minted_token_is_refused_by_keystone_itself(ours: Identity, minted: Token) -> None:
    """The reason why nothing may be discovered with it (spec/ec2.md 11.1)."""
    assert ours.call("GET", ours.endpoint(), token=minted.id).status_code == 403
    with pytest.raises(errors.Forbidden):
        ours.projects(minted)
    # We may still look at it with our own token.
    assert ours.validate(minted.id).project_id == minted.project_id


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"signature": "0" * 64}, 401),
        ({"access": "0" * 32}, 404),
        ({"body_hash": "0" * 64}, 401),
        ({"params": {"Action": "RunInstances"}, "headers": {}}, 401),
        ({"params": {"SignatureVersion": "2", "Action": "x"}}, 401),
        ({"headers": {}}, 401),
        ({"verb": "GET"}, 401),
        ({"path": "/other"}, 401),
    ],
)
def test_the_caller_s_faults(
    ours: Identity, keys: tuple[str, str], changes: dict[str, Any], status: int
) -> None:
    mine = ours.service_token()
    with pytest.raises(errors.Unauthenticated) as caught:
        ours.ec2(signed(*keys) | changes)
    assert caught.value.remote_status == status  # type: ignore[attr-defined]
    assert ours.service_token() == mine


def test_wrong_secret(ours: Identity, keys: tuple[str, str]) -> None:
    with pytest.raises(errors.Unauthenticated):
        ours.ec2(signed(keys[0], "f" * 32))


@pytest.mark.parametrize(
    "nonsense", [{}, {"access": None}, {"access": "x"}, {"access": "x", "signature": 7}]
)
def test_nonsense_is_the_caller_s_fault(ours: Identity, nonsense: dict[str, Any]) -> None:
    with pytest.raises(errors.Unauthenticated):
        ours.ec2(nonsense)


def test_service_token_revoked_behind_our_back(
    ours: Identity, keys: tuple[str, str], people: Any
) -> None:
    mine = ours.service_token()
    people.revoke(mine)
    for _ in people.until_replaced(ours, mine):
        assert ours.ec2(signed(*keys)).user_name == "demo"


def test_bad_signature_with_a_revoked_service_token(
    ours: Identity, keys: tuple[str, str], people: Any
) -> None:
    mine = ours.service_token()
    people.revoke(mine)
    people.wait_until_refused(mine)
    with pytest.raises(errors.Unauthenticated):
        ours.ec2(signed(*keys) | {"signature": "0" * 64})


def test_a_service_user_without_the_role(
    make_identity: Callable[..., Identity], keys: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    plain = make_identity(username="demo", project_name="demo")
    with pytest.raises(errors.Unavailable):
        plain.ec2(signed(*keys))
    assert "role service" in caplog.text


def test_disabled_user_of_a_key(ours: Identity, cloud_env: CloudEnv, people: Any) -> None:
    user = people.user()
    project = people.project()
    people.grant(user["id"], project["id"])
    token = ours.password(
        username=user["name"],
        password="password",
        domain_name="Default",
        scope={"project": {"id": project["id"]}},
    )
    answer = ours.call(
        "POST",
        f"{ours.endpoint()}/users/{user['id']}/credentials/OS-EC2",
        token=token.id,
        json={"tenant_id": project["id"]},
    ).json()["credential"]
    pair = (answer["access"], answer["secret"])
    assert ours.ec2(signed(*pair)).user_id == user["id"]
    people.change(user["id"], enabled=False)
    with pytest.raises(errors.Unauthenticated):
        ours.ec2(signed(*pair))
