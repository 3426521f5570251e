"""A request from bytes to bytes, with Keystone and the cloud stood in for."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.parsers import EC2QueryParser
from hypothesis import given, settings
from hypothesis import strategies as st

from trimaran import errors as deck
from trimaran.ec2 import actions
from trimaran.ec2.actions import Action
from trimaran.ec2.context import Context
from trimaran.ec2.dispatch import Answer, Dispatcher, Incoming
from trimaran.ec2.protocol import model
from trimaran.identity import Token
from trimaran.policy import Enforcer, Rule

PROJECT = "0123456789abcdef" * 2


def token(*roles: str, project: str | None = PROJECT) -> Token:
    body: dict[str, Any] = {
        "user": {"id": "u1", "name": "demo <&>", "domain": {"id": "default", "name": "Default"}},
        "roles": [{"id": f"id-{role}", "name": role} for role in roles],
        "methods": ["ec2credential"],
        "expires_at": "2999-01-01T00:00:00Z",
        "catalog": [],
    }
    if project:
        body["project"] = {"id": project, "name": "demo", "domain": {"id": "d", "name": "D"}}
    return Token.from_body("t", body)


class Keystone:
    def __init__(self, answer: Token | Exception) -> None:
        self.answer = answer

    def ec2(self, credentials: Mapping[str, Any]) -> Token:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Sky:
    def as_user(self, token: Token) -> str:
        return "user"

    def as_service(self) -> str:
        return "service"


CHANGED: list[dict[str, Any]] = []


def describe_vpcs(ctx: Context, request: dict[str, Any]) -> dict[str, Any]:
    return {"Vpcs": [{"VpcId": "vpc-1", "OwnerId": ctx.project_id, "State": str(request)}]}


def delete_vpc(ctx: Context, request: dict[str, Any]) -> None:
    if request["VpcId"] == "vpc-gone":
        raise deck.NotFound("The vpc ID 'vpc-gone' does not exist", code="InvalidVpcID.NotFound")
    ctx.commit_point()
    CHANGED.append(request)


def create_vpc(ctx: Context, request: dict[str, Any]) -> dict[str, Any]:
    raise KeyError("a secret of ours")


def action(function: Any, name: str) -> Action:
    operation = model.load().operation(name)
    assert operation is not None
    return Action(operation, function)


OFFERED = {
    "DescribeVpcs": action(describe_vpcs, "DescribeVpcs"),
    "DeleteVpc": action(delete_vpc, "DeleteVpc"),
    "CreateVpc": action(create_vpc, "CreateVpc"),
}


def dispatcher(keystone: Token | Exception | None = None) -> Dispatcher:
    rules = [
        Rule(each.rule, actions.LOOK if actions.reads(each.name) else actions.CHANGE)
        for each in OFFERED.values()
    ]
    made: Any = Dispatcher(
        OFFERED,
        identity=Keystone(keystone or token("member", "reader")),  # type: ignore[arg-type]
        cloud=Sky(),  # type: ignore[arg-type]
        db=None,  # type: ignore[arg-type]
        enforcer=Enforcer("ec2", rules),
        conf=type("Conf", (), {"ec2_timestamp_expiry": 300})(),
        region="RegionOne",
    )
    return made


def signed(_keystone: Token | Exception | None = None, **call: str) -> Answer:
    body = urlencode({name.replace("__", "."): text for name, text in call.items()}).encode()
    return send(body, _keystone)


def send(
    body: bytes,
    keystone: Token | Exception | None = None,
    content_type: str = "application/x-www-form-urlencoded",
) -> Answer:
    request = AWSRequest(
        "POST", "http://ec2/", headers={"Content-Type": content_type, "Host": "ec2"}, data=body
    )
    SigV4Auth(Credentials("a", "s"), "ec2", "RegionOne").add_auth(request)
    headers = {name.lower(): str(value) for name, value in request.headers.items()}
    return dispatcher(keystone).answer(Incoming("POST", "/", b"", headers, body, "req-9"))


def error_of(answer: Answer) -> str:
    parsed = EC2QueryParser().parse(
        {"body": answer.body, "headers": {}, "status_code": answer.status}, None
    )
    assert parsed["ResponseMetadata"]["RequestId"] == "req-9"
    return str(parsed["Error"]["Code"])


def test_an_action_gets_its_typed_request_and_the_caller_its_result() -> None:
    answer = signed(Action="DescribeVpcs", Version="2010-08-31", VpcId__1="vpc-1")
    assert answer.status == 200
    assert answer.action == "DescribeVpcs"
    text = answer.body.decode()
    assert text.startswith(
        '<DescribeVpcsResponse xmlns="http://ec2.amazonaws.com/doc/2010-08-31/">'
        "<requestId>req-9</requestId>"
    )
    assert "<ownerId>" + PROJECT in text
    assert "{'VpcIds': ['vpc-1']}" in text


def test_a_version_is_optional() -> None:
    assert b"/doc/2016-11-15/" in signed(Action="DescribeVpcs").body
    assert error_of(signed(Action="DescribeVpcs", Version="1" * 65)) == "InvalidParameterValue"


@pytest.mark.parametrize(
    ("call", "code", "status"),
    [
        ({}, "MissingAction", 400),
        ({"Action": ""}, "MissingAction", 400),
        ({"Action": "FooBar"}, "InvalidAction", 400),
        ({"Action": "describe_vpcs"}, "InvalidAction", 400),
        ({"Action": "DescribeNatGateways"}, "InvalidAction", 400),
        ({"Action": "DescribeVpcs", "Foo": "1"}, "UnknownParameter", 400),
        ({"Action": "DeleteVpc"}, "MissingParameter", 400),
        ({"Action": "DeleteVpc", "VpcId": "vpc-gone"}, "InvalidVpcID.NotFound", 400),
        ({"Action": "CreateVpc", "CidrBlock": "10.0.0.0/16"}, "InternalError", 500),
        ({"Action": "DescribeVpcs", "DryRun": "true"}, "DryRunOperation", 412),
        ({"Action": "DescribeVpcs", "DryRun": "maybe"}, "ValidationError", 400),
    ],
)
def test_each_mistake_has_its_code(call: dict[str, str], code: str, status: int) -> None:
    answer = signed(**call)
    assert (error_of(answer), answer.status) == (code, status)


def test_an_unexpected_exception_is_logged_and_not_told(caplog: pytest.LogCaptureFixture) -> None:
    answer = signed(Action="CreateVpc", CidrBlock="10.0.0.0/16")
    assert b"secret" not in answer.body
    assert b"KeyError" not in answer.body
    assert "a secret of ours" in caplog.text
    assert "req-9" in caplog.text


def test_a_dry_run_checks_everything_and_changes_nothing() -> None:
    CHANGED.clear()
    answer = signed(Action="DeleteVpc", VpcId="vpc-1", DryRun="true")
    assert (error_of(answer), answer.status) == ("DryRunOperation", 412)
    assert not CHANGED
    gone = signed(Action="DeleteVpc", VpcId="vpc-gone", DryRun="true")
    assert error_of(gone) == "InvalidVpcID.NotFound"
    done = signed(Action="DeleteVpc", VpcId="vpc-1", DryRun="false")
    assert b"<return>true</return>" in done.body
    assert CHANGED == [{"VpcId": "vpc-1"}]


@pytest.mark.parametrize(
    ("roles", "may_change"),
    [
        (("reader",), False),
        (("reader", "member"), True),
        (("reader", "member", "manager"), True),
        (("admin", "manager", "member", "reader"), True),
        (("admin", "reader"), True),
        (("_member_",), True),
    ],
)
def test_readers_look_and_others_change(roles: tuple[str, ...], may_change: bool) -> None:
    who = token(*roles)
    assert signed(who, Action="DescribeVpcs").status == 200
    answer = signed(who, Action="DeleteVpc", VpcId="vpc-1")
    if may_change:
        assert answer.status == 200
    else:
        assert (error_of(answer), answer.status) == ("UnauthorizedOperation", 403)


def test_authorisation_comes_before_arguments() -> None:
    assert error_of(signed(token("reader"), Action="DeleteVpc")) == "UnauthorizedOperation"


def test_a_credential_without_project_is_refused() -> None:
    answer = signed(token("member", project=None), Action="DescribeVpcs")
    assert (error_of(answer), answer.status) == ("AuthFailure", 401)


@pytest.mark.parametrize(
    ("failure", "code", "status"),
    [
        (deck.Unauthenticated(), "AuthFailure", 401),
        (deck.Unavailable(service="identity"), "Unavailable", 503),
        (ValueError("x"), "InternalError", 500),
    ],
)
def test_keystones_failures(failure: Exception, code: str, status: int) -> None:
    answer = signed(failure, Action="DescribeVpcs")
    assert (error_of(answer), answer.status) == (code, status)


def test_an_unsigned_request_is_refused_before_its_action_is_looked_at() -> None:
    for query in (b"Action=DescribeVpcs", b"Action=FooBar", b""):
        answer = dispatcher().answer(Incoming("GET", "/", query, {}, b"", "req-9"))
        assert (error_of(answer), answer.status) == ("AuthFailure", 400)


def test_get_caller_identity_speaks_sts() -> None:
    answer = signed(Action="GetCallerIdentity", Version="2011-06-15")
    text = answer.body.decode()
    assert answer.status == 200
    assert f"<Account>{PROJECT}</Account>" in text
    assert "user/demo &lt;&amp;&gt;</Arn>" in text
    assert "<UserId>u1</UserId>" in text
    refused = signed(deck.Unauthenticated(), Action="GetCallerIdentity", Version="2011-06-15")
    assert refused.body.startswith(b"<ErrorResponse")
    assert signed(Action="AssumeRole", Version="2011-06-15").body.startswith(b"<ErrorResponse")


@pytest.mark.parametrize(
    "body",
    [
        b"Action=DescribeVpcs&x=%ff",
        b"Action=DescribeVpcs&%ff=x",
        b"Action=DescribeVpcs&x=\xff",
        b"&".join(b"p%d=1" % n for n in range(20_000)),
        b"=" * 100_000,
        b"Action=DescribeVpcs&" + b".".join([b"1"] * 100_000) + b"=1",
    ],
)
def test_broken_and_excessive_parameters_are_400(body: bytes) -> None:
    started = time.process_time()
    answer = send(body)
    assert time.process_time() - started < 5
    assert answer.status == 400
    assert error_of(answer) in ("InvalidRequest", "UnknownParameter", "MissingAction")


def test_a_long_query_is_414() -> None:
    query = b"Action=DescribeVpcs&x=" + b"y" * 20_000
    answer = dispatcher().answer(Incoming("GET", "/", query, {}, b"", "req-9"))
    assert (error_of(answer), answer.status) == ("InvalidRequest", 414)


def test_multipart_forms_are_read() -> None:
    boundary = "XX"
    body = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="Action"\r\n\r\nDescribeVpcs\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="VpcId.1"\r\n\r\nvpc-é\r\n'
        f"--{boundary}--\r\n"
    ).encode()
    answer = send(body, content_type=f"multipart/form-data; boundary={boundary}")
    assert answer.status == 200
    assert b"vpc-&#233;" in answer.body


@pytest.mark.parametrize(
    ("content_type", "body", "code"),
    [
        ("multipart/form-data", b"x", "InvalidRequest"),
        ("multipart/form-data; boundary=X", b"garbage", "InvalidRequest"),
        (
            "multipart/form-data; boundary=X",
            b'--X\r\nContent-Disposition: form-data; name="Action"\r\n\r\n\xff\r\n--X--\r\n',
            "InvalidRequest",
        ),
        ("application/json", b'{"Action": "DescribeVpcs"}', "MissingAction"),
        ("text/xml", b"<soap/>", "MissingAction"),
    ],
)
def test_other_bodies(content_type: str, body: bytes, code: str) -> None:
    answer = send(body, content_type=content_type)
    assert (error_of(answer), answer.status) == (code, 400)


@given(st.binary(max_size=300), st.sampled_from(["", "multipart/form-data; boundary=X", "x/y"]))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_no_body_makes_us_fail(body: bytes, content_type: str) -> None:
    assert send(b"Action=DescribeVpcs&" + body, content_type=content_type).status in (200, 400)


def test_actions_are_found_by_name_and_imports_are_not_mistaken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "sample_kinds"
    (package / "deep").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "vpc.py").write_text("def describe_vpcs(ctx, request): ...\ndef helper(): ...\n")
    (package / "deep" / "__init__.py").write_text("def create_vpc(ctx, request): ...\n")
    (package / "subnet.py").write_text("from sample_kinds.vpc import describe_vpcs\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import sample_kinds  # type: ignore[import-not-found]

    found = actions.find(sample_kinds)
    assert sorted(found) == ["CreateVpc", "DescribeVpcs"]
    assert found["CreateVpc"].rule == "ec2:CreateVpc"
    (package / "subnet.py").write_text("def describe_vpcs(ctx, request): ...\n")
    del sys.modules["sample_kinds.subnet"]
    with pytest.raises(TypeError, match="DescribeVpcs"):
        actions.find(sample_kinds)
    for name in [name for name in sys.modules if name.startswith("sample_kinds")]:
        del sys.modules[name]


def test_every_action_has_a_rule_and_readers_only_look() -> None:
    rules = {rule.name: rule for rule in actions.rules()}
    assert set(rules) == {f"ec2:{name}" for name in actions.implemented()}
    for name, rule in rules.items():
        looks = name.removeprefix("ec2:").startswith(("Describe", "Get", "List", "Search"))
        assert rule.check == (actions.LOOK if looks else actions.CHANGE)
