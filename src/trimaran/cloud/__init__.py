"""Thin typed clients of Nova, Neutron, Glance, Cinder and Barbican.

See ``client`` for what they share, ``cloud`` for how a caller gets them,
``fanout`` for asking several at the same time.
"""

from trimaran.cloud.client import Client
from trimaran.cloud.cloud import SERVICE_TYPES, Cloud, CloudSession
from trimaran.cloud.errors import CloudError, NoEndpoint
from trimaran.cloud.fanout import gather
from trimaran.cloud.wire import Page, Query, Row

__all__ = [
    "SERVICE_TYPES",
    "Client",
    "Cloud",
    "CloudError",
    "CloudSession",
    "NoEndpoint",
    "Page",
    "Query",
    "Row",
    "gather",
]
