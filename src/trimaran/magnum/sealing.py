"""Secrets that have to lie in the database, encrypted.

A user's token waits there with the operation that needs it, and the
``x509keypair`` certificate manager keeps passphrases there.  Whoever reads
the database alone must find neither.  The key comes from a passphrase that
every API and conductor of the deployment has already: the service user's
password, so that nothing new has to be configured.  ``[trimaran] secret_keys``
replaces it; several passphrases let an operator change it without losing what
was sealed before.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Sequence
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from keystoneauth1 import loading

LOG = logging.getLogger(__name__)

#: what a sealed text begins with; a text without it was written by upstream, in clear
MARK = "trimaran:1:"


class Unsealable(Exception):
    """A sealed text that none of the present passphrases opens."""


class Sealer:
    """Seals and opens texts.

    Args:
        passphrases: the first seals, all open; at least one.
    """

    def __init__(self, passphrases: Sequence[str]) -> None:
        if not passphrases:
            raise ValueError("a sealer needs a passphrase")
        self._box = MultiFernet([Fernet(_key(item)) for item in passphrases])

    @classmethod
    def from_conf(cls, conf: Any, group: str = "keystone_authtoken") -> Sealer | None:
        """Makes the deployment's sealer.

        Args:
            conf: loaded ``magnum.conf``.
            group: section with the service user's credentials.

        Returns:
            None when the file holds no passphrase; then no secret is stored.
        """
        passphrases = [item for item in getattr(conf.trimaran, "secret_keys", None) or [] if item]
        secret = _service_secret(conf, group)
        if secret:
            passphrases.append(secret)
        if not passphrases:
            LOG.warning(
                "Neither [trimaran] secret_keys nor a password in [%s]: users' tokens are not "
                "kept with operations, so drivers that need one fail after a restart",
                group,
            )
            return None
        return cls(passphrases)

    def seal(self, text: str) -> str:
        """Encrypts a text."""
        return MARK + self._box.encrypt(text.encode()).decode()

    def open(self, sealed: str) -> str:
        """Decrypts a text; one that was never sealed is returned as it is.

        Raises:
            Unsealable: it was sealed with another passphrase.
        """
        if not sealed.startswith(MARK):
            return sealed
        try:
            return self._box.decrypt(sealed[len(MARK) :].encode()).decode()
        except InvalidToken as problem:
            raise Unsealable(
                "A stored secret was sealed with another passphrase: put the former one into "
                "[trimaran] secret_keys"
            ) from problem


def _key(passphrase: str) -> bytes:
    derived = HKDF(
        algorithm=hashes.SHA256(), length=32, salt=None, info=b"trimaran magnum secrets"
    ).derive(passphrase.encode())
    return base64.urlsafe_b64encode(derived)


def _service_secret(conf: Any, group: str) -> str | None:
    loading.register_auth_conf_options(conf, group)
    kind = getattr(conf[group], "auth_type", None)
    if not kind:
        return None
    conf.register_opts(loading.get_auth_plugin_conf_options(kind), group=group)
    for name in ("password", "application_credential_secret"):
        value = getattr(conf[group], name, None)
        if value:
            return str(value)
    return None
