"""What a request keeps for itself."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from trimaran.ec2.context import Context
from trimaran.ec2.protocol.errors import EC2Error


def context(**changed: Any) -> Context:
    token: Any = type("Token", (), {"project_id": "p", "user_id": "u"})()
    nothing: Any = None
    made: dict[str, Any] = {
        "token": token,
        "request_id": "req-1",
        "action": "DescribeVpcs",
        "region": "R",
        "user": nothing,
        "admin": nothing,
        "db": nothing,
        "conf": nothing,
        "enforcer": nothing,
        "policy_context": nothing,
    }
    return Context(**(made | changed))


def test_once_computes_once_however_many_ask() -> None:
    ctx = context()
    together = threading.Barrier(8)
    calls: list[int] = []

    def thunk() -> object:
        calls.append(1)
        return object()

    def ask() -> object:
        together.wait(60)
        return ctx.once("servers", thunk)

    with ThreadPoolExecutor(8) as pool:
        found = [future.result() for future in [pool.submit(ask) for _ in range(8)]]
    assert len(calls) == 1
    assert len(set(map(id, found))) == 1
    assert ctx.once("volumes", thunk) is not found[0]


def test_a_failure_is_kept_for_the_request() -> None:
    ctx = context()
    tries: list[int] = []

    def thunk() -> None:
        tries.append(1)
        raise LookupError("cell down")

    for _ in range(2):
        with pytest.raises(LookupError, match="cell down"):
            ctx.once("servers", thunk)
    assert len(tries) == 1
    assert context().once("servers", lambda: 7) == 7, "another request asks anew"


def test_forget_makes_it_ask_again() -> None:
    ctx = context()
    assert ctx.once("x", lambda: 1) == 1
    assert ctx.once("x", lambda: 2) == 1
    ctx.forget("x")
    assert ctx.once("x", lambda: 2) == 2
    ctx.forget("never kept")


def test_the_commit_point_ends_a_dry_run_only() -> None:
    context().commit_point()
    with pytest.raises(EC2Error) as caught:
        context(dry_run=True).commit_point()
    assert (caught.value.code, caught.value.status) == ("DryRunOperation", 412)


def test_owner_ids_are_the_project() -> None:
    assert context().project_id == "p"
    assert context().user_id == "u"
