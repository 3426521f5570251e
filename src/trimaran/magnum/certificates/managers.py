"""Where keys are kept: Barbican, our database, or files (``cert_manager_type``).

A manager stores a key pair under a name and gives a reference for it, which
the cluster's row keeps.  Storing is safe to repeat where the manager can
choose the reference: the caller proposes one that the same attempt at the
same cluster always gets, so that a conductor killed in between leaves nothing.
"""

from __future__ import annotations

import contextlib
import logging
import os
import uuid
from pathlib import Path
from typing import Any, Protocol

from trimaran.cloud import Cloud
from trimaran.db import Database
from trimaran.db.queries import magnum as queries
from trimaran.errors import ConfigError, NotFound, TrimaranError
from trimaran.magnum.certificates.x509 import KeyPair
from trimaran.magnum.sealing import Sealer

LOG = logging.getLogger(__name__)

_BARBICAN_NAMES = {
    "certificate": "Certificate",
    "private_key": "Private Key",
    "intermediates": "Intermediates",
    "private_key_passphrase": "Private Key Passphrase",
}


class CertManager(Protocol):
    """Stores key pairs."""

    def store(
        self,
        pair: KeyPair,
        *,
        name: str,
        proposal: str,
        project_id: str | None,
        user_id: str | None,
    ) -> str:
        """Stores a key pair.

        Args:
            pair: what to store.
            name: for people.
            proposal: a UUID to use as reference where that is possible.
            project_id: of the cluster.
            user_id: of the cluster.

        Returns:
            The reference.
        """

    def load(self, reference: str) -> KeyPair:
        """Returns a stored key pair.

        Raises:
            NotFound: there is none.
        """

    def delete(self, reference: str) -> None:
        """Removes a stored key pair; one that is gone is no error."""


def _missing(reference: str) -> NotFound:
    return NotFound(f"A key pair {reference} could not be found.", code="X509KeyPairNotFound")


class DatabaseManager:
    """``x509keypair``: rows of our database; passphrases are sealed.

    Args:
        db: where.
        sealer: for the passphrases; without one they lie in clear, as upstream's do.
    """

    def __init__(self, db: Database, sealer: Sealer | None) -> None:
        self._db = db
        self._sealer = sealer

    def store(
        self,
        pair: KeyPair,
        *,
        name: str,
        proposal: str,
        project_id: str | None,
        user_id: str | None,
    ) -> str:
        """See ``CertManager``."""
        values = {
            "uuid": proposal,
            "certificate": pair.certificate,
            "private_key": pair.private_key,
            "private_key_passphrase": self._sealer.seal(pair.passphrase)
            if self._sealer
            else pair.passphrase,
            "intermediates": pair.intermediates,
            "project_id": project_id,
            "user_id": user_id,
        }
        self._db.write(lambda s: queries.put_keypair(s, values))
        return proposal

    def load(self, reference: str) -> KeyPair:
        """See ``CertManager``."""
        row = self._db.read(lambda s: queries.find_keypair(s, reference))
        if row is None:
            raise _missing(reference)
        passphrase = row.private_key_passphrase or ""
        return KeyPair(
            certificate=row.certificate or "",
            private_key=row.private_key or "",
            passphrase=self._sealer.open(passphrase) if self._sealer else passphrase,
            intermediates=row.intermediates,
        )

    def delete(self, reference: str) -> None:
        """See ``CertManager``."""
        self._db.write(lambda s: queries.delete_keypairs(s, [reference]))


class FileManager:
    """``local``: four files a key pair, only readable by us; for one host.

    Args:
        path: the directory.
        sealer: for the passphrases.
    """

    def __init__(self, path: str, sealer: Sealer | None) -> None:
        self._path = Path(path)
        self._sealer = sealer

    def store(
        self,
        pair: KeyPair,
        *,
        name: str,
        proposal: str,
        project_id: str | None,
        user_id: str | None,
    ) -> str:
        """See ``CertManager``."""
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
        passphrase = self._sealer.seal(pair.passphrase) if self._sealer else pair.passphrase
        self._write(proposal, "crt", pair.certificate)
        self._write(proposal, "key", pair.private_key)
        self._write(proposal, "pass", passphrase)
        if pair.intermediates:
            self._write(proposal, "int", pair.intermediates)
        return proposal

    def _write(self, reference: str, kind: str, text: str) -> None:
        target = self._path / f"{reference}.{kind}"
        partial = target.with_name(f".{target.name}.{os.getpid()}")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as handle:
            handle.write(text)
        partial.replace(target)

    def load(self, reference: str) -> KeyPair:
        """See ``CertManager``."""
        base = self._path / _file_name(reference)
        try:
            passphrase = base.with_name(f"{base.name}.pass").read_text()
            extra = base.with_name(f"{base.name}.int")
            return KeyPair(
                certificate=base.with_name(f"{base.name}.crt").read_text(),
                private_key=base.with_name(f"{base.name}.key").read_text(),
                passphrase=self._sealer.open(passphrase) if self._sealer else passphrase,
                intermediates=extra.read_text() if extra.exists() else None,
            )
        except FileNotFoundError as problem:
            raise _missing(reference) from problem

    def delete(self, reference: str) -> None:
        """See ``CertManager``."""
        for kind in ("crt", "key", "pass", "int"):
            (self._path / f"{_file_name(reference)}.{kind}").unlink(missing_ok=True)


def _file_name(reference: str) -> str:
    try:
        return str(uuid.UUID(reference))
    except ValueError as problem:
        raise _missing(reference) from problem


class BarbicanManager:
    """``barbican``: a certificate container with its secrets, in our service's project.

    Args:
        cloud: with our service's credentials.
    """

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def store(
        self,
        pair: KeyPair,
        *,
        name: str,
        proposal: str,
        project_id: str | None,
        user_id: str | None,
    ) -> str:
        """See ``CertManager``; what was stored before a failure is removed again (F-24)."""
        keys = self._cloud.as_service().keys
        parts = {
            "certificate": pair.certificate,
            "private_key": pair.private_key,
            "intermediates": pair.intermediates,
            "private_key_passphrase": pair.passphrase,
        }
        made: dict[str, str] = {}
        try:
            for part, text in parts.items():
                if text:
                    made[part] = keys.create_secret(
                        {
                            "name": _BARBICAN_NAMES[part],
                            "payload": text,
                            "payload_content_type": "text/plain",
                        }
                    )
            references = [{"name": part, "secret_ref": ref} for part, ref in made.items()]
            return keys.create_container(
                {"type": "certificate", "name": name, "secret_refs": references}
            )
        except TrimaranError:
            for ref in made.values():
                with contextlib.suppress(TrimaranError):
                    keys.delete_secret(ref)
            raise

    def load(self, reference: str) -> KeyPair:
        """See ``CertManager``."""
        keys = self._cloud.as_service().keys
        try:
            container = keys.container(reference)
            parts = {
                item["name"]: keys.secret_payload(item["secret_ref"]).decode()
                for item in container["secret_refs"]
            }
        except NotFound as problem:
            raise _missing(reference) from problem
        return KeyPair(
            certificate=parts["certificate"],
            private_key=parts["private_key"],
            passphrase=parts.get("private_key_passphrase", ""),
            intermediates=parts.get("intermediates"),
        )

    def delete(self, reference: str) -> None:
        """See ``CertManager``."""
        keys = self._cloud.as_service().keys
        try:
            container = keys.container(reference)
        except NotFound:
            return
        for item in container["secret_refs"]:
            with contextlib.suppress(NotFound):
                keys.delete_secret(item["secret_ref"])
        with contextlib.suppress(NotFound):
            keys.delete_container(reference)


def make_manager(conf: Any, *, db: Database, cloud: Cloud, sealer: Sealer | None) -> CertManager:
    """Makes the manager that ``[certificates] cert_manager_type`` names.

    Raises:
        ConfigError: no such manager.
    """
    kind = conf.certificates.cert_manager_type
    if kind == "barbican":
        return BarbicanManager(cloud)
    if kind == "x509keypair":
        return DatabaseManager(db, sealer)
    if kind == "local":
        return FileManager(conf.certificates.storage_path, sealer)
    raise ConfigError(
        f"[certificates] cert_manager_type: {kind} is none of barbican, x509keypair and local."
    )
