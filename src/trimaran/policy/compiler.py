"""Checks made into plain functions.

oslo.policy parses its language; its evaluation inspects a signature and parses
a literal at each node of each check, which costs a third of a second for the
console's 1,860 rules.  Here that is done once, when rules are loaded, and the
outcome of a rule that many others refer to is remembered within one question.
"""

from __future__ import annotations

import ast
import logging
import threading
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from oslo_policy import policy as oslo

LOG = logging.getLogger(__name__)

_PARSER_LOG = logging.getLogger("oslo_policy._parser")


# The classes that oslo.policy does not export, taken from what it makes.
_TRUE, _FALSE, _ROLE, _ATTRIBUTE = (
    type(oslo.RuleDefault("sample", text).check) for text in ("@", "!", "role:r", "a:b")
)


class InvalidCheck(ValueError):
    """A check that does not follow the language."""


class Question:
    """One question: target and credentials, and what became known on the way.

    Args:
        table: the functions that ``rule:`` refers to.
        target: attributes of the thing.
        creds: attributes of the caller.
        enforcer: oslo.policy's enforcer, for checks that only it can run.
        default: rule that stands in for one that does not exist.
    """

    __slots__ = ("answers", "creds", "default", "enforcer", "roles", "table", "target")

    def __init__(
        self,
        table: Mapping[str, Test],
        target: Mapping[str, Any],
        creds: MutableMapping[str, Any],
        enforcer: oslo.Enforcer,
        default: str = "",
    ) -> None:
        self.table = table
        self.target = target
        self.creds = creds
        self.enforcer = enforcer
        self.default = default
        self.roles = frozenset(str(role).lower() for role in creds.get("roles") or ())
        self.answers: dict[str, bool] = {}

    def refer(self, name: str) -> bool:
        """Answers ``rule:<name>``; unknown rules and circles are false."""
        known = self.answers.get(name)
        if known is None:
            test = self.table.get(name) or self.table.get(self.default)
            # A rule that refers to itself finds this and is refused.
            self.answers[name] = False
            known = self.answers[name] = test is not None and test(self)
        return known


Test = Callable[[Question], bool]


def parse(check: str | list[Any]) -> Any:
    """Parses a check with oslo.policy.

    Args:
        check: text of oslo.policy's language, or its old lists.

    Returns:
        oslo.policy's tree.

    Raises:
        InvalidCheck: oslo.policy would log a traceback and deny.
    """
    complaints = _Complaints(threading.get_ident())
    _PARSER_LOG.addFilter(complaints)
    try:
        tree = oslo.RuleDefault("parsed", check).check
    except Exception as failure:
        raise InvalidCheck(f"{check!r} is no check: {failure}") from failure
    finally:
        _PARSER_LOG.removeFilter(complaints)
    if complaints.heard:
        raise InvalidCheck(f"{check!r} is no check")
    return tree


class _Complaints(logging.Filter):
    """Hears what oslo.policy's parser only logs, and keeps it out of the log."""

    def __init__(self, thread: int) -> None:
        super().__init__()
        self._thread = thread
        self.heard = False

    def filter(self, record: logging.LogRecord) -> bool:
        if record.thread != self._thread or record.levelno < logging.ERROR:
            return True
        self.heard = True
        return False


def compile_check(check: Any) -> Test:
    """Makes the function for one of oslo.policy's trees."""
    kind = type(check)
    if kind is _TRUE:
        return lambda _question: True
    if kind is _FALSE:
        return lambda _question: False
    if kind is oslo.AndCheck:
        return _all([compile_check(part) for part in check.rules])
    if kind is oslo.OrCheck:
        return _any([compile_check(part) for part in check.rules])
    if kind is oslo.NotCheck:
        inner = compile_check(check.rule)
        return lambda question: not inner(question)
    if kind is oslo.RuleCheck:
        name = check.match
        return lambda question: question.refer(name)
    if kind is _ROLE:
        return _role(check.match)
    if kind is _ATTRIBUTE:
        return _attribute(check.kind, check.match)
    return _foreign(check)


def references(check: Any) -> set[str]:
    """Returns the names that a tree refers to with ``rule:``."""
    if type(check) is oslo.RuleCheck:
        return {check.match}
    parts = list(getattr(check, "rules", ()))
    if type(check) is oslo.NotCheck:
        parts.append(check.rule)
    return set().union(*(references(part) for part in parts)) if parts else set()


def _all(tests: list[Test]) -> Test:
    def test(question: Question) -> bool:
        for each in tests:  # noqa: SIM110 - all() with a generator is twice as slow
            if not each(question):
                return False
        return True

    return test


def _any(tests: list[Test]) -> Test:
    def test(question: Question) -> bool:
        for each in tests:  # noqa: SIM110
            if each(question):
                return True
        return False

    return test


def _role(match: str) -> Test:
    if "%" not in match:
        role = match.lower()
        return lambda question: role in question.roles

    def test(question: Question) -> bool:
        try:
            return (match % question.target).lower() in question.roles
        except KeyError:
            return False

    return test


def _attribute(kind: str, match: str) -> Test:
    """``kind:match``: an attribute of the caller, or a literal, equals a text."""
    wanted = _text(match)
    literal: str | None = None
    try:
        literal = str(ast.literal_eval(kind))
    except ValueError:
        pass
    except (SyntaxError, MemoryError, RecursionError):
        # oslo.policy would raise at each question; a check that fails is refused.
        return lambda _question: False
    if literal is not None:
        fixed = literal
        return lambda question: wanted(question) == fixed
    path = kind.split(".")

    def test(question: Question) -> bool:
        text = wanted(question)
        return text is not None and _find(question.creds, path, text)

    return test


def _text(match: str) -> Callable[[Question], str | None]:
    """The right side, with the target's attributes put in; None when one is missing."""
    if "%" not in match:
        return lambda _question: match

    def text(question: Question) -> str | None:
        try:
            return match % question.target
        except KeyError:
            return None

    return text


def _find(value: Any, path: list[str], text: str) -> bool:
    """oslo.policy's search: a list on the way matches when one of its members does."""
    if not path:
        return text == str(value)
    try:
        inner = value[path[0]]
    except (KeyError, TypeError, IndexError):
        return False
    if isinstance(inner, list):
        return any(_find(member, path[1:], text) for member in inner)
    return _find(inner, path[1:], text)


def _foreign(check: Any) -> Test:
    """A check of another kind (``http:``, an extension's), run by its own code."""

    def test(question: Question) -> bool:
        try:
            return bool(check(question.target, question.creds, question.enforcer, None))
        except Exception:
            LOG.warning("policy: the check %s failed and counts as refused", check, exc_info=True)
            return False

    return test
