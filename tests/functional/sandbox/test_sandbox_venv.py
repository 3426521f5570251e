"""The services' environment: made once, also for two at once, and never used half-made.

A set of one small package stands for the real pins: what is tested is the making.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trimaran.sandbox import venv as venv_module
from trimaran.sandbox.problem import SandboxError
from trimaran.sandbox.processes import Processes
from trimaran.sandbox.progress import Progress
from trimaran.sandbox.venv import Environment

PIN = "six==1.17.0\n"
MAKER = """
import sys
from pathlib import Path
from trimaran.sandbox import venv
from trimaran.sandbox.processes import Processes
from trimaran.sandbox.progress import Progress
venv.LIB = Path(sys.argv[1])
state = Path(sys.argv[3])
venv.Environment(Path(sys.argv[2])).ensure(Processes(state), Progress(print))
"""


@pytest.fixture
def pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "lib"
    folder.mkdir()
    (folder / "requirements.txt").write_text(f"# a comment\n{PIN}")
    monkeypatch.setattr(venv_module, "LIB", folder)
    return folder


def maker(pins: Path, root: Path, state: Path) -> subprocess.Popen[str]:
    state.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-u", "-c", MAKER, str(pins), str(root), str(state)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def works(environment: Environment) -> bool:
    done = subprocess.run([str(environment.python), "-c", "import six"], check=False)
    return environment.complete() and done.returncode == 0


def test_killed_then_refused_then_two_at_once(
    pins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One story, because each making of an environment takes its seconds."""
    root = tmp_path / "cache"
    environment = Environment(root)

    # kill -9 in the middle
    killed = maker(pins, root, tmp_path / "a")
    end = time.monotonic() + 180
    while not environment.python.exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert not environment.complete()

    # no index to install from
    said: list[str] = []
    processes = Processes(tmp_path / "b")
    processes.state.mkdir()
    with monkeypatch.context() as patch:
        patch.setenv("PIP_NO_INDEX", "1")
        with pytest.raises(SandboxError, match=r"A step failed .*setup-pip-1\.log"):
            environment.ensure(processes, Progress(said.append))
    assert any("half-made" in line for line in said)
    assert not environment.complete()

    # two at once
    makers = [maker(pins, root, tmp_path / name) for name in ("c", "d")]
    texts = [made.communicate(timeout=400)[0] for made in makers]
    assert [made.returncode for made in makers] == [0, 0]
    assert works(environment)
    assert sum("pip install" in text for text in texts) == 1
