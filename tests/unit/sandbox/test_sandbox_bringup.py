"""The order in which a cloud's parts are let go on."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from pathlib import Path

import pytest

from trimaran.sandbox.bringup import let_daemons_go_on
from trimaran.sandbox.problem import SandboxError


def test_daemons_wait_for_placement(tmp_path: Path) -> None:
    gate, placement = tmp_path / "gate", Future[None]()
    keystone = Future[None]()
    keystone.set_result(None)
    asked = threading.Event()

    class Asked(Future[None]):
        def result(self, timeout: float | None = None) -> None:
            assert not gate.exists()
            asked.set()
            return placement.result(timeout)

    opener = threading.Thread(
        target=let_daemons_go_on, args=(gate, {"keystone": keystone, "placement": Asked()})
    )
    opener.start()
    assert asked.wait(60)
    assert not gate.exists()
    placement.set_result(None)
    opener.join(60)
    assert gate.exists()


def test_without_placement_no_daemon_goes_on(tmp_path: Path) -> None:
    placement = Future[None]()
    placement.set_exception(SandboxError("it ended"))
    with pytest.raises(SandboxError, match="it ended"):
        let_daemons_go_on(tmp_path / "gate", {"placement": placement})
    assert not (tmp_path / "gate").exists()
