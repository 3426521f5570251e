"""Metadata options that a project's launches get unless they say otherwise (spec ec2.md 9.2).

They are one item of the project, whose id follows from the project's, so that
two who write at once write the same row; it holds what is preferred, and
nothing once nothing is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import NewItem
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.item_options import check_metadata_options
from trimaran.ec2.protocol.errors import invalid_value, unsupported

Request = Mapping[str, Any]

PREFIX = "imd"
#: Options that have a default of the project's, and the value that takes it away.
NO_PREFERENCE: Mapping[str, Any] = {
    "HttpTokens": "no-preference",
    "HttpPutResponseHopLimit": -1,
    "HttpEndpoint": "no-preference",
    "InstanceMetadataTags": "no-preference",
}
_ENFORCED = "HttpTokensEnforced"


def get_instance_metadata_defaults(ctx: Context, request: Request) -> dict[str, Any]:
    """What the project prefers."""
    kept = metadata_defaults(ctx)
    return {"AccountLevel": {**kept, "ManagedBy": "account"} if kept else {}}


def modify_instance_metadata_defaults(ctx: Context, request: Request) -> dict[str, Any]:
    """Prefer something for launches to come; instances that are there stay as they are."""
    if request.get(_ENFORCED) == "enabled":
        raise unsupported("Tokens can be preferred for launches, but not enforced.")
    if request.get(_ENFORCED) not in (None, "disabled", "no-preference"):
        raise invalid_value(_ENFORCED, request[_ENFORCED])
    given = {name: request[name] for name in NO_PREFERENCE if request.get(name) is not None}
    kept = {name: value for name, value in given.items() if value != NO_PREFERENCE[name]}
    check_metadata_options(kept, {})
    ctx.commit_point()

    def write(session: Session) -> None:
        item_id = _item_id(ctx.project_id)
        there = queries.locked_items(session, ctx.project_id, [item_id])
        before = there[0].data if there else {}
        data = {name: value for name, value in before.items() if name not in given} | kept
        if there:
            queries.update_item(session, ctx.project_id, item_id, data=data)
        else:
            new = NewItem(PREFIX, None, ctx.project_id, data, id=item_id)
            queries.add_items(session, [new], ids.mint)

    ctx.db.write(write)
    return {"Return": True}


def metadata_defaults(ctx: Context) -> dict[str, Any]:
    """The options that the project prefers."""
    wanted = [_item_id(ctx.project_id)]
    items = ctx.db.read(lambda s: queries.items_by_ids(s, ctx.project_id, wanted))
    return dict(items[0].data) if items else {}


def _item_id(project_id: str) -> str:
    return f"{PREFIX}-{hashlib.sha256(project_id.encode()).hexdigest()[:17]}"
