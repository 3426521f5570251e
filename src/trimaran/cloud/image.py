"""Glance v2.

Its rows are not wrapped, its changes are JSON patches, its data is a stream,
and its listings come 25 at a time unless more are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, ClassVar

from trimaran.cloud.client import Client
from trimaran.cloud.wire import Query, Row, segment
from trimaran.identity import remote

_PATCH = "application/openstack-images-v2.1-json-patch"
_STREAM = "application/octet-stream"
_CHUNK = 1 << 20


class Image(Client):
    """Thin client of Glance."""

    name: ClassVar[str] = "image"
    version: ClassVar[str] = "/v2"
    # Glance's own upper limit (api_limit_max) cuts it where an operator set less.
    page_size: ClassVar[int | None] = 1000

    def images(self, **query: Any) -> list[Row]:
        """Returns all images that the caller may see and the filters let through.

        Filters: Glance's (``visibility``, ``owner``, ``name``, ``status``,
        properties…); ``limit`` is the size of a part.
        """
        return self.all("images", "images", query)

    def image(self, image_id: str) -> Row:
        """Returns one image."""
        return self.json("GET", f"images/{segment(image_id)}")

    def create_image(self, body: Query) -> Row:
        """Makes an image record without data."""
        return self.json("POST", "images", json=body)

    def update_image(self, image_id: str, patch: Sequence[Query]) -> Row:
        """Changes an image.

        Args:
            image_id: the image.
            patch: JSON patch operations (RFC 6902 subset of Glance).
        """
        path = f"images/{segment(image_id)}"
        return self.json("PATCH", path, json=list(patch), headers={"Content-Type": _PATCH})

    def delete_image(self, image_id: str) -> None:
        """Deletes an image."""
        self._delete("images", image_id)

    def upload_image(
        self,
        image_id: str,
        data: bytes | Iterable[bytes],
        *,
        timeout: tuple[float, float] | None = None,
    ) -> None:
        """Sends an image's data.

        Args:
            image_id: an image in state queued.
            data: bytes, a binary file, or parts that are sent as they come.
            timeout: seconds that a part may take to be sent, and seconds for the
                answer, which comes when all is stored; None for the usual ones.
        """
        limits: dict[str, Any] = {} if timeout is None else {"timeout": timeout}
        # A stream cannot be sent twice, so keystoneauth must not repeat it with a new token.
        self.request(
            "PUT",
            f"images/{segment(image_id)}/file",
            data=data,
            headers={"Content-Type": _STREAM},
            allow_reauth=False,
            **limits,
        )

    def import_image(self, image_id: str, uri: str) -> None:
        """Has Glance fetch an image's data itself (its method ``web-download``).

        Args:
            image_id: an image in state queued.
            uri: where the data is; Glance decides whether it may be asked.
        """
        method = {"name": "web-download", "uri": uri}
        self.request("POST", f"images/{segment(image_id)}/import", json={"method": method})

    def download_image(self, image_id: str) -> Iterator[bytes]:
        """Yields an image's data in parts of at most 1 MiB."""
        response = self.request(
            "GET", f"images/{segment(image_id)}/file", headers={"Accept": _STREAM}, stream=True
        )
        with closing(response):
            try:
                yield from response.iter_content(_CHUNK)
            except OSError as failure:
                raise remote.unreachable(self._service, "the data broke off") from failure

    def members(self, image_id: str) -> list[Row]:
        """Returns the projects that a shared image is shared with."""
        return self.all(f"images/{segment(image_id)}/members", "members", {})

    def add_member(self, image_id: str, project_id: str) -> Row:
        """Shares an image with a project, which still has to accept it."""
        path = f"images/{segment(image_id)}/members"
        return self.json("POST", path, json={"member": project_id})

    def update_member(self, image_id: str, project_id: str, status: str) -> Row:
        """Accepts or rejects a shared image ("accepted", "rejected", "pending")."""
        path = f"images/{segment(image_id)}/members/{segment(project_id)}"
        return self.json("PUT", path, json={"status": status})

    def remove_member(self, image_id: str, project_id: str) -> None:
        """Ends the sharing of an image with a project."""
        self._delete(f"images/{segment(image_id)}/members", project_id)
