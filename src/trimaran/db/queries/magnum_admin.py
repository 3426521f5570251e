"""Quotas, statistics, conductor heartbeats and stored key pairs.

Heartbeats are stamped and judged by the database's clock, because conductors
and API processes run on hosts whose clocks differ (spec/magnum.md 7.4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from trimaran.db.clock import db_now
from trimaran.db.models.magnum import (
    Cluster,
    Federation,
    MagnumService,
    NodeGroup,
    Quota,
    X509KeyPair,
    utcnow,
)
from trimaran.db.queries.magnum_paging import Page, Scope, one, paged
from trimaran.db.upsert import changed
from trimaran.errors import Conflict, NotFound


def now(session: Session) -> datetime:
    """Returns the database's time as the tables keep it: naive UTC, whole seconds."""
    stamp = datetime.fromtimestamp(float(session.scalar(sa.select(db_now())) or 0), UTC)
    return stamp.replace(tzinfo=None, microsecond=0)


# quotas


def _no_quota(project_id: str, resource: str) -> NotFound:
    return NotFound(
        f"Quota could not be found: project_id {project_id} resource {resource}.",
        code="QuotaNotFound",
    )


def find_quota(session: Session, project_id: str, resource: str) -> Quota | None:
    """Returns the project's own quota of a resource, or None."""
    query = sa.select(Quota).where(Quota.project_id == project_id, Quota.resource == resource)
    return session.scalars(query).one_or_none()


def get_quota(session: Session, project_id: str, resource: str) -> Quota:
    """Returns the project's own quota of a resource.

    Raises:
        NotFound: the project has none.
    """
    row = find_quota(session, project_id, resource)
    if row is None:
        raise _no_quota(project_id, resource)
    return row


def list_quotas(session: Session, scope: Scope, page: Page | None = None) -> list[Quota]:
    """Lists quotas; the marker of a page is the integer id."""
    query = sa.select(Quota)
    if not scope.all_projects:
        query = query.where(Quota.project_id == scope.project_id)
    page = page or Page()
    missing = f"Quota {page.marker} could not be found."
    return paged(session, query, Quota, page, missing=missing)


def insert_quota(session: Session, values: Mapping[str, Any]) -> Quota:
    """Inserts a quota.

    Raises:
        Conflict: the project has one for this resource.
    """
    row = Quota(**values)
    try:
        with session.begin_nested():
            session.add(row)
            session.flush()
    except IntegrityError as problem:
        raise Conflict(
            f"Quota for project {values['project_id']} already exists for resource "
            f"{values['resource']}.",
            code="QuotaAlreadyExists",
        ) from problem
    return row


def update_quota(
    session: Session, project_id: str, resource: str, changes: Mapping[str, Any]
) -> Quota:
    """Writes columns of a quota.

    Raises:
        NotFound: the project has none.
    """
    row = get_quota(session, project_id, resource)
    for name, value in changes.items():
        setattr(row, name, value)
    row.updated_at = utcnow()
    session.flush()
    return row


def delete_quota(session: Session, project_id: str, resource: str) -> None:
    """Removes a quota.

    Raises:
        NotFound: the project has none.
    """
    session.delete(get_quota(session, project_id, resource))
    session.flush()


# statistics


def stats(session: Session, project_id: str | None) -> tuple[int, int]:
    """Counts clusters and nodes, masters included (spec/magnum.md 1.13).

    Args:
        session: the unit of work.
        project_id: of one project; None means the whole cloud.

    Returns:
        (clusters, nodes)
    """
    clusters = sa.select(sa.func.count()).select_from(Cluster)
    nodes = sa.select(sa.func.coalesce(sa.func.sum(NodeGroup.node_count), 0))
    if project_id is not None:
        clusters = clusters.where(Cluster.project_id == project_id)
        nodes = nodes.where(NodeGroup.project_id == project_id)
    return int(session.scalar(clusters) or 0), int(session.scalar(nodes) or 0)


# conductors


def list_services(session: Session) -> list[MagnumService]:
    """Lists the conductors that ever beat, oldest first."""
    return list(session.scalars(sa.select(MagnumService).order_by(MagnumService.id)).all())


def beat(session: Session, host: str, binary: str) -> None:
    """Records that a conductor lives: one more report, seen now."""
    stamp = now(session)
    query = (
        sa.update(MagnumService)
        .where(MagnumService.host == host, MagnumService.binary == binary)
        .values(report_count=MagnumService.report_count + 1, last_seen_up=stamp, updated_at=stamp)
    )
    if changed(session, query):
        return
    try:
        with session.begin_nested():
            session.add(MagnumService(host=host, binary=binary, report_count=1, last_seen_up=stamp))
            session.flush()
    except IntegrityError:
        session.execute(query)


def service_age(row: MagnumService, at: datetime) -> timedelta | None:
    """Returns the time since a conductor was last heard of, or None.

    Args:
        row: of a conductor.
        at: the database's time, naive UTC, which stamps the reports as well.
    """
    last = row.last_seen_up or row.updated_at or row.created_at
    return None if last is None else abs(at - last)


def service_is_up(row: MagnumService, at: datetime, patience: timedelta) -> bool:
    """Whether a conductor reported lately enough (spec/magnum.md 7.4).

    Args:
        row: of a conductor.
        at: the database's time.
        patience: ``[DEFAULT] service_down_time``.
    """
    age = service_age(row, at)
    return not row.forced_down and age is not None and age <= patience


def remove_services(
    session: Session, patience: timedelta, which: tuple[str, str] | None = None
) -> list[str]:
    """Removes the rows of conductors that are down.

    One that was only cut off writes its row again when it is back.

    Args:
        session: the unit of work.
        patience: ``[DEFAULT] service_down_time``.
        which: host and binary; None means all that are down.

    Returns:
        Their hosts.
    """
    at, gone = now(session), []
    for row in list_services(session):
        wanted = which is None or (row.host, row.binary) == which
        if not wanted or service_is_up(row, at, patience):
            continue
        # Only as it was seen: it may have come back in this moment.
        query = sa.delete(MagnumService).where(
            MagnumService.id == row.id, MagnumService.report_count == row.report_count
        )
        if changed(session, query):
            gone.append(row.host or "-")
    return gone


# key pairs of the x509keypair certificate manager


def put_keypair(session: Session, values: Mapping[str, Any]) -> None:
    """Stores a key pair; storing the same UUID again replaces it, so a retry leaves no orphan."""
    row = find_keypair(session, values["uuid"])
    if row is None:
        session.add(X509KeyPair(**values))
    else:
        for name, value in values.items():
            setattr(row, name, value)
    session.flush()


def find_keypair(session: Session, uuid: str) -> X509KeyPair | None:
    """Returns a stored key pair, or None."""
    return session.scalars(sa.select(X509KeyPair).where(X509KeyPair.uuid == uuid)).one_or_none()


def delete_keypairs(session: Session, uuids: Sequence[str]) -> int:
    """Removes stored key pairs.

    Returns:
        How many there were.
    """
    query = sa.delete(X509KeyPair).where(X509KeyPair.uuid.in_(list(uuids)))
    return changed(session, query)


# federations: never created, still listed


def list_federations(session: Session, scope: Scope, page: Page | None = None) -> list[Federation]:
    """Lists federations of a project."""
    query = sa.select(Federation)
    if not scope.all_projects:
        query = query.where(Federation.project_id == scope.project_id)
    page = page or Page()
    missing = f"Federation {page.marker} could not be found."
    return paged(session, query, Federation, page, missing=missing)


def get_federation(session: Session, scope: Scope, ident: str) -> Federation:
    """Finds a federation by UUID or name.

    Raises:
        NotFound: none.
        Conflict: the name is used more than once.
    """
    query = sa.select(Federation)
    if not scope.all_projects:
        query = query.where(Federation.project_id == scope.project_id)
    return one(
        session,
        query,
        Federation,
        ident,
        missing=f"Federation {ident} could not be found.",
        several="Multiple federations exist with same name. "
        "Please use the federation uuid instead.",
    )
