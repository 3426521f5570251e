"""CopyImage within the region (spec ec2.md 9.2).

Images with data in Glance are copied by a job.  One whose devices are snapshots
is refused: Cinder copies no snapshots, and two images of one snapshot would be
no copies of each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.db.queries.ec2_tokens import take_token
from trimaran.ec2 import ids, journal
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.client_token import check_token, fingerprint
from trimaran.ec2.kinds.images.image_devices import devices
from trimaran.ec2.kinds.images.image_kind import MARK, Images, kind_of_image
from trimaran.ec2.kinds.images.image_reserve import make_image
from trimaran.ec2.kinds.images.image_view import shown_image
from trimaran.ec2.kinds.region import known_regions
from trimaran.ec2.kinds.tag_rules import tag_specifications
from trimaran.ec2.kinds.volumes.volume_reserve import known_token
from trimaran.ec2.on_behalf import caller
from trimaran.ec2.protocol.errors import EC2Error, invalid_value, missing, unsupported
from trimaran.ec2.reconcile import reconcile
from trimaran.ec2.reconcile_kind import Pair
from trimaran.errors import Unavailable

Request = Mapping[str, Any]

_REFUSED = (
    "Encrypted", "KmsKeyId", "DestinationOutpostArn", "DestinationAvailabilityZone",
    "DestinationAvailabilityZoneId", "SnapshotCopyCompletionDurationMinutes",
)  # fmt: skip
#: What Glance gives to each image itself, or what belongs to the very image that it stands on.
_OWN = frozenset(
    {
        "id", "name", "owner", "status", "visibility", "size", "virtual_size", "checksum",
        "created_at", "updated_at", "self", "file", "schema", "direct_url", "locations", "stores",
        "tags", "protected", "os_hidden", "os_hash_algo", "os_hash_value", "owner_specified",
        "description", "image_location", "image_state", "base_image_ref", MARK,
    }
)  # fmt: skip
_OWN_PREFIXES = ("os_glance_", "owner_", "instance_uuid", "user_id", "image_type")


def copy_image(ctx: Context, request: Request) -> dict[str, Any]:
    """Make an own image with the data of another one; the data comes later."""
    for name in ("Name", "SourceImageId", "SourceRegion"):
        if not request.get(name):
            raise missing(name)
    if request["SourceRegion"] not in known_regions(ctx):
        raise invalid_value("SourceRegion", request["SourceRegion"], "Unknown region.")
    if request["SourceRegion"] != ctx.region:
        raise unsupported("Images are copied within the region only.")
    for name in _REFUSED:
        if request.get(name):
            raise unsupported(f"The parameter {name} is not supported.")
    token, asked = check_token(request), fingerprint(request)
    if known := known_token(ctx, token, asked):
        return {"ImageId": known}
    tags = dict(tag_specifications(request.get("TagSpecifications"), ("image",)).get("image") or {})
    source = ids.check_id(request["SourceImageId"], "sourceImageId", *ids.IMAGE_PREFIXES)
    view = reconcile(ctx, Images(), [source])
    [pair] = view.pairs
    _check(pair, shown_image(view, pair)["State"])
    if request.get("CopyImageTags"):
        told = {tag["Key"]: tag["Value"] for tag in view.tags.get(source) or ()}
        tags = {**told, **tags}
    person = caller(ctx)
    ctx.commit_point()
    description = request.get("Description") or ""
    body = _body(pair.body, request["Name"], description)
    payload = {**person.noted(), "source": pair.body["id"]}

    def create(image_id: str) -> Mapping[str, Any]:
        return ctx.user.image.create_image({**body, MARK: image_id})

    def enqueue(session: Session, image_id: str, os_id: str) -> None:
        if token:
            taken = take_token(session, ctx.project_id, ctx.action, token, asked, image_id)
            if taken.result != image_id:
                # A rival was first.  The journal takes this image back; the client
                # asks again, and is told the other one.
                raise Unavailable()
        more = {"item": image_id, "image": os_id}
        work.enqueue(session, journal.COPY_IMAGE, {**payload, **more}, key=image_id)

    made = make_image(
        ctx,
        create,
        kind=kind_of_image(pair.body),
        noted={"description": description},
        tags=tags,
        then=enqueue,
    )
    return {"ImageId": made}


def _check(pair: Pair, state: str) -> None:
    if pair.found is None or state != "available":
        raise EC2Error("InvalidAMIID.Unavailable", f"The image '{pair.item.id}' is not available.")
    if not pair.body.get("size") or any(row.source for row in devices(pair.body)):
        raise unsupported("Images of snapshots cannot be copied: Cinder copies no snapshots.")


def _body(source: Mapping[str, Any], name: str, description: str) -> dict[str, Any]:
    kept = {
        key: value
        for key, value in source.items()
        if value is not None and key not in _OWN and not key.startswith(_OWN_PREFIXES)
    }
    told = {"description": description} if description else {}
    return {**kept, **told, "name": name, "visibility": "private"}
