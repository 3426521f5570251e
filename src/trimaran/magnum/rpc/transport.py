"""The message bus: opened once a process, named as upstream names it.

oslo.messaging registers some of its options on the global configuration only;
they are registered on ours here, before anything reads them.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Any

from trimaran.errors import Unavailable
from trimaran.magnum.rpc.threads import oslo_messaging

EXCHANGE = "magnum"


def prepare(conf: Any) -> None:
    """Registers the options that oslo.messaging reads from this configuration."""
    metrics = oslo_messaging._metrics.client
    tracing = oslo_messaging._tracing.client
    conf.register_opts(oslo_messaging.transport._transport_opts)
    # Notifications go to the transport's own exchange, so the default is set on it.
    conf.set_default("control_exchange", EXCHANGE)
    conf.register_opts(oslo_messaging.rpc.client._client_opts)
    conf.register_opts(metrics.oslo_messaging_metrics, group="oslo_messaging_metrics")
    conf.register_opts(tracing.oslo_messaging_tracing, group="oslo_messaging_tracing")


def open_transport(conf: Any, url: str | None = None) -> Any:
    """Opens the RPC transport of this process.

    Args:
        conf: loaded ``magnum.conf``.
        url: wins over ``transport_url``.

    Returns:
        The transport; nothing is connected yet.
    """
    prepare(conf)
    return oslo_messaging.get_rpc_transport(conf, url=url)


def open_embedded_transport(conf: Any) -> Any:
    """Opens the transport of a process that is API and conductor at once.

    Messages stay in the process unless the operator set ``transport_url``.
    """
    prepare(conf)
    return open_transport(conf, None if _chosen(conf, "transport_url") else "fake://")


def open_notification_transport(conf: Any) -> Any:
    """Opens the transport for notifications: its own URL where one is set (F-57)."""
    prepare(conf)
    return oslo_messaging.get_notification_transport(conf)


def _chosen(conf: Any, name: str) -> bool:
    """Whether the operator set an option, rather than its default."""
    place = conf.get_location(name)
    return place is not None and place.location.name in ("user", "command_line", "set_override")


def target(conf: Any, server: str | None = None) -> Any:
    """Returns the address of the conductors: topic and exchange, no version, no namespace.

    Args:
        conf: loaded ``magnum.conf``; the topic is read at use (F-21).
        server: of one conductor; None means any.
    """
    return oslo_messaging.Target(
        exchange=conf.control_exchange, topic=conf.conductor.topic, server=server
    )


def ping(transport: Any, *, timeout: float = 2.0) -> None:
    """Looks whether a broker listens.

    Args:
        transport: of the message bus; one without hosts (``fake://``) always answers.
        timeout: seconds for each host.

    Raises:
        Unavailable: none does (service "broker").
    """
    hosts = [item for item in transport._driver._url.hosts if item.hostname]
    for host in hosts:
        with contextlib.suppress(OSError):
            socket.create_connection((host.hostname, host.port or 5672), timeout).close()
            return
    if hosts:
        raise Unavailable(service="broker")
