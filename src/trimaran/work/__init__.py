"""Durable work: jobs with persisted steps, and leases that let one process of many act.

One mechanism for all: a row that is changed by compare-and-set with the
database's clock.  It is correct on several hosts, needs no server beside the
database, and a process may be killed at any moment.
"""

from __future__ import annotations

from trimaran.work.jobs import MAX_ATTEMPTS, enqueue
from trimaran.work.leases import Lease, Leases, acquire, acquire_many, hold, kept
from trimaran.work.run import JobRun
from trimaran.work.runner import Runner
from trimaran.work.signals import Fail, HandedOver, LeaseLost, Retry

__all__ = [
    "MAX_ATTEMPTS",
    "Fail",
    "HandedOver",
    "JobRun",
    "Lease",
    "LeaseLost",
    "Leases",
    "Retry",
    "Runner",
    "acquire",
    "acquire_many",
    "enqueue",
    "hold",
    "kept",
]
