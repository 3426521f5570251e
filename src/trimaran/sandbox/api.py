"""The sandbox for programs: what the commands do, without the command line."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trimaran.sandbox import locks, packages, status, teardown
from trimaran.sandbox.bringup import up as bring_up
from trimaran.sandbox.processes import Processes
from trimaran.sandbox.progress import Progress
from trimaran.sandbox.settings import Settings
from trimaran.sandbox.venv import Environment

LOCK_NAME = ".lock"
State = str | os.PathLike[str]


def up(
    state: State,
    extras: Sequence[str] = (),
    base_port: int | None = None,
    *,
    own_servers: bool = False,
    say: Progress | None = None,
    **ports: int | None,
) -> dict[str, Any]:
    """Bring a sandbox up; see bringup.

    Args:
        state: the state directory.
        extras: what to start besides (``nova-metadata``, ``postgresql``).
        base_port: Keystone's port; None: as before, or 15000.
        own_servers: use no MariaDB or RabbitMQ of the machine.
        ports: ``console_port``, ``ec2_port``, ``magnum_port`` of the catalog.

    Returns:
        The content of ``sandbox.json``.

    Raises:
        SandboxError: one sentence.
    """
    said = say or Progress()
    path = Path(state)
    path.mkdir(parents=True, exist_ok=True)
    with locks.hold(path / LOCK_NAME, f"the sandbox in {path}", said) as lock:
        settings = Settings.load(path, extras=tuple(extras), base_port=base_port, **ports)
        processes = Processes(settings.state, lock=lock)
        bring_up(settings, processes, Environment(), said, own_servers)
        return dict(json.loads(settings.path("sandbox.json").read_text()))


def down(state: State, say: Progress | None = None) -> None:
    """Stop everything that ``up`` started, and an ``up`` that is under way."""
    said = say or Progress()
    settings = Settings.load(state)
    processes = Processes(settings.state)
    # finding processes needs no lock, and a hanging command must be stoppable
    teardown.stop_commands(settings.path(LOCK_NAME), processes, said)
    teardown.down(processes, said)


def reset(state: State, say: Progress | None = None) -> None:
    """``down``, then forget all data."""
    said = say or Progress()
    path = Path(state)
    if not path.exists():
        said("nothing to forget")
        return
    with locks.hold(path / LOCK_NAME, f"the sandbox in {path}", said) as lock:
        settings = Settings.load(path)
        teardown.reset(settings, Processes(settings.state, lock=lock), Environment(), said)


def lines(state: State) -> list[status.Line]:
    """What ``status`` shows."""
    settings = Settings.load(state)
    return status.collect(settings, Processes(settings.state))


def is_up(state: State) -> bool:
    """Whether everything runs and answers."""
    return (Path(state) / "sandbox.json").exists() and all(line.up for line in lines(state))


def install(state: State, wanted: Sequence[str], say: Progress | None = None) -> None:
    """Install Debian packages whose programs or libraries are missing; nothing is started.

    Args:
        state: the state directory, for the log of apt-get.
        wanted: ``PACKAGE``, ``PACKAGE:PROGRAM`` or ``PACKAGE:LIBRARY``.
        say: progress.

    Raises:
        SandboxError: one sentence.
    """
    pairs = [item.partition(":") for item in wanted]
    missing = [name for name, _, program in pairs if not packages.there(program or name)]
    if missing:
        packages.install(missing, Processes(Path(state).absolute()), say or Progress())
