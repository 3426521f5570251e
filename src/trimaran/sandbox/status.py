"""``status``: what runs, since when, with how much memory, and whether it answers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

from trimaran.sandbox import amqp, mariadb, postgresql
from trimaran.sandbox.proc import since
from trimaran.sandbox.processes import Processes
from trimaran.sandbox.services import answers
from trimaran.sandbox.settings import HOST, Settings


@dataclass(frozen=True)
class Line:
    """One process group, or a server of the machine that is used."""

    name: str
    up: bool
    pid: int | None
    since: str | None
    memory: int
    processes: int
    note: str


def collect(settings: Settings, processes: Processes) -> list[Line]:
    """The state of everything that should run."""
    groups = processes.groups()

    def one(name: str) -> Line:
        group = groups.get(name)
        reply, note = _probe(settings, name)
        up = group is not None and reply
        return Line(
            name,
            up,
            group.leader if group else None,
            since(processes.proc.age(group.started)) if group else None,
            processes.proc.memory(group.pids) if group else 0,
            len(group.pids) if group else 0,
            note if group else "does not run",
        )

    with ThreadPoolExecutor(8) as pool:
        lines = list(pool.map(one, settings.process_names()))
    return [*_shared(settings), *lines]


def _shared(settings: Settings) -> list[Line]:
    lines = []
    if settings.mysql_port and not settings.mysql_own:
        reply = mariadb.answers(settings.mysql_port)
        note = f"{HOST}:{settings.mysql_port}, the machine's own: {_said(reply)}"
        lines.append(Line("mariadb", reply, None, None, 0, 0, note))
    if settings.amqp_port and not settings.amqp_own:
        reply = amqp.opens(settings.amqp_port, settings.amqp_vhost)
        note = f"{HOST}:{settings.amqp_port}, the machine's own: {_said(reply)}"
        lines.append(Line("rabbitmq", reply, None, None, 0, 0, note))
    return lines


def _probe(settings: Settings, name: str) -> tuple[bool, str]:
    if name == "mariadb":
        reply = mariadb.answers(settings.mysql_port)
        return reply, f"{HOST}:{settings.mysql_port} {_said(reply)}"
    if name == "rabbitmq":
        reply = amqp.opens(settings.amqp_port, settings.amqp_vhost)
        return reply, f"{HOST}:{settings.amqp_port} {_said(reply)}"
    if name == "postgresql":
        reply = postgresql.answers(settings.postgresql_port)
        return reply, f"{HOST}:{settings.postgresql_port} {_said(reply)}"
    service = name.removesuffix("-api")
    if service in settings.apis:
        reply = answers(settings, service)
        return reply, f"{settings.url(service)} {_said(reply)}"
    return True, ""


def _said(reply: bool) -> str:
    return "answers" if reply else "DOES NOT ANSWER"


def table(lines: list[Line]) -> str:
    """The lines as text, with a total."""
    rows = [f"{'NAME':<17} {'PID':>8}  {'SINCE':<19} {'MEMORY':>9}"]
    for line in lines:
        size = f"{line.memory / 2**20:5.0f} MiB" if line.pid else ""
        rows.append(
            f"{line.name:<17} {line.pid or '-':>8}  {line.since or '-':<19} {size:>9}  {line.note}"
        )
    total = sum(line.memory for line in lines)
    down = [line.name for line in lines if not line.up]
    verdict = f"not up: {', '.join(down)}" if down else "all up"
    rows.append(f"{'total':<17} {'':>8}  {'':<19} {total / 2**20:5.0f} MiB  {verdict}")
    return "\n".join(rows)


def as_dict(lines: list[Line]) -> list[dict[str, object]]:
    """The lines for ``--json``."""
    return [asdict(line) for line in lines]
