"""``trimaran magnum``: the operations of conductors and the conductors themselves.

Payloads are never shown: they hold the user's sealed token.  Exit code 1 says
in one sentence why something could not be done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import click

from trimaran.cli.telling import TellingGroup, ago, refuse
from trimaran.config import magnum as options
from trimaran.db import Database
from trimaran.db.models.work import FINISHED, UNFINISHED, Job
from trimaran.db.queries import magnum as queries
from trimaran.errors import ConfigError
from trimaran.magnum.operations import KINDS, kind_of, name_of, repair

BINARY = "magnum-conductor"
#: seconds, where no configuration is read: the default of service_down_time
DOWN_AFTER = 180


@dataclass(frozen=True)
class _Place:
    """The deployment that a command is about."""

    db: Database
    down_after: timedelta


def _place(url: str | None, files: tuple[str, ...], down_after: int | None) -> _Place:
    found, patience = url, DOWN_AFTER
    if not found:
        conf: Any = options.load(files)
        found, patience = conf.database.connection, conf.service_down_time
    if not found:
        raise ConfigError("magnum: option connection in group [database] is not set")
    return _Place(Database(found, pool_size=1), timedelta(seconds=down_after or patience))


def _deployment(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that name a deployment."""
    url = click.option("--url", help="URL of the database instead of the configured one.")
    files = click.option("--config-file", "files", multiple=True, type=click.Path(dir_okay=False))
    return url(files(command))


@click.group(cls=TellingGroup)
def magnum() -> None:
    """Look after Magnum's operations and conductors."""


@magnum.group()
def operations() -> None:
    """What requests asked conductors to do."""


@operations.command("list")
@_deployment
@click.option("--cluster", help="Only the operations of this cluster (UUID).")
@click.option("--operation", type=click.Choice([name_of(k) for k in KINDS]), help="Only these.")
@click.option("--state", type=click.Choice([*UNFINISHED, *FINISHED]), help="Only this state.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True)
def list_operations(
    url: str | None,
    files: tuple[str, ...],
    cluster: str | None,
    operation: str | None,
    state: str | None,
    limit: int,
) -> None:
    """List operations, newest first."""
    kinds = (kind_of(operation),) if operation else KINDS
    db = _place(url, files, None).db
    found = db.read(
        lambda s: queries.list_operations(s, kinds, cluster_uuid=cluster, state=state, limit=limit)
    )
    if not found:
        click.echo("no operations")
        return
    row = "{:<36}  {:<21} {:<36}  {:<9} {:<12} {:>5}  {:<10} {}"
    head = ("id", "operation", "cluster", "state", "step", "try", "updated", "reason")
    click.echo(row.format(*head))
    for job in found:
        click.echo(
            row.format(
                job.id,
                name_of(job.kind),
                _cluster(job),
                job.state,
                job.step or "-",
                f"{job.attempt}/{job.max_attempts}",
                ago(job.updated_at),
                (job.error or "-")[:60],
            ).rstrip()
        )


def _cluster(job: Job) -> str:
    return (job.key or "").partition("/")[0]


@operations.command()
@_deployment
@click.argument("operation_id")
def show(url: str | None, files: tuple[str, ...], operation_id: str) -> None:
    """Show one operation."""
    db = _place(url, files, None).db
    job = db.read(lambda s: queries.find_operation(s, KINDS, operation_id))
    if job is None:
        refuse(f"there is no operation {operation_id}")
    cluster = db.read(lambda s: queries.find_cluster(s, _cluster(job)))
    for name, value in (
        ("id", job.id),
        ("operation", name_of(job.kind)),
        ("cluster", _cluster(job)),
        ("status", "gone" if cluster is None else cluster.status),
        ("state", job.state),
        ("step", job.step or "-"),
        ("attempt", f"{job.attempt} of {job.max_attempts}"),
        ("owner", job.owner or "-"),
        ("created", ago(job.created_at)),
        ("updated", ago(job.updated_at)),
        ("finished", ago(job.finished_at)),
        ("reason", job.error or "-"),
    ):
        click.echo(f"{name:<10} {value}")


@operations.command()
@_deployment
@click.argument("operation_id")
def retry(url: str | None, files: tuple[str, ...], operation_id: str) -> None:
    """Run a failed or cancelled operation again from its beginning."""
    db = _place(url, files, None).db
    cluster = db.write(lambda s: repair.retry(s, operation_id))
    click.echo(f"{operation_id} of cluster {cluster} is queued")


@operations.command()
@_deployment
@click.argument("operation_id")
@click.option("--reason", default="Ended by an operator.", show_default=True)
def fail(url: str | None, files: tuple[str, ...], operation_id: str, reason: str) -> None:
    """End an operation and say so on its cluster."""
    db = _place(url, files, None).db
    status = db.write(lambda s: repair.fail(s, operation_id, reason))
    told = f"its cluster is {status}" if status else "the status of its cluster is left as it is"
    click.echo(f"{operation_id} is ended, {told}")


@magnum.group()
def services() -> None:
    """The conductors that ever reported."""


_down = click.option(
    "--down-after", type=click.IntRange(1), help="Seconds; by default [DEFAULT] service_down_time."
)


@services.command("list")
@_deployment
@_down
def list_services(url: str | None, files: tuple[str, ...], down_after: int | None) -> None:
    """List conductors with the age of their last report."""
    place = _place(url, files, down_after)
    now, rows = place.db.read(lambda s: (queries.now(s), queries.list_services(s)))
    if not rows:
        click.echo("no conductors")
        return
    click.echo(f"{'host':<40} {'binary':<18} {'state':<6} {'reports':>8}  last seen")
    for row in rows:
        age = queries.service_age(row, now)
        state = "up" if queries.service_is_up(row, now, place.down_after) else "down"
        seen = "-" if age is None else f"{age.total_seconds():.0f} s ago"
        name = f"{row.host or '-':<40} {row.binary or '-':<18}"
        click.echo(f"{name} {state:<6} {row.report_count:>8}  {seen}")


@services.command()
@_deployment
@_down
@click.argument("host", required=False)
@click.option("--binary", default=BINARY, show_default=True)
@click.option("--all-down", is_flag=True, help="All that are down, instead of one host.")
def remove(
    url: str | None,
    files: tuple[str, ...],
    down_after: int | None,
    host: str | None,
    binary: str,
    all_down: bool,
) -> None:
    """Remove the row of a conductor that is gone; one that lives is refused."""
    if (host is None) != all_down:
        raise click.UsageError("name a host, or give --all-down.")
    place = _place(url, files, down_after)
    hosts = None if all_down else (host or "", binary)
    gone = place.db.write(lambda s: queries.remove_services(s, place.down_after, hosts))
    if not gone and host is not None:
        refuse(f"there is no {binary} on {host} that is down")
    for name in gone:
        click.echo(f"{name} is removed")
