"""Confines a PromQL query to the series of one project.

Upstream filters the answer by the label ``project_id``, which a query can set
itself with label_replace (spec/skyline.md F15).  Here each selector of the
query gets the matcher ``project_id="<own>"`` before Prometheus sees it.  The
parser follows Prometheus's grammar as far as it must to know what is a
selector, and refuses the rest: a refused query is an error for one member, a
misread one shows him another project.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from trimaran.console.prometheus.lexer import END, Word, words
from trimaran.errors import BadRequest

LABEL = "project_id"
# Operators whose result carries only the labels that the query names.
AGGREGATIONS = frozenset(
    {
        *("sum", "min", "max", "avg", "group", "stddev", "stdvar", "count", "count_values"),
        *("bottomk", "topk", "quantile", "limitk", "limit_ratio"),
    }
)
_GROUPING = frozenset({"by", "without"})
_MATCHING = frozenset({"on", "ignoring"})
_SIDES = frozenset({"group_left", "group_right"})
_SET_OPERATORS = frozenset({"and", "or", "unless", "atan2"})
_OPERATORS = frozenset(["+", "-", "*", "/", "%", "^", "==", "!=", ">", "<", ">=", "<="])
_MATCHERS = frozenset({"=", "!=", "=~", "!~"})
# Deeper than any query that a person or a dashboard writes.
_DEEPEST = 64


@dataclass(frozen=True)
class Confined:
    """A query that sees one project.

    Attributes:
        text: for Prometheus.
        aggregates: it may drop the label, so series without it can be in the answer.
    """

    text: str
    aggregates: bool


def confine(query: str, project_id: str) -> Confined:
    """Holds a query to a project.

    Args:
        query: PromQL.
        project_id: the project.

    Raises:
        errors.BadRequest: not PromQL, or more than is known here.
    """
    parser = _Parser(words(query), project_id)
    parser.expression()
    parser.end()
    return Confined(" ".join(parser.out), parser.aggregates)


class _Parser:
    """Recursive descent; ``out`` is the query written anew."""

    def __init__(self, found: list[Word], project_id: str) -> None:
        self._words = found
        self._next = 0
        self._depth = 0
        # JSON's escapes are Go's.
        self._matcher = f"{LABEL}={json.dumps(project_id)}"
        self.out: list[str] = []
        self.aggregates = False

    # -- grammar -----------------------------------------------------------

    def expression(self) -> None:
        """Operands and binary operators; which binds tighter makes no difference here."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise BadRequest("parse error: the query is nested too deeply")
        self._operand()
        while self._is_operator():
            self._take()
            self._modifiers()
            self._operand()
        self._depth -= 1

    def end(self) -> None:
        """Nothing may follow."""
        if self._word.kind != END:
            raise self._unexpected()

    def _operand(self) -> None:
        while self._at("+", "-"):
            self._take()
        if self._word.kind in ("number", "duration", "string"):
            self._take()
        elif self._at("("):
            self._take()
            self.expression()
            self._need(")")
        elif self._at("{"):
            self._selector()
        elif self._word.kind == "name":
            self._named()
        else:
            raise self._unexpected()
        self._suffixes()

    def _named(self) -> None:
        name = self._word.text.lower()
        following = self._words[self._next + 1]
        aggregation = name in AGGREGATIONS
        if following.text == "(" and following.kind == "operator":
            self._take()
            self._call(aggregation=aggregation)
        elif aggregation and following.kind == "name" and following.text.lower() in _GROUPING:
            self._take()
            self._take()
            self._labels()
            self._call(aggregation=False)
            self.aggregates = True
        elif name in ("inf", "nan") and not (
            following.kind == "operator" and following.text == "{"
        ):
            # Numbers in Prometheus, whatever a series is called.
            self._take()
        else:
            # A series, also when its name is a word of the language.
            self._take()
            self._selector()

    def _call(self, *, aggregation: bool) -> None:
        self._need("(")
        while not self._at(")"):
            self.expression()
            if not self._at(")"):
                self._need(",")
        self._need(")")
        if aggregation:
            self.aggregates = True
            if self._name_is(_GROUPING):
                self._take()
                self._labels()

    def _selector(self) -> None:
        """``{matchers}`` or nothing, and our matcher in any case."""
        self.out.append("{")
        if self._at("{"):
            self._skip()
            while not self._at("}"):
                self._matching()
                self.out.append(",")
                if self._at(","):
                    self._skip()
                elif not self._at("}"):
                    # Such as "or" of other dialects, which would make ours optional.
                    raise self._unexpected()
            self._skip()
        self.out += [self._matcher, "}"]

    def _matching(self) -> None:
        if self._word.kind not in ("name", "string"):
            raise self._unexpected()
        quoted = self._word.kind == "string"
        self._take()
        if quoted and self._at(",", "}"):
            return  # the quoted name of a series
        if not (self._word.kind == "operator" and self._word.text in _MATCHERS):
            raise self._unexpected()
        self._take()
        if self._word.kind != "string":
            raise self._unexpected()
        self._take()

    def _suffixes(self) -> None:
        while True:
            if self._word.kind == "range":
                text = " ".join(self._word.text.split())
                self.out.append(text)
                self._next += 1
            elif self._at("@"):
                self._take()
                if self._name_is({"start", "end"}):
                    self._take()
                    self._need("(")
                    self._need(")")
                else:
                    self._moment()
            elif self._name_is({"offset"}):
                self._take()
                self._moment()
            else:
                return

    def _moment(self) -> None:
        if self._at("+", "-"):
            self._take()
        if self._word.kind not in ("number", "duration"):
            raise self._unexpected()
        self._take()

    def _modifiers(self) -> None:
        if self._name_is({"bool"}):
            self._take()
        if self._name_is(_MATCHING):
            self._take()
            self._labels()
            self.aggregates = True
            if self._name_is(_SIDES):
                self._take()
                if self._at("("):
                    self._labels()

    def _labels(self) -> None:
        self._need("(")
        while not self._at(")"):
            if self._word.kind not in ("name", "string"):
                raise self._unexpected()
            self._take()
            if not self._at(")"):
                self._need(",")
        self._need(")")

    # -- words -------------------------------------------------------------

    @property
    def _word(self) -> Word:
        return self._words[self._next]

    def _is_operator(self) -> bool:
        word = self._word
        if word.kind == "name":
            return word.text.lower() in _SET_OPERATORS
        return word.kind == "operator" and word.text in _OPERATORS

    def _at(self, *texts: str) -> bool:
        return self._word.kind == "operator" and self._word.text in texts

    def _name_is(self, names: frozenset[str] | set[str]) -> bool:
        return self._word.kind == "name" and self._word.text.lower() in names

    def _take(self) -> None:
        self.out.append(self._word.text)
        self._next += 1

    def _skip(self) -> None:
        self._next += 1

    def _need(self, text: str) -> None:
        if not self._at(text):
            raise self._unexpected()
        self._take()

    def _unexpected(self) -> BadRequest:
        word = self._word
        what = "end of input" if word.kind == END else json.dumps(word.text[:40])
        return BadRequest(f"parse error at char {word.at + 1}: unexpected {what}")
