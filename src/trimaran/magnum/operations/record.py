"""Writes operations down.

The user's token goes along, sealed: a driver needs it to act in the user's
project, and the conductor that runs the operation may not be the one that the
message reached.  It is dropped with the job's row.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.db.queries.magnum_operations import operation_key
from trimaran.magnum.context import RequestContext
from trimaran.magnum.sealing import Sealer
from trimaran.policy import Context

PREFIX = "magnum."

#: RPC methods that are operations
NAMES = (
    "cluster_create",
    "cluster_update",
    "cluster_delete",
    "cluster_resize",
    "cluster_upgrade",
    "nodegroup_create",
    "nodegroup_update",
    "nodegroup_delete",
    "rotate_ca_certificate",
    "credential_rotate",
)
KINDS = tuple(f"{PREFIX}{name}" for name in NAMES)

#: attempts of an operation whose runs end by a fault of ours or by a killed
#: process; a driver's refusal is final and counts as done
ATTEMPTS = 10


def kind_of(name: str) -> str:
    """Returns the kind of job of an operation ("cluster_create" → "magnum.cluster_create")."""
    return f"{PREFIX}{name}"


def name_of(kind: str) -> str:
    """Returns the operation of a kind of job."""
    return kind.removeprefix(PREFIX)


def action_in_status(name: str) -> str:
    """Returns what an operation is called in a cluster's status ("cluster_create" → "CREATE")."""
    return {"cluster_create": "CREATE", "cluster_delete": "DELETE"}.get(name, "UPDATE")


class Operations:
    """Records operations.

    Args:
        sealer: encrypts the user's token; None stores no token.
        auth_url: Keystone's URL, for drivers that ask for it.
    """

    def __init__(self, sealer: Sealer | None, *, auth_url: str | None = None) -> None:
        self._sealer = sealer
        self._auth_url = auth_url

    @classmethod
    def from_conf(cls, conf: Any) -> Operations:
        """Makes the recorder of a deployment.

        Args:
            conf: loaded ``magnum.conf``.
        """
        sealer = Sealer.from_conf(conf)
        return cls(sealer, auth_url=getattr(conf.keystone_authtoken, "auth_url", None))

    def record(
        self,
        session: Session,
        context: Context | RequestContext,
        name: str,
        cluster_uuid: str,
        args: Mapping[str, Any],
    ) -> str:
        """Records an operation in the caller's transaction.

        Args:
            session: the unit of work that changes the row.
            context: who asks.
            name: of the RPC method ("cluster_create").
            cluster_uuid: of the cluster that it is about.
            args: what the handler needs beside the cluster; plain JSON.

        Returns:
            The operation's id.  A cluster that is being deleted already
            keeps its one delete operation (F-65).
        """
        if name not in NAMES:
            raise ValueError(f"{name} is no operation")
        caller = (
            context
            if isinstance(context, RequestContext)
            else RequestContext.from_policy(context, auth_url=self._auth_url)
        )
        told = caller.to_dict()
        token = told.pop("auth_token")
        payload = {
            "cluster": cluster_uuid,
            "args": dict(args),
            "context": told,
            "token": self._sealer.seal(token) if token and self._sealer else None,
        }
        rest = "delete" if name == "cluster_delete" else uuid.uuid4().hex
        return work.enqueue(
            session,
            kind_of(name),
            payload,
            key=operation_key(cluster_uuid, rest),
            max_attempts=ATTEMPTS,
        )
