"""The conductor's end of the queue.

The server is started in a thread: oslo.messaging waits for the broker there,
and a conductor whose broker is away still runs the operations that it finds.
Once started, the library reconnects by itself.
"""

from __future__ import annotations

import functools
import logging
import secrets
import threading
from collections.abc import Sequence
from typing import Any, NoReturn

from trimaran.errors import TrimaranError
from trimaran.magnum.rpc import faults
from trimaran.magnum.rpc import transport as bus
from trimaran.magnum.rpc.serializer import Serializer
from trimaran.magnum.rpc.threads import oslo_messaging

LOG = logging.getLogger(__name__)

#: seconds until a broker that refused is asked again
AGAIN = 10.0
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


def server_name() -> str:
    """Returns a name for this start of a conductor: 12 characters of base32, as upstream's."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(12))


class Endpoint:
    """Wraps an endpoint so that our errors cross the queue as upstream's.

    Args:
        inner: has the RPC methods.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if name.startswith("_") or not callable(method):
            return method

        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return method(*args, **kwargs)
            except TrimaranError as error:
                LOG.info("RPC %s: %s", name, error)
                _answer(error)
            except Exception:
                LOG.exception("RPC %s failed", name)
                _answer(TrimaranError("The conductor could not do this."))

        return call


def _answer(error: TrimaranError) -> NoReturn:
    try:
        raise faults.outgoing(error) from None
    except Exception as expected:
        # Takes the exception being handled; without it the library logs a
        # traceback for each refusal.
        raise oslo_messaging.ExpectedException() from expected


class RpcServer:
    """Receives the conductors' messages.

    Args:
        transport: of the message bus.
        conf: loaded ``magnum.conf``.
        endpoints: objects with the RPC methods.
    """

    def __init__(self, transport: Any, conf: Any, endpoints: Sequence[Any]) -> None:
        self.name = server_name()
        self._transport = transport
        self._conf = conf
        self._endpoints = [Endpoint(item) for item in endpoints]
        self._server: Any = None
        self._starter = threading.Thread(target=self._start, name="rpc-start", daemon=True)
        self._started = threading.Event()
        self._over = threading.Event()

    def start(self) -> None:
        """Begins to receive as soon as the broker answers; returns at once."""
        self._starter.start()

    def wait_started(self, timeout: float) -> bool:
        """Waits until messages are received; returns whether they are."""
        return self._started.wait(timeout)

    @property
    def started(self) -> bool:
        """Whether messages are received (or were, before the broker went away)."""
        return self._started.is_set()

    def stop(self, timeout: float) -> None:
        """Takes no more messages and lets running methods end.

        Args:
            timeout: seconds at most; what runs longer goes on in its thread.
        """
        self._over.set()
        if not self._started.is_set():
            return
        ender = threading.Thread(target=self._stop, name="rpc-stop", daemon=True)
        ender.start()
        ender.join(timeout)
        if ender.is_alive():
            LOG.warning("RPC methods still run after %s s", timeout)

    def _start(self) -> None:
        while not self._over.is_set():
            self._server = oslo_messaging.get_rpc_server(
                self._transport,
                bus.target(self._conf, server=self.name),
                self._endpoints,
                serializer=Serializer(),
                access_policy=oslo_messaging.DefaultRPCAccessPolicy,
            )
            try:
                self._server.start()
            except Exception as problem:  # noqa: BLE001 - the library raises what its drivers raise
                # A broker that refuses, say because a queue of that name was
                # made with other properties, needs its operator.
                LOG.error(
                    "No messages are received (%s); tried again in %s s. Operations run all "
                    "the same.",
                    problem,
                    AGAIN,
                )
                self._over.wait(AGAIN)
                continue
            self._started.set()
            LOG.info("RPC server %s receives", self.name)
            return

    def _stop(self) -> None:
        try:
            self._server.stop()
            self._server.wait()
        except Exception:
            LOG.exception("The RPC server did not stop cleanly")
