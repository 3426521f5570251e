"""The health of a Kubernetes cluster: what its API server and its nodes say.

For drivers whose clusters can be reached from the conductors:
``get_monitor`` returns ``KubernetesMonitor(context, cluster)``.  Rules and
words are upstream's monitor's (spec/magnum.md 7.3); unlike there every
request has a time-out (F-9) and a failure says why (F-62).
"""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from cachetools import TTLCache

from trimaran.errors import Unavailable
from trimaran.magnum.certificates import Certificates
from trimaran.magnum.drivers.k8s_client import ClusterAPI, NoAnswer, client_context
from trimaran.magnum.drivers.monitor import Monitor
from trimaran.magnum.objects import Cluster

LOG = logging.getLogger(__name__)

HEALTHY, UNHEALTHY, UNKNOWN = "HEALTHY", "UNHEALTHY", "UNKNOWN"
#: nodes asked for at once, and pages at most: Kubernetes' own limit is 5,000 nodes
PAGE = 250
PAGES = 24
#: nodes that a reason names; those that are not ready come first
NAMED = 300
_NAME = 253
#: clusters whose client is kept ready, and for how many seconds
KEPT, KEPT_FOR = 1024, 3600.0
_TRUE = frozenset({"1", "t", "true", "on", "y", "yes"})

#: by the references of authority and client, so a rotation makes another (F-58)
_contexts: TTLCache[tuple[str, str], ssl.SSLContext] = TTLCache(KEPT, KEPT_FOR)
_contexts_lock = threading.Lock()


class KubernetesMonitor(Monitor):
    """Asks the cluster's API with the client certificate that the cluster knows us by."""

    def poll_health_status(self) -> None:
        """Fills ``data``; it stays empty where there is nothing to say.

        Raises:
            TrimaranError: the certificates cannot be read; the last health stays.
        """
        self.data = {}
        if self._healed_from_within() or not self.cluster.api_address:
            return
        if not self._accessible():
            status = UNKNOWN
            reason = {"api": f"The cluster {self.cluster.name} is not accessible."}
        else:
            status, reason = self._look()
        self.data = {"health_status": status, "health_status_reason": reason}

    def _healed_from_within(self) -> bool:
        """Whether magnum-auto-healer runs in the cluster: it reports by the API."""
        labels = self.cluster.labels or {}
        return (
            _true(labels.get("auto_healing_enabled"))
            and labels.get("auto_healing_controller") == "magnum-auto-healer"
        )

    def _accessible(self) -> bool:
        """Whether the API has an address that conductors reach."""
        floating = self.cluster.floating_ip_enabled
        if not self.cluster.master_lb_enabled:
            return bool(floating)
        labels = self.cluster.labels or {}
        return _true(labels.get("master_lb_floating_ip_enabled", floating))

    def _look(self) -> tuple[str, dict[str, str]]:
        url = str(self.cluster.api_address)
        tls = None if url.startswith("http://") else _client(self._certificates(), self.cluster)
        ready: dict[str, bool] = {}
        try:
            with ClusterAPI(url, tls) as api:
                said = api.text("/healthz")
                ready.update(_nodes(api))
        except NoAnswer as problem:
            return UNHEALTHY, {"api": str(problem)}
        well = said == "ok" and all(ready.values())
        named = sorted(ready, key=lambda node: (ready[node], node))[:NAMED]
        reason = {f"{node[:_NAME]}.Ready": str(ready[node]) for node in sorted(named)}
        return HEALTHY if well else UNHEALTHY, {**reason, "api": said[:_NAME]}

    def _certificates(self) -> Certificates:
        found = self.context.certificates
        if found is None:
            raise Unavailable("This context has no certificates.", service="certificates")
        return found


def _client(certificates: Certificates, cluster: Cluster) -> ssl.SSLContext:
    key = (str(cluster.ca_cert_ref), str(cluster.magnum_cert_ref))
    with _contexts_lock:
        kept = _contexts.get(key)
    if kept is None:
        authority = certificates.authority(cluster).certificate
        kept = client_context(authority, certificates.client(cluster))
        with _contexts_lock:
            _contexts[key] = kept
    return kept


def _nodes(api: ClusterAPI) -> Iterator[tuple[str, bool]]:
    """Reads the nodes' names and whether they are ready."""
    more = ""
    for _ in range(PAGES):
        page = api.json(
            f"/api/v1/nodes?limit={PAGE}" + (f"&continue={quote(more)}" if more else "")
        )
        try:
            for node in page.get("items") or ():
                conditions = node["status"].get("conditions") or ()
                states = [item["status"] for item in conditions if item["type"] == "Ready"]
                yield str(node["metadata"]["name"]), bool(states) and _true(states[0])
            more = str((page.get("metadata") or {}).get("continue") or "")
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            raise NoAnswer("The list of nodes cannot be read.") from problem
        if not more:
            return
    LOG.warning("A cluster has more than %d nodes; the others are not looked at", PAGES * PAGE)


def _true(value: Any) -> bool:
    return str(value).strip().lower() in _TRUE
