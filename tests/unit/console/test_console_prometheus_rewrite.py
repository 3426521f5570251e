"""A member's query is held to his project, whatever it is written like."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimaran.console.prometheus.promql import Confined, confine
from trimaran.errors import BadRequest

OWN = 'project_id="p1"'


def confined(query: str) -> str:
    """The rewritten query without the white space."""
    return re.sub(r"\s+", "", confine(query, "p1").text)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("up", f"up{{{OWN}}}"),
        ('up{job="a"}', f'up{{job="a",{OWN}}}'),
        ('up{job="a",}', f'up{{job="a",{OWN}}}'),
        ("{}", f"{{{OWN}}}"),
        ('{__name__=~"u."}', f'{{__name__=~"u.",{OWN}}}'),
        ('{"up"}', f'{{"up",{OWN}}}'),
        ('{"a metric", "a label"="x"}', f'{{"ametric","alabel"="x",{OWN}}}'),
        ('up{project_id="other"}', f'up{{project_id="other",{OWN}}}'),
        ("rate(a:b[5m])", f"rate(a:b{{{OWN}}}[5m])"),
        ("a[1h:5m] offset -1d @ end()", f"a{{{OWN}}}[1h:5m]offset-1d@end()"),
        ("sum by (x) (a)", f"sumby(x)(a{{{OWN}}})"),
        ("sum(a) without (x, y)", f"sum(a{{{OWN}}})without(x,y)"),
        ("SUM BY (x) (a)", f"SUMBY(x)(a{{{OWN}}})"),
        (
            "a * on (i) group_left (n) b",
            f"a{{{OWN}}}*on(i)group_left(n)b{{{OWN}}}",
        ),
        ("a * on (i) group_left (n) (b)", f"a{{{OWN}}}*on(i)group_left(n)(b{{{OWN}}})"),
        ("a > bool 3", f"a{{{OWN}}}>bool3"),
        ("a and b unless c", f"a{{{OWN}}}andb{{{OWN}}}unlessc{{{OWN}}}"),
        # Words of the language can be names of series.
        ("sum", f"sum{{{OWN}}}"),
        ("offset offset 5m", f"offset{{{OWN}}}offset5m"),
        ("by", f"by{{{OWN}}}"),
        ("start + end", f"start{{{OWN}}}+end{{{OWN}}}"),
        ("inf + NaN", "inf+NaN"),
        ("vector(1)", "vector(1)"),
        ('"text"', '"text"'),
        ("# up\nb # c", f"b{{{OWN}}}"),
        # A carriage return ends a comment in Prometheus.
        ("b # c\r+ d", f"b{{{OWN}}}+d{{{OWN}}}"),
        ("a{b='}'}", f"a{{b='}}',{OWN}}}"),
        ('a{b="\\"}"}', f'a{{b="\\"}}",{OWN}}}'),
        ("a{b=`\\`}", f"a{{b=`\\`,{OWN}}}"),
        ("`{`", "`{`"),
    ],
)
def test_each_selector_gets_the_project(query: str, expected: str) -> None:
    assert confined(query) == expected


@pytest.mark.parametrize(
    "query",
    [
        "",
        "   # only a comment",
        '{a="b" or c="d"}',
        'a{b="c" or d="e"}',
        "a b",
        "a{b}",
        'a{b="c"',
        'a{b="c"}{d="e"}',
        "a[5m",
        "a[{b}]",
        "a[`]",
        "sum(a",
        "a)",
        "a offset b",
        "a @ b",
        "on (a) b",
        'a{b="c\nd"}',
        "5up",
        "WITH (x = up) x",
        "a keep_metric_names",
        "a\x00",
        "é",
        "(" * 5000 + "a" + ")" * 5000,
        "-" * 10 + "(",
        "sum by (a, b",
        "a > on",
    ],
)
def test_what_is_not_known_is_refused(query: str) -> None:
    with pytest.raises(BadRequest):
        confine(query, "p1")


def test_a_project_id_cannot_leave_its_quotes() -> None:
    assert '"a\\"} or up{b=\\"\\\\\\n"' in confine("up", 'a"} or up{b="\\\n').text


@pytest.mark.parametrize(
    ("query", "aggregates"),
    [
        ("up", False),
        ('label_replace(up, "project_id", "", "", "")', False),
        ("vector(1)", False),
        ("sum(up)", True),
        ("sum by (x) (up)", True),
        ("1 + count(up)", True),
        ("a / on (x) b", True),
        ("rate(a[5m])", False),
        ("sum", False),
    ],
)
def test_queries_that_may_drop_the_label_are_known(query: str, aggregates: bool) -> None:
    assert confine(query, "p1").aggregates is aggregates


# -- all queries of a grammar, and all texts -------------------------------

NAMES = st.sampled_from(["up", "a:b", "sum", "by", "and", "offset", "start", "_x", "node_cpu"])
LABELS = st.sampled_from(["job", "project_id", "le", "by"])
STRINGS = st.sampled_from(['"x"', "'}'", '"\\"{"', "`\\`", '"a,b"', '"#"'])
MATCHER = st.builds(
    lambda label, op, value: f"{label}{op}{value}",
    LABELS,
    st.sampled_from(["=", "!=", "=~", "!~"]),
    STRINGS,
)
BLOCK = st.builds(lambda each: "{" + ",".join(each) + "}", st.lists(MATCHER, max_size=3))
SUFFIX = st.sampled_from(["", "", "[5m]", " offset 1h", " @ 1.5", "[1h:5m] @ start()"])


def _counted(text: str, selectors: int) -> tuple[str, int]:
    return text, selectors


SELECTOR = st.builds(
    lambda name, block, suffix: _counted(f"{name}{block}{suffix}", 1),
    NAMES,
    st.one_of(st.just(""), BLOCK),
    SUFFIX,
) | st.builds(lambda block: _counted(block, 1), BLOCK)
LITERAL = st.builds(lambda text: _counted(text, 0), st.sampled_from(["1", ".5", "5m", "Inf"]))


def _larger(inner: st.SearchStrategy[tuple[str, int]]) -> st.SearchStrategy[tuple[str, int]]:
    joined = st.builds(
        lambda left, op, right: _counted(f"{left[0]}{op}{right[0]}", left[1] + right[1]),
        inner,
        st.sampled_from(
            [" + ", " == bool ", " and ", " OR ", " / on (job) ", " * ignoring() group_left (x) "]
        ),
        inner,
    )
    called = st.builds(
        lambda name, args: _counted(
            f"{name}({', '.join(text for text, _ in args)})", sum(number for _, number in args)
        ),
        st.sampled_from(["rate", "sum", "topk", "sum by (job)", "count_values without (le, job)"]),
        st.lists(inner, min_size=1, max_size=3),
    )
    grouped = st.builds(lambda each: _counted(f"( # {{\n{each[0]})", each[1]), inner)
    after = st.builds(lambda each: _counted(f"max({each[0]}) by (job)", each[1]), inner)
    return joined | called | grouped | after


QUERY = st.recursive(SELECTOR | LITERAL, _larger, max_leaves=12)


def _without_strings(text: str) -> str:
    return re.sub(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|`[^`]*`', '""', text)


@settings(max_examples=200, deadline=None)
@given(QUERY)
def test_every_query_of_the_grammar_is_confined(query: tuple[str, int]) -> None:
    text, selectors = query
    out = confine(text, "p1").text
    assert out.count(OWN) == selectors
    blocks = re.findall(r"\{[^{}]*\}", _without_strings(out))
    assert len(blocks) == selectors
    assert all(block.endswith('project_id="" }') for block in blocks)


def unconfined(out: str) -> list[str]:
    """Names in a rewritten query that could be series without our matcher.

    Another way of reading than the parser's: words and their neighbours.
    """
    plain = _without_strings(out)
    plain = re.sub(r"\[[^\]]*\]", " R ", plain).replace(" R ", " ")
    plain = re.sub(r"\{[^{}]*\}", "{}", plain)
    plain = re.sub(
        r"(?i)\b(by|without|on|ignoring|group_left|group_right) \( [^()]*\)", r"\1 LABELS", plain
    )
    found = plain.split()
    bad = []
    for place, word in enumerate(found):
        following = found[place + 1] if place + 1 < len(found) else ""
        before = found[place - 1] if place else ""
        if not re.match(r"[a-zA-Z_:]", word) or word == "LABELS" or following in ("{", "{}", "("):
            continue
        if following == "LABELS":
            continue  # a grouping, or what comes before its labels
        after_operand = bool(re.match(r'[)}\]\d."]|LABELS|inf|nan|\{\}', before, re.IGNORECASE))
        if after_operand and word.lower() in {"and", "or", "unless", "atan2", "offset"}:
            continue
        if word.lower() in {"inf", "nan", "bool", "group_left", "group_right"}:
            continue
        if following.lower() in {"by", "without"}:
            continue
        bad.append(word)
    return bad


PIECES = st.sampled_from(
    [
        *[
            "up",
            "sum",
            "by",
            "on",
            "bool",
            "offset",
            "and",
            "or",
            "group_left",
            "ignoring",
            "rate",
            "inf",
            "start",
            "end",
            "atan2",
        ],
        *["{", "}", "(", ")", "[5m]", "[1h:]", ",", "=", "=~", "==", "@", "-", "+", "/"],
        *['"s"', "'", "`", '"', "#", "\n", "\r", "5m", "1", " ", "job", "\\", "{}", '{a="b"}'],
    ]
)


@settings(max_examples=600, deadline=None)
@given(st.lists(PIECES, max_size=12).map(" ".join) | st.lists(PIECES, max_size=12).map("".join))
def test_no_text_comes_through_with_a_free_series(text: str) -> None:
    try:
        out: Confined = confine(text, "p1")
    except BadRequest:
        return
    plain = _without_strings(out.text)
    for block in re.findall(r"\{[^{}]*\}", plain):
        assert block.endswith('project_id="" }'), (text, out)
    assert plain.count("{") == plain.count("}") == out.text.count(OWN), (text, out)
    assert not unconfined(out.text), (text, out)


def test_the_other_way_of_reading_finds_free_series() -> None:
    assert unconfined("up + b") == ["up", "b"]
    assert unconfined("sum by ( x ) ( up )") == ["up"]
    assert unconfined('a { project_id="p1" } and up') == ["up"]
    assert unconfined(confine("sum by (x) (up) and on (y) b", "p1").text) == []
