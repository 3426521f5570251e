"""The health check: cheap, bounded, and asked at most every ten seconds."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.support.web import make
from trimaran.web.health import Probes


def test_the_cheap_form_asks_nobody() -> None:
    def probe() -> None:
        raise AssertionError("asked")

    with TestClient(make(probes={"database": probe})) as client:
        for path in ("/healthcheck", "/healthcheck?detailed=false", "/healthcheck?detailed=0"):
            answer = client.get(path)
            assert (answer.status_code, answer.text) == (200, "OK")


def test_the_detailed_form_says_what_is_away_and_no_more() -> None:
    def away() -> None:
        raise RuntimeError("mysql://user:secret@db.internal")

    with TestClient(make(probes={"database": away, "identity": lambda: None})) as client:
        answer = client.get("/healthcheck?detailed")
    assert answer.status_code == 503
    assert answer.json()["status"] == "unavailable"
    checks = answer.json()["checks"]
    assert {name: check["status"] for name, check in checks.items()} == {
        "database": "unavailable",
        "identity": "ok",
    }
    assert "secret" not in answer.text


def test_a_file_disables_the_service(tmp_path: Path) -> None:
    file = tmp_path / "healthcheck_disable"
    with TestClient(make(health_disable_file=str(file))) as client:
        assert client.get("/healthcheck").status_code == 200
        file.touch()
        answer = client.get("/healthcheck")
        assert (answer.status_code, answer.text) == (503, "DISABLED BY FILE")


def test_answers_are_kept_for_the_interval() -> None:
    asked = 0

    def probe() -> None:
        nonlocal asked
        asked += 1

    async def scenario() -> None:
        probes = Probes({"p": probe}, interval=60)
        for _ in range(5):
            await probes.results()
        assert asked == 1
        fresh = Probes({"p": probe}, interval=0)
        await fresh.results()
        await fresh.results()
        assert asked == 3

    asyncio.run(scenario())


def test_many_callers_share_one_round() -> None:
    asked = 0
    gate = threading.Event()

    def probe() -> None:
        nonlocal asked
        asked += 1
        gate.wait(60)

    async def scenario() -> None:
        probes = Probes({"p": probe}, interval=60)
        waiting = [asyncio.create_task(probes.results()) for _ in range(20)]
        await asyncio.sleep(0)
        # One that leaves early does not end the round for the others.
        waiting[0].cancel()
        gate.set()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert isinstance(results[0], asyncio.CancelledError)
        assert all(result[0]["p"].ok for result in results[1:])  # type: ignore[index]

    asyncio.run(scenario())
    assert asked == 1


def test_a_probe_that_hangs_is_bad_after_its_time_and_is_not_started_again() -> None:
    started = 0
    gate = threading.Event()

    def hang() -> None:
        nonlocal started
        started += 1
        gate.wait(60)

    async def scenario() -> None:
        probes = Probes({"hang": hang, "good": lambda: None}, interval=0, timeout=0.05)
        rounds, good = 0, False
        while rounds < 3 or not good:
            results, _age = await probes.results()
            assert not results["hang"].ok
            # It has a thread, and as little time.
            good = good or results["good"].ok
            rounds += 1
        assert started == 1
        gate.set()
        # The old question's answer counts; the next round asks anew.
        while not (await probes.results())[0]["hang"].ok:
            await asyncio.sleep(0.01)

    asyncio.run(scenario())


def test_changes_are_logged_and_states_are_not(caplog: pytest.LogCaptureFixture) -> None:
    state: dict[str, Any] = {"bad": True}

    def probe() -> None:
        if state["bad"]:
            raise OSError("refused")

    async def scenario() -> None:
        probes = Probes({"broker": probe}, interval=0)
        for bad in (True, True, True, False, False):
            state["bad"] = bad
            await probes.results()

    with caplog.at_level(logging.INFO, logger="trimaran.web.health"):
        asyncio.run(scenario())
    assert [record.getMessage() for record in caplog.records] == [
        "health: broker is not available: refused",
        "health: broker is back",
    ]
