"""What a job makes of the errors of the services that it needs.

A service that is away is waited for, which uses up no attempt; so is a token
that ended in the middle, because the next run has a new one.  A refusal is
final: asking again would be refused again.  The database is a service too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from trimaran import work
from trimaran.cloud import CloudError
from trimaran.ec2 import on_behalf
from trimaran.ec2.context import Context
from trimaran.errors import TooManyRequests, TrimaranError, Unauthenticated, Unavailable

#: Seconds between two tries while a service is away.
PAUSE = 3.0


def will_pass(error: TrimaranError) -> bool:
    """Whether waiting helps."""
    return isinstance(error, Unavailable | TooManyRequests)


@contextlib.contextmanager
def passing(*, final: bool = True) -> Iterator[None]:
    """Waits for what passes, and ends the job on what does not.

    Args:
        final: a refusal ends the job; otherwise it is an attempt that failed.

    Raises:
        work.Retry: a service is away, or the token has ended.
        work.Fail: a service refused.
    """
    try:
        yield
    except TrimaranError as error:
        service = getattr(error, "service", "") or "a service"
        if will_pass(error):
            raise work.Retry(PAUSE, f"{service} to answer") from error
        if isinstance(error, CloudError) and isinstance(error, Unauthenticated):
            raise work.Retry(PAUSE, f"a token that {service} takes") from error
        if not final:
            raise
        told = error.remote_message if isinstance(error, CloudError) else str(error)
        raise work.Fail(f"{service} refused: {told}"[:500]) from error


def as_person(ctx: Context, job: work.JobRun) -> Context:
    """The job's context with a fresh token of whoever asked for it.

    Raises:
        work.Fail: the credential is gone, or its owner may not use it any more.
        Unavailable: Keystone fails.
    """
    if ctx.deputies is None:
        raise Unavailable(service="identity")
    try:
        return ctx.deputies.as_person(ctx, on_behalf.person_of(job.payload))
    except Unauthenticated as error:
        raise work.Fail("the credential that asked for it is not valid any more") from error
