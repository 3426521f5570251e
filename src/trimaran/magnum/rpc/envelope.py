"""Objects on the wire: the versioned envelope, exactly as upstream writes it.

Only this module knows oslo.versionedobjects.  Its field types turn values into
primitives and check them on the way in, so that a message that holds garbage
is refused here and not somewhere in a driver (spec/magnum.md section 5).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa
from oslo_versionedobjects import fields

from trimaran.db.models import base as columns
from trimaran.errors import BadRequest
from trimaran.magnum import objects

NAMESPACE = "magnum"
PREFIX = "magnum_object."

CLASSES: dict[str, type[objects.MagnumObject]] = {
    item.NAME: item
    for item in (
        objects.Certificate,
        objects.Cluster,
        objects.ClusterTemplate,
        objects.Federation,
        objects.MagnumService,
        objects.NodeGroup,
        objects.Quota,
        objects.Stats,
        objects.X509KeyPair,
    )
}


def _field(column: sa.Column[Any]) -> fields.Field:
    kind = column.type
    if column.name == "node_taints":
        return fields.Field(fields.List(fields.Dict(fields.FieldType())), nullable=True)
    if isinstance(kind, columns.JSONText):
        strings = fields.DictOfStringsField if kind.empty is dict else fields.ListOfStringsField
        return strings(nullable=True)
    if isinstance(kind, sa.Boolean):
        return fields.BooleanField(nullable=True)
    if isinstance(kind, sa.Integer):
        return fields.IntegerField(nullable=True)
    if isinstance(kind, sa.DateTime):
        return fields.DateTimeField(nullable=True)
    return fields.StringField(nullable=True)


@cache
def fields_of(name: str) -> dict[str, fields.Field]:
    """Returns the wire fields of an object class, by their names.

    Args:
        name: of the class on the wire ("Cluster").
    """
    cls = CLASSES[name]
    if cls.MODEL is not None:
        return {column.name: _field(column) for column in cls.MODEL.__table__.columns}
    kinds: dict[str, fields.Field] = {
        item: fields.StringField(nullable=True) for item in cls.FIELDS
    }
    for item in cls.FIELDS & {"created_at", "updated_at"}:
        kinds[item] = fields.DateTimeField(nullable=True)
    for item in cls.FIELDS & {"clusters", "nodes"}:
        kinds[item] = fields.IntegerField(nullable=True)
    return kinds


def pack(item: objects.MagnumObject) -> dict[str, Any]:
    """Writes an object's envelope.

    Args:
        item: the object; its unset fields stay absent.
    """
    kinds = fields_of(item.NAME)
    data: dict[str, Any] = {}
    for name in item:
        value = getattr(item, name)
        if value is not None and isinstance(kinds[name], fields.DateTimeField):
            value = kinds[name].coerce(item, name, value)
        data[name] = kinds[name].to_primitive(item, name, value)
    template = item.__dict__.get("_template")
    if template is not None:
        data["cluster_template"] = pack(template)
    return {
        f"{PREFIX}name": item.NAME,
        f"{PREFIX}namespace": NAMESPACE,
        f"{PREFIX}version": item.VERSION,
        f"{PREFIX}data": data,
        f"{PREFIX}changes": sorted(item.obj_what_changed()),
    }


def is_envelope(value: Any) -> bool:
    """Whether a value of a message is an object's envelope."""
    return isinstance(value, dict) and f"{PREFIX}name" in value and f"{PREFIX}data" in value


def _plain(value: Any) -> Any:
    """Returns plain containers: the library's own hold on to the object that they are in."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def unpack(envelope: dict[str, Any], context: Any = None) -> objects.MagnumObject:
    """Reads an object's envelope.

    A version of another minor number is accepted: fields that we do not know
    are left out, those that it lacks stay unset.

    Args:
        envelope: as ``pack`` writes it.
        context: for the object.

    Raises:
        BadRequest: an unknown class, another major version, or a field that
            holds something else than its type.
    """
    name = envelope[f"{PREFIX}name"]
    version = str(envelope.get(f"{PREFIX}version", ""))
    cls = CLASSES.get(name)
    if cls is None or envelope.get(f"{PREFIX}namespace", NAMESPACE) != NAMESPACE:
        raise BadRequest(f"Object type {name} is not supported.", code="UnsupportedObjectError")
    if version.split(".")[0] != cls.VERSION.split(".")[0]:
        raise BadRequest(
            f"Version {version} of {name} is not supported, supported version is {cls.VERSION}.",
            code="IncompatibleObjectVersion",
        )
    made = cls(context)
    kinds = fields_of(name)
    try:
        for key, value in envelope[f"{PREFIX}data"].items():
            if key == "cluster_template" and is_envelope(value):
                made.__dict__["_template"] = unpack(value, context)
            elif key in kinds:
                read = kinds[key].coerce(made, key, kinds[key].from_primitive(made, key, value))
                if isinstance(kinds[key], fields.DateTimeField) and read is not None:
                    read = read.replace(tzinfo=None)
                made.__dict__[key] = _plain(read)
    except (ValueError, TypeError, AttributeError) as problem:
        raise BadRequest(f"Object {name} cannot be read: {problem}") from problem
    changed = set(envelope.get(f"{PREFIX}changes") or ())
    made.obj_reset_changes(made.FIELDS - changed)
    return made
