"""RegisterImage from a location: a bundle in S3, or a file that Glance fetches.

A bundle's manifest is read within the request, so that what is wrong with it is
told at once; its parts are fetched by a job (`trimaran.ec2.jobs.import_bundle`,
spec ec2.md 3.5 and 5.2).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy.orm import Session

from trimaran import work
from trimaran.ec2 import ids, journal
from trimaran.ec2.bundle import BundleError
from trimaran.ec2.bundle.manifest import LARGEST, Manifest, is_plain_key, parse
from trimaran.ec2.bundle.source import S3Refusal, Source
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.images.image_kind import MARK, Images
from trimaran.ec2.kinds.images.image_reserve import discard, make_image
from trimaran.ec2.on_behalf import Person, caller, fingerprint
from trimaran.ec2.protocol.errors import EC2Error, invalid_value, unsupported
from trimaran.ec2.reconcile import reconcile
from trimaran.errors import BadRequest, TrimaranError, Unauthenticated, Unavailable

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
_LONGEST_URL = 2048
#: Glance's disk formats by the end of a file's name.
_FORMATS = {"qcow2": "qcow2", "vmdk": "vmdk", "vhd": "vhd", "vhdx": "vhdx", "vdi": "vdi"}
_FORMATS |= {"iso": "iso"}


@dataclass(frozen=True)
class Location:
    """Where an image comes from.

    Attributes:
        text: as it was given.
        bucket, key: of a bundle's manifest; empty for a file.
    """

    text: str
    bucket: str = ""
    key: str = ""


def location_of(text: str) -> Location:
    """What an ``ImageLocation`` means.

    Raises:
        EC2Error: ``InvalidParameterValue``.
    """
    try:
        parts = urlsplit(text)
    except ValueError:
        raise invalid_value("ImageLocation", text) from None
    if parts.scheme in ("http", "https"):
        if not parts.netloc or len(text) > _LONGEST_URL or parts.username or parts.password:
            raise invalid_value("ImageLocation", text[:255], "It is no URL that can be fetched.")
        return Location(text)
    if "://" in text and parts.scheme != "s3":
        raise invalid_value("ImageLocation", text, "It is a manifest in S3, or an HTTP URL.")
    bucket, _, key = text.removeprefix("s3://").lstrip("/").partition("/")
    if not _BUCKET.fullmatch(bucket) or not is_plain_key(key):
        raise invalid_value("ImageLocation", text, "It is the bucket and key of a manifest.")
    return Location(text, bucket, key)


def register_bundle(
    ctx: Context,
    location: Location,
    body: Mapping[str, Any],
    noted: Mapping[str, Any],
    tags: Mapping[str, str] | None,
) -> str:
    """Make an image of a bundle.

    Args:
        ctx: the request, before its commit point.
        location: of the manifest.
        body: name and properties that the request asks for; they win over the manifest's.
        noted: what the item keeps of the request.
        tags: of the image.

    Returns:
        The image's EC2 id; its data comes later.

    Raises:
        EC2Error: S3's own error, ``InvalidManifest``, ``UnsupportedOperation``.
    """
    if not ctx.conf.x509_root_private_key:
        raise unsupported("This cloud has no key for bundles (x509_root_private_key).")
    person = caller(ctx)
    data = _read_manifest(ctx, person, location)
    try:
        manifest = parse(data)
    except BundleError as error:
        raise EC2Error("InvalidManifest", error.message) from error
    full = {**_told(ctx, manifest), **body}
    full |= {
        "disk_format": manifest.format,
        "container_format": manifest.format,
        "image_state": "pending",
    }
    ctx.commit_point()
    payload = {
        **person.noted(),
        "bucket": location.bucket,
        "key": location.key,
        "manifest": fingerprint(data),
    }

    def create(image_id: str) -> Mapping[str, Any]:
        return ctx.user.image.create_image({**full, MARK: image_id})

    def enqueue(session: Session, image_id: str, os_id: str) -> None:
        more = {"item": image_id, "image": os_id}
        work.enqueue(session, journal.BUNDLE, {**payload, **more}, key=image_id)

    return make_image(ctx, create, kind=manifest.format, noted=noted, tags=tags, then=enqueue)


def _read_manifest(ctx: Context, person: Person, location: Location) -> bytes:
    assert ctx.deputies is not None  # caller() has used it
    try:
        keys = ctx.deputies.keys(person)
        with Source(ctx.conf, keys) as source:
            return source.read(location.bucket, location.key, LARGEST)
    except S3Refusal as refusal:
        raise EC2Error(refusal.code or "AuthFailure", refusal.message, refusal.status) from refusal
    except Unauthenticated as error:
        raise Unavailable(service="identity") from error


def _told(ctx: Context, manifest: Manifest) -> dict[str, Any]:
    """What the manifest says of the image, as Glance's properties."""
    made: dict[str, Any] = {"architecture": manifest.architecture}
    if manifest.mappings:
        rows = [{"virtual": virtual, "device": device} for virtual, device in manifest.mappings]
        made["mappings"] = json.dumps(rows)
    for name, prefix, value in (
        ("kernel_id", "aki", manifest.kernel),
        ("ramdisk_id", "ari", manifest.ramdisk),
    ):
        if value and value != "true":
            item_id = ids.check_id(value, name, prefix)
            [pair] = reconcile(ctx, Images(), [item_id]).pairs
            if pair.found is None:
                raise ids.missing_ids([item_id])
            made[name] = pair.found.os_id
    return made


def register_file(
    ctx: Context,
    location: Location,
    body: Mapping[str, Any],
    noted: Mapping[str, Any],
    tags: Mapping[str, str] | None,
) -> str:
    """Make an image of a file that Glance fetches; the arguments are `register_bundle`'s."""
    ending = urlsplit(location.text).path.rpartition(".")[2].lower()
    full = {**body, "disk_format": _FORMATS.get(ending, "raw"), "container_format": "bare"}
    ctx.commit_point()

    def create(image_id: str) -> Mapping[str, Any]:
        image = ctx.user.image.create_image({**full, MARK: image_id})
        try:
            ctx.user.image.import_image(image["id"], location.text)
        except BadRequest as error:
            discard(ctx.user, image["id"])
            raise invalid_value(
                "ImageLocation", location.text[:255], "Glance does not fetch from there."
            ) from error
        except TrimaranError:
            discard(ctx.user, image["id"])
            raise
        return image

    return make_image(ctx, create, noted=noted, tags=tags)
