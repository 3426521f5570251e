"""Puts a conductor together.

It works without a broker (operations are found by looking) and waits for a
database that is away.  Stopping takes no more messages, lets what runs end
within the limit, and hands the rest over to another conductor.
"""

from __future__ import annotations

import logging
import signal
import socket
import threading
import time
from types import FrameType
from typing import Any

from trimaran import work
from trimaran.config import common
from trimaran.db.queries import magnum as queries
from trimaran.errors import ConfigError
from trimaran.magnum import rpc
from trimaran.magnum.conductor import metrics
from trimaran.magnum.conductor.crew import Crew
from trimaran.magnum.conductor.endpoint import ConductorEndpoint
from trimaran.magnum.conductor.executor import Executor
from trimaran.magnum.conductor.handlers.rotation import DELETE_CERTIFICATES
from trimaran.magnum.conductor.indirection import IndirectionEndpoint
from trimaran.magnum.conductor.periodic import HealthSync, StatusSync
from trimaran.magnum.conductor.periodic.status import INTERVAL

LOG = logging.getLogger(__name__)

BINARY = "magnum-conductor"
#: seconds until certificates that could not be deleted are tried again
CERTIFICATES_AGAIN = 60.0


class Conductor:
    """A conductor of this process.

    Args:
        crew: its parts.
        transport: of the message bus.
        sync_interval: seconds between two polls of a cluster.

    Attributes:
        runner: runs operations and periodic work.
        rpc: receives messages.
    """

    def __init__(self, crew: Crew, transport: Any, *, sync_interval: float = INTERVAL) -> None:
        conf = crew.conf
        self.crew = crew
        self.host = conf.host or socket.gethostname()
        self.runner = work.Runner(crew.db, own=crew.own, name=BINARY)
        self.executor = Executor(crew)
        self.executor.register(self.runner)
        crew.notifier.register(self.runner)
        self.runner.add_job(DELETE_CERTIFICATES, self._delete_certificates)
        if conf.periodic_enable:
            self.runner.periodic(
                "magnum.sync_cluster_status",
                sync_interval,
                StatusSync(crew, self.runner, sync_interval),
                leased=False,
            )
            self.runner.periodic(
                "magnum.sync_cluster_health_status",
                self._health_interval,
                HealthSync(crew, self.runner, self._health_interval),
                leased=False,
            )
        self.runner.periodic(
            "magnum.measure", metrics.EVERY, metrics.Measure(crew.db), leased=False
        )
        self.runner.periodic("magnum.heartbeat", self._beat_interval, self._beat, leased=False)
        self.rpc = rpc.RpcServer(
            transport,
            conf,
            [ConductorEndpoint(crew, self.runner, self.executor), IndirectionEndpoint(crew)],
        )

    def start(self) -> None:
        """Starts; returns at once.  Neither database nor broker need answer yet."""
        self.runner.start()
        self.rpc.start()
        LOG.info("Conductor %s started", self.host)

    def stop(self, timeout: float | None = None) -> None:
        """Drains.

        Args:
            timeout: seconds; None for ``[trimaran] shutdown_timeout``.
        """
        limit = time.monotonic() + (self.crew.own.shutdown_timeout if timeout is None else timeout)
        self.rpc.stop(max(0.5, limit - time.monotonic()))
        self.runner.stop(max(0.5, limit - time.monotonic()))
        self.crew.close()
        LOG.info("Conductor %s stopped", self.host)

    def _health_interval(self) -> float:
        return float(self.crew.conf.kubernetes.health_polling_interval)

    def _beat_interval(self) -> float:
        return float(self.crew.conf.periodic_interval_max)

    def _beat(self) -> None:
        self.crew.db.write(lambda s: queries.beat(s, self.host, BINARY))

    def _delete_certificates(self, job: work.JobRun) -> None:
        left = self.crew.certificates.delete(job.payload["references"])
        if left:
            job.checkpoint("some", references=left)
            raise work.Retry(CERTIFICATES_AGAIN, f"{len(left)} certificates could not be deleted")


def build(conf: Any, transport: Any = None, *, sync_interval: float = INTERVAL) -> Conductor:
    """Makes a conductor; it is not started.

    Args:
        conf: loaded ``magnum.conf``.
        transport: shared with the API of this process; None opens one.
        sync_interval: seconds between two polls of a cluster.

    Raises:
        ConfigError: the configuration cannot be used.
    """
    if not conf.database.connection:
        raise ConfigError("[database] connection must be set.")
    crew = Crew.from_conf(conf)
    opened = transport or rpc.open_transport(conf)
    return Conductor(crew, opened, sync_interval=sync_interval)


def run(conf: Any) -> None:
    """Runs a conductor until SIGTERM or SIGINT, then drains; SIGHUP reads the files again.

    Args:
        conf: loaded ``magnum.conf``.
    """
    over, again = threading.Event(), threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        over.set()
        again.set()

    def reload(_number: int, _frame: FrameType | None) -> None:
        again.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGHUP, reload)
    conductor = build(conf)
    conductor.start()
    metrics.serve(conf.conductor.metrics_host, conf.conductor.metrics_port)
    while not over.is_set():
        again.wait()
        again.clear()
        if not over.is_set():
            LOG.info("Reading the configuration again")
            conf.reload_config_files()
            conductor.runner.reconsider()
    conductor.stop(common.own(conf).shutdown_timeout)
