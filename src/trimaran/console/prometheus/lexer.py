"""Words of PromQL.

Strict on purpose: what this does not know is refused.  A query is written
anew from these words, so comments, odd white space and everything else that
two lexers could read in two ways never reaches Prometheus.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from trimaran.errors import BadRequest

# Durations and arithmetic between brackets: nothing there can select series.
_RANGE = r"\[[\w\s:.+\-*/%^(),]*\]"
_PATTERN = re.compile(
    rf"""
      (?P<space>    [ \t\r\n]+ | \#[^\r\n]* )
    | (?P<range>    {_RANGE} )
    | (?P<duration> (?:[0-9]+(?:ms|[smhdwy]))+ (?![\w.:]) )
    | (?P<number>   (?:0[xX][0-9a-fA-F]+
                    | (?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?) (?![\w.:]) )
    | (?P<name>     [a-zA-Z_:][a-zA-Z0-9_:]* )
    | (?P<string>   "(?:[^"\\\r\n]|\\[^\r\n])*" | '(?:[^'\\\r\n]|\\[^\r\n])*' | `[^`]*` )
    | (?P<operator> =~ | !~ | == | != | <= | >= | [-+*/%^=<>@(){{}},] )
    """,
    re.VERBOSE | re.ASCII,
)
END = "end"


@dataclass(frozen=True)
class Word:
    """A word: its kind (a group of the pattern), its text and where it stands."""

    kind: str
    text: str
    at: int


def words(query: str) -> list[Word]:
    """Splits a query, comments and white space dropped; the last word is ``END``.

    Raises:
        errors.BadRequest: no PromQL that is known here.
    """
    found = []
    at = 0
    while at < len(query):
        match = _PATTERN.match(query, at)
        if match is None:
            raise BadRequest(f"parse error at char {at + 1}: unexpected character")
        kind = str(match.lastgroup)
        if kind != "space":
            found.append(Word(kind, match.group(), at))
        at = match.end()
    return [*found, Word(END, "", at)]
