"""The message broker: a virtual host of a shared one, else a broker of ours.

OpenStack's queue names are fixed, so two clouds on one virtual host would take each
other's messages.  A broker at 127.0.0.1:5672 that lets guest in is used when we can
make a virtual host on it: by its management API, or by rabbitmqctl as root.  Otherwise
a broker is started from Debian's package, with its own epmd, so that ``down`` leaves
nothing behind.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import requests

from trimaran.sandbox import amqp, packages
from trimaran.sandbox.problem import SandboxError
from trimaran.sandbox.proc import Proc
from trimaran.sandbox.processes import Processes, clean_environment
from trimaran.sandbox.progress import Progress
from trimaran.sandbox.settings import AMQP_DISTRIBUTION_OFFSET, HOST, Settings

SHARED_PORT = 5672
MANAGEMENT_PORT = 15672
# The scripts in /usr/sbin change to the user rabbitmq, who may not read our state.
SCRIPTS = Path("/usr/lib/rabbitmq/bin")


def choose(settings: Settings, processes: Processes, say: Progress, own: bool = False) -> None:
    """Decide whose broker is used; a choice made before stays."""
    if settings.amqp_port:
        return
    if not own and amqp.opens(SHARED_PORT, "/"):
        vhost = f"sbx{settings.base_port}-{settings.ident}"
        if add_vhost(SHARED_PORT, vhost, processes):
            settings.amqp_port, settings.amqp_own, settings.amqp_vhost = SHARED_PORT, False, vhost
            return
        say(f"the RabbitMQ at {HOST}:{SHARED_PORT} lets us make no virtual host: starting our own")
    settings.amqp_port, settings.amqp_own = settings.port("rabbitmq"), True
    settings.amqp_vhost = "/"


def missing(settings: Settings) -> list[str]:
    """The Debian packages needed and not installed."""
    have = (SCRIPTS / "rabbitmq-server").exists()
    return ["rabbitmq-server"] if settings.amqp_own and not have else []


def ensure(settings: Settings, processes: Processes, say: Progress) -> None:
    """Have the broker answer on this sandbox's virtual host.

    Raises:
        SandboxError: it cannot be started, or the shared one is gone.
    """
    port, vhost = settings.amqp_port, settings.amqp_vhost
    if settings.amqp_own:
        _start(settings, processes, say)
        return
    if not amqp.opens(port, vhost) and not (
        amqp.opens(port, "/") and add_vhost(port, vhost, processes)
    ):
        raise SandboxError(
            f"The RabbitMQ at {HOST}:{port} that this sandbox was made with no longer answers: "
            "start it again, or run reset."
        )
    say(f"broker: the RabbitMQ that runs at {HOST}:{port}, virtual host {vhost}")


# -- virtual hosts on a shared broker ----------------------------------------
def add_vhost(port: int, vhost: str, processes: Processes) -> bool:
    """Make a virtual host that guest may use; True if it can be opened afterwards."""
    if amqp.opens(port, vhost):
        return True
    if not _by_management("PUT", vhost):
        for prefix, env in _control_ways(port, processes.proc):
            permissions = ["set_permissions", "-p", vhost, "guest", ".*", ".*", ".*"]
            if processes.run("rabbitmq", [*prefix, "add_vhost", vhost], env, check=False) == 0:
                processes.run("rabbitmq", [*prefix, *permissions], env, check=False)
                break
    return amqp.opens(port, vhost)


def delete_vhost(port: int, vhost: str, processes: Processes) -> None:
    """Remove a virtual host with its queues, if we can."""
    if _by_management("DELETE", vhost):
        return
    for prefix, env in _control_ways(port, processes.proc):
        if processes.run("rabbitmq", [*prefix, "delete_vhost", vhost], env, check=False) == 0:
            return


def _by_management(method: str, vhost: str) -> bool:
    url = f"http://{HOST}:{MANAGEMENT_PORT}/api"
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    with requests.Session() as http:
        http.trust_env = False
        http.auth = ("guest", "guest")
        try:
            answer = http.request(method, f"{url}/vhosts/{vhost}", timeout=5)
            if method == "PUT" and answer.ok:
                answer = http.put(f"{url}/permissions/{vhost}/guest", json=everything, timeout=5)
            return answer.ok
        except requests.RequestException:
            return False


def _control_ways(port: int, proc: Proc) -> list[tuple[list[str], dict[str, str]]]:
    """Ways to call rabbitmqctl: as the broker's own user says, then as Debian sets it up."""
    ways: list[tuple[list[str], dict[str, str]]] = []
    script = SCRIPTS / "rabbitmqctl"
    pid = proc.listener(port)
    if pid and script.exists():
        theirs, words = proc.environ(pid), proc.command(pid)
        # the node's secret is in the home directory the Erlang runtime was given
        home = words[words.index("-home") + 1] if "-home" in words[:-1] else theirs.get("HOME", "")
        if home and os.access(Path(home) / ".erlang.cookie", os.R_OK):
            env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": home}
            env |= {key: theirs[key] for key in ("ERL_EPMD_PORT",) if key in theirs}
            node = theirs.get("RABBITMQ_NODENAME")
            ways.append(([str(script), "-q", *(["-n", node] if node else [])], env))
    wrapper = packages.tool("rabbitmqctl")
    if wrapper:
        with contextlib.suppress(SandboxError):
            ways.append(([*packages.elevated(), wrapper, "-q"], clean_environment()))
    return ways


# -- a broker of ours ----------------------------------------------------------
def _start(settings: Settings, processes: Processes, say: Progress) -> None:
    data = settings.path("data", "rabbitmq")
    (data / "home").mkdir(parents=True, exist_ok=True)
    epmd_port = settings.port("epmd")
    env = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "HOME": str(data / "home"),
        "ERL_EPMD_ADDRESS": HOST,
        "ERL_EPMD_PORT": str(epmd_port),
    }
    processes.start("epmd", ["epmd", "-address", HOST, "-port", str(epmd_port)], env)
    env |= {
        "RABBITMQ_NODENAME": f"sandbox{settings.amqp_port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": HOST,
        "RABBITMQ_NODE_PORT": str(settings.amqp_port),
        "RABBITMQ_DIST_PORT": str(settings.base_port + AMQP_DISTRIBUTION_OFFSET),
        "RABBITMQ_BASE": str(data),
        "RABBITMQ_MNESIA_BASE": str(data),
        "RABBITMQ_LOG_BASE": str(data / "log"),
        "RABBITMQ_CONFIG_FILE": str(data / "none"),
        "RABBITMQ_CONF_ENV_FILE": str(data / "none-env"),
        "RABBITMQ_ADVANCED_CONFIG_FILE": str(data / "none-advanced"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(data / "plugins"),
        # idle schedulers of the Erlang runtime spin by default: that alone eats a core
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
            "+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none "
            "-kernel inet_dist_use_interface {127,0,0,1}"
        ),
    }
    started = processes.start("rabbitmq", [str(SCRIPTS / "rabbitmq-server")], env)
    processes.wait("rabbitmq", lambda: amqp.opens(settings.amqp_port, "/"), 120)
    if started:
        say(f"broker: own RabbitMQ at {HOST}:{settings.amqp_port}")
