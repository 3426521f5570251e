"""gather: bounded, with context, without deadlock, errors last."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

import pytest
import requests_mock as mocking

from tests.support.keystone import identity, token
from trimaran.cloud import fanout, gather
from trimaran.identity import count_calls, sending


@pytest.fixture
def small_pool(monkeypatch: pytest.MonkeyPatch) -> ThreadPoolExecutor:
    pool = ThreadPoolExecutor(2)
    monkeypatch.setattr(fanout, "_pool", pool)
    return pool


def _number(value: int) -> Callable[[], int]:
    return lambda: value


def test_results_by_name_in_the_order_asked() -> None:
    found = gather(**{f"n{number}": _number(number) for number in range(20)})
    assert list(found.items()) == [(f"n{number}", number) for number in range(20)]


def test_nothing_to_do() -> None:
    assert gather() == {}


def test_one_runs_in_the_caller_s_thread() -> None:
    assert gather(only=threading.get_ident) == {"only": threading.get_ident()}


def test_they_run_at_the_same_time() -> None:
    meeting = threading.Barrier(3, timeout=60)
    found = gather(a=meeting.wait, b=meeting.wait, c=meeting.wait)
    assert sorted(found.values()) == [0, 1, 2]


def test_the_first_error_by_order_after_all_have_ended() -> None:
    ended: list[str] = []
    gate = threading.Event()

    def late() -> None:
        assert gate.wait(60)
        ended.append("late")

    def early() -> None:
        gate.set()
        ended.append("early")
        raise ValueError("second in time, third in order")

    def first() -> None:
        gate.set()
        raise KeyError("first in order")

    with pytest.raises(KeyError, match="first in order"):
        gather(first=first, late=late, early=early)
    assert sorted(ended) == ["early", "late"]


def test_an_error_of_the_only_one() -> None:
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        gather(only=fail)


def test_context_goes_in_and_does_not_come_out() -> None:
    place: ContextVar[str] = ContextVar("place", default="nowhere")
    place.set("here")
    meeting = threading.Barrier(3, timeout=60)

    def move() -> str:
        # Three threads, or the caller would do it all by itself.
        meeting.wait()
        before = place.get()
        place.set("there")
        return before

    assert gather(a=move, b=move, c=move) == {"a": "here", "b": "here", "c": "here"}
    assert place.get() == "here"


def test_nested_in_a_full_pool(small_pool: ThreadPoolExecutor) -> None:
    def level(depth: int) -> int:
        if depth == 0:
            return 1
        inner = gather(
            a=lambda: level(depth - 1), b=lambda: level(depth - 1), c=lambda: level(depth - 1)
        )
        return sum(inner.values())

    answers: list[int] = []
    runner = threading.Thread(target=lambda: answers.append(level(4)), daemon=True)
    runner.start()
    runner.join(60)
    assert answers == [3**4]


def test_makes_progress_while_others_hold_the_pool(small_pool: ThreadPoolExecutor) -> None:
    release = threading.Event()
    held = [small_pool.submit(release.wait, 20) for _ in range(2)]
    assert gather(a=_number(1), b=_number(2), c=_number(3)) == {"a": 1, "b": 2, "c": 3}
    release.set()
    assert all(each.result(10) for each in held)


def test_calls_and_headers_of_all_threads(requests_mock: mocking.Mocker) -> None:
    requests_mock.get("http://nova.test/x", text="{}")
    session = identity().session_for(token())
    meeting = threading.Barrier(3, timeout=60)

    def call() -> None:
        meeting.wait()
        session.get("http://nova.test/x")

    with sending(request_id="req-1"), count_calls() as calls:
        gather(a=call, b=call, c=call)
    assert calls.total == 3
    assert {
        request.headers["X-OpenStack-Request-ID"] for request in requests_mock.request_history
    } == {"req-1"}


def test_the_pool_has_a_bound() -> None:
    peak = [0]
    running = [0]
    lock = threading.Lock()
    enough = threading.Event()

    def work() -> None:
        with lock:
            running[0] += 1
            peak[0] = max(peak[0], running[0])
            if running[0] == fanout._SIZE + 1:
                enough.set()
        enough.wait(60)
        with lock:
            running[0] -= 1

    gather(**{f"n{number}": work for number in range(3 * fanout._SIZE)})
    # The pool and the caller's own thread.
    assert peak[0] == fanout._SIZE + 1
