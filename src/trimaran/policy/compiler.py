"""Checks made into plain functions.

oslo.policy parses its language; its evaluation inspects a signature and parses
a literal at each node of each check, which costs a third of a second for the
console's 1,860 rules.  Here that is done once, when rules are loaded, and the
outcome of a rule that many others refer to is remembered within one question.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from oslo_policy import policy as oslo

# The classes that oslo.policy does not export, taken from what it makes.
_TRUE, _FALSE, _ROLE, _ATTRIBUTE = (
    type(oslo.RuleDefault("sample", text).check) for text in ("@", "!", "role:r", "a:b")
)


class InvalidCheck(ValueError):
    """A check that does not follow the language."""


class CheckFailed(Exception):
    """A check that has no answer; whoever asked is refused."""


_NEW = object()


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
        self.answers: dict[str, bool | None] = {}

    def refer(self, name: str) -> bool:
        """Answers ``rule:<name>``; unknown rules are false.

        Raises:
            CheckFailed: the rule refers to itself, or failed a moment ago.
        """
        known = self.answers.get(name, _NEW)
        if known is None:
            # Not simply false: "not rule:x" would turn that into a yes.
            raise CheckFailed(f"rule {name} refers to itself or has failed")
        if known is _NEW:
            test = self.table.get(name) or self.table.get(self.default)
            self.answers[name] = None
            known = self.answers[name] = test is not None and test(self)
        return bool(known)


Test = Callable[[Question], bool]


def parse(check: str | list[Any]) -> Any:
    """Parses a check with oslo.policy.

    Args:
        check: text of oslo.policy's language, or its old lists.

    Returns:
        oslo.policy's tree.

    Raises:
        InvalidCheck: oslo.policy would log a traceback and deny for ever.
    """
    texts = [check] if isinstance(check, str) else _old_checks(check)
    for text in texts:
        _Grammar(text).verify()
    return oslo.RuleDefault("parsed", check).check


def _old_checks(rules: list[Any]) -> list[str]:
    """The texts in the old form, a list (or) of texts or lists (and) of texts."""
    texts: list[str] = []
    for rule in rules:
        texts.extend(rule if isinstance(rule, list) else [rule])
    for text in texts:
        if not isinstance(text, str) or len(text.split()) != 1:
            raise InvalidCheck(f"{text!r} is no check")
    return texts


class _Grammar:
    """Says whether a text follows the language.

    expression: term (("and" | "or") term)*;
    term: "not" term | "(" expression ")" | "@" | "!" | kind ":" match
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._words: list[str] = []
        for word in text.split():
            inner = word.lstrip("(")
            bare = inner.rstrip(")")
            self._words += ["("] * (len(word) - len(inner))
            self._words += [bare] if bare else []
            self._words += [")"] * (len(inner) - len(bare))

    def verify(self) -> None:
        """Raises InvalidCheck unless the text is empty or an expression."""
        if not self._text:
            return
        self._expression()
        if self._words:
            raise self._wrong()

    def _expression(self) -> None:
        self._term()
        while self._words and self._words[0].lower() in ("and", "or"):
            self._words.pop(0)
            self._term()

    def _term(self) -> None:
        word = self._words.pop(0) if self._words else ""
        if word.lower() == "not":
            self._term()
        elif word == "(":
            self._expression()
            if not self._words or self._words.pop(0) != ")":
                raise self._wrong()
        elif word not in ("@", "!") and (":" not in word or _is_quoted(word)):
            raise self._wrong()

    def _wrong(self) -> InvalidCheck:
        return InvalidCheck(f"{self._text!r} is no check")


def _is_quoted(word: str) -> bool:
    return len(word) > 1 and word[0] == word[-1] and word[0] in "'\""


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
    except SyntaxError as failure:
        return _failing(f"{kind}:{match}", failure)
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
    except KeyError:
        return False
    if isinstance(inner, list):
        return any(_find(member, path[1:], text) for member in inner)
    return _find(inner, path[1:], text)


def _failing(check: str, failure: Exception) -> Test:
    def test(_question: Question) -> bool:
        raise CheckFailed(check) from failure

    return test


def _foreign(check: Any) -> Test:
    """A check of another kind (``http:``, an extension's), run by its own code."""
    return lambda question: bool(check(question.target, question.creds, question.enforcer, None))
