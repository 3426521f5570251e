"""One pool of connections for the whole process.

A gateway that opens a connection per request spends its time in TCP and TLS
handshakes.  All Keystone and OpenStack calls of a process go through one
``requests`` session per pool size; what differs between callers (token,
verification, time-outs) travels with each request.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from functools import cache
from http.cookiejar import DefaultCookiePolicy
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3
from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import session as ks_session
from keystoneauth1.plugin import BaseAuthPlugin

from trimaran.identity import budget, calls, watchdog
from trimaran.identity.outgoing import USER_AGENT, outgoing_headers

LOG = logging.getLogger(__name__)

# Different hosts of a cloud whose pools are kept; each holds http_pool_size.
_HOSTS = 64


def _no_auth(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Keeps ``requests`` from looking for a password in the service user's ~/.netrc."""
    return request


class _Adapter(ks_session.TCPKeepAliveAdapter):
    """keystoneauth's adapter, with connections whose reading can be ended."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Makes the pools."""
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = watchdog.POOLS


class Transport(requests.Session):
    """The pooled connections, shared by threads and callers.

    Args:
        pool_size: connections kept to each host; a thread that finds all of
            them busy waits for one.
    """

    def __init__(self, pool_size: int) -> None:
        super().__init__()
        # keystoneauth's adapter keeps idle connections alive, so that a firewall that
        # drops them silently does not cost the next request its whole time-out.
        adapter = _Adapter(
            pool_connections=_HOSTS, pool_maxsize=pool_size, pool_block=True, max_retries=0
        )
        self.mount("http://", adapter)
        self.mount("https://", adapter)
        self.auth = _no_auth
        # A load balancer's cookie of one caller must not travel with the next one's request.
        self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        self._environment: dict[tuple[object, ...], dict[str, Any]] = {}

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        """Sends one prepared request and notes it in ``calls``.

        Raises:
            requests.ReadTimeout: also when the answer has begun but does not
                end within the time of the block (see ``budget``).
        """
        started = time.monotonic()
        status = "error"
        try:
            response = self._send(request, **kwargs)
            status = str(response.status_code)
            return response
        except requests.Timeout:
            status = "timeout"
            raise
        except requests.ConnectionError:
            status = "unreachable"
            raise
        finally:
            path = urlsplit(request.url or "").path
            calls.record(request.method or "", path, status, time.monotonic() - started)

    def _send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        deadline = budget.deadline()
        if kwargs.get("stream") or deadline == math.inf:
            return super().send(request, **kwargs)
        with watchdog.reading(deadline) as reading:
            try:
                response = super().send(request, **kwargs)
            except requests.RequestException as failure:
                if reading.cut:
                    raise requests.ReadTimeout(request=request) from failure
                raise
        if reading.cut:
            # Without a declared length, an end that was forced looks like any other.
            raise requests.ReadTimeout(request=request)
        return response

    def merge_environment_settings(
        self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any
    ) -> Any:
        """Returns what the environment says about a host (proxies, CA bundle), read once.

        ``requests`` would read it for each request, a fifth of the time of a
        small one.
        """
        parts = urlsplit(url)
        key = (parts.scheme, parts.netloc, stream, verify, cert)
        known = self._environment.get(key)
        if known is None or proxies:
            known = dict(super().merge_environment_settings(url, proxies, stream, verify, cert))
            if not proxies and len(self._environment) < _HOSTS * 4:
                self._environment[key] = known
        return dict(known)


@cache
def _note_insecure() -> None:
    """Says once what urllib3 would say at every request."""
    LOG.warning("certificates of OpenStack services are not verified: that is how it is configured")
    urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)


_transports: dict[int, Transport] = {}
_lock = threading.Lock()


def shared(pool_size: int) -> Transport:
    """Returns the process's transport of that pool size, made at the first call."""
    with _lock:
        transport = _transports.get(pool_size)
        if transport is None:
            transport = _transports[pool_size] = Transport(pool_size)
        return transport


def close() -> None:
    """Closes idle connections of all transports; they open new ones when used again."""
    with _lock:
        transports = list(_transports.values())
    for transport in transports:
        transport.close()


def _after_fork() -> None:
    # A child that used its parent's sockets would read the parent's answers.
    global _lock
    _lock = threading.Lock()
    _transports.clear()


os.register_at_fork(after_in_child=_after_fork)


class Session(ks_session.Session):
    """A keystoneauth session on the shared transport.

    Args:
        auth: plugin that gives token and endpoints; None for unauthenticated calls.
        transport: the shared connections.
        timeouts: seconds to connect and seconds to wait for each part of the answer.
        verify: True, False or the path of a CA bundle.
        cert: client certificate, or (certificate, key).
    """

    def __init__(
        self,
        *,
        auth: BaseAuthPlugin | None,
        transport: Transport,
        timeouts: tuple[float, float],
        verify: bool | str = True,
        cert: str | tuple[str, str] | None = None,
    ) -> None:
        super().__init__(
            auth=auth, session=transport, verify=verify, cert=cert, user_agent=USER_AGENT
        )
        self._timeouts = timeouts
        if verify is False:
            _note_insecure()

    def request(self, url: str, method: str, **kwargs: Any) -> requests.Response:
        """Sends a request as keystoneauth does, with our headers, time-outs and counting.

        keystoneauth's own debug log is off: bodies carry passwords, user data
        and secrets' payloads.
        """
        kwargs["headers"] = {**outgoing_headers.get(), **(kwargs.get("headers") or {})}
        kwargs.setdefault("timeout", budget.cut(self._timeouts))
        kwargs["log"] = False
        endpoint_filter = kwargs.get("endpoint_filter") or {}
        with calls.serving(endpoint_filter.get("service_type") or "identity"):
            try:
                response: requests.Response = super().request(url, method, **kwargs)
            except OSError as failure:
                # A CA or certificate file that is not there; keystoneauth lets it through.
                raise ks_exceptions.UnknownConnectionError(str(failure), failure) from failure
            return response
