"""The network rows of spec ec2.md 10 and the peers' suite, as a page of docs/.

    python -m benchmarks.ec2_tempest_network --state .sandbox --results FILE \
        [--ours] [--upstream VENV --paste API-PASTE.INI] \
        [--tempest VENV [--run default] [--only REGEX] [--limit SECONDS]] [--docs PAGE]

``--ours`` and ``--upstream`` ask the rows of `tests.support.ec2_rows_network` of
our API and of ec2-api 17.0.0, in front of the same real cloud.  ``--tempest``
runs the network groups of ec2api-tempest-plugin, as they are, against ours:
with their default options, and with ``run_incompatible_tests``, which is what
AWS does and ec2-api does not.  What was asked is kept in FILE, so that the parts
may be run one after another; the page is made from what is there, and from the
reasons in ``ec2_tempest_network.json``; a test without one is named as such.
"""

from __future__ import annotations

import argparse
import configparser
import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from benchmarks import ec2_peer
from benchmarks.ec2_between import between

from tests.support.cloud import ADMIN, CloudEnv
from tests.support.ec2 import Daemon, running, write_conf
from tests.support.ec2_project import Project, fresh_project
from tests.support.ec2_rows_network import NETWORK, Network
from tests.support.ec2_tenant import tenant
from tests.support.ports import free_port
from trimaran.db import migrate

COMMAND = "python -m benchmarks.ec2_tempest_network --state .sandbox --results FILE --docs PAGE …"
GROUPS = (
    r"api\.test_(addresses|customer_gateways|dhcp_options|instances_vpc|internet_gateways"
    r"|network_interfaces|routes|security_groups|subnets|tags|vpcs|vpn_connections|vpn_gateways)\."
    r"|api\.test_instance_attributes\..*(multiple_interfaces|group_set|source_dest)"
    r"|scenario\.test_(instances|instances_in_vpc|vpc_addresses|vpn)\."
)
#: The runs, and whether they ask for what is AWS's alone.
RUNS = {"default": False, "run_incompatible_tests": True}
#: Why a test does not pass, by a regular expression on its name.
REASONS: Mapping[str, str] = json.loads(
    resources.files("benchmarks").joinpath("ec2_tempest_network.json").read_text()
)

#: Run by the suite's own Python: what subunit tells of each test, as JSON.
_READ = r"""
import json, sys, subunit, testtools
told = {}
def note(test):
    if test["status"] in (None, "exists", "inprogress"):  # the last: it was interrupted
        return
    why = [d.as_text() for name, d in sorted(test["details"].items())
           if name.startswith(("traceback", "reason"))]
    told[test["id"]] = [test["status"], "\n".join(why)]
sink = testtools.StreamToDict(note)
sink.startTestRun()
subunit.ByteStreamToStreamResult(sys.stdin.buffer, non_subunit_name="out").run(sink)
sink.stopTestRun()
told.pop("out", None)
json.dump(told, sys.stdout)
"""

#: Of each test: its status and its last words.
Results = dict[str, tuple[str, str]]


def configure(
    home: Path,
    cloud: CloudEnv,
    project: Project,
    daemon: Daemon,
    *,
    incompatible: bool,
    options: Mapping[str, str],
) -> None:
    """Writes tempest's configuration."""
    images = daemon.client(project.keys).describe_images(ExecutableUsers=["all"])["Images"]
    stored = [row for row in images if row["RootDeviceType"] == "instance-store"]
    parser = configparser.ConfigParser(interpolation=None)
    parser["DEFAULT"] = {"log_file": "tempest.log"}
    parser["oslo_concurrency"] = {"lock_path": str(home / "lock")}
    parser["identity"] = {"uri_v3": cloud.auth_url, "auth_version": "v3"}
    parser["auth"] = {
        "admin_username": ADMIN.name,
        "admin_password": ADMIN.password,
        "admin_project_name": ADMIN.project,
        "admin_domain_name": ADMIN.domain,
    }
    parser["service_available"] = {"ec2api": "true"}
    parser["aws"] = {
        "ec2_url": daemon.url + "/",
        "aws_access": project.keys[0],
        "aws_secret": project.keys[1],
        "aws_region": "RegionOne",
        "aws_zone": "nova",
        "instance_type": "m1.tiny",
        "instance_type_alt": "cirros256",
        "image_id": min(stored, key=lambda row: str(row["Name"]))["ImageId"],
        "build_timeout": "90",
        "build_interval": "1",
        "vpnaas_enabled": "true",
        # Guests of the sandbox have no network.
        "run_ssh": "false",
        "run_incompatible_tests": str(incompatible).lower(),
        **options,
    }
    with (home / "etc" / "tempest.conf").open("w") as file:
        parser.write(file)


def run_suite(
    venv: Path,
    cloud: CloudEnv,
    project: Project,
    daemon: Daemon,
    regex: str,
    *,
    incompatible: bool,
    options: Mapping[str, str] | None = None,
    limit: float = 3600,
) -> Results:
    """One run of the suite.

    Args:
        venv: a virtual environment with ``tempest`` and ``ec2api-tempest-plugin``.
        cloud: the sandbox.
        project: whose credentials are used.
        daemon: our API.
        regex: which tests.
        incompatible: also what is AWS's alone.
        options: more of tempest's ``[aws]``.
        limit: seconds after which it is interrupted.

    Returns:
        Status and last words of every test that was run.
    """
    with tempfile.TemporaryDirectory() as place:
        home = Path(place) / "suite"
        environment = {
            **{name: value for name, value in os.environ.items() if "proxy" not in name.lower()},
            "HOME": place,
            "PATH": f"{venv / 'bin'}:{os.environ['PATH']}",
            "PYTHONWARNINGS": "ignore",
            "TEMPEST_CONFIG_DIR": str(home / "etc"),
            "TEST_CONFIG_DIR": str(home / "etc"),
            "TEST_CONFIG": "tempest.conf",
        }

        def call(*words: str, cwd: Path | None = None, given: bytes = b"") -> bytes:
            done = subprocess.run(
                words, cwd=cwd, env=environment, capture_output=True, check=False, input=given
            )
            return done.stdout

        workspaces = str(Path(place) / "workspaces.yaml")
        call("tempest", "init", "--workspace-path", workspaces, "--name", "suite", str(home))
        configure(home, cloud, project, daemon, incompatible=incompatible, options=options or {})
        suite = subprocess.Popen(
            ["tempest", "run", "--regex", regex, "--concurrency", "2"],
            cwd=home,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                suite.wait(limit)
        finally:
            if suite.poll() is None:
                # With its workers, which are of its session.
                os.killpg(suite.pid, signal.SIGINT)
                suite.wait(60)
        stream = call("stestr", "last", "--subunit", cwd=home)
        told = json.loads(call(str(venv / "bin" / "python"), "-c", _READ, given=stream) or "{}")
    found: Results = {}
    for name, (status, why) in told.items():
        lines = [line for line in why.strip().splitlines() if line.strip()]
        passed = status in ("success", "xfail")
        word = "pass" if passed else "skip" if status == "skip" else "fail"
        plain = re.sub(r"\[.*\]|ec2api_tempest_plugin\.", "", name)
        found[plain] = (word, "" if passed or not lines else lines[-1][:300])
    return found


@contextlib.contextmanager
def ours(cloud: CloudEnv, home: Path) -> Iterator[Daemon]:
    """Our API with two processes, since one row is about that."""
    url = f"sqlite:///{home}/ec2.sqlite"
    migrate.upgrade(url, "ec2")
    port = free_port()
    conf = write_conf(home, cloud, url, ec2api_listen_port=port, ec2api_workers=2)
    with running("ec2-api", conf, port) as daemon:
        yield daemon


def asked(cloud: CloudEnv, url: str) -> dict[str, str]:
    """The answers of one service by row."""
    with tenant(cloud) as mine, fresh_project(cloud) as other:
        world = Network(url, mine, other)
        answers = {}
        for number, row in NETWORK.items():
            started = time.monotonic()
            try:
                answers[number] = row.answer(world)
            except Exception as error:
                # A row that cannot go on is an answer, too.
                answers[number] = f"{type(error).__name__}: {error}".splitlines()[0][:120]
            seconds = time.monotonic() - started
            print(f"{number:>6}  {seconds:5.1f} s  {answers[number]}", flush=True)
        return answers


def cell(text: str) -> str:
    """A text inside a table."""
    return text.replace("|", "\\|")


def page(kept: Mapping[str, Any]) -> str:
    """What was asked, as Markdown."""
    lines = [
        "# What the EC2 API answers about networks",
        "",
        "Asked of `trimaran ec2-api` in front of a sandbox of real services (Neutron 29 with",
        "neutron-vpnaas 29, Nova 34, Keystone 30). Made by",
        "",
        f"    {COMMAND}",
    ]
    mine, theirs = kept.get("ours", {}), kept.get("upstream", {})
    if mine:
        met, others = (
            sum(told.get(number) in row.targets for number, row in NETWORK.items())
            for told in (mine, theirs)
        )
        lines += ["", "## Rows", "", f"As wanted: {met} of {len(NETWORK)}.", ""]
        if theirs:
            lines[-1:] = [
                f"With ec2-api 17: {others}; rows 31 to 37 need a route table, which it does not",
                "make for clients of today.",
                "Upstream has help that today's services make necessary: something in between adds",
                "the service token to its `ec2tokens` and asks Neutron again without `gateway_ip`",
                "(`benchmarks/ec2_between.py`).",
                "",
            ]
        lines += ["| row | call | target | ec2-api 17 | ours |", "|---|---|---|---|---|"]
        for number, row in NETWORK.items():
            words = (number, row.call, " or ".join(row.targets), theirs.get(number, "-"))
            lines.append(f"| {' | '.join(map(cell, (*words, mine.get(number, '-'))))} |")
    return "\n".join(lines) + "\n" + suites(kept.get("tempest", {}))


def suites(results: Mapping[str, Any]) -> str:
    """What the peers' own suite says, as Markdown."""
    if not results:
        return ""
    lines = ["", "## ec2api-tempest-plugin 1.7.0, unchanged: the network groups", ""]
    lines += ["| run | pass | fail | skip | seconds |", "|---|---|---|---|---|"]
    for title, (found, seconds) in results.items():
        lines.append(f"| {title} | {counts(found)} | {seconds:.0f} |")
    runs = {title: found for title, (found, _) in results.items()}
    if "run_incompatible_tests" in results:
        lines += ["", "`run_incompatible_tests` asks for what AWS does and ec2-api does not."]
    return "\n".join([*lines, *not_passing(runs, REASONS)]) + "\n"


def counts(found: Mapping[str, Sequence[str]]) -> str:
    """How many tests of a run passed, failed and were skipped, as cells of a table."""
    states = [status for status, _ in found.values()]
    return " | ".join(str(states.count(word)) for word in ("pass", "fail", "skip"))


def not_passing(
    runs: Mapping[str, Mapping[str, Sequence[str]]], reasons: Mapping[str, str]
) -> list[str]:
    """What does not pass in some run, with its reason, as lines of Markdown.

    Args:
        runs: status and words of each test, by run.
        reasons: why, by a regular expression on the test's name.
    """
    lines = [
        "",
        "What does not pass:",
        "",
        f"| test | {' | '.join(runs)} | reason |",
        "|---" * (len(runs) + 2) + "|",
    ]
    for name in sorted({name for found in runs.values() for name in found}):
        states = [found.get(name, ("-", "")) for found in runs.values()]
        bad = [words for status, words in states if status in ("fail", "skip")]
        if bad:
            told = " | ".join(status for status, _ in states)
            lines.append(f"| `{name}` | {told} | {cell(reason(name, bad[-1], reasons))} |")
    return lines


def reason(test: str, words: str, reasons: Mapping[str, str]) -> str:
    """Why a test does not pass; the suite's own words where nobody gave a reason."""
    for pattern, text in reasons.items():
        if re.search(pattern, test):
            return text
    return f"the suite says: {words}"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="The checks of networks.")
    parser.add_argument("--state", type=Path, required=True, help="of a running sandbox")
    parser.add_argument("--results", type=Path, required=True, help="what was asked so far")
    parser.add_argument("--ours", action="store_true", help="ask the rows of ours")
    parser.add_argument("--upstream", type=Path, help="virtual environment with ec2-api 17.0.0")
    parser.add_argument("--paste", type=Path, help="its etc/ec2api/api-paste.ini")
    parser.add_argument("--tempest", type=Path, help="virtual environment with the suite")
    parser.add_argument("--run", choices=RUNS, action="append", help="by default both")
    parser.add_argument("--only", default=GROUPS, help="which of the suite's tests")
    parser.add_argument("--limit", type=float, default=540, help="seconds of the suite's runs")
    parser.add_argument("--docs", type=Path, help="the page")
    arguments = parser.parse_args()
    cloud = CloudEnv(arguments.state)
    path: Path = arguments.results
    kept: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def keep() -> None:
        path.write_text(json.dumps(kept, indent=1))

    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        if arguments.ours:
            (home / "ours").mkdir()
            with ours(cloud, home / "ours") as daemon:
                kept["ours"] = asked(cloud, daemon.url)
            keep()
        if arguments.upstream:
            peer = ec2_peer.Upstream(arguments.upstream, arguments.paste)
            with (
                between(cloud) as way,
                ec2_peer.upstream(peer, home / "theirs", cloud, way.auth_url) as url,
            ):
                kept["upstream"] = asked(cloud, url)
            keep()
        if arguments.tempest:
            began = time.monotonic()
            (home / "suite").mkdir()
            with ours(cloud, home / "suite") as daemon, fresh_project(cloud) as project:
                daemon.client(project.keys).describe_vpcs()
                before = project.left()
                for title in arguments.run or RUNS:
                    started = time.monotonic()
                    told = run_suite(
                        arguments.tempest,
                        cloud,
                        project,
                        daemon,
                        arguments.only,
                        incompatible=RUNS[title],
                        limit=arguments.limit - (started - began),
                    )
                    found, seconds = kept.setdefault("tempest", {}).get(title, ({}, 0.0))
                    spent = seconds + time.monotonic() - started
                    kept["tempest"][title] = ({**found, **told}, spent)
                    keep()
                print("Neutron is as before:", project.left() == before)
    if arguments.docs:
        arguments.docs.write_text(page(kept))


if __name__ == "__main__":
    main()
