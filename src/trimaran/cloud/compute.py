"""Nova.

Asked with one microversion that gives servers with their flavor embedded and
partial rows when a cell is down; an older Nova gets the newest it has.
"""

from __future__ import annotations

from typing import Any, ClassVar

from trimaran.cloud.client import Client
from trimaran.cloud.wire import Query, Row, segment, wrap


class Compute(Client):
    """Thin client of Nova."""

    name: ClassVar[str] = "compute"
    version: ClassVar[str] = "/v2.1"
    # 2.47 embeds the flavor, 2.69 answers when a cell is down, 2.79 tells
    # delete_on_termination of attached volumes.
    microversion: ClassVar[str | None] = "2.79"

    def servers(self, *, microversion: str | None = None, **query: Any) -> list[Row]:
        """Returns all servers with details that the filters let through.

        Filters: Nova's (``all_tenants``, ``project_id``, ``name``, ``status``…);
        ``limit`` is the size of a part.
        """
        return self.all("servers/detail", "servers", query, microversion=microversion)

    def server(self, server_id: str, *, microversion: str | None = None) -> Row:
        """Returns one server."""
        return self._one("servers", "server", server_id, microversion=microversion)

    def update_server(self, server_id: str, body: Query, *, microversion: str | None = None) -> Row:
        """Changes a server."""
        return self._update("servers", "server", server_id, body, microversion=microversion)

    def create_server(self, body: Query, *, microversion: str | None = None) -> Row:
        """Makes servers.

        Args:
            body: the attributes, or a document with ``server`` and siblings
                (``os:scheduler_hints``).
            microversion: from 2.37 on ``networks`` is required.

        Returns:
            ``id``, ``links``… of the first, or ``reservation_id`` if asked for.
        """
        answer = self.json("POST", "servers", json=wrap("server", body), microversion=microversion)
        server = answer.get("server", answer)
        return server if isinstance(server, dict) else {}

    def delete_server(self, server_id: str) -> None:
        """Deletes a server; Nova does the work later."""
        self._delete("servers", server_id)

    def action(self, server_id: str, body: Query, *, microversion: str | None = None) -> Row:
        """Does an action, ``{"os-stop": None}``.

        Returns:
            The answer's object, {} for most actions.
        """
        path = f"servers/{segment(server_id)}/action"
        return self.json("POST", path, json=body, microversion=microversion)

    def create_image(self, server_id: str, body: Query) -> str:
        """Makes an image of a server; returns the image's id."""
        return str(self.action(server_id, {"createImage": dict(body)})["image_id"])

    def console_output(self, server_id: str, length: int | None = None) -> str:
        """Returns the last lines of a server's console."""
        body: Row = {} if length is None else {"length": length}
        return str(self.action(server_id, {"os-getConsoleOutput": body}).get("output") or "")

    def server_password(self, server_id: str) -> str:
        """Returns the administrator's password as the guest encrypted it, or ""."""
        answer = self.json("GET", f"servers/{segment(server_id)}/os-server-password")
        return str(answer.get("password") or "")

    def set_metadata(self, server_id: str, metadata: Query) -> Row:
        """Adds to or changes the metadata of a server; returns all of it."""
        path = f"servers/{segment(server_id)}/metadata"
        return self._inner(self.json("POST", path, json={"metadata": dict(metadata)}), "metadata")

    def delete_metadata(self, server_id: str, key: str) -> None:
        """Removes one key of a server's metadata."""
        self._delete(f"servers/{segment(server_id)}/metadata", key)

    def server_interfaces(self, server_id: str) -> list[Row]:
        """Returns the ports of a server as Nova knows them."""
        path = f"servers/{segment(server_id)}/os-interface"
        return self.all(path, "interfaceAttachments", {})

    def attach_interface(self, server_id: str, body: Query) -> Row:
        """Plugs a port (``port_id``) or a new one (``net_id``) into a server."""
        path = f"servers/{segment(server_id)}/os-interface"
        return self._create(path, "interfaceAttachment", body)

    def detach_interface(self, server_id: str, port_id: str) -> None:
        """Unplugs a port; Nova does the work later."""
        self._delete(f"servers/{segment(server_id)}/os-interface", port_id)

    def server_volumes(self, server_id: str) -> list[Row]:
        """Returns the volumes attached to a server."""
        path = f"servers/{segment(server_id)}/os-volume_attachments"
        return self.all(path, "volumeAttachments", {})

    def attach_volume(self, server_id: str, body: Query) -> Row:
        """Attaches a volume (``volumeId``, ``device``, ``delete_on_termination``)."""
        path = f"servers/{segment(server_id)}/os-volume_attachments"
        return self._create(path, "volumeAttachment", body)

    def update_volume_attachment(self, server_id: str, volume_id: str, body: Query) -> None:
        """Changes an attachment (``volumeId``, ``delete_on_termination``); Nova from Ussuri on."""
        path = f"servers/{segment(server_id)}/os-volume_attachments/{segment(volume_id)}"
        # 2.85 lets owners change delete_on_termination.
        self.request("PUT", path, json={"volumeAttachment": dict(body)}, microversion="2.85")

    def detach_volume(self, server_id: str, volume_id: str) -> None:
        """Detaches a volume; Nova does the work later."""
        self._delete(f"servers/{segment(server_id)}/os-volume_attachments", volume_id)

    def flavors(self, *, microversion: str | None = None, **query: Any) -> list[Row]:
        """Returns all flavors with details; administrators add ``is_public=None`` as text."""
        return self.all("flavors/detail", "flavors", query, microversion=microversion)

    def flavor(self, flavor_id: str, *, microversion: str | None = None) -> Row:
        """Returns one flavor."""
        return self._one("flavors", "flavor", flavor_id, microversion=microversion)

    def zones(self, detail: bool = False) -> list[Row]:
        """Returns the availability zones; ``detail`` (hosts) is for administrators."""
        path = "os-availability-zone/detail" if detail else "os-availability-zone"
        return self.all(path, "availabilityZoneInfo", {})

    def keypairs(self, **query: Any) -> list[Row]:
        """Returns all key pairs of the user."""
        return [row.get("keypair", row) for row in self.all("os-keypairs", "keypairs", query)]

    def keypair(self, name: str, **query: Any) -> Row:
        """Returns one key pair of the user; administrators add another's ``user_id``."""
        return self._one("os-keypairs", "keypair", name, query=query)

    def create_keypair(self, body: Query, *, microversion: str | None = None) -> Row:
        """Makes (``name``) or imports (``public_key``) a key pair."""
        return self._create("os-keypairs", "keypair", body, microversion=microversion)

    def delete_keypair(self, name: str) -> None:
        """Deletes a key pair of the user."""
        self._delete("os-keypairs", name)

    def services(self, **query: Any) -> list[Row]:
        """Returns Nova's own services (administrators)."""
        return self.all("os-services", "services", query)

    def hypervisors(self, **query: Any) -> list[Row]:
        """Returns all hypervisors with details (administrators)."""
        return self.all("os-hypervisors/detail", "hypervisors", query)

    def limits(self, **query: Any) -> Row:
        """Returns ``absolute`` and ``rate`` limits of the project."""
        return self._inner(self.json("GET", "limits", query=query), "limits")

    def quota(self, project_id: str) -> Row:
        """Returns limit, used and reserved of each resource of a project."""
        path = f"os-quota-sets/{segment(project_id)}/detail"
        return self._inner(self.json("GET", path), "quota_set")
