"""``trimaran jobs``: the durable jobs of a service, for its operator.

Payloads are not shown: they may hold a sealed token.  A change takes effect
in whichever process looks next; exit code 1 says that the job was not in a
state that permits it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from trimaran.cli.db import HULLS, configured
from trimaran.cli.telling import TellingGroup, ago, refuse
from trimaran.db import Database
from trimaran.db.models.work import FINISHED, UNFINISHED
from trimaran.db.queries import work_jobs
from trimaran.ec2.journal import give_up

hull_option = click.option(
    "--service",
    "hull",
    type=click.Choice(HULLS),
    default="ec2",
    show_default=True,
    help="Whose database, as its configuration file says.",
)
url_option = click.option("--url", help="URL of the database instead.")
files_option = click.option(
    "--config-file", "files", multiple=True, type=click.Path(dir_okay=False)
)


def database_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that name a database."""
    return hull_option(url_option(files_option(command)))


def _database(hull: str, url: str | None, files: tuple[str, ...]) -> Database:
    return Database(url or configured(hull, files), pool_size=1)


@click.group(cls=TellingGroup)
def jobs() -> None:
    """Look at durable jobs, run them again, or give them up."""


@jobs.command("list")
@database_options
@click.option("--kind", help="Only this kind, such as ec2.create_image.")
@click.option("--state", type=click.Choice([*UNFINISHED, *FINISHED]), help="Only this state.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True)
def list_jobs(
    hull: str,
    url: str | None,
    files: tuple[str, ...],
    kind: str | None,
    state: str | None,
    limit: int,
) -> None:
    """List jobs, newest first."""
    found = _database(hull, url, files).read(
        lambda session: work_jobs.listing(session, kind=kind, state=state, limit=limit)
    )
    if not found:
        click.echo("no jobs")
        return
    click.echo(f"{'id':<36}  {'kind':<28} {'state':<10} {'step':<14} {'try':>5}  updated")
    for job in found:
        tries = f"{job.attempt}/{job.max_attempts}"
        click.echo(
            f"{job.id:<36}  {job.kind:<28} {job.state:<10} {job.step or '-':<14} {tries:>5}  "
            f"{ago(job.updated_at)}"
        )


@jobs.command()
@database_options
@click.argument("job_id")
def show(hull: str, url: str | None, files: tuple[str, ...], job_id: str) -> None:
    """Show one job."""
    job = _database(hull, url, files).read(lambda session: work_jobs.show(session, job_id))
    if job is None:
        refuse(f"there is no job {job_id}")
    for name, value in (
        ("id", job.id),
        ("kind", job.kind),
        ("key", job.key or "-"),
        ("state", job.state),
        ("step", job.step or "-"),
        ("attempt", f"{job.attempt} of {job.max_attempts}"),
        ("owner", job.owner or "-"),
        ("created", ago(job.created_at)),
        ("updated", ago(job.updated_at)),
        ("finished", ago(job.finished_at)),
        ("reason", job.error or "-"),
    ):
        click.echo(f"{name:<9} {value}")


@jobs.command()
@database_options
@click.argument("job_id")
def retry(hull: str, url: str | None, files: tuple[str, ...], job_id: str) -> None:
    """Run a failed or cancelled job again, from the step it had reached."""
    if not _database(hull, url, files).write(lambda session: work_jobs.retry(session, job_id)):
        refuse(f"job {job_id} does not exist, has not failed, or one of its key is under way")
    click.echo(f"{job_id} is queued")


@jobs.command()
@database_options
@click.argument("job_id")
def cancel(hull: str, url: str | None, files: tuple[str, ...], job_id: str) -> None:
    """Give up a job that is not finished."""
    # Of EC2's jobs, some leave what another one has to set right.
    end = give_up if hull == "ec2" else work_jobs.cancel
    if not _database(hull, url, files).write(lambda session: end(session, job_id)):
        refuse(f"job {job_id} does not exist or is finished")
    click.echo(f"{job_id} is cancelled")
