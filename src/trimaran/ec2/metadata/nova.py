"""Nova's own metadata, which guests read below ``/openstack`` (spec ec2.md 6.2).

The request is passed on with fresh headers: who asks is said, and signed, by
us; nothing else of what the guest sent reaches Nova, and none of Nova's
headers but the content type comes back.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from urllib.parse import quote

import requests
from requests.adapters import HTTPAdapter

from trimaran.config.common import Own
from trimaran.ec2.metadata.caller import Caller, signature_of
from trimaran.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    NotFound,
    TrimaranError,
    Unavailable,
)

if TYPE_CHECKING:
    from oslo_config import cfg

LOG = logging.getLogger(__name__)

PREFIX = "openstack"
_REFUSALS: dict[int, type[TrimaranError]] = {
    400: BadRequest,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
}


class NovaMetadata:
    """Passes requests on; one per application.

    Args:
        conf: ``[metadata]`` says where Nova's service is, and its secret.
        own: time-outs and the size of the connection pool.
    """

    def __init__(self, conf: cfg.ConfigOpts, own: Own) -> None:
        options = conf.metadata
        host = options.nova_metadata_ip
        place = f"[{host}]" if ":" in host and not host.startswith("[") else host
        scheme = options.nova_metadata_protocol
        self._base = f"{scheme}://{place}:{options.nova_metadata_port}"
        self._secret: str = options.metadata_proxy_shared_secret
        self._timeouts = (own.connect_timeout, own.read_timeout)
        self._session = requests.Session()
        # A proxy from the environment is not meant for a service of our own.
        self._session.trust_env = False
        self._session.mount(
            f"{scheme}://", HTTPAdapter(pool_maxsize=own.http_pool_size, max_retries=0)
        )
        self._session.verify = False if options.nova_metadata_insecure else self._authorities(conf)
        if options.nova_client_cert and options.nova_client_priv_key:
            self._session.cert = (options.nova_client_cert, options.nova_client_priv_key)

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def ask(
        self, caller: Caller, method: str, steps: list[str], query: bytes, body: bytes
    ) -> tuple[bytes, str]:
        """Nova's answer to a guest's request: content and content type.

        Args:
            caller: who asks.
            method: HTTP method.
            steps: the names in the path.
            query: the query string as it came.
            body: the body as it came.

        Raises:
            BadRequest, Forbidden, NotFound, Conflict: as Nova says.
            TrimaranError: any other answer.
            Unavailable: none.
        """
        url = f"{self._base}/{'/'.join(quote(step, safe='') for step in steps)}"
        if query:
            url += f"?{query.decode('latin-1')}"
        headers = {
            "X-Forwarded-For": caller.address,
            "X-Instance-ID": caller.server_id,
            "X-Tenant-ID": caller.project_id,
            "X-Instance-ID-Signature": signature_of(caller.server_id, self._secret),
        }
        try:
            answer = self._session.request(
                method,
                url,
                headers=headers,
                data=body or None,
                timeout=self._timeouts,
                allow_redirects=False,
            )
        except requests.RequestException as error:
            LOG.warning("Nova's metadata service does not answer: %s", type(error).__name__)
            raise Unavailable(service="nova-metadata") from error
        if answer.status_code == 200:
            return answer.content, answer.headers.get("Content-Type") or "text/plain"
        LOG.info("Nova's metadata service answers %d", answer.status_code)
        raise _REFUSALS.get(answer.status_code, TrimaranError)()

    @staticmethod
    def _authorities(conf: cfg.ConfigOpts) -> str | bool:
        return conf.metadata.auth_ca_cert or True
