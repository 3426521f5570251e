"""The conformance checks of magnum 23.0.0 and of ours side by side, and the test of each fault.

    python -m benchmarks.magnum_conformance --peer VENV --amqp URL [--only EXPRESSION]

VENV is an environment with ``magnum==23.0.0`` and PyMySQL, URL a virtual host
of RabbitMQ that nobody else uses.  The rows are the tests of
tests/functional/magnum/test_magnum_api_conformance.py, run against each of the
two with the same cloud and the same driver; upstream's conductor looks at its
clusters every half second instead of every ten.  Writes
docs/magnum-conformance.md.  To be run from the top of the repository with
TRIMARAN_SANDBOX set to the sandbox's state.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests import conftest
from tests.support import magnum_both
from tests.support.cloud import CloudEnv
from tests.support.magnum_upstream import upstream

REPOSITORY = Path(__file__).parents[1]
CHECKS = REPOSITORY / "tests/functional/magnum/test_magnum_api_conformance.py"
PAGE = REPOSITORY / "docs/magnum-conformance.md"
HOST = "magnum.test:9511"
PATIENCE = 20.0
SPACING = 0.5
#: faults of specification section 11, in a few words
FAULTS = REPOSITORY / "benchmarks/magnum_faults.json"
FAULTS_TITLE = "## The faults"


class Recorder:
    """A plugin of pytest that keeps what became of each test."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keeps a word: empty for a pass."""
        name = report.nodeid.partition("::")[2]
        if report.failed:
            self.outcomes[name] = f"{report.when}: {_reason(report)}"
        elif report.when == "call":
            self.outcomes.setdefault(name, "")


def _reason(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash else report.longrepr)


def check(arguments: list[str]) -> dict[str, str]:
    """Runs the checks in this process; test to reason of its failure."""
    recorder = Recorder()
    # This program has imported what pytest would like to have seen first.
    calm = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    options = [str(CHECKS), "-q", "-p", "no:cacheprovider", "--no-header", *calm, *arguments]
    pytest.main(options, plugins=[recorder])
    return recorder.outcomes


class Remote:
    """Stands in for the test client: requests go to a server, which is told the usual host."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._session = requests.Session()
        self._session.trust_env = False

    def request(self, method: str, path: str, headers: dict[str, str], **kwargs: Any) -> Any:
        """One request; the arguments are the test client's."""
        if "content" in kwargs:
            kwargs["data"] = kwargs.pop("content")
        told = {"Host": HOST, "Accept": "application/json", **headers}
        return self._session.request(method, self._base + path, headers=told, timeout=120, **kwargs)


def replace_ours(venv: str, amqp: str) -> None:
    """Has the checks find upstream where they would start ours."""

    @contextlib.contextmanager
    def both(folder: Path, cloud: CloudEnv, **settings: Any) -> Iterator[magnum_both.Both]:
        database = contextlib.contextmanager(conftest._database)
        with contextlib.ExitStack() as stack:
            names = stack.enter_context(magnum_both._fixtures(cloud))
            url = stack.enter_context(database("mariadb", folder))
            # Small keys are made quickly, for both.
            settings = {"x509__rsa_key_size": 1024, **settings}
            running = stack.enter_context(upstream(venv, amqp, folder, cloud, url, **settings))
            running.start_conductor(spacing=SPACING)
            running.wait_for_conductor()
            running.start_api()
            client: Any = Remote(running.magnum.url.removesuffix("/v1"))
            yield magnum_both.Both(client, cloud, names)

    magnum_both.both = both
    magnum_both.PATIENCE = PATIENCE


def in_a_process(*arguments: str) -> dict[str, str]:
    """The checks' outcomes from a process of their own, since one replaces parts of them."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "outcomes.json"
        command = [sys.executable, "-m", "benchmarks.magnum_conformance", "--run", str(out)]
        subprocess.run([*command, *arguments], check=True, cwd=REPOSITORY)
        return dict(json.loads(out.read_text()))


def differs(reason: str) -> str:
    """A failure in a few words."""
    if not reason:
        return "✓"
    first = reason.splitlines()[0]
    answer = re.search(r"assert \(?(\d{3})\b", reason)
    wanted = re.search(r"== \(?(\d{3})\b", reason)
    if answer and wanted and answer[1] != wanted[1]:
        said = re.search(r'"detail": ?"((?:[^"\\]|\\.)*)"', reason)
        text = f"answers {answer[1]}"
        return f"{text}: {_cell(said[1])}" if said and said[1] else text
    return _cell(first.removeprefix("call: ").removeprefix("AssertionError: "))


def _cell(text: str) -> str:
    plain = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "…", " ".join(text.split()))
    cut = plain if len(plain) <= 110 else plain[:109] + "…"
    return cut.replace("|", "\\|").replace("<", "&lt;")


def rows() -> list[tuple[str, str, str]]:
    """Test, numbers of the rows and what is asked, in the order of the numbers."""
    from tests.functional.magnum import test_magnum_api_conformance as checks

    found = [
        (
            f"test_refusal[row {row.number}]",
            row.number,
            _cell(f"{row.method} {row.path}: {row.status} {row.text}"),
        )
        for row in checks.REFUSALS
    ]
    for name, function in vars(checks).items():
        told = re.fullmatch(r"test_row_((?:\d+_|and_)*\d+)_?(.*)", name)
        if not told:
            continue
        numbers = ", ".join(re.findall(r"\d+", told[1]))
        asked = told[2].replace("_", " ")
        marks = [m for m in getattr(function, "pytestmark", []) if m.name == "parametrize"]
        for value in marks[0].args[1] if marks else [None]:
            suffix = "" if value is None else f"[{value}]"
            found.append((name + suffix, numbers, f"{asked} {value or ''}".strip()))
    return sorted(found, key=lambda row: (int(re.match(r"\d+", row[1])[0]), row[1]))  # type: ignore[index]


def tests_of_faults() -> dict[int, list[str]]:
    """Number of a fault to the tests that are named after it, as file and function."""
    named: dict[int, list[str]] = defaultdict(list)
    for path in sorted((REPOSITORY / "tests").rglob("*.py")):
        if "magnum" not in path.name:
            continue
        for item in ast.parse(path.read_text()).body:
            if isinstance(item, ast.FunctionDef) and item.name.startswith("test_"):
                for number in re.findall(r"(?<=_)f(\d+)(?=_)", item.name):
                    place = path.relative_to(REPOSITORY / "tests").with_suffix("")
                    words = re.sub(r"^(f\d+_)+", "", item.name.removeprefix("test_"))
                    named[int(number)].append(f"`{place}`: {words.replace('_', ' ')}")
    return named


def checks_part(ours: dict[str, str], theirs: dict[str, str]) -> list[str]:
    """The table of checks."""
    lines = [
        "## The checks",
        "",
        "The rows are tests (`tests/functional/magnum/test_magnum_api_conformance.py`), run",
        "against both with the same Keystone, Nova, Glance and Neutron and the same driver.",
        "Where magnum differs, the cell says what it answered.",
        "",
    ]
    table = rows()
    for title, outcomes in (("ours", ours), ("magnum 23.0.0", theirs)):
        passed = sum(outcomes.get(test) == "" for test, *_ in table)
        lines.append(f"- {title}: {passed} of {len(table)}")
    lines += ["", "| row | check | ours | magnum 23.0.0 |", "|---|---|---|---|"]
    for test, numbers, asked in table:
        cells = (differs(outcomes.get(test, "not run")) for outcomes in (ours, theirs))
        lines.append(f"| {numbers} | {asked} | {' | '.join(cells)} |")
    return [
        *lines,
        "",
        "Row 77 and the notifications of row 75 are `test_magnum_conductor_notifications` and,",
        "field by field beside captured ones of upstream's, `test_magnum_upstream_events`.",
        "",
    ]


def faults_part() -> list[str]:
    """The table of faults."""
    lines = [
        FAULTS_TITLE,
        "",
        "Known faults of upstream, and the tests here that are named after them.",
        "",
        "| fault | upstream | tests here |",
        "|---|---|---|",
    ]
    named = tests_of_faults()
    for number, fault in enumerate(json.loads(FAULTS.read_text()), start=1):
        if not named[number]:
            raise SystemExit(f"no test is named after F-{number}")
        lines.append(f"| F-{number} | {fault} | {'<br>'.join(named[number])} |")
    return lines


def write(checks: list[str] | None) -> None:
    """Writes the page.

    Args:
        checks: the first part; None keeps the one that is there.
    """
    head = [
        "# Conformance: magnum 23.0.0 and ours",
        "",
        "Written by `python -m benchmarks.magnum_conformance`; do not edit.",
        "",
    ]
    if checks is None and PAGE.exists():
        kept = PAGE.read_text().splitlines()
        head, checks = kept[: kept.index(FAULTS_TITLE)], []
    PAGE.write_text("\n".join([*head, *(checks or []), *faults_part()]) + "\n")


def main() -> None:
    """Runs the checks against both and writes the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--peer", help="environment of magnum 23.0.0")
    parser.add_argument("--amqp", help="URL of a virtual host of its own")
    parser.add_argument("--only", help="an expression of pytest's -k; prints and writes nothing")
    parser.add_argument(
        "--faults", action="store_true", help="write the table of faults alone, which runs nothing"
    )
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.faults:
        write(None)
        return
    chosen = ["--only", given.only] if given.only else []
    if given.run:
        if given.peer:
            replace_ours(given.peer, given.amqp)
        given.run.write_text(json.dumps(check(["-k", given.only] if given.only else [])))
        return
    ours = in_a_process(*chosen)
    theirs = in_a_process("--peer", given.peer, "--amqp", given.amqp, *chosen)
    if given.only:
        for test in ours:
            print(f"{test}\n  ours: {ours[test]}\n  magnum: {theirs.get(test)}")
        return
    write(checks_part(ours, theirs))


if __name__ == "__main__":
    main()
