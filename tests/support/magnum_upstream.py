"""Processes of magnum 23.0.0 beside ours, on the same cloud, broker and database.

For what shows the two together or side by side.  They run the same sandbox
driver: upstream's processes load our module with upstream's base class and
objects in place of ours.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import requests

from tests.support import magnum_daemons as daemons
from tests.support.cloud import CloudEnv
from tests.support.ports import free_port
from trimaran.config import magnum as options
from trimaran.magnum import rpc

#: the topic that upstream's API sends to, whatever the configuration says (F-21)
TOPIC = "magnum-conductor"

_DRIVER = '''
"""The sandbox driver on upstream's base class and objects."""
import sys
import types

from magnum import objects
from magnum.drivers.common import driver, k8s_monitor

SOURCE = {source!r}


def put(name, **members):
    name = "trimaran.magnum." + name
    module = sys.modules[name] = types.ModuleType(name)
    vars(module).update(members)


class Monitor:
    def __init__(self, context, cluster):
        self.context, self.cluster, self.data = context, cluster, {{}}


kinds = {{name: getattr(objects, name) for name in ("Cluster", "ClusterTemplate", "NodeGroup")}}
put("context", RequestContext=object)
put("objects", **kinds)
put("drivers", __path__=[SOURCE + "/trimaran/magnum/drivers"])
put("drivers.base", Driver=driver.Driver)
put("drivers.monitor", Monitor=Monitor)
put("drivers.k8s_monitor", KubernetesMonitor=k8s_monitor.K8sMonitor)
put("drivers.scale", ScaleManager=object)
# Real servers are left out: every cluster is one that is only pretended.
put("drivers.sandbox", __path__=[SOURCE + "/trimaran/magnum/drivers/sandbox"])
from trimaran.magnum.drivers.sandbox import scripted  # noqa: E402
put("drivers.sandbox.servers", Servers=scripted.Scripted)
from trimaran.magnum.drivers.sandbox import driver as ours  # noqa: E402


def refuse(self, context, federation):
    raise NotImplementedError


def complete(cls):
    names = ("create_federation", "update_federation", "delete_federation")
    return type(cls.__name__, (cls,), dict.fromkeys(names, refuse))


Ubuntu, FedoraCoreOS = complete(ours.UbuntuDriver), complete(ours.FedoraCoreOSDriver)
Beta, Disabled = complete(ours.BetaDriver), complete(ours.DisabledDriver)
'''
_ENTRY_POINTS = """[magnum.drivers]
sandbox_fcos = upstream_driver:FedoraCoreOS
sandbox_ubuntu = upstream_driver:Ubuntu
sandbox_beta = upstream_driver:Beta
sandbox_disabled = upstream_driver:Disabled
"""
_API = """
import sys
port, sys.argv = int(sys.argv[1]), ["magnum-api", "--config-file", sys.argv[2]]
from magnum.wsgi.api import application
from werkzeug.serving import run_simple
run_simple("127.0.0.1", port, application, threaded=True)
"""
_CONDUCTOR = """
import sys
spacing, sys.argv = float(sys.argv[1]), ["magnum-conductor", "--config-file", sys.argv[2]]
from magnum.cmd import conductor
from magnum.service.periodic import MagnumPeriodicTasks
if spacing:
    MagnumPeriodicTasks._periodic_spacing["sync_cluster_status"] = spacing
conductor.main()
"""


class Upstream:
    """A deployment whose configuration, database and driver are laid out for upstream.

    Args:
        venv: environment with ``magnum==23.0.0`` and PyMySQL.
        amqp: URL of a virtual host of its own, since the topic cannot be chosen.
        folder: for its files; the driver's directory is ``sandbox`` below it.
        cloud: the sandbox.
        database: URL of an empty MariaDB database.
        settings: options as ``section__name``.

    Attributes:
        conf: ``magnum.conf``; ours may be started with it, too.
        magnum: its processes; one of ours is started by it with the same configuration.
    """

    def __init__(
        self,
        venv: str,
        amqp: str,
        folder: Path,
        cloud: CloudEnv,
        database: str,
        **settings: Any,
    ) -> None:
        self._bin = Path(venv) / "bin"
        self._folder = folder
        self._given = (cloud, database, amqp)
        self._settings = {
            "conductor__topic": TOPIC,
            "conductor__workers": 1,
            "certificates__cert_manager_type": "x509keypair",
            "cluster__temp_cache_dir": folder / "no-cache",
            "api__api_paste_config": Path(venv) / "etc/magnum/api-paste.ini",
            "drivers__disabled_drivers": "sandbox_disabled",
            "oslo_concurrency__lock_path": folder,
            "state_path": folder,
            "rpc_response_timeout": 20,
            **settings,
        }
        self.driver = folder / "sandbox"
        self.port = free_port()
        self.conf = daemons.write_conf(folder, cloud, database, amqp, self.port, **self._settings)
        self.magnum = daemons.Magnum(f"http://127.0.0.1:{self.port}/v1", folder, cloud, self.conf)
        self._theirs: list[str] = []
        self._environment = self._site()
        self._run("magnum-db-manage", "--config-file", str(self.conf), "upgrade", "head")

    def _site(self) -> dict[str, str]:
        source = daemons.REPOSITORY / "src"
        site = self._folder / "site"
        info = site / "upstream_driver-1.0.dist-info"
        info.mkdir(parents=True)
        (site / "upstream_driver.py").write_text(_DRIVER.format(source=str(source)))
        about = "Metadata-Version: 2.1\nName: upstream-driver\nVersion: 1.0\n"
        (info / "METADATA").write_text(about)
        (info / "entry_points.txt").write_text(_ENTRY_POINTS)
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("OS_")},
            "PYTHONPATH": f"{site}:{source}",
            "PYTHONWARNINGS": "ignore",
            "MAGNUM_SANDBOX_DIR": str(self.driver),
        }

    def _run(self, command: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._bin / command, *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-4000:])

    def _start(self, name: str, *command: str) -> None:
        log = self._folder / f"{name}.log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                command,
                stdout=output,
                stderr=output,
                env=self._environment,
                cwd=self._folder,
                start_new_session=True,
            )
        self.magnum.processes[name], self.magnum.logs[name] = process, log
        self._theirs.append(name)

    def stop(self) -> None:
        """Ends all processes; upstream's are not waited for for long."""
        theirs = [self.magnum.processes.pop(name) for name in self._theirs]
        self._theirs.clear()
        for process in theirs:
            process.terminate()
        self.magnum.stop()
        self.magnum.processes.clear()
        limit = time.monotonic() + 10
        for process in theirs:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, limit - time.monotonic()))
            # Its workers, too.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)

    def _write_script(self, name: str, text: str) -> str:
        path = self._folder / name
        path.write_text(text)
        return str(path)

    def start_api(self, *, binary: bool = False) -> None:
        """Starts upstream's API and waits for its answer.

        Args:
            binary: ``magnum-api``, which asks the conductor for each object,
                instead of the WSGI application.
        """
        if binary:
            command = [str(self._bin / "magnum-api"), "--config-file", str(self.conf)]
        else:
            script = self._write_script("run_api.py", _API)
            command = [str(self._bin / "python"), script, str(self.port), str(self.conf)]
        self._start("upstream-api", *command)
        self.wait_for_api()

    def write_conf(self, host: str) -> Path:
        """Writes the configuration of one host."""
        folder = self._folder / host
        folder.mkdir()
        cloud, database, amqp = self._given
        settings = {**self._settings, "host": host}
        return daemons.write_conf(folder, cloud, database, amqp, self.port, **settings)

    def start_conductor(self, name: str = "upstream", *, spacing: float = 0.0) -> None:
        """Starts a conductor of upstream's; messages are lost until it answers.

        Args:
            name: of its host.
            spacing: seconds between two looks at clusters in progress; 0 leaves its 10.
        """
        conf = self.write_conf(name)
        script = self._write_script("run_conductor.py", _CONDUCTOR)
        python = str(self._bin / "python")
        self._start(f"conductor-{name}", python, script, str(spacing), str(conf))

    def wait_for_conductor(self, timeout: float = 120.0) -> None:
        """Waits for the answer of whichever conductor was started."""
        deadline = time.monotonic() + timeout
        client = rpc.ConductorClient.from_conf(options.load([str(self.conf)]))
        try:
            while not client.ping_conductor():
                self.magnum.check()
                assert time.monotonic() < deadline, self.magnum.said()
        finally:
            client.close()

    def wait_for_api(self, timeout: float = 120.0) -> None:
        """Waits for the answer of whichever API was started."""
        deadline = time.monotonic() + timeout
        while True:
            with contextlib.suppress(requests.ConnectionError, requests.Timeout):
                if requests.get(self.magnum.url.removesuffix("/v1"), timeout=30).ok:
                    return
            self.magnum.check()
            assert time.monotonic() < deadline, self.magnum.said()
            time.sleep(0.3)


@contextlib.contextmanager
def upstream(
    venv: str, amqp: str, folder: Path, cloud: CloudEnv, database: str, **settings: Any
) -> Iterator[Upstream]:
    """An :class:`Upstream`, whose processes end with the block."""
    made = Upstream(venv, amqp, folder, cloud, database, **settings)
    try:
        yield made
    finally:
        made.stop()
