"""The OpenStack processes: their environment, how they are started, when they are up."""

from __future__ import annotations

from pathlib import Path

import requests

from trimaran.sandbox.places import LIB
from trimaran.sandbox.problem import SandboxError
from trimaran.sandbox.processes import Processes, clean_environment
from trimaran.sandbox.progress import Progress
from trimaran.sandbox.settings import HOST, Settings
from trimaran.sandbox.venv import Environment


def cloud_ready(settings: Settings) -> Path:
    """The file that lets the daemons go on: Keystone knows them, and Placement answers."""
    return settings.path("run", "cloud-ready")


def service_environment(settings: Settings, venv: Environment, service: str) -> dict[str, str]:
    """The environment variables of a service's processes."""
    env = clean_environment()
    path = env.get("PATH", "/usr/bin:/bin")
    env.update(
        PATH=f"{venv.path / 'bin'}:{path}:/usr/sbin:/sbin",
        PYTHONPATH=f"{LIB}:{settings.path('pylib')}",
        PYTHONWARNINGS="ignore",
        # without this each thread gets a malloc arena of its own: twice the memory
        MALLOC_ARENA_MAX="2",
        OS_KEYSTONE_CONFIG_FILES=str(settings.config_file("keystone")),
        OS_GLANCE_CONFIG_DIR=str(settings.path("etc", "glance")),
        OS_PLACEMENT_CONFIG_DIR=str(settings.path("etc", "placement")),
        OS_NEUTRON_CONFIG_FILES=str(settings.config_file("neutron")),
        OS_NOVA_CONFIG_FILES=f"{venv.etc('nova', 'api-paste.ini')};{settings.config_file('nova')}",
        SANDBOX_CLOUD_READY=str(cloud_ready(settings)),
        SANDBOX_PASTE=str(venv.etc("barbican", "barbican-api-paste.ini")),
    )
    if service == "barbican":
        # it reads its options at import, from fixed places; ~/.barbican is one of them
        env["HOME"] = str(settings.path("home"))
    return env


class Services:
    """The API processes and daemons of one sandbox."""

    def __init__(
        self, settings: Settings, processes: Processes, venv: Environment, say: Progress
    ) -> None:
        self.settings = settings
        self.processes = processes
        self.venv = venv
        self.say = say

    def start_api(self, service: str) -> bool:
        """Start an API process unless it runs; says whether it was started."""
        project = service.split("-")[0]
        config = self.settings.config_file(project)
        arguments = ["--config-file", str(config)] if project in ("cinder", "nova") else []
        command = [
            str(self.venv.python),
            str(LIB / "run_api.py"),
            service,
            HOST,
            str(self.settings.port(service)),
            str(self.settings.apis[service].threads),
            *arguments,
        ]
        return self._start(f"{service}-api", command, project, config)

    def start_daemon(self, name: str) -> bool:
        """Start a daemon unless it runs; says whether it was started."""
        project = name.split("-")[0]
        config = self.settings.config_file(name if name == "nova-compute" else project)
        command = [str(self.venv.python), str(LIB / "run_daemon.py"), name]
        return self._start(name, [*command, "--config-file", str(config)], project, config)

    def _start(self, name: str, command: list[str], project: str, config: Path) -> bool:
        env = service_environment(self.settings, self.venv, project)
        return self.processes.start(name, command, env, config=[config])

    def wait_api(self, service: str, started: bool) -> None:
        """Wait until an API answers; one that ran before and hangs is restarted once.

        Raises:
            SandboxError: it ended or does not answer in time.
        """
        name = f"{service}-api"
        try:
            self.processes.wait(
                name, lambda: answers(self.settings, service), 300 if started else 20
            )
        except SandboxError:
            if started:
                raise
            self.say(f"{name} runs but does not answer: restarting it")
            self.processes.stop([name], 3)
            self.wait_api(service, self.start_api(service))
            return
        if started:
            self.say(f"{name} answers at {self.settings.url(service)}")


def answers(settings: Settings, service: str, timeout: float = 5.0) -> bool:
    """Whether an API answers as itself (a version list, or a request for a token)."""
    with requests.Session() as http:
        http.trust_env = False
        try:
            answer = http.get(
                settings.url(service, settings.apis[service].probe),
                timeout=timeout,
                allow_redirects=False,
            )
        except requests.RequestException:
            return False
        return answer.status_code in (200, 300, 401)
