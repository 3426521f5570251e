"""Key pairs: create, import, describe, delete (spec ec2.md 3.8).

They are Nova's, and belong to the user rather than to the project; the
database has no row of them.  Their id is therefore computed: the same for the
same key of the same user in the same project, another one when a key was
replaced under its name.  Only their tags are ours, stored under that id.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from trimaran.cloud import gather
from trimaran.db.queries import ec2_tags as tag_queries
from trimaran.db.queries.ec2_tags import Tag
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.instances import key_pair_material as material
from trimaran.ec2.kinds.item_store import shown_tags
from trimaran.ec2.kinds.tag_rules import tag_specifications
from trimaran.ec2.protocol import filters
from trimaran.ec2.protocol.errors import (
    EC2Error,
    check_length,
    invalid_value,
    missing,
    not_found,
    unsupported,
)
from trimaran.ec2.tags_shown import tags_by_item
from trimaran.errors import BadRequest, Conflict, NotFound

Request = Mapping[str, Any]

PREFIX = "key"
LONGEST_NAME = 255
#: Since then names may hold ``@`` and ``.``, and Nova makes no keys itself.
MICROVERSION = "2.92"
#: Up to so many names are asked for one by one, which also tells when each was made.
FEW = 4
_DIGITS = 17

FILTERS: filters.Table = {
    "fingerprint": "KeyFingerprint",
    "key-name": "KeyName",
    "key-pair-id": "KeyPairId",
}


def create_key_pair(ctx: Context, request: Request) -> dict[str, Any]:
    """Make a key here and give its public half to Nova; the private half is not kept."""
    name = _name(request)
    kind = request.get("KeyType") or "rsa"
    if kind not in ("rsa", "ed25519"):
        raise invalid_value("KeyType", kind, "Expected: rsa or ed25519")
    form = request.get("KeyFormat") or "pem"
    if form == "ppk":
        raise unsupported("The key format ppk is not supported.")
    if form != "pem":
        raise invalid_value("KeyFormat", form, "Expected: pem")
    tags = _tags(request)
    _ready(ctx, name)
    pair = material.generate(kind)
    return {**_store(ctx, name, pair.public, tags), "KeyMaterial": pair.private}


def import_key_pair(ctx: Context, request: Request) -> dict[str, Any]:
    """Give a public key of the caller to Nova."""
    name = _name(request)
    if not request.get("PublicKeyMaterial"):
        raise missing("PublicKeyMaterial")
    public = material.public_key(request["PublicKeyMaterial"])
    tags = _tags(request)
    _ready(ctx, name)
    return _store(ctx, name, public, tags)


def describe_key_pairs(ctx: Context, request: Request) -> dict[str, Any]:
    """The user's key pairs.  When each was made Nova tells only to those who name a few."""
    matches = filters.compile_filters(request.get("Filters"), FILTERS)
    names = list(dict.fromkeys(request.get("KeyNames") or ()))
    wanted = ids.check_ids(request.get("KeyPairIds"), "KeyPairId", PREFIX)
    rows = _rows(ctx, names if not wanted else [])
    found = {key_pair_id(ctx, row): row for row in rows}
    absent = set(names) - {row["name"] for row in rows}
    if absent:
        raise not_found("InvalidKeyPair.NotFound", "key pair", absent)
    if set(wanted) - set(found):
        raise not_found("InvalidKeyPair.NotFound", "key pair", set(wanted) - set(found))
    if names or wanted:
        found = {
            item_id: row
            for item_id, row in found.items()
            if row["name"] in names or item_id in wanted
        }
    tags = _tags_of(ctx, list(found))
    full = bool(request.get("IncludePublicKey"))
    shown = [_shown(row, item_id, tags.get(item_id), full) for item_id, row in found.items()]
    return {"KeyPairs": sorted(matches.apply(shown), key=lambda row: str(row["KeyName"]))}


def delete_key_pair(ctx: Context, request: Request) -> dict[str, Any]:
    """Delete a key pair by name or id; one that is not there counts as deleted."""
    name, item_id = request.get("KeyName"), request.get("KeyPairId")
    if not name and not item_id:
        raise missing("KeyName")
    if item_id:
        ids.check_id(item_id, "KeyPairId", PREFIX)
    rows = [
        row
        for row in _rows(ctx, [name] if name else [])
        if item_id in (None, "", key_pair_id(ctx, row))
    ]
    ctx.commit_point()
    if not rows:
        return {}
    gone = key_pair_id(ctx, rows[0])
    with contextlib.suppress(NotFound):
        ctx.user.compute.delete_keypair(rows[0]["name"])
    ctx.db.write(lambda s: tag_queries.delete_tags(s, ctx.project_id, [gone], None))
    return {"KeyPairId": gone}


def key_pair_id(ctx: Context, row: Mapping[str, Any]) -> str:
    """The id of a key pair of Nova's: computed, and stable while the key is the same."""
    parts = (ctx.project_id, ctx.user_id, row["name"], row.get("fingerprint") or "")
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return f"{PREFIX}-{digest[:_DIGITS]}"


def missing_key_pairs(ctx: Context, item_ids: Sequence[str]) -> set[str]:
    """Those of the ids that no key pair of the user has (what CreateTags wants to know)."""
    return set(item_ids) - {key_pair_id(ctx, row) for row in ctx.user.compute.keypairs()}


def _name(request: Request) -> str:
    name = str(request.get("KeyName") or "")
    if not name:
        raise missing("KeyName")
    check_length("KeyName", name, LONGEST_NAME)
    return name


def _tags(request: Request) -> dict[str, str]:
    found = tag_specifications(request.get("TagSpecifications"), ["key-pair"])
    return found.get("key-pair", {})


def _duplicate(name: str) -> EC2Error:
    return EC2Error("InvalidKeyPair.Duplicate", f"The keypair '{name}' already exists.")


def _ready(ctx: Context, name: str) -> None:
    """Ends a dry run, for which it looks whether the name is free; Nova itself says so else."""
    if ctx.dry_run and _one(ctx, name)() is not None:
        raise _duplicate(name)
    ctx.commit_point()


def _store(ctx: Context, name: str, public: str, tags: Mapping[str, str]) -> dict[str, Any]:
    body = {"name": name, "public_key": public}
    try:
        row = ctx.user.compute.create_keypair(body, microversion=MICROVERSION)
    except Conflict:
        raise _duplicate(name) from None
    except BadRequest as error:
        words = getattr(error, "remote_message", "")
        if "Keypair data is invalid" in words:
            raise material.bad_key() from None
        raise invalid_value(
            "KeyName", name, "Letters, digits, spaces, '_', '-', '.' and '@' are allowed."
        ) from None
    item_id = key_pair_id(ctx, row)

    def write(session: Session) -> None:
        # A key that Nova lost without us may have left its tags behind.
        tag_queries.delete_tags(session, ctx.project_id, [item_id], None)
        rows = [Tag(item_id, key, value) for key, value in tags.items()]
        tag_queries.set_tags(session, ctx.project_id, rows)

    ctx.db.write(write)
    return {
        "KeyPairId": item_id,
        "KeyName": row["name"],
        "KeyFingerprint": row.get("fingerprint"),
        "Tags": shown_tags(tags) or None,
    }


def _rows(ctx: Context, names: Sequence[str]) -> list[dict[str, Any]]:
    if not names or len(names) > FEW:
        return ctx.user.compute.keypairs()
    thunks = {f"key:{number}": _one(ctx, name) for number, name in enumerate(names)}
    return [row for row in gather(**thunks).values() if row is not None]


def _one(ctx: Context, name: str) -> Callable[[], dict[str, Any] | None]:
    def read() -> dict[str, Any] | None:
        try:
            row = ctx.user.compute.keypair(name)
        except (NotFound, BadRequest):
            return None
        # Nova's database may take one case of a letter for the other.
        return row if row["name"] == name else None

    return read


def _tags_of(ctx: Context, item_ids: Sequence[str]) -> dict[str, list[dict[str, str]]]:
    return tags_by_item(
        ctx.db.read(lambda s: tag_queries.tags_by_items(s, ctx.project_id, item_ids))
    )


def _shown(
    row: Mapping[str, Any], item_id: str, tags: list[dict[str, str]] | None, full: bool
) -> dict[str, Any]:
    public = row.get("public_key") or ""
    made = {
        "KeyPairId": item_id,
        "KeyName": row["name"],
        "KeyFingerprint": row.get("fingerprint"),
        "KeyType": material.type_of(public),
        "CreateTime": row.get("created_at"),
        "PublicKey": public if full else None,
        "Tags": tags,
    }
    return {name: value for name, value in made.items() if value is not None}
