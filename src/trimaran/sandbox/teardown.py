"""``down`` and ``reset``: nothing stays behind that we started, and nothing else goes."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from pathlib import Path

import pymysql

from trimaran.sandbox import postgresql, rabbitmq
from trimaran.sandbox.databases import Databases
from trimaran.sandbox.processes import Processes
from trimaran.sandbox.progress import Progress
from trimaran.sandbox.settings import Settings
from trimaran.sandbox.venv import Environment

_SERVERS = ("mariadb", "rabbitmq", "epmd", "postgresql")
# PostgreSQL's fast shutdown; SIGTERM would wait for its clients
_GENTLY = {"postgresql": signal.SIGINT}


def stop_commands(lock: Path, processes: Processes, say: Progress) -> None:
    """End commands that work on this state, and what a killed one left: they hold its lock."""
    me = os.getpid()
    if others := [pid for pid in processes.proc.holders(lock) if pid != me]:
        say(f"ending the command that works on this sandbox (pid {others[0]})")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        end = time.monotonic() + 5
        while holders := [pid for pid in processes.proc.holders(lock) if pid != me]:
            if time.monotonic() > end:
                break
            for pid in holders:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
            time.sleep(1)


def down(processes: Processes, say: Progress) -> None:
    """Stop everything that writes to this state directory's logs.

    Clients of the servers first, the servers last; what a killed ``up`` left running
    (pip, a migration) goes as well.
    """
    names = set(processes.groups())
    stopped = processes.stop(names - set(_SERVERS), 10)
    stopped += processes.stop({"mariadb", "rabbitmq", "postgresql"}, 30, _GENTLY)
    # after the broker, which is registered there
    stopped += processes.stop({"epmd"}, 5)
    say(f"stopped: {' '.join(stopped) if stopped else 'nothing ran'}")


def reset(settings: Settings, processes: Processes, venv: Environment, say: Progress) -> None:
    """``down``, then forget all data, in the shared servers too; the cache stays."""
    down(processes, say)
    if settings.mysql_port and not settings.mysql_own:
        try:
            Databases(settings, processes, venv, say).drop()
        except (pymysql.Error, OSError):
            say(f"the MariaDB at port {settings.mysql_port} does not answer: its databases stay")
    if settings.amqp_port and not settings.amqp_own:
        rabbitmq.delete_vhost(settings.amqp_port, settings.amqp_vhost, processes)
    postgresql.remove(settings)
    for entry in sorted(settings.state.iterdir()) if settings.state.is_dir() else []:
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name != ".lock":
            entry.unlink()
    say("data removed")
