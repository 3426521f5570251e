"""How a handler and the runner tell each other what becomes of a job.

`Retry` and `Fail` are a handler's words.  `LeaseLost` and `HandedOver` are the
runner's, and derive from BaseException like a cancellation: a handler that
turns every Exception into a failed cluster must not turn these into one, since
the job goes on elsewhere.
"""

from __future__ import annotations


class Retry(Exception):
    """The job is to be called again later; this is waiting, not a failed attempt.

    Args:
        delay: seconds.
        reason: what is waited for; operators see it.
    """

    def __init__(self, delay: float, reason: str = "") -> None:
        super().__init__(reason)
        self.delay = delay
        self.reason = reason


class Fail(Exception):
    """The job cannot be done, and trying again would not help.

    Args:
        reason: why; operators see it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class LeaseLost(BaseException):
    """The job belongs to another process by now (or was cancelled): stop, write nothing."""


class HandedOver(BaseException):
    """The process is stopping: the step was noted, another process goes on from it."""
