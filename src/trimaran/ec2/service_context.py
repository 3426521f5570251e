"""A context for work that no user is waiting for: the service user on a project's behalf.

Jobs and the metadata service act long after, or without, a caller's token.
Everything is asked with the service's rights, so whoever uses such a context
checks each object's project itself.
"""

from __future__ import annotations

from datetime import UTC, datetime

from trimaran import policy
from trimaran.ec2.context import Context
from trimaran.ec2.on_behalf import Deputies
from trimaran.ec2.parts import Parts
from trimaran.identity import Token


def context_of(
    parts: Parts,
    project_id: str,
    *,
    enforcer: policy.Enforcer,
    action: str,
    request_id: str,
    remote_address: str = "",
) -> Context:
    """A context of a project in which both sessions are the service's.

    Args:
        parts: Keystone, cloud and database.
        project_id: whose resources are meant.
        enforcer: policy, without meaning for the service itself.
        action: what is done, for the log.
        request_id: named in the log and to OpenStack.
        remote_address: on whose request, if anybody's.
    """
    service = parts.cloud.as_service()
    nobody = _nobody_of(project_id)
    return Context(
        token=nobody,
        request_id=request_id,
        action=action,
        region=parts.region,
        user=service,
        admin=service,
        db=parts.db,
        conf=parts.conf,
        enforcer=enforcer,
        policy_context=policy.Context(token=nobody, request_id=request_id),
        remote_address=remote_address,
        deputies=Deputies(parts.identity, parts.cloud, parts.region),
    )


def _nobody_of(project_id: str) -> Token:
    """A caller without identity or rights: it only says which project is meant."""
    return Token.from_body(
        "",
        {
            "user": {"id": "", "name": ""},
            "project": {"id": project_id, "name": ""},
            "expires_at": datetime.now(UTC).isoformat(),
        },
    )
