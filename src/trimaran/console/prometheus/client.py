"""Asks Prometheus (spec/skyline.md 1.6), within the time that the request has (see ``budget``)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import requests
from requests.auth import HTTPBasicAuth

from trimaran.config.common import Own
from trimaran.config.console import Settings
from trimaran.identity import budget, calls
from trimaran.identity.transport import Transport

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reply:
    """What Prometheus said: status 0 when it said nothing."""

    status: int
    body: bytes


class Prometheus:
    """One Prometheus, with pooled connections.

    Args:
        settings: skyline.yaml.
        own: the deck's options.
    """

    def __init__(self, settings: Settings, own: Own) -> None:
        options = settings.default
        self._base = f"{options.prometheus_endpoint.rstrip('/')}/api/v1"
        self._timeouts = (own.connect_timeout, own.read_timeout)
        self._auth = (
            HTTPBasicAuth(
                options.prometheus_basic_auth_user.encode("utf-8"),
                options.prometheus_basic_auth_password.encode("utf-8"),
            )
            if options.prometheus_enable_basic_auth
            else None
        )
        self._verify: bool | str = (
            False if settings.trimaran.insecure else settings.default.cafile or True
        )
        self._session = Transport(own.threads)
        # Neither proxies nor passwords from the environment of the process.
        self._session.trust_env = False

    def ask(self, path: str, parameters: Mapping[str, str | None]) -> Reply:
        """Sends one query.

        Args:
            path: "query" or "query_range".
            parameters: None values are left out.
        """
        sent = {name: value for name, value in parameters.items() if value is not None}
        try:
            with calls.serving("prometheus"):
                response = self._session.get(
                    f"{self._base}/{path}",
                    params=sent,
                    auth=self._auth,
                    timeout=budget.cut(self._timeouts),
                    verify=self._verify,
                    allow_redirects=False,
                )
            return Reply(response.status_code, response.content)
        except (requests.RequestException, UnicodeError) as error:
            LOG.warning("Prometheus did not answer: %s", type(error).__name__)
            return Reply(0, b"")

    def close(self) -> None:
        """Closes idle connections."""
        self._session.close()
