"""A cluster of real servers: one Nova server a node, in the cluster's project.

There is no Kubernetes on them; what is real is the way through the cloud.
Every step is a comparison of what should be there with what is there, found
by the metadata that each server carries, so that it can be repeated after a
conductor was killed anywhere.  Servers are made with the user's own token
(only that can make something in the user's project); they are watched and
removed as our service user, who therefore needs the role admin in Nova.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from trimaran.cloud import CloudSession
from trimaran.errors import BadRequest, NotFound
from trimaran.magnum.context import RequestContext
from trimaran.magnum.drivers.sandbox import journal
from trimaran.magnum.drivers.sandbox.scripted import COE_VERSION
from trimaran.magnum.objects import Cluster, NodeGroup

LOG = logging.getLogger(__name__)

CLUSTER = "magnum_cluster"
NODEGROUP = "magnum_nodegroup"
NODE = "magnum_node"
Row = dict[str, Any]


class Servers:
    """Makes, watches and removes the servers of clusters."""

    def create(self, context: RequestContext, cluster: Cluster) -> None:
        """Makes every node of a new cluster."""
        self.begin(context, cluster)

    def begin(self, context: RequestContext, cluster: Cluster) -> None:
        """Makes the nodes that are missing and removes those that are too many."""
        self.apply(context, cluster, ())

    def remove(self, context: RequestContext, cluster: Cluster, nodegroup: NodeGroup) -> None:
        """Removes the nodes of a node group."""
        self.apply(context, cluster, (nodegroup.uuid,))

    def delete(self, context: RequestContext, cluster: Cluster) -> None:
        """Removes every node."""
        self._delete(context, self._servers(context, cluster))

    def apply(
        self,
        context: RequestContext,
        cluster: Cluster,
        leaving: Iterable[str],
        *,
        first_out: Iterable[str] = (),
    ) -> None:
        """Brings the servers to the sizes of the node groups.

        Args:
            context: who asks.
            cluster: whose nodes.
            leaving: node groups that shall have none.
            first_out: ids or indexes of nodes that go before others.
        """
        gone, out = set(leaving), set(first_out)
        there = self._servers(context, cluster)
        maker: Callable[[NodeGroup, int], None] | None = None
        for group in cluster.nodegroups:
            mine = [row for row in _of(group, there) if not _leaving(row)]
            wanted = 0 if group.uuid in gone else group.node_count
            surplus = sorted(mine, key=lambda row: (_named(row, out), _index(row)))[wanted:]
            self._delete(context, surplus)
            kept = {_index(row) for row in mine if row not in surplus}
            missing = (number for number in range(wanted + len(mine)) if number not in kept)
            for number in list(missing)[: wanted - len(kept)]:
                maker = maker or self._maker(context, cluster)
                maker(group, number)

    def poll(self, context: RequestContext, cluster: Cluster) -> None:
        """Ends the operation in progress when Nova has done its part."""
        action, _, state = (cluster.status or "").partition("_")
        busy = state == "IN_PROGRESS"
        if busy and action == "CREATE" and not cluster.stack_id:
            return  # the create call has not ended yet
        there = self._servers(context, cluster)
        if action == "DELETE" and busy:
            if not there:
                self._end(cluster, cluster.nodegroups, "DELETE", None)
            elif any(row["status"] == "ERROR" for row in there):
                self._delete(context, [row for row in there if row["status"] == "ERROR"])
            return
        groups = cluster.nodegroups
        failures: list[str] = []
        settled = True
        for group in groups:
            mine = _of(group, there)
            failures += [_failure(row) for row in mine if row["status"] == "ERROR"]
            wanted = 0 if group.status == "DELETE_IN_PROGRESS" else group.node_count
            staying = sum(not _leaving(row) for row in mine)
            if staying < wanted:
                failures.append(f"{wanted - staying} servers of {group.name} are gone")
            settled &= len(mine) == wanted and all(row["status"] == "ACTIVE" for row in mine)
        if failures:
            self._end(cluster, groups, action, "; ".join(failures)[:1000], busy=busy)
        elif settled:
            self._addresses(cluster, groups, there)
            self._end(cluster, groups, action, None, busy=busy)

    @staticmethod
    def _addresses(cluster: Cluster, groups: list[NodeGroup], there: list[Row]) -> None:
        for group in groups:
            group.node_addresses = [
                address
                for row in sorted(_of(group, there), key=_index)
                if (address := _address(row))
            ]
            if group.role == "master" and group.node_addresses:
                cluster.api_address = f"https://{group.node_addresses[0]}:6443"
        cluster.coe_version = COE_VERSION

    @staticmethod
    def _end(
        cluster: Cluster,
        groups: list[NodeGroup],
        action: str,
        failure: str | None,
        *,
        busy: bool = True,
    ) -> None:
        word = "FAILED" if failure else "COMPLETE"
        for group in groups:
            began, _, state = (group.status or "CREATE_IN_PROGRESS").partition("_")
            leaving = state == "IN_PROGRESS" and began == "DELETE" and action != "DELETE"
            if leaving and not failure:
                group.destroy()
                continue
            if state == "IN_PROGRESS" or action == "DELETE":
                group.status = f"{action if action == 'DELETE' else began}_{word}"
                group.status_reason = failure
            group.save()
        if busy:
            cluster.status = f"{action}_{word}"
            cluster.status_reason = failure
            journal.event("finish", cluster.uuid, status=cluster.status)
        cluster.save()

    def _servers(self, context: RequestContext, cluster: Cluster) -> list[Row]:
        rows = context.service_session().compute.servers(
            all_tenants=True, project_id=cluster.project_id, name=_short(cluster)
        )
        return [row for row in rows if row["metadata"].get(CLUSTER) == cluster.uuid]

    @staticmethod
    def _delete(context: RequestContext, rows: list[Row]) -> None:
        compute = context.service_session().compute
        for row in rows:
            if _leaving(row):
                continue
            try:
                compute.delete_server(row["id"])
            except NotFound:
                LOG.debug("Server %s is gone already", row["id"])

    def _maker(self, context: RequestContext, cluster: Cluster) -> Callable[[NodeGroup, int], None]:
        """Returns what makes one server; names are looked up once for all of them."""
        user = context.user_session()
        template = cluster.cluster_template
        flavors = user.compute.flavors()
        images: dict[str, str] = {}
        network = _network(user, cluster.fixed_network or template.fixed_network, cluster)

        def make(group: NodeGroup, number: int) -> None:
            image = group.image_id or template.image_id
            if image not in images:
                images[image] = _image(user, image)
            body: Row = {
                "name": f"{cluster.name[:40]}-{_short(cluster)}-{group.name[:40]}-{number}",
                "imageRef": images[image],
                "flavorRef": _flavor(flavors, group.flavor_id or template.flavor_id),
                "networks": [{"uuid": network}] if network else "none",
                "metadata": {
                    CLUSTER: cluster.uuid,
                    NODEGROUP: group.uuid,
                    NODE: str(number),
                },
            }
            if cluster.keypair:
                body["key_name"] = cluster.keypair
            user.compute.create_server(body)

        return make


def _short(cluster: Cluster) -> str:
    return str(cluster.uuid).replace("-", "")[:12]


def _of(group: NodeGroup, rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["metadata"].get(NODEGROUP) == group.uuid]


def _leaving(row: Row) -> bool:
    return row.get("OS-EXT-STS:task_state") == "deleting"


def _index(row: Row) -> int:
    text = str(row["metadata"].get(NODE, ""))
    return int(text) if text.isdigit() else 0


def _named(row: Row, names: set[str]) -> bool:
    return row["id"] in names or str(_index(row)) in names


def _failure(row: Row) -> str:
    why = (row.get("fault") or {}).get("message") or "no reason given"
    return f"Server {row['name']} is in error: {why}"


def _address(row: Row) -> str | None:
    for addresses in (row.get("addresses") or {}).values():
        for item in addresses:
            return str(item["addr"])
    return None


def _image(user: CloudSession, ident: str) -> str:
    try:
        return str(user.image.image(ident)["id"])
    except (NotFound, BadRequest):
        found = user.image.images(name=ident)
    if not found:
        raise BadRequest(f"Image {ident} could not be found.")
    return str(found[0]["id"])


def _flavor(flavors: list[Row], ident: str | None) -> str:
    for row in flavors:
        if ident in (row["id"], row["name"]):
            return str(row["id"])
    raise BadRequest(f"Unable to find flavor {ident}.")


def _network(user: CloudSession, ident: str | None, cluster: Cluster) -> str | None:
    """The named network, or the project's first own one; None where it has none."""
    rows = user.network.networks()
    if ident:
        for row in rows:
            if ident in (row["id"], row["name"]):
                return str(row["id"])
        raise BadRequest(f"Unable to find fixed network {ident}.")
    own = [
        row
        for row in rows
        if row.get("project_id") == cluster.project_id and not row.get("router:external")
    ]
    return str(min(own, key=lambda row: (row["name"], row["id"]))["id"]) if own else None
