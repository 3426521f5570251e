"""Where log lines go and what they carry."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from trimaran.config import console, logs, magnum
from trimaran.errors import ConfigError


@pytest.fixture(autouse=True)
def _root_logger() -> Iterator[None]:
    """Gives the root logger back as it was: pytest's own handlers live there."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    quiet = {name: logging.getLogger(name).level for name in logs.QUIET}
    for handler in handlers:
        root.removeHandler(handler)
    yield
    for handler in list(root.handlers):
        root.removeHandler(handler)
        handler.close()
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(level)
    for name, old in quiet.items():
        logging.getLogger(name).setLevel(old)


def _settings(**options: object) -> console.Settings:
    return console.parse({"default": options}, "skyline.yaml")


def test_the_console_writes_its_file_with_the_request_id(tmp_path: Path) -> None:
    logs.setup(_settings(log_dir=str(tmp_path / "new"), log_file="c.log"), "console")
    mark = logs.REQUEST_ID.set("req-1")
    logging.getLogger("trimaran.test").info("hello")
    logs.REQUEST_ID.reset(mark)
    logging.getLogger("trimaran.test").debug("not shown")
    logging.getLogger("trimaran.test").warning("bye")
    lines = (tmp_path / "new" / "c.log").read_text().splitlines()
    assert [line.split(" ", 3)[3] for line in lines] == [
        "INFO trimaran.test [req-1] hello",
        "WARNING trimaran.test [-] bye",
    ]


def test_debug_comes_from_the_file(tmp_path: Path) -> None:
    logs.setup(_settings(log_dir=str(tmp_path), log_file="c.log", debug=True), "console")
    assert logging.getLogger().level == logging.DEBUG
    # Headers with tokens are what this one writes at DEBUG.
    assert logging.getLogger("keystoneauth").getEffectiveLevel() >= logging.INFO


@pytest.mark.parametrize(
    ("file", "stream"), [("/dev/stdout", "stdout"), ("/dev/stderr", "stderr"), ("", "stderr")]
)
def test_streams_are_used_and_not_opened(file: str, stream: str) -> None:
    logs.setup(_settings(log_dir="/nonexistent", log_file=file), "console")
    (handler,) = logging.getLogger().handlers
    assert isinstance(handler, logging.StreamHandler)
    assert handler.stream is getattr(sys, stream)


def test_a_directory_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"default\.log_dir and default\.log_file: .*cannot"):
        logs.setup(_settings(log_dir=str(tmp_path / "file"), log_file="c.log"), "console")


def test_oslo_log_lines_carry_the_request_id(tmp_path: Path) -> None:
    file = tmp_path / "magnum.conf"
    file.write_text(f"[DEFAULT]\nlog_dir = {tmp_path}\nlog_file = m.log\n")
    logs.setup(magnum.load([str(file)]), "magnum-api")
    mark = logs.REQUEST_ID.set("req-2")
    logging.getLogger("trimaran.test").info("inside")
    logs.REQUEST_ID.reset(mark)
    logging.getLogger("trimaran.test").info("outside")
    text = (tmp_path / "m.log").read_text()
    assert "req-2" in next(line for line in text.splitlines() if "inside" in line)
    assert "req-2" not in next(line for line in text.splitlines() if "outside" in line)


def test_everything_can_go_to_stderr(tmp_path: Path) -> None:
    file = tmp_path / "magnum.conf"
    file.write_text("[DEFAULT]\nlog_file = /nonexistent/m.log\n")
    logs.setup(magnum.load([str(file)]), "magnum-api", stderr=True)
    (handler,) = logging.getLogger().handlers
    assert isinstance(handler, logging.StreamHandler)
    assert handler.stream is sys.stderr
