"""TCP ports for servers that tests start.

Port 0 would let the kernel choose, but from the range that it also takes the near ends of
outgoing connections from: between the choice and the server's start anybody's connection
may take the port. These ports are below that range, and processes that run tests side by
side choose from shares of their own.
"""

from __future__ import annotations

import itertools
import os
import random
import socket

_FIRST = 10_000
_SHARE = 600
_SHARES = 8
#: some servers also listen on the port after theirs
_STEP = 3


def _share() -> int:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    return int(worker.removeprefix("gw")) % _SHARES if worker else random.randrange(_SHARES)


def _ports() -> itertools.cycle[int]:
    first = _FIRST + _share() * _SHARE
    ports = list(range(first, first + _SHARE, _STEP))
    begin = random.randrange(len(ports))
    return itertools.cycle(ports[begin:] + ports[:begin])


_candidates = _ports()


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """A TCP port of the loopback interface that nobody listens on, nor on the next one.

    Returns:
        The port; it is not given again soon.

    Raises:
        AssertionError: none is free.
    """
    for port in itertools.islice(_candidates, _SHARE // _STEP):
        if _is_free(port) and _is_free(port + 1):
            return port
    raise AssertionError("no port is free")
