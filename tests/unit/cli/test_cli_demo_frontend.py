"""Where the demo's front end comes from; pip is played."""

from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from trimaran.cli.demo import frontend


@pytest.fixture(autouse=True)
def _no_front_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(frontend.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


class Pip:
    """Plays ``pip download``."""

    def __init__(self, status: int = 0) -> None:
        self.status = status
        self.pins: list[str] = []

    def __call__(self, command: Sequence[str], **_: Any) -> subprocess.CompletedProcess[str]:
        assert "--require-hashes" in command
        self.pins.append(Path(command[command.index("--requirement") + 1]).read_text())
        if self.status == 0:
            place = Path(command[command.index("--dest") + 1])
            with zipfile.ZipFile(place / "skyline_console-9.0.0-py3-none-any.whl", "w") as wheel:
                wheel.writestr("skyline_console/__init__.py", "")
                wheel.writestr("skyline_console/static/index.html", "page")
                wheel.writestr("skyline_console/static/asset/logo.png", "logo")
        return subprocess.CompletedProcess(command, self.status, "", "hashes do not match")


def test_the_wheel_s_bundle_is_fetched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pip = Pip()
    monkeypatch.setattr(subprocess, "run", pip)
    place = frontend.find()
    assert (place / "index.html").read_text() == "page"
    assert (place / "asset" / "logo.png").read_text() == "logo"
    assert not (place / "__init__.py").exists()
    assert frontend.find() == place
    assert pip.pins == [f"skyline-console==9.0.0 --hash=sha256:{frontend.WHEEL_SHA256}\n"]
    # Nothing of the way there is left.
    assert list(frontend.cache().iterdir()) == [place]


def test_what_cannot_be_fetched_is_said_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", Pip(1))
    with pytest.raises(click.ClickException, match="hashes do not match"):
        frontend.find()
    assert list(frontend.cache().iterdir()) == []


def test_a_build_goes_before_the_wheel_and_a_named_one_before_both(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert frontend.current() is None
    for place in (frontend.cache() / "built", tmp_path / "named"):
        place.mkdir(parents=True)
        (place / "index.html").write_text("page")
    assert frontend.find() == frontend.cache() / "built"
    monkeypatch.setenv(frontend.VARIABLE, str(tmp_path / "named"))
    assert frontend.find() == tmp_path / "named"
    monkeypatch.setenv(frontend.VARIABLE, str(tmp_path / "nothing"))
    with pytest.raises(click.ClickException, match=r"nothing holds no index\.html"):
        frontend.find()
