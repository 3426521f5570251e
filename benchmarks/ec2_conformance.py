r"""The conformance rows of spec ec2.md 10 asked of ec2-api 17 and of ours, as a page of docs/.

    python -m benchmarks.ec2_conformance --state .sandbox --results FILE \
        [--ours] [--upstream VENV --paste API-PASTE.INI] [--docs PAGE] \
        [--tempest VENV [--run default | incompatible] [--only REGEX] [--limit SECONDS]]

Both services stand in front of the same real cloud, each with a project of its
own; the rows are those of ``tests/e2e/test_ec2_conformance.py``.  ``--tempest``
also runs the groups of ec2api-tempest-plugin that are not about networks
against ours.  What was asked is kept in FILE, so that the parts may be run one
after another; the page is made from what is there.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import textwrap
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from importlib import resources
from pathlib import Path
from typing import Any

from benchmarks import ec2_peer, ec2_tempest
from benchmarks.ec2_between import between
from benchmarks.ec2_tempest_network import cell, counts, not_passing

from tests.support.cloud import CloudEnv
from tests.support.ec2_project import fresh_project
from tests.support.ec2_rows import World, every_row
from tests.support.ec2_tenant import tenant

COMMAND = "python -m benchmarks.ec2_conformance --state .sandbox --results FILE --docs PAGE …"
#: The suite's runs and how they are called.
RUNS = {"default": "default", "incompatible": "run_incompatible_tests"}
#: Rows that need something else than a client: where they are shown, and what ec2-api 17 does.
ELSEWHERE: Mapping[str, Any] = json.loads(
    resources.files("benchmarks").joinpath("ec2_conformance.json").read_text()
)


def asked(cloud: CloudEnv, url: str) -> dict[str, str]:
    """The answers of one service by row."""
    with tenant(cloud) as mine, fresh_project(cloud) as other:
        world = World(url, mine, other)
        world.begin()
        answers = {}
        for number, row in every_row().items():
            started = time.monotonic()
            try:
                answers[number] = row.answer(world)
            except Exception as error:
                # A row that cannot go on is an answer, too.
                answers[number] = f"{type(error).__name__}: {error}".splitlines()[0][:120]
            print(f"{number:>10}  {time.monotonic() - started:5.1f} s  {answers[number]}")
        return answers


def page(kept: Mapping[str, Any]) -> str:
    """The answers as Markdown."""
    ours, theirs = kept.get("ours", {}), kept.get("upstream", {})
    lines = [
        "# What the EC2 API answers, beside ec2-api 17",
        "",
        "The checks of the wire that do not concern networks, asked of ec2-api 17.0.0 and of",
        "`trimaran ec2-api` with boto3, both in front of one sandbox of real services (Keystone",
        "30, Nova 34, Neutron 29, Cinder 29, Glance 33). Upstream has help that today's services",
        "make necessary: something in between adds the service token to its `ec2tokens` and asks",
        "Neutron again without `gateway_ip` (`benchmarks/ec2_between.py`). Made by",
        "",
        f"    {COMMAND}",
        "",
        "| row | call | target | ec2-api 17 | ours | verdict |",
        "|---|---|---|---|---|---|",
    ]
    count = {"same": 0, "better": 0, "MISSED": 0}
    for number, row in every_row().items():
        mine, other = ours.get(number, "-"), theirs.get(number, "-")
        verdict = "same" if mine == other or other in row.targets else "better"
        verdict = verdict if mine in row.targets else "MISSED"
        count[verdict] += 1
        words = (number, row.call, " or ".join(row.targets), other, mine, verdict)
        lines.append(f"| {' | '.join(cell(word) for word in words)} |")
    told = ", ".join(f"{number} {verdict}" for verdict, number in count.items())
    lines += ["", f"{len(every_row())} rows: {told}.", "", "## Rows that are shown elsewhere", ""]
    lines += ["| row | what | where |", "|---|---|---|"]
    lines += [f"| {' | '.join(words)} |" for words in ELSEWHERE["elsewhere"]]
    return "\n".join(lines) + "\n" + suites(kept.get("tempest", {})) + tests()


def tests() -> str:
    """The tests that show what no table can, as Markdown."""
    lines = []
    for title, names in ELSEWHERE["tests"].items():
        lines += ["", f"## {title}", ""]
        for place in names:
            file, _, name = place.partition("::")
            assert f"def {name}(" in Path(file).read_text(), place
            lines.append(f"- `{file}`: {name.removeprefix('test_').replace('_', ' ')}")
    return "\n".join(lines) + "\n"


def suites(results: Mapping[str, Any]) -> str:
    """What the peers' own suite says, as Markdown."""
    if not results:
        return ""
    lines = ["", "## ec2api-tempest-plugin 1.7.0, unchanged", ""]
    lines += ["| run | pass | fail | skip |", "|---|---|---|---|"]
    lines += [f"| {title} | {counts(found)} |" for title, found in results.items()]
    lines += ["", f"| module | {' | '.join(results)} |", "|---" * (len(results) + 1) + "|"]
    for module in ec2_tempest.MODULES:
        told = [sum(name.startswith(f"{module}.") for name in found) for found in results.values()]
        seen = (f"{number} tests" if number else "not run" for number in told)
        lines.append(f"| `{module}` | {' | '.join(seen)} |")
    lines += [
        "",
        "`run_incompatible_tests` are those that AWS passes and ec2-api does not. Network groups",
        "are in [ec2-conformance-network.md](ec2-conformance-network.md).",
        *textwrap.wrap(ELSEWHERE["note"], 100),
    ]
    return "\n".join([*lines, *not_passing(results, ELSEWHERE["reasons"])]) + "\n"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="The conformance rows, of both services.")
    parser.add_argument("--state", type=Path, required=True, help="of a running sandbox")
    parser.add_argument("--results", type=Path, required=True, help="what was asked so far")
    parser.add_argument("--ours", action="store_true", help="ask ours")
    parser.add_argument("--upstream", type=Path, help="virtual environment with ec2-api 17.0.0")
    parser.add_argument("--paste", type=Path, help="its etc/ec2api/api-paste.ini")
    parser.add_argument("--tempest", type=Path, help="virtual environment with the suite")
    parser.add_argument("--run", choices=RUNS, default="default", help="which run of the suite")
    parser.add_argument("--only", default=ec2_tempest.GROUPS, help="which of its tests")
    parser.add_argument("--limit", type=float, default=3600, help="seconds of the suite")
    parser.add_argument("--docs", type=Path, help="the page")
    arguments = parser.parse_args()
    cloud = CloudEnv(arguments.state)
    kept = json.loads(arguments.results.read_text()) if arguments.results.exists() else {}

    def ask(name: str, service: AbstractContextManager[str]) -> None:
        with service as url:
            kept[name] = asked(cloud, url)
        arguments.results.write_text(json.dumps(kept, indent=1))

    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        if arguments.ours:
            ask("ours", ec2_peer.ours(home / "ours", cloud, cloud.auth_url))
        if arguments.tempest:
            (home / "suite").mkdir()
            found = ec2_tempest.run(
                cloud,
                home / "suite",
                arguments.tempest,
                arguments.only,
                incompatible=arguments.run != "default",
                limit=arguments.limit,
            )
            told = kept.setdefault("tempest", {})
            told[RUNS[arguments.run]] = {**told.get(RUNS[arguments.run], {}), **found}
            arguments.results.write_text(json.dumps(kept, indent=1))
        if arguments.upstream:
            peer = ec2_peer.Upstream(arguments.upstream, arguments.paste)
            with between(cloud) as way:
                ask("upstream", ec2_peer.upstream(peer, home / "theirs", cloud, way.auth_url))
    if arguments.docs:
        arguments.docs.write_text(page(kept))


if __name__ == "__main__":
    main()
