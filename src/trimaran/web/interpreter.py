"""How Python is set in a process that serves."""

from __future__ import annotations

import gc
import sys

# Answers with a thousand rows make tens of thousands of objects that all go
# away by themselves; Python's own threshold of 700 has the collector look for
# cycles among them again and again, which took a fifth of such a request.
COLLECT_AFTER = 20_000

# Seconds. A thread that computes keeps the interpreter so long although the
# event loop wants it, and a dozen of them may be before it: with Python's own
# 5 ms the loop stood still for 30 ms beside twelve logins, and half a
# millisecond costs no throughput (docs/benchmarks-console.md).
THREAD_TURN = 0.0005


def settle() -> None:
    """Sets it; called when the application has been built, before it serves.

    What the start made is kept out of the garbage collector's way.
    """
    sys.setswitchinterval(THREAD_TURN)
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])
