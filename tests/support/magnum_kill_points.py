"""Conductors that kill themselves at a point of an operation, once for each cluster.

The points are where something is noted or written: before it is committed and
after.  Which clusters are to have it, and where, is in a file; a marker beside
it says that it has happened.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.magnum_conductor import conductor
from tests.support.processes import Link

FILE = "kill-points.json"


def die(folder: Path, cluster: str) -> None:
    """Ends this process without a word, unless a process died for the cluster before."""
    try:
        (folder / f"died-{cluster}").touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def doomed(link: Link, conf_file: str, folder: str, interval: float) -> None:
    """A conductor that dies at the points that the file names."""
    from trimaran.db.queries import magnum as queries
    from trimaran.magnum.objects import Cluster
    from trimaran.work.run import JobRun

    place = Path(folder)
    points: dict[str, list[str]] = json.loads((place / FILE).read_text())

    def at(cluster: Any, *point: str) -> None:
        if points.get(str(cluster)) == list(point):
            die(place, str(cluster))

    job_run: Any = JobRun
    commit: Callable[..., Any] = JobRun.commit

    def noted(job: JobRun, fn: Any, step: str | None = None, **updates: Any) -> Any:
        cluster = job.payload.get("cluster")
        at(cluster, "before", str(step))
        result = commit(job, fn, step, **updates)
        at(cluster, "after", str(step))
        return result

    cluster_class: Any = Cluster
    save: Callable[..., Any] = Cluster.save

    def saved(cluster: Cluster) -> None:
        settled = not str(cluster.status).endswith("_IN_PROGRESS")
        if settled:
            at(cluster.uuid, "before", "settled")
        save(cluster)
        if settled:
            at(cluster.uuid, "after", "settled")

    destroy: Callable[..., Any] = queries.destroy_cluster

    def destroyed(session: Any, uuid: str) -> Any:
        at(uuid, "before", "rows")
        return destroy(session, uuid)

    job_run.commit = noted
    cluster_class.save = saved
    queries.destroy_cluster = destroyed
    conductor(link, conf_file, folder, interval)
