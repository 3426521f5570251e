"""The certificates of clusters: made at creation, read, used to sign, removed at the end."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from trimaran.errors import NotFound, TrimaranError, Unavailable
from trimaran.magnum.certificates import x509
from trimaran.magnum.certificates.managers import CertManager
from trimaran.magnum.certificates.x509 import KeyPair, Rules
from trimaran.magnum.sealing import Unsealable

LOG = logging.getLogger(__name__)

#: columns of a cluster's row, in the order in which their certificates are made
REFERENCES = (
    "ca_cert_ref",
    "etcd_ca_cert_ref",
    "front_proxy_ca_cert_ref",
    "magnum_cert_ref",
)
_BY_TYPE = {
    "etcd": "etcd_ca_cert_ref",
    "front_proxy": "front_proxy_ca_cert_ref",
    "front-proxy": "front_proxy_ca_cert_ref",
}
CLIENT_NAME = "Magnum-Conductor"
_PROPOSALS = uuid.UUID("6d0a3d2c-5d0b-4f0c-9a3f-5b6d7c1f2e11")


def _storage_fault(text: str) -> TrimaranError:
    return TrimaranError(text, code="CertificateStorageException")


class Certificates:
    """Certificates of clusters.

    Args:
        manager: where keys are kept.
        rules: what is generated and signed.
    """

    def __init__(self, manager: CertManager, rules: Rules) -> None:
        self._manager = manager
        self._rules = rules

    def generate(
        self,
        cluster: Any,
        *,
        generation: str,
        have: Mapping[str, str] | None = None,
        noted: Callable[[str, str], None] | None = None,
    ) -> dict[str, str]:
        """Makes and stores the three authorities and the client certificate.

        Args:
            cluster: the cluster.
            generation: names this attempt; repeated with the same value it
                ends with the same references where the manager allows it.
            have: references that an earlier run of this attempt stored.
            noted: called with column and reference after each one.

        Returns:
            column of the cluster's row → reference.

        Raises:
            TrimaranError: ``CertificateStorageException``; what was stored is removed.
        """
        done = dict(have or {})
        name = cluster.name or cluster.uuid
        authority: KeyPair | None = None
        try:
            for column in REFERENCES:
                if column in done:
                    continue
                if column == "magnum_cert_ref":
                    parent = authority or self._manager.load(done["ca_cert_ref"])
                    pair = x509.make_client(parent, self._rules)
                else:
                    pair = x509.make_authority(name, self._rules)
                    authority = pair if column == "ca_cert_ref" else authority
                done[column] = self._manager.store(
                    pair,
                    name=CLIENT_NAME if column == "magnum_cert_ref" else name,
                    proposal=str(uuid.uuid5(_PROPOSALS, f"{cluster.uuid}/{generation}/{column}")),
                    project_id=cluster.project_id,
                    user_id=cluster.user_id,
                )
                if noted is not None:
                    noted(column, done[column])
        except Unavailable as problem:
            if problem.service == "database":
                raise  # the same attempt goes on later, from what was noted
            raise self._failed(cluster, done, problem) from problem
        except Exception as problem:
            raise self._failed(cluster, done, problem) from problem
        return done

    def _failed(self, cluster: Any, done: Mapping[str, str], problem: Exception) -> TrimaranError:
        LOG.error("Certificates of cluster %s: %s", cluster.uuid, problem, exc_info=problem)
        self.delete(done.values())
        return _storage_fault(f"Failed to create certificates for Cluster: {cluster.uuid}")

    def authority(self, cluster: Any, ca_cert_type: str | None = None) -> KeyPair:
        """Returns an authority of a cluster.

        Args:
            cluster: the cluster.
            ca_cert_type: ``etcd``, ``front_proxy`` or ``front-proxy``; anything
                else means Kubernetes' (spec/magnum.md 1.12).

        Raises:
            TrimaranError: it cannot be read.
        """
        return self._load(cluster, _BY_TYPE.get(ca_cert_type or "", "ca_cert_ref"))

    def client(self, cluster: Any) -> KeyPair:
        """Returns the client certificate with which we speak to a cluster.

        Raises:
            TrimaranError: it cannot be read.
        """
        return self._load(cluster, "magnum_cert_ref")

    def _load(self, cluster: Any, column: str) -> KeyPair:
        reference = getattr(cluster, column)
        if not reference:
            raise NotFound(
                f"Cluster {cluster.uuid} has no certificate yet.", code="CertificateNotFound"
            )
        try:
            return self._manager.load(reference)
        except Unsealable as problem:
            LOG.error("%s", problem)
            raise _storage_fault("The certificate of the cluster cannot be read.") from problem

    def sign(self, cluster: Any, csr: str, ca_cert_type: str | None = None) -> str:
        """Signs a certificate request with an authority of a cluster.

        Raises:
            BadRequest: the request is none, or asks for too much.
        """
        return x509.sign(csr, self.authority(cluster, ca_cert_type), self._rules)

    def delete(self, references: Iterable[str | None]) -> list[str]:
        """Removes certificates.

        Returns:
            The references that could not be removed; to be tried again (F-8).
        """
        left: list[str] = []
        for reference in references:
            if not reference:
                continue
            try:
                self._manager.delete(reference)
            except TrimaranError as problem:
                LOG.warning("A certificate could not be deleted yet: %s", problem)
                left.append(reference)
        return left


def references_of(cluster: Any) -> list[str]:
    """Returns the references of a cluster's certificates."""
    return [ref for column in REFERENCES if (ref := getattr(cluster, column, None))]
