"""Two commands at once, and one that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trimaran.sandbox.locks import hold
from trimaran.sandbox.problem import SandboxError
from trimaran.sandbox.progress import Progress

HOLDER = """
import subprocess, sys, time
from pathlib import Path
from trimaran.sandbox.locks import hold
from trimaran.sandbox.progress import Progress
with hold(Path(sys.argv[1]), "x", Progress()) as lock:
    if len(sys.argv) > 2:
        child = subprocess.Popen(["sleep", sys.argv[2]], pass_fds=[lock])
        print(child.pid, flush=True)
    print("held", flush=True)
    time.sleep(600)
"""


def start_holder(path: Path, *more: str) -> tuple[subprocess.Popen[str], list[str]]:
    command = [sys.executable, "-c", HOLDER, str(path), *more]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    lines = []
    while (line := holder.stdout.readline().strip()) != "held":
        lines.append(line)
    return holder, lines


def end(holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait()
    assert holder.stdout is not None
    holder.stdout.close()


def test_the_second_waits_and_says_for_whom(tmp_path: Path) -> None:
    said: list[str] = []
    holder, _ = start_holder(tmp_path / "lock")
    try:
        with (
            pytest.raises(SandboxError, match=f"pid {holder.pid}"),
            hold(tmp_path / "lock", "this state", Progress(said.append), timeout=0.5),
        ):
            pass
    finally:
        end(holder)
    assert any(f"works on this state (pid {holder.pid})" in line for line in said)


def test_kill_9_frees_the_lock(tmp_path: Path) -> None:
    holder, _ = start_holder(tmp_path / "lock")
    end(holder)

    with hold(tmp_path / "lock", "x", Progress(lambda line: None), timeout=60):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_a_child_of_a_killed_command_keeps_the_lock_until_it_ends(tmp_path: Path) -> None:
    holder, lines = start_holder(tmp_path / "lock", "600")
    end(holder)
    child = int(lines[0])

    with (
        pytest.raises(SandboxError),
        hold(tmp_path / "lock", "x", Progress(lambda line: None), timeout=0.5),
    ):
        pass

    os.kill(child, signal.SIGKILL)
    with hold(tmp_path / "lock", "x", Progress(lambda line: None), timeout=60):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
