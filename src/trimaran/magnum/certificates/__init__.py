"""Certificates of clusters and where their keys are kept (spec/magnum.md 6.7)."""

from __future__ import annotations

from trimaran.magnum.certificates.authority import REFERENCES, Certificates, references_of
from trimaran.magnum.certificates.managers import CertManager, make_manager
from trimaran.magnum.certificates.x509 import KeyPair, Rules

__all__ = [
    "REFERENCES",
    "CertManager",
    "Certificates",
    "KeyPair",
    "Rules",
    "make_manager",
    "references_of",
]
