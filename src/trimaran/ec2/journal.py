"""The journal: what an action has begun is on record until it is finished.

An action of several steps records a job in the transaction of its first step
and withdraws it in that of its last.  The job is due only after a time in
which nobody who is alive keeps silent; so it runs exactly when the process
that began the action is dead, or has handed the rest over by `hasten`.  Then
any process finishes the action or undoes it (`trimaran.ec2.jobs`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.db.queries import work_jobs
from trimaran.errors import TrimaranError, Unavailable

if TYPE_CHECKING:
    from oslo_config import cfg

    from trimaran.db import Database

#: Calls to OpenStack between two signs of life at most (the call, and looks for what it did).
CALLS = 4

# Kinds of jobs.
LAUNCH = "ec2.launch"
RESIZE = "ec2.resize"
#: Interfaces and addresses that go with instances (see instance_end).
END = "ec2.end"
#: A security group is being made (`kinds.security_group_create`).
GROUP = "ec2.group"
#: Rules are being deleted, or take over from others (`kinds.security_group_modify`).
REVOKE = "ec2.revoke"
MODIFY_RULES = "ec2.modify_rules"
#: A VPN connection is half there (`kinds.vpn_connection`).
VPN = "ec2.vpn"
#: A volume that grows gets another type afterwards (`kinds.volume_retype`).
RETYPE = "ec2.retype"
IMAGE = "ec2.image"
#: A topology object is half there: remove what there is of it (`kinds.topology_raze`).
RAZE = "ec2.raze"
#: The database knows a change of a VPC that Neutron may not know (`kinds.topology`).
TOPOLOGY = "ec2.topology"
# Not the rest of a request, but what a request asked for (`trimaran.ec2.jobs`).
CREATE_IMAGE = "ec2.create_image"
START = "ec2.start"
BUNDLE = "ec2.import_bundle"
COPY_IMAGE = "ec2.copy_image"
#: An operator cancelled a job whose failure would have set something right.
CANCELLED = "ec2.cancelled"
#: Kinds of such jobs.
SETTLED = frozenset({CREATE_IMAGE, BUNDLE, COPY_IMAGE, RETYPE})


def patience(conf: cfg.ConfigOpts) -> float:
    """Seconds without a sign of life after which an action's process counts as dead."""
    return float(CALLS * (conf.trimaran.connect_timeout + conf.trimaran.read_timeout))


def begin(
    session: Session, conf: cfg.ConfigOpts, kind: str, key: str, payload: Mapping[str, Any]
) -> str:
    """Record an action; within the transaction of its first step.

    Returns:
        The job's id; that of the unfinished job when there is one of this key.
    """
    return work.enqueue(session, kind, payload, key=key, delay=patience(conf))


def alive(session: Session, conf: cfg.ConfigOpts, job_id: str) -> bool:
    """A sign of life between two steps.

    Returns:
        False when another process has taken the action over.
    """
    return work_jobs.reschedule(session, job_id, patience(conf))


def end(session: Session, job_id: str) -> None:
    """The action is finished; within the transaction of its last step."""
    work_jobs.cancel(session, job_id)


def hasten(session: Session, job_id: str, delay: float = 0.0) -> None:
    """Let the job do the rest, soon."""
    work_jobs.reschedule(session, job_id, delay)


def give_up(session: Session, job_id: str) -> bool:
    """An operator's end of a job; what it leaves half done is set right by another one.

    Returns:
        False when there is no such job, or it is finished.
    """
    job = work_jobs.show(session, job_id)
    if job is None:
        return False
    payload = {
        "project": job.payload.get("project"),
        "job": job_id,
        "kind": job.kind,
        "step": job.step,
        "payload": job.payload,
        "running": bool(job.owner),
    }
    ended = work_jobs.cancel(session, job_id)
    if ended and job.kind in SETTLED:
        work.enqueue(session, CANCELLED, payload, key=job_id)
    return ended


@contextlib.contextmanager
def settled(
    db: Database, job_id: str, refused: Callable[[Session], object] | None = None
) -> Iterator[None]:
    """Settle an action's entry when OpenStack does not do what it is asked for inside.

    No answer tells nothing about what was done: the job finds out, soon.  A
    refusal is an end.  When all goes well the entry stays, for the last step.

    Args:
        db: where the entry is.
        job_id: the entry.
        refused: takes back what the refused step was for, and settles the entry; by
            default, nothing having been done, the entry ends.

    Raises:
        TrimaranError: what was raised inside.
    """
    try:
        yield
    except Unavailable:
        db.write(lambda s: hasten(s, job_id))
        raise
    except TrimaranError:
        db.write(refused or (lambda s: end(s, job_id)))
        raise
