"""A cloud that is only pretended: a cluster whose labels say how it goes."""

from __future__ import annotations

import time

from trimaran.magnum.context import RequestContext
from trimaran.magnum.drivers.sandbox import journal
from trimaran.magnum.drivers.sandbox.labels import Labels
from trimaran.magnum.objects import Cluster, NodeGroup

DEFAULT_ADDRESS = "https://203.0.113.10:6443"
COE_VERSION = "v1.31.1"


class Scripted:
    """Does what the labels of a cluster ask for; needs no servers."""

    def create(self, context: RequestContext, cluster: Cluster) -> None:
        """From here on the pretended cloud has the cluster."""
        journal.write(f"made-{cluster.uuid}", "1")
        self.begin(context, cluster)

    def begin(self, context: RequestContext, cluster: Cluster) -> None:
        """An operation begins: its polls are counted from the start."""
        journal.forget(f"polls-{cluster.uuid}")

    def remove(self, context: RequestContext, cluster: Cluster, nodegroup: NodeGroup) -> None:
        """The node group is gone when the update ends."""
        journal.write(f"gone-{nodegroup.uuid}", "1")
        self.begin(context, cluster)

    def poll(self, context: RequestContext, cluster: Cluster) -> None:
        """Ends the operation in progress when its time has come."""
        labels = Labels(cluster.labels)
        seconds = labels.number("poll_sleep", 0)
        if seconds:
            time.sleep(seconds)
        status = cluster.status or ""
        if not status.endswith("_IN_PROGRESS"):
            self._settle_groups(context, cluster)
            return
        action = status.split("_")[0].lower()
        if journal.released():
            self._finish(context, cluster, action, "COMPLETE")
            return
        if action in labels.words("hang"):
            return
        if action == "create" and not journal.read(f"made-{cluster.uuid}"):
            return  # no create call ever ended, so there is no news
        if self._count(cluster) < labels.number("polls", 1):
            return
        journal.forget(f"polls-{cluster.uuid}")
        failed = f"{action}-late" in labels.words("fail")
        self._finish(context, cluster, action, "FAILED" if failed else "COMPLETE")

    @staticmethod
    def _count(cluster: Cluster) -> int:
        word, _, count = (journal.read(f"polls-{cluster.uuid}") or "").partition(" ")
        number = int(count or 0) + 1 if word == cluster.status else 1
        journal.write(f"polls-{cluster.uuid}", f"{cluster.status} {number}")
        return number

    def _settle_groups(self, context: RequestContext, cluster: Cluster) -> None:
        """Node groups that are in progress under a cluster that is settled (F-66)."""
        for number, group in enumerate(NodeGroup.list(context, cluster.uuid)):
            action, _, state = (group.status or "").partition("_")
            if state != "IN_PROGRESS":
                continue
            if action == "DELETE":
                journal.forget(f"gone-{group.uuid}")
                group.destroy()
            else:
                self._end_group(group, number, action, "COMPLETE", None)

    def _finish(self, context: RequestContext, cluster: Cluster, action: str, word: str) -> None:
        labels = Labels(cluster.labels)
        reason = f"sandbox: {action} failed late" if word == "FAILED" else None
        for number, group in enumerate(NodeGroup.list(context, cluster.uuid)):
            status = group.status or "CREATE_IN_PROGRESS"
            if word == "COMPLETE" and journal.read(f"gone-{group.uuid}"):
                journal.forget(f"gone-{group.uuid}")
                group.destroy()
            elif action == "delete":
                self._end_group(group, number, "DELETE", word, reason)
            elif action == "create" or status.endswith("_IN_PROGRESS"):
                self._end_group(group, number, status.split("_")[0], word, reason)
            else:
                self._end_group(group, number, None, word, reason)
        if action == "delete":
            if word == "COMPLETE":
                journal.forget(f"made-{cluster.uuid}")
        elif word == "COMPLETE":
            cluster.api_address = labels.text("api_address") or DEFAULT_ADDRESS
            cluster.coe_version = COE_VERSION
        cluster.status = f"{action.upper()}_{word}"
        if action == "update" and word == "COMPLETE":
            cluster.status = labels.text("final") or cluster.status
        cluster.status_reason = reason
        journal.event("finish", cluster.uuid, status=cluster.status)
        cluster.save()

    @staticmethod
    def _end_group(
        group: NodeGroup, number: int, action: str | None, word: str, reason: str | None
    ) -> None:
        if action is not None:
            group.status = f"{action}_{word}"
        group.status_reason = reason
        if word == "COMPLETE" and action != "DELETE":
            group.node_addresses = [f"10.{number}.0.{5 + i}" for i in range(group.node_count)]
        group.save()
