"""``--help`` works everywhere, without a configuration file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from trimaran.cli import COMMANDS


@pytest.mark.parametrize("command", ["", *sorted(COMMANDS)])
def test_help_needs_no_configuration(command: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trimaran", *command.split(), "--help"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout.lower()


@pytest.mark.parametrize("command", ["ec2-api", "console", "magnum-api"])
def test_a_missing_file_is_one_sentence_that_names_it(command: str, tmp_path: Path) -> None:
    option = "--config" if command == "console" else "--config-file"
    done = subprocess.run(
        [sys.executable, "-m", "trimaran", command, option, str(tmp_path / "none.conf")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    said = done.stderr.strip()
    assert "none.conf" in said
    assert "Traceback" not in said
    assert len(said.splitlines()) == 1
