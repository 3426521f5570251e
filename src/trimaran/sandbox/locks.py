"""Locks between commands: two ``up`` at once, on one state or on the shared cache.

flock(2) locks end with their last holder, also after kill -9, so none is ever stale.
The lock's descriptor is handed to the commands a step runs (pip, migrations): when
``up`` is killed and such a child lives on, the next ``up`` waits for it instead of
working on the same files.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from trimaran.sandbox.problem import SandboxError
from trimaran.sandbox.progress import Progress


@contextlib.contextmanager
def hold(path: Path, what: str, say: Progress, timeout: float = 900.0) -> Iterator[int]:
    """Hold the lock file ``path`` exclusively.

    Args:
        what: what it guards, for the line that is said when one must wait.
        timeout: seconds to wait for the other holder.

    Yields:
        The descriptor, for ``pass_fds`` of children that must keep the lock.

    Raises:
        SandboxError: the other holder did not end in time.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _acquire(descriptor, path, what, say, timeout)
        os.truncate(descriptor, 0)
        os.write(descriptor, b"%d\n" % os.getpid())
        yield descriptor
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, path: Path, what: str, say: Progress, timeout: float) -> None:
    end = time.monotonic() + timeout
    waiting = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if not waiting:
                waiting = True
                say(f"waiting for another command that works on {what} (pid {_holder(path)})")
            if time.monotonic() > end:
                raise SandboxError(
                    f"Another command (pid {_holder(path)}) has held {path} for "
                    f"{timeout:.0f} seconds."
                ) from None
            time.sleep(0.3)


def _holder(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text().strip() or "unknown"
    return "unknown"
