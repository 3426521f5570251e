"""A program that is not ours as a server: started, waited for, and ended."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import requests


@contextlib.contextmanager
def served(
    command: Sequence[str],
    log: Path,
    ready: Callable[[], bool],
    *,
    patience: float,
    **options: Any,
) -> Iterator[None]:
    """Runs a server for the length of the block.

    Args:
        command: its command line.
        log: where its output goes, behind what is there.
        ready: whether it answers.
        patience: seconds that it may take for that.
        options: of ``subprocess.Popen``.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(
            list(command), stdout=output, stderr=subprocess.STDOUT, **options
        )
    try:
        deadline = time.monotonic() + patience
        while not ready():
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(log.read_text(errors="replace")[-4000:])
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def listens(port: int) -> bool:
    """Whether somebody takes connections on a port of this machine."""
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    return False


def answers(url: str, *statuses: int) -> bool:
    """Whether a URL is answered with one of these."""
    with contextlib.suppress(requests.ConnectionError, requests.Timeout):
        return requests.get(url, timeout=30).status_code in statuses
    return False
