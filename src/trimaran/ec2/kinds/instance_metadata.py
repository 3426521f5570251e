"""One instance as the metadata service needs it: by Nova's id, without a user's token.

The same reconciliation as a describe, for one server: one that nobody has
described yet gets its whole item here, not a bare mapping (F21).
"""

from __future__ import annotations

from typing import Any

from trimaran.ec2.context import Context
from trimaran.ec2.kinds.instance_kind import Instances
from trimaran.ec2.kinds.instance_view import Describer
from trimaran.ec2.reconcile import reconcile


def instance_of(ctx: Context, server_id: str) -> dict[str, Any] | None:
    """The instance behind a server of the context's project.

    Args:
        ctx: a context of the project, whose user session may be the service's.
        server_id: Nova's id.

    Returns:
        The instance as boto3 shows it, with ``ReservationId`` and ``OwnerId``
        beside its own fields; None when the project has no such server.
    """
    view = reconcile(ctx, _ForeignIsAbsent(), objects=[server_id])
    for instance in Describer(view).instances():
        if not instance.is_dead:
            beside = {"ReservationId": instance.reservation_id, "OwnerId": ctx.project_id}
            return {**instance.shown(), **beside}
    return None


class _ForeignIsAbsent(Instances):
    """A guest may name any server: another project's is as good as none."""

    def found(self, ctx: Context, listed: Any) -> Any:
        own = {
            name: None
            if name.startswith("server:") and row and row.get("tenant_id") != ctx.project_id
            else row
            for name, row in listed.items()
        }
        return super().found(ctx, own)
