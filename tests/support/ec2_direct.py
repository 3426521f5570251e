"""EC2 requests in the test's own process, as a person of the sandbox, without an API daemon.

A daemon would also do the background work that these tests want to see dying
in processes of their own.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from tests.support.cloud import DEMO, CloudEnv, Person
from tests.support.ec2 import keys_of
from trimaran.ec2 import on_behalf
from trimaran.ec2.context import Context
from trimaran.ec2.parts import Parts


def requester(parts: Parts, cloud: CloudEnv, who: Person = DEMO) -> Callable[..., Any]:
    """A function that runs an action with boto3's arguments."""
    access, _ = keys_of(cloud, who)
    session = cloud.session(who)
    person = on_behalf.Person(str(session.get_user_id()), str(session.get_project_id()), access)
    deputies = on_behalf.Deputies(parts.identity, parts.cloud, parts.region)
    nothing: Any = None

    def run(action: Callable[..., Any], **request: Any) -> Any:
        token = deputies.token(person)
        ctx = Context(
            token=token,
            request_id=f"req-{uuid.uuid4()}",
            action="".join(part.capitalize() for part in action.__name__.split("_")),
            region=parts.region,
            user=parts.cloud.as_user(token),
            admin=parts.cloud.as_service(),
            db=parts.db,
            conf=parts.conf,
            enforcer=nothing,
            policy_context=nothing,
            access_key=access,
            deputies=deputies,
        )
        return action(ctx, request)

    return run
