"""Which volume type of Cinder a request means, and what this cloud cannot give.

A type that Cinder has goes by its name.  EC2's own names (``gp3``...) that the
operator made no type for mean "as usual": Cinder's default type, shown under
the name that was asked for, so that terraform sees what it wrote.  Encryption
and multi-attach are properties of Cinder's types: a fitting type is chosen, or
the request is refused; nothing that was asked for is ignored (F54).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trimaran.cloud import gather
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.volumes.volume_kind import TYPE
from trimaran.ec2.protocol.errors import invalid_value, unsupported
from trimaran.ec2.reconcile_kind import as_admin
from trimaran.errors import NotFound

#: AWS's volume types: where this cloud has none of the name, Cinder's default is meant.
AWS_TYPES = frozenset({"standard", "gp2", "gp3", "io1", "io2", "st1", "sc1"})

#: What no type of Cinder promises to a caller (spec ec2.md 9.3).
_REFUSED = (
    "Iops",
    "KmsKeyId",
    "OutpostArn",
    "Operator",
    "Throughput",
    "VolumeInitializationRate",
)

Request = Mapping[str, Any]


@dataclass(frozen=True)
class Choice:
    """A volume type.

    Attributes:
        name: Cinder's name, or None for its default.
        alias: EC2's name under which it was asked for, or "".
    """

    name: str | None = None
    alias: str = ""

    def noted(self, actual: Any) -> dict[str, Any]:
        """What an item's blob says about it, given the type that the volume really has."""
        return {TYPE: {"alias": self.alias, "name": actual}} if self.alias else {}


def refuse_promises(request: Request) -> None:
    """Refuse parameters that would be a lie to accept.

    Raises:
        EC2Error: ``UnsupportedOperation``.
    """
    for name in _REFUSED:
        # 0 and "" promise nothing; Terraform's provider sends an Iops of 0 with another type.
        if request.get(name):
            raise unsupported(f"The parameter {name} is not supported by this cloud's volumes.")


def alias_of(asked: str, known: Container[str], parameter: str = "VolumeType") -> str:
    """EC2's own name of a type where it means Cinder's default, or "" for a type of Cinder.

    Args:
        asked: the name in the request.
        known: the names of Cinder's types.
        parameter: where it stands in the request.

    Raises:
        EC2Error: ``InvalidParameterValue`` for a type that nobody knows.
    """
    if asked in known:
        return ""
    if asked not in AWS_TYPES:
        raise invalid_value(parameter, asked, "Unknown volume type.")
    return asked


def names_type(request: Request) -> bool:
    """Whether a request says anything about the type, so that the types have to be listed."""
    return any(request.get(name) for name in ("VolumeType", "Encrypted", "MultiAttachEnabled"))


def choose_type(
    ctx: Context,
    request: Request,
    types: Sequence[Mapping[str, Any]],
    *,
    encrypted: bool = False,
) -> Choice:
    """The volume type for a request.

    Args:
        ctx: the request's context.
        request: with ``VolumeType``, ``Encrypted``, ``MultiAttachEnabled``.
        types: Cinder's types.
        encrypted: the volume will be encrypted whatever its type.

    Raises:
        EC2Error: ``InvalidParameterValue`` for an unknown type,
            ``UnsupportedOperation`` when no type does what is asked for.
    """
    asked = request.get("VolumeType") or ""
    secret = bool(request.get("Encrypted")) and not encrypted
    shared = bool(request.get("MultiAttachEnabled"))
    if not (asked or secret or shared):
        return Choice()
    rows = {row["name"]: row for row in types}
    alias = alias_of(asked, rows) if asked else ""
    candidates = [rows[asked]] if asked in rows else [rows[name] for name in sorted(rows)]
    if shared:
        candidates = [row for row in candidates if _is_shared(row)]
    if secret:
        candidates = _encrypted(ctx, candidates)
    if not candidates:
        wishes = [word for word, wish in (("encrypted", secret), ("multi-attach", shared)) if wish]
        raise unsupported(f"No volume type of this cloud offers {' and '.join(wishes)} volumes.")
    if alias and not (secret or shared):
        return Choice(None, alias)
    return Choice(candidates[0]["name"], alias)


def _is_shared(row: Mapping[str, Any]) -> bool:
    # One of the few extra specs that Cinder shows to everybody.
    text = str((row.get("extra_specs") or {}).get("multiattach") or "")
    return text.lower().replace(" ", "") == "<is>true"


def _encrypted(ctx: Context, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those with an encryption specification, which only an administrator may see."""
    thunks = {row["id"]: as_admin(_encryption(ctx, row["id"]), service="volume") for row in rows}
    told = gather(**thunks)
    return [row for row in rows if told[row["id"]].get("provider")]


def _encryption(ctx: Context, type_id: str) -> Callable[[], Mapping[str, Any]]:
    def read() -> Mapping[str, Any]:
        try:
            return ctx.admin.volume.type_encryption(type_id)
        except NotFound:
            return {}

    return read
