"""What can be seen of background work from outside."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

RUNS = Counter(
    "trimaran_work_runs_total",
    "Runs of jobs, by how they ended: done, failed, retry, error, lost, handed_over.",
    ["kind", "outcome"],
)
SECONDS = Histogram(
    "trimaran_work_run_seconds",
    "How long runs of jobs took.",
    ["kind"],
    buckets=(0.05, 0.2, 1, 5, 15, 60, 300, 1200, 3600),
)
RUNNING = Gauge(
    "trimaran_work_running",
    "Jobs that this process runs now.",
    ["kind"],
    multiprocess_mode="livesum",
)
LEASES = Gauge(
    "trimaran_work_leases_held",
    "Leases that this process holds now, jobs included.",
    multiprocess_mode="livesum",
)
# Each process reads the same table: the newest reading stands for all.
JOBS = Gauge(
    "trimaran_work_jobs",
    "Unfinished jobs in the database, by kind and state.",
    ["kind", "state"],
    multiprocess_mode="livemostrecent",
)
QUEUE_AGE = Gauge(
    "trimaran_work_queue_age_seconds",
    "How long the oldest due job of the kind has been waiting for a process.",
    ["kind"],
    multiprocess_mode="livemostrecent",
)
PERIODIC_RUNS = Counter(
    "trimaran_work_periodic_runs_total",
    "Runs of periodic functions in this process, by how they ended: done, error.",
    ["name", "outcome"],
)
PERIODIC_SECONDS = Histogram(
    "trimaran_work_periodic_seconds",
    "How long runs of periodic functions took.",
    ["name"],
    buckets=(0.05, 0.2, 1, 5, 15, 60, 300, 1200),
)
