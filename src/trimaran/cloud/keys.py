"""Barbican v1.

It names things by URL; the methods take and give the last part of it, so that
a row written before an endpoint moved can still be found.
"""

from __future__ import annotations

from typing import Any, ClassVar

from trimaran.cloud.client import Client
from trimaran.cloud.wire import Query, Row, segment
from trimaran.identity import remote


class Keys(Client):
    """Thin client of Barbican; ids may be given as the whole reference."""

    name: ClassVar[str] = "keys"
    version: ClassVar[str] = "/v1"
    microversion_type: ClassVar[str] = "key-manager"
    page_size: ClassVar[int | None] = 100

    def secrets(self, **query: Any) -> list[Row]:
        """Returns the descriptions of all secrets of the project."""
        return self._unique("secrets", "secret_ref", query)

    def secret(self, secret_id: str) -> Row:
        """Returns the description of a secret."""
        return self.json("GET", f"secrets/{_last(secret_id)}")

    def secret_payload(self, secret_id: str, content_type: str = "text/plain") -> bytes:
        """Returns the secret itself.

        Args:
            secret_id: id or reference.
            content_type: one of the secret's content types.
        """
        path = f"secrets/{_last(secret_id)}/payload"
        return bytes(self.request("GET", path, headers={"Accept": content_type}).content)

    def create_secret(self, body: Query) -> str:
        """Stores a secret; returns its reference."""
        return self._reference("secrets", "secret_ref", body)

    def delete_secret(self, secret_id: str) -> None:
        """Deletes a secret."""
        self.request("DELETE", f"secrets/{_last(secret_id)}")

    def containers(self, **query: Any) -> list[Row]:
        """Returns all containers of the project."""
        return self._unique("containers", "container_ref", query)

    def container(self, container_id: str) -> Row:
        """Returns one container."""
        return self.json("GET", f"containers/{_last(container_id)}")

    def create_container(self, body: Query) -> str:
        """Makes a container; returns its reference."""
        return self._reference("containers", "container_ref", body)

    def delete_container(self, container_id: str) -> None:
        """Deletes a container; its secrets stay."""
        self.request("DELETE", f"containers/{_last(container_id)}")

    def _unique(self, collection: str, key: str, query: Query) -> list[Row]:
        # Parts are counted by offset: a new item in between shows one row twice.
        rows = self.all(collection, collection, query)
        return list({row.get(key): row for row in rows}.values())

    def _reference(self, path: str, key: str, body: Query) -> str:
        reference = self.json("POST", path, json=body).get(key)
        if not isinstance(reference, str):
            raise remote.unreachable(self._service, f"the answer has no {key}")
        return reference


def _last(reference: str) -> str:
    return segment(reference.rstrip("/").rsplit("/", 1)[-1])
