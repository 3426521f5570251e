"""``ec2-api-manage``, the name under which scripts migrate."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = "from trimaran.ec2.cli import manage; manage()"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, timeout=120
    )


@pytest.fixture
def conf(tmp_path: Path) -> str:
    path = tmp_path / "ec2api.conf"
    path.write_text(f"[database]\nconnection = sqlite:///{tmp_path}/ec2.sqlite\n")
    return str(path)


def test_sync_and_version(conf: str) -> None:
    assert run("--config-file", conf, "db_version").stdout == "none\n"
    done = run("--config-file", conf, "db_sync", "001", "x")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "ec2_" in run("--config-file", conf, "db_version").stdout
    assert run("--config-file", conf, "db_sync").returncode == 0


def test_a_missing_file_is_one_sentence() -> None:
    done = run("--config-file", "/does/not/exist", "db_sync")
    assert done.returncode == 1
    assert done.stderr.startswith("ec2-api-manage: /does/not/exist")
    assert "Traceback" not in done.stderr
