"""All actions under arbitrary requests of their own shapes: an answer, in time, and never a 500.

The requests are made from each action's model (its names, its nesting) with
texts that mean nothing, or that name things which exist in the database and
nowhere else; the cloud is empty and refuses every change.
"""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_type_hints
from urllib.parse import urlencode

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.ec2_openstack import database
from trimaran.cloud import CloudSession
from trimaran.config import ec2 as options
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import NewItem
from trimaran.ec2 import actions, ids
from trimaran.ec2.dispatch import Dispatcher, Incoming
from trimaran.ec2.protocol.model import Shape
from trimaran.errors import Conflict, NotFound
from trimaran.identity import Token
from trimaran.policy import Enforcer

PROJECT = "0123456789abcdef" * 2
#: Requests per action: some two hundred actions make it enough.
EXAMPLES = int(os.environ.get("TRIMARAN_FUZZ_EXAMPLES", "4"))
OFFERED = actions.implemented()
#: An item of each kind, which has no object in the cloud.
THERE = [f"{prefix}-0000000{number % 10}" for number, prefix in enumerate(ids.PREFIXES)]
VPC = next(each for each in THERE if each.startswith("vpc-"))
TEXTS = st.one_of(
    st.sampled_from(
        [
            *THERE, "", "0", "-1", "2147483648", "true", "x" * 300, "\u00e9<&>\"'", "a\nb",
            "i-ffffffff", "ami-", "sg-00000001,sg-00000002", "10.0.0.0/24", "10.0.0.300",
            "tcp", "default", "/dev/sdb", "2026-01-01T00:00:00Z", "bm8=", "\U0001f6a2",
        ]
    ),
    st.text(max_size=20),
)  # fmt: skip


class Nothing:
    """A client of an empty service: listings hold nothing, and nothing can be done."""

    def __init__(self, client: type) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        hints = get_type_hints(getattr(self._client, name))
        listing = str(hints["return"]).startswith("list")
        changes = name.split("_")[0] not in (name, "server", "security", "floating", "subnet")

        def answer(*args: Any, **kwargs: Any) -> Any:
            inspect.signature(getattr(self._client, name)).bind(self, *args, **kwargs)
            if listing:
                return []
            raise Conflict() if changes else NotFound()

        return answer


class Sky:
    """A cloud of such services."""

    identity = None

    def as_user(self, token: Any, **kwargs: Any) -> Any:
        return self

    def as_service(self, **kwargs: Any) -> Any:
        return self

    def __getattr__(self, name: str) -> Nothing:
        return Nothing(get_type_hints(getattr(CloudSession, name).func)["return"])


class Keystone:
    def ec2(self, credentials: Mapping[str, Any]) -> Token:
        domain = {"id": "default", "name": "Default"}
        return Token.from_body(
            "t",
            {
                "user": {"id": "u1", "name": "demo", "domain": domain},
                "project": {"id": PROJECT, "name": "demo", "domain": domain},
                "roles": [{"id": "r1", "name": "member"}],
                "methods": ["ec2credential"],
                "expires_at": "2999-01-01T00:00:00Z",
                "catalog": [],
            },
        )


@pytest.fixture(scope="module")
def dispatcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dispatcher]:
    home: Path = tmp_path_factory.mktemp("fuzz")
    db = database(home)
    conf = home / "ec2api.conf"
    conf.write_text("[DEFAULT]\nmy_ip = 192.0.2.1\nec2_host = 192.0.2.1\n")
    data = {"vpc": {"cidr_block": "10.0.0.0/16"}, "subnet": {"cidr_block": "10.0.1.0/24"}}
    items = [
        NewItem(kind, None, PROJECT, data.get(kind, {}), vpc_id=VPC, id=each)
        for each in THERE
        if (kind := ids.kind_of(each))
    ]
    db.write(lambda s: queries.add_items(s, items, ids.mint))
    loaded = options.load([str(conf)])
    parts: Any = {"identity": Keystone(), "cloud": Sky()}
    yield Dispatcher(
        OFFERED,
        **parts,
        db=db,
        enforcer=Enforcer("ec2", actions.rules()),
        conf=loaded,
        region="RegionOne",
    )
    db.dispose()


@st.composite
def arguments(draw: st.DrawFn, shape: Shape, depth: int = 0) -> dict[str, str]:
    """Parameters of a structure by wire name."""
    made: dict[str, str] = {}
    members = sorted(shape.members.values(), key=lambda member: member.query)
    chosen = draw(st.lists(st.sampled_from(members), max_size=4, unique_by=id)) if members else []
    wanted = [member for member in members if member.name in shape.required]
    for member in [*wanted, *chosen]:
        for name, text in draw(value(member.shape, depth + 1)).items():
            made[f"{member.query}{name}"] = text
    return made


@st.composite
def value(draw: st.DrawFn, shape: Shape, depth: int) -> dict[str, str]:
    """A value's parameters: what follows its name, by text."""
    if depth > 6 or draw(st.integers(0, 19)) == 0:
        return {draw(st.sampled_from(["", ".Value", ".1", ".1.Name"])): draw(TEXTS)}
    if shape.kind == "structure":
        inner = draw(arguments(shape, depth))
        return {f".{name}": text for name, text in inner.items()}
    if shape.kind == "list":
        found: dict[str, str] = {}
        for index in draw(st.lists(st.integers(0, 12), min_size=1, max_size=2, unique=True)):
            inner = draw(value(shape.element, depth + 1))
            found.update({f".{index}{name}": text for name, text in inner.items()})
        return found
    if shape.kind == "boolean":
        return {"": draw(st.sampled_from(["true", "false", "TRUE", "1"]))}
    if shape.kind in ("integer", "long"):
        return {"": draw(st.sampled_from(["0", "1", "5", "8", "1000", "-1", "65536", "x"]))}
    return {"": draw(TEXTS)}


def send(dispatcher: Dispatcher, action: str, sent: Mapping[str, str]) -> tuple[int, str]:
    body = urlencode({"Action": action, **sent}).encode("utf-8", "surrogatepass")
    request = AWSRequest(
        "POST",
        "http://ec2/",
        headers={"Content-Type": "application/x-www-form-urlencoded", "Host": "ec2"},
        data=body,
    )
    SigV4Auth(Credentials("a", "s"), "ec2", "RegionOne").add_auth(request)
    headers = {name.lower(): str(text) for name, text in request.headers.items()}
    answer = dispatcher.answer(Incoming("POST", "/", b"", headers, body, "req-1"))
    return answer.status, answer.body.decode()


@pytest.mark.parametrize("action", sorted(OFFERED))
def test_no_request_of_its_shape_makes_an_action_fail(
    dispatcher: Dispatcher, action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    shape = OFFERED[action].operation.input
    assert shape is not None

    @given(arguments(shape))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    def run(sent: dict[str, str]) -> None:
        started = time.monotonic()
        status, body = send(dispatcher, action, sent)
        assert status in (200, 400, 403, 404, 412, 503), (sent, body)
        assert time.monotonic() - started < 60

    run()


@pytest.mark.parametrize(
    "sent",
    [
        {f"InstanceId.{n}": f"i-{n:08x}" for n in range(1, 9_900)},
        {f"Filter.{n}.Name": "vpc-id" for n in range(1, 9_900)},
        {"Filter.1." + "x" * 900_000: "y"},
        {"Filter" + ".1" * 5000: "y"},
        {"Filter.1.Name": "tag:" + "*" * 4000, "Filter.1.Value.1": "*?" * 4000},
        {"NextToken": "A" * 100_000},
        {"a\nb": "c\nd"},
    ],
    ids=lambda sent: next(iter(sent))[:20].replace("\n", "_"),
)
def test_large_and_hostile_requests_are_answered_in_time(
    dispatcher: Dispatcher, sent: dict[str, str]
) -> None:
    started = time.monotonic()
    assert send(dispatcher, "DescribeInstances", sent)[0] in (200, 400)
    assert time.monotonic() - started < 60
