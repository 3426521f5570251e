"""TokenCache: bounded, never past a token's end, one question at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.keystone import token
from trimaran.errors import Unauthenticated
from trimaran.identity import Token
from trimaran.identity.cache import TokenCache


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Asked:
    """Counts the questions."""

    def __init__(self, answer: Callable[[], Token]) -> None:
        self.answer = answer
        self.times = 0

    def __call__(self) -> Token:
        self.times += 1
        return self.answer()


def test_remembered_until_the_time_is_over() -> None:
    clock = Clock()
    cache = TokenCache(60, 10, timer=clock)
    asked = Asked(lambda: token("a"))
    first = cache.get("a", asked)
    clock.now += 59
    assert cache.get("a", asked) is first
    assert asked.times == 1
    clock.now += 2
    assert cache.get("a", asked) is not first
    assert asked.times == 2


def test_never_past_the_token_s_own_end() -> None:
    clock = Clock()
    cache = TokenCache(60, 10, timer=clock)
    asked = Asked(lambda: token("a", seconds=10))
    cache.get("a", asked)
    clock.now += 11
    cache.get("a", asked)
    assert asked.times == 2


def test_a_token_that_ended_by_the_wall_clock_is_not_used() -> None:
    # The monotonic clock stands still (a suspended machine); the token's time went on.
    cache = TokenCache(60, 10, timer=Clock())
    ended = token("a", seconds=5)
    asked = Asked(lambda: ended)
    cache.get("a", asked)
    object.__setattr__(ended, "expires_at", token(seconds=-1).expires_at)
    cache.get("a", asked)
    assert asked.times == 2


def test_known_is_what_is_remembered_and_has_not_ended() -> None:
    clock = Clock()
    cache = TokenCache(60, 10, timer=clock)
    assert cache.known("a") is None
    remembered = cache.get("a", lambda: token("a"))
    assert cache.known("a") is remembered
    object.__setattr__(remembered, "expires_at", token(seconds=-1).expires_at)
    assert cache.known("a") is None
    cache.get("b", lambda: token("b"))
    clock.now += 61
    assert cache.known("b") is None
    cache.get("b", lambda: token("b"))
    cache.forget("b")
    assert cache.known("b") is None


def test_zero_seconds_remembers_nothing() -> None:
    cache = TokenCache(0, 10)
    asked = Asked(lambda: token("a"))
    cache.get("a", asked)
    cache.get("a", asked)
    assert asked.times == 2
    assert len(cache) == 0


def test_bounded() -> None:
    cache = TokenCache(60, 3)
    for number in range(10):
        cache.get(str(number), lambda: token("x"))
    assert len(cache) == 3


def test_keys_are_digests() -> None:
    cache = TokenCache(60, 3)
    cache.get("the-secret", lambda: token("x"))
    assert "the-secret" not in repr(cache._known.keys())


def test_refusals_are_not_remembered() -> None:
    cache = TokenCache(60, 10)

    def refuse() -> Token:
        raise Unauthenticated

    with pytest.raises(Unauthenticated):
        cache.get("a", refuse)
    assert cache.get("a", lambda: token("a")).id == "a"


def test_forget() -> None:
    cache = TokenCache(60, 10)
    asked = Asked(lambda: token("a"))
    cache.get("a", asked)
    cache.forget("a")
    cache.get("a", asked)
    assert asked.times == 2
    cache.forget("never seen")


def test_fresh_asks_and_renews_what_is_remembered() -> None:
    cache = TokenCache(60, 10)
    cache.get("a", lambda: token("a"))
    newer = cache.get("a", lambda: token("a"), fresh=True)
    assert cache.get("a", lambda: token("a")) is newer


def test_fresh_refusal_drops_what_is_remembered() -> None:
    cache = TokenCache(60, 10)
    cache.get("a", lambda: token("a"))

    def refuse() -> Token:
        raise Unauthenticated

    with pytest.raises(Unauthenticated):
        cache.get("a", refuse, fresh=True)
    with pytest.raises(Unauthenticated):
        cache.get("a", refuse)


class Slow:
    """A question that stays open until told to end."""

    def __init__(self, answer: Callable[[], Token]) -> None:
        self.answer = answer
        self.times = 0
        self.begun = threading.Event()
        self.end = threading.Event()

    def __call__(self) -> Token:
        self.times += 1
        self.begun.set()
        assert self.end.wait(60)
        return self.answer()


def _start_waiting(cache: TokenCache, pool: ThreadPoolExecutor, slow: Slow, count: int) -> list:
    first = pool.submit(cache.get, "a", slow)
    assert slow.begun.wait(60)
    entered = [threading.Event() for _ in range(count)]

    def late(event: threading.Event) -> Token:
        event.set()
        return cache.get("a", slow)

    others = [pool.submit(late, event) for event in entered]
    for event in entered:
        assert event.wait(60)
    return [first, *others]


def test_one_question_for_all_who_ask_at_once() -> None:
    cache = TokenCache(60, 10)
    slow = Slow(lambda: token("a"))
    with ThreadPoolExecutor(8) as pool:
        waiting = _start_waiting(cache, pool, slow, 7)
        slow.end.set()
        found = [each.result(10) for each in waiting]
    assert slow.times == 1
    assert len({id(each) for each in found}) == 1


def test_a_refusal_reaches_all_who_wait() -> None:
    def refuse() -> Token:
        raise Unauthenticated("no")

    # Nothing is remembered, so one that came too late would ask again and be counted.
    cache = TokenCache(60, 10)
    slow = Slow(refuse)
    with ThreadPoolExecutor(4) as pool:
        waiting = _start_waiting(cache, pool, slow, 3)
        slow.end.set()
        for each in waiting:
            with pytest.raises(Unauthenticated):
                each.result(10)
    assert not cache._asking


def test_forgotten_while_asked_is_not_remembered() -> None:
    cache = TokenCache(60, 10)
    slow = Slow(lambda: token("a"))
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(cache.get, "a", slow)
        assert slow.begun.wait(60)
        cache.forget("a")
        slow.end.set()
        answer.result(10)
    assert len(cache) == 0
