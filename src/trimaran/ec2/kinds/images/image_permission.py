"""Launch permissions: to everybody by Glance's visibility, to projects by its members.

Publishing takes the caller's own right in Glance, which only administrators
have by default; the refusal is ``UnauthorizedOperation`` (spec ec2.md 11.9).
A project that an image is shared with sees it at once, as on AWS: EC2 clients
have no word for Glance's acceptance, so the service accepts on its behalf.
Glance keeps members of shared images only, so a public image has none.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection
from dataclasses import dataclass, field

from trimaran.cloud import CloudError
from trimaran.db.queries import ec2 as queries
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.images.image_kind import is_public
from trimaran.ec2.protocol.errors import invalid_value, unsupported
from trimaran.ec2.reconcile_kind import Pair
from trimaran.errors import Conflict, NotFound, TrimaranError

LOG = logging.getLogger(__name__)

_PROJECT = re.compile(r"[0-9A-Za-z_-]{1,64}")


@dataclass
class Permissions:
    """A change of launch permissions.

    Attributes:
        publish, hide: grant to, take from everybody.
        grant, revoke: projects.
    """

    publish: bool = False
    hide: bool = False
    grant: list[str] = field(default_factory=list)
    revoke: list[str] = field(default_factory=list)

    def add(self, group: str | None, user: str | None, *, remove: bool) -> None:
        """Add one permission of a request.

        Raises:
            EC2Error: ``InvalidParameterValue``.
        """
        if group:
            if group != "all":
                raise invalid_value("Group", group, "The only group is all.")
            if remove:
                self.hide = True
            else:
                self.publish = True
        if user:
            if not _PROJECT.fullmatch(user):
                raise invalid_value("UserId", user)
            (self.revoke if remove else self.grant).append(user)

    def __bool__(self) -> bool:
        return bool(self.publish or self.hide or self.grant or self.revoke)


def users_of(ctx: Context, pair: Pair) -> list[str]:
    """The projects that an own image is shared with."""
    if pair.body.get("visibility") != "shared":
        return []
    members = ctx.user.image.members(pair.body["id"])
    return sorted(row["member_id"] for row in members if row.get("status") != "rejected")


def change_permissions(ctx: Context, pair: Pair, wanted: Permissions) -> None:
    """Change the launch permissions of an own image.

    Raises:
        EC2Error: ``UnsupportedOperation`` for projects beside everybody.
        Forbidden: the caller may not publish images.
    """
    os_id = pair.body["id"]
    public = (is_public(pair.body) or wanted.publish) and not wanted.hide
    if public and wanted.grant:
        raise unsupported("A public image cannot be shared with projects besides.")
    if public:
        if not is_public(pair.body):
            _set_visibility(ctx, pair, "public")
        return
    if is_public(pair.body) or (wanted.grant and pair.body.get("visibility") != "shared"):
        _set_visibility(ctx, pair, "shared" if wanted.grant else "private")
    for project_id in wanted.grant:
        _share(ctx, os_id, project_id)
    if pair.body.get("visibility") == "shared" or wanted.grant:
        for project_id in wanted.revoke:
            _withdraw(ctx, os_id, project_id)


def reset_permissions(ctx: Context, pair: Pair) -> None:
    """Nobody but the owner may use the image any more."""
    for project_id in users_of(ctx, pair):
        _withdraw(ctx, pair.body["id"], project_id)
    if pair.body.get("visibility") != "private":
        _set_visibility(ctx, pair, "private")


def _set_visibility(ctx: Context, pair: Pair, visibility: str) -> None:
    patch = [{"op": "replace", "path": "/visibility", "value": visibility}]
    ctx.user.image.update_image(pair.body["id"], patch)
    public = visibility == "public"
    data = {**pair.item.data, "is_public": public}
    ctx.db.write(
        lambda s: queries.update_item(
            s, ctx.project_id, pair.item.id, version=pair.item.version, data=data, is_public=public
        )
    )


def _share(ctx: Context, os_id: str, project_id: str) -> None:
    try:
        ctx.user.image.add_member(os_id, project_id)
    except Conflict:
        LOG.debug("Image %s is shared with %s already", os_id, project_id)
    try:
        ctx.admin.image.update_member(os_id, project_id, "accepted")
    except TrimaranError as error:
        words = error.remote_message if isinstance(error, CloudError) else str(error)
        LOG.warning("Image %s is shared with %s but not accepted: %s", os_id, project_id, words)


def _withdraw(ctx: Context, os_id: str, project_id: str) -> None:
    try:
        ctx.user.image.remove_member(os_id, project_id)
    except NotFound:
        return


def distinct(values: Collection[str] | None) -> list[str]:
    """The values of a list parameter, each once."""
    return list(dict.fromkeys(values or ()))
