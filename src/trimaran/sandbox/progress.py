"""Progress lines with the seconds since the command began.

One object is handed to everything that takes time, so that unit tests can read
what was said and threads do not mix their lines.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable


class Progress:
    """Callable that prints one line; safe to share between threads.

    Args:
        write: where a finished line goes (standard error by default, so that
            ``env`` output stays clean).
        clock: monotonic seconds.
    """

    def __init__(
        self,
        write: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write or _stderr
        self._clock = clock
        self._begin = clock()
        self._lock = threading.Lock()

    def __call__(self, text: str) -> None:
        with self._lock:
            self._write(f"[{self.elapsed():6.1f}s] {text}")

    def elapsed(self) -> float:
        """Seconds since the command began."""
        return self._clock() - self._begin


def _stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
