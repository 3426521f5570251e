"""Starting, finding and stopping real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trimaran.sandbox.problem import SandboxError
from trimaran.sandbox.processes import Processes, clean_environment

STUBBORN = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True)\n"
FAMILY = (
    "import subprocess, sys, time\n"
    "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
    "print('up', flush=True)\n"
)
SLEEP = "import time; time.sleep(600)"


def eventually(test: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.05)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path.resolve())
    yield made
    made.stop(made.groups(), 0.5)


def start(processes: Processes, name: str, code: str, **options: object) -> bool:
    command = [sys.executable, "-c", code]
    return processes.start(name, command, clean_environment(), **options)  # type: ignore[arg-type]


def test_a_running_service_is_not_started_again(processes: Processes) -> None:
    assert start(processes, "one", SLEEP)
    first = processes.running("one")
    assert not start(processes, "one", SLEEP)

    assert first is not None
    assert processes.running("one") == first


def test_a_changed_configuration_restarts(processes: Processes, tmp_path: Path) -> None:
    config = tmp_path / "a.conf"
    config.write_text("one")
    start(processes, "one", SLEEP, config=[config])
    first = processes.running("one")
    config.write_text("two")

    assert start(processes, "one", SLEEP, config=[config])
    second = processes.running("one")

    assert first is not None
    assert second is not None
    assert first.leader != second.leader


def test_another_tool_finds_what_the_first_one_started(processes: Processes) -> None:
    """No pid file: an ``up`` that is killed right after a start loses nothing."""
    start(processes, "one", SLEEP)

    other = Processes(processes.state)
    assert other.groups() == processes.groups()
    assert other.stop(["one"]) == ["one"]
    assert processes.running("one") is None


def test_one_that_ignores_sigterm_is_killed_with_its_children(processes: Processes) -> None:
    start(processes, "stubborn", STUBBORN + FAMILY + SLEEP)
    log = processes.logs / "stubborn.log"
    eventually(lambda: log.read_text().count("up") == 2)
    group = processes.running("stubborn")
    assert group is not None
    assert len(group.pids) == 2

    assert processes.stop(["stubborn"], 0.5) == ["stubborn"]

    assert all(processes.proc.stat(pid) is None for pid in group.pids)


def test_children_of_a_killed_leader_are_found_and_stopped(processes: Processes) -> None:
    start(processes, "family", FAMILY + SLEEP)
    eventually(lambda: "up" in (processes.logs / "family.log").read_text())
    group = processes.running("family")
    assert group is not None
    os.kill(group.leader, signal.SIGKILL)
    eventually(lambda: (left := processes.running("family")) and group.leader not in left.pids)

    processes.stop(["family"])

    assert processes.running("family") is None


def test_a_held_process_is_stopped(processes: Processes) -> None:
    start(processes, "held", SLEEP)
    group = processes.running("held")
    assert group is not None
    os.kill(group.leader, signal.SIGSTOP)

    processes.stop(["held"], 5)

    assert processes.running("held") is None


def test_processes_are_found_after_their_state_directory_was_removed(
    processes: Processes,
) -> None:
    start(processes, "one", SLEEP)
    (processes.logs / "one.log").unlink()

    assert processes.stop(["one"]) == ["one"]


def test_only_what_writes_to_our_logs_is_stopped(processes: Processes) -> None:
    bystander = subprocess.Popen([sys.executable, "-c", SLEEP])
    try:
        start(processes, "one", SLEEP)
        processes.stop(processes.groups())

        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_one_that_dies_while_it_is_waited_for_is_named(processes: Processes) -> None:
    start(processes, "frail", "raise SystemExit('no licence')")

    words = r"frail ended before it was ready \(no licence\); see .*frail\.log"
    with pytest.raises(SandboxError, match=words):
        processes.wait("frail", lambda: False, 60)


def test_a_command_that_fails_names_its_log(processes: Processes) -> None:
    command = [sys.executable, "-c", "print('the reason'); raise SystemExit(2)"]

    with pytest.raises(SandboxError, match=r"setup-step\.log"):
        processes.run("step", command, clean_environment())

    assert "the reason" in (processes.logs / "setup-step.log").read_text()
    assert processes.run("step", command, clean_environment(), check=False) == 2


def test_a_program_that_is_not_there_is_one_sentence(processes: Processes) -> None:
    with pytest.raises(SandboxError, match="cannot be run"):
        processes.run("step", ["/nowhere/program"], clean_environment())
    with pytest.raises(SandboxError, match="none cannot be started"):
        processes.start("none", ["/nowhere/program"], clean_environment())
