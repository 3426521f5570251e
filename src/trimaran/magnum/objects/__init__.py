"""The objects that API, conductor and drivers hand to each other."""

from __future__ import annotations

from trimaran.magnum.objects.base import MagnumObject
from trimaran.magnum.objects.cluster import Cluster
from trimaran.magnum.objects.cluster_template import ClusterTemplate
from trimaran.magnum.objects.defaults import default_nodegroups
from trimaran.magnum.objects.nodegroup import NodeGroup
from trimaran.magnum.objects.others import (
    Certificate,
    Federation,
    MagnumService,
    Quota,
    Stats,
    X509KeyPair,
)

__all__ = [
    "Certificate",
    "Cluster",
    "ClusterTemplate",
    "Federation",
    "MagnumObject",
    "MagnumService",
    "NodeGroup",
    "Quota",
    "Stats",
    "X509KeyPair",
    "default_nodegroups",
]
