"""A project's quota, as an administrator sets it for the length of a test."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tests.support.cloud import ADMIN, DEMO, CloudEnv, Person


@contextlib.contextmanager
def quota(cloud: CloudEnv, service: str, who: Person = DEMO, **limits: int) -> Iterator[None]:
    """Sets limits of a person's project and puts back what was there.

    Args:
        cloud: the sandbox.
        service: ``compute`` or ``block-storage``.
        who: whose project.
        limits: such as ``instances=5``; -1 is none.
    """
    path = f"/os-quota-sets/{cloud.session(who).get_project_id()}"
    before = cloud.call(ADMIN, service, "GET", path)["quota_set"]

    def put(values: dict[str, int]) -> None:
        cloud.call(ADMIN, service, "PUT", path, json={"quota_set": values})

    put(limits)
    try:
        yield
    finally:
        put({name: before[name] for name in limits})
