"""Turns contexts and objects into messages and back, for both ends of the queue."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from trimaran.magnum.context import RequestContext
from trimaran.magnum.objects import MagnumObject
from trimaran.magnum.rpc import envelope
from trimaran.magnum.rpc.threads import oslo_messaging


class Serializer(oslo_messaging.Serializer):
    """oslo.messaging's hook; containers are walked, everything else is passed on."""

    def serialize_context(self, context: RequestContext) -> dict[str, Any]:
        """Writes the context's members that travel."""
        return context.to_dict()

    def deserialize_context(self, context: dict[str, Any]) -> RequestContext:
        """Reads a context; members that we do not know are left out."""
        return RequestContext.from_dict(context)

    def serialize_entity(self, context: RequestContext, entity: Any) -> Any:
        """Writes one argument or result."""
        if isinstance(entity, MagnumObject):
            return envelope.pack(entity)
        if isinstance(entity, dict):
            return {key: self.serialize_entity(context, item) for key, item in entity.items()}
        if isinstance(entity, (list, tuple, set, frozenset)):
            return [self.serialize_entity(context, item) for item in entity]
        if isinstance(entity, datetime):
            return entity.isoformat()
        return entity

    def deserialize_entity(self, context: RequestContext, entity: Any) -> Any:
        """Reads one argument or result.

        Raises:
            BadRequest: an object that cannot be read.
        """
        if envelope.is_envelope(entity):
            return envelope.unpack(entity, context)
        if isinstance(entity, dict):
            return {key: self.deserialize_entity(context, item) for key, item in entity.items()}
        if isinstance(entity, list):
            return [self.deserialize_entity(context, item) for item in entity]
        return entity
