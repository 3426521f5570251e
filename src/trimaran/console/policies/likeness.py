"""When two callers get the same answers.

Rules compare attributes of the caller with attributes of the target, which are
the caller's own, or with literals.  So what matters is which attributes are
equal to each other and to a literal, not what they are: all members of all
projects share one list of 1,860 answers, where caching by user would work the
list out for each of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

# Checks that no other word of the language starts with.
_PLAIN = frozenset({"@", "!", "and", "or", "not"})
# Never compared, and different in each session.
_IGNORED = frozenset({"auth_token"})
# Given to no rule as a text: taken as they are.
_LISTS = frozenset({"roles", "role_ids"})


class Likeness:
    """Makes keys that are equal when the answers are.

    Args:
        checks: the texts of all rules.

    Attributes:
        exact: some rule builds a text out of attributes, or asks another
            server, so every attribute counts as it is.
    """

    def __init__(self, checks: Iterable[str]) -> None:
        self.exact = False
        literals: set[str] = set()
        for check in checks:
            for word in check.split():
                self._read(word, literals)
        self._literals = frozenset(literals)

    def _read(self, word: str, literals: set[str]) -> None:
        bare = word.lstrip("(")
        # "%(name)s)" ends with its own bracket's rest, never with a bare name's.
        while bare.endswith(")") and bare.count(")") > bare.count("("):
            bare = bare[:-1]
        if not bare or bare.lower() in _PLAIN:
            return
        kind, separator, match = bare.partition(":")
        if not separator or kind in ("http", "https"):
            self.exact = True
        elif kind == "rule":
            return
        elif kind == "role":
            self.exact = self.exact or "%" in match
        else:
            literals.add(kind.strip("'\""))
            if match.startswith("%(") and match.endswith(")s") and match.count("%") == 1:
                return
            literals.add(match)
            self.exact = self.exact or "%" in match

    def key(self, credentials: Mapping[str, Any], *, exact: bool = False) -> Hashable:
        """Returns the key of a caller.

        Args:
            credentials: see ``attributes``.
            exact: rules are in force that were not given at the start.
        """
        lists = tuple(tuple(credentials[name]) for name in sorted(_LISTS))
        texts = [
            (name, str(value))
            for name, value in credentials.items()
            if name not in _LISTS and name not in _IGNORED
        ]
        if exact or self.exact:
            return lists, tuple(texts)
        first: dict[str, str] = {}
        alike = tuple(
            text if text in self._literals else first.setdefault(text, name) for name, text in texts
        )
        return lists, alike
