"""Objects that travel but that drivers never touch."""

from __future__ import annotations

from typing import ClassVar

from trimaran.db.models import magnum as models
from trimaran.magnum.objects import base


class Certificate(base.MagnumObject):
    """A signing request and its answer; it has no table."""

    NAME: ClassVar[str] = "Certificate"
    VERSION: ClassVar[str] = "1.2"
    MODEL = None
    FIELDS = frozenset(
        {
            "project_id",
            "user_id",
            "cluster_uuid",
            "csr",
            "pem",
            "ca_cert_type",
            "created_at",
            "updated_at",
        }
    )


class X509KeyPair(base.MagnumObject):
    """A stored key pair."""

    NAME: ClassVar[str] = "X509KeyPair"
    VERSION: ClassVar[str] = "1.2"
    MODEL = models.X509KeyPair


class Quota(base.MagnumObject):
    """A project's quota."""

    NAME: ClassVar[str] = "Quota"
    VERSION: ClassVar[str] = "1.0"
    MODEL = models.Quota


class MagnumService(base.MagnumObject):
    """A conductor's heartbeat."""

    NAME: ClassVar[str] = "MagnumService"
    VERSION: ClassVar[str] = "1.0"
    MODEL = models.MagnumService


class Federation(base.MagnumObject):
    """A federation, as far as upstream got."""

    NAME: ClassVar[str] = "Federation"
    VERSION: ClassVar[str] = "1.0"
    MODEL = models.Federation


class Stats(base.MagnumObject):
    """Numbers of clusters and nodes."""

    NAME: ClassVar[str] = "Stats"
    VERSION: ClassVar[str] = "1.0"
    MODEL = None
    FIELDS = frozenset({"clusters", "nodes"})
