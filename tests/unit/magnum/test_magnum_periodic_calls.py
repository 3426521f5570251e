"""Bounded calls and shares: limits, time-outs, hanging calls, leases given back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from trimaran.magnum.conductor.periodic.calls import Call, Calls
from trimaran.magnum.conductor.periodic.share import share


class Ends:
    """Counts how often the end of each item was told."""

    def __init__(self) -> None:
        self.items: list[str] = []

    def call(self, item: str, run: Callable[[], None]) -> Call:
        return Call(item, run, lambda: self.items.append(item))


def test_threads_are_used_again_whatever_a_call_and_its_end_raise() -> None:
    calls, seen = Calls(2, 10), set()

    def work() -> None:
        seen.add(threading.get_ident())
        raise SystemExit(1)

    def end() -> None:
        raise RuntimeError("the database is away")

    for number in range(20):
        calls.run([Call(str(number), work, end)], patience=60)
    assert len(seen) <= 2
    assert calls.hanging == frozenset()


def test_no_more_than_the_limit_run_at_once() -> None:
    ends, calls = Ends(), Calls(3, 10)
    lock, running, most = threading.Lock(), 0, 0
    together = threading.Barrier(3, timeout=60)

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        together.wait()
        with lock:
            running -= 1

    calls.run([ends.call(str(n), work) for n in range(9)], patience=60)
    assert most == 3
    assert sorted(ends.items) == [str(n) for n in range(9)]


def test_a_call_that_raises_harms_no_other(caplog: pytest.LogCaptureFixture) -> None:
    ends, done = Ends(), []

    def bad() -> None:
        raise RuntimeError("boom")

    Calls(2, 10).run(
        [ends.call("bad", bad), ends.call("good", lambda: done.append(1))], patience=10
    )
    assert done == [1]
    assert sorted(ends.items) == ["bad", "good"]
    assert "boom" in caplog.text


def test_a_hanging_call_loses_its_place_and_is_not_called_again() -> None:
    ends, calls, back = Ends(), Calls(1, 1), threading.Event()
    hung = threading.Event()

    def hang() -> None:
        hung.set()
        back.wait(60)

    done: list[int] = []
    calls.run([ends.call("a", hang), ends.call("b", lambda: done.append(1))], patience=60)
    assert hung.is_set()
    assert done == [1]
    assert calls.hanging == {"a"}
    assert sorted(ends.items) == ["a", "b"]
    calls.run([ends.call("a", lambda: done.append(2))], patience=60)
    assert done == [1]
    back.set()
    while calls.hanging:
        threading.Event().wait(0.01)
    calls.run([ends.call("a", lambda: done.append(3))], patience=60)
    assert done == [1, 3]


def test_when_too_many_hang_nothing_new_is_begun() -> None:
    ends, back = Ends(), threading.Event()
    calls = Calls(2, 0.05, hanging=2)
    calls.run([ends.call(n, lambda: back.wait(60)) for n in ("a", "b")], patience=30)
    assert calls.hanging == {"a", "b"}
    done: list[int] = []
    calls.run([ends.call("c", lambda: done.append(1))], patience=1)
    assert done == []
    back.set()


def test_a_slow_call_is_not_waited_for_longer_than_asked() -> None:
    ends, calls, back = Ends(), Calls(2, 60), threading.Event()
    calls.run([ends.call("slow", lambda: back.wait(60))], patience=0.05)
    assert ends.items == []
    back.set()
    calls.run([], patience=0)
    while not ends.items:
        threading.Event().wait(0.01)
    assert ends.items == ["slow"]


class FakeLeases:
    def __init__(self, names: list[str]) -> None:
        self.names = frozenset(names)
        self.released: list[str] = []

    def release(self, names: list[str]) -> None:
        self.released += names


class FakeRunner:
    """Hands leases out as another conductor would leave them."""

    def __init__(self, shares: list[list[str]]) -> None:
        self.shares = [FakeLeases(names) for names in shares]
        self.given = iter([*self.shares, FakeLeases([])])
        self.asked: list[tuple[list[str], float]] = []
        self.over: list[FakeLeases] = []

    def share(self, names: list[str], *, limit: int, every: float) -> FakeLeases:
        self.asked.append((names, every))
        return next(self.given)

    def give_up(self, leases: FakeLeases) -> None:
        self.over.append(leases)


def test_a_share_is_done_until_nothing_is_left() -> None:
    runner: Any = FakeRunner([["x/a", "x/b"], ["x/c"]])
    done: list[str] = []
    count = share(runner, Calls(1, 10), "x/", ["a", "b", "c", "d"], 10, done.append)
    assert (count, sorted(done)) == (3, ["a", "b", "c"])
    # The first time the limit stood in the way of the others; then they are another's.
    assert [sorted(names) for names, _ in runner.asked] == [
        ["x/a", "x/b", "x/c", "x/d"],
        ["x/c", "x/d"],
    ]
    # Due a little early, so that a cycle's grain does not skip a turn.
    assert {every for _, every in runner.asked} == {8.0}
    # The last ends the whole share; one that is done before it is given back soon.
    assert runner.over == runner.shares


def test_a_large_fleet_is_offered_a_part_at_a_time_and_all_of_it() -> None:
    items = [f"{number:03}" for number in range(100)]
    runner: Any = FakeRunner([[]] * 10)
    assert share(runner, Calls(1, 10), "x/", items, 10, lambda item: None) == 0
    offered = [name.removeprefix("x/") for names, _ in runner.asked for name in names]
    assert sorted(offered) == items
    assert max(len(names) for names, _ in runner.asked) == 16


def test_items_that_are_done_are_given_back_although_one_is_slow() -> None:
    runner: Any = FakeRunner([["x/a", "x/b", "x/slow"]])
    released = runner.shares[0].released
    back = threading.Event()

    def work(item: str) -> None:
        if item == "slow":
            assert back.wait(60)

    asking = threading.Thread(
        target=share, args=(runner, Calls(4, 20), "x/", ["a", "b", "slow"], 10, work)
    )
    asking.start()
    for _ in range(6000):
        if sorted(released) == ["x/a", "x/b"]:
            break
        threading.Event().wait(0.01)
    assert sorted(released) == ["x/a", "x/b"]
    back.set()
    asking.join(60)
    assert runner.over == runner.shares
