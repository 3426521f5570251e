"""What images are made with: instances that stop and start, and Keystone's EC2 credentials."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import requests_mock

from tests.support import keystone
from tests.support.ec2_openstack import ACCESS, GLANCE, MINE, TOKENS
from tests.support.ec2_workshop import Workshop

SECRET = "s3cr3t"


class Darkroom(Workshop):
    """Adds to Nova what stopping and starting do, and to Keystone the minting of tokens.

    Attributes:
        credential: Keystone has the callers' EC2 credential.
        enabled: its owner may have tokens.
        expired: token ids that no service takes any more.
        minted: how many tokens were minted.
        slow: looks at a server before a stop or a start is done.
        data: what was uploaded, by image id.
        states: what ``image_state`` was set to, in order.
        objects: what S3 has, by bucket and key.
        seen_keys: access keys that S3 was asked with.
    """

    def __init__(self, mock: requests_mock.Mocker) -> None:
        self.credential = True
        self.enabled = True
        self.expired: set[str] = set()
        self.minted = 0
        self.slow = 1
        self.data: dict[str, bytes] = {}
        self.states: list[str] = []
        self.objects: dict[str, bytes] = {}
        self.seen_keys: set[str] = set()
        self._left: dict[str, int] = {}
        super().__init__(mock)
        mock.get(re.compile(f"{re.escape(GLANCE)}/images/.*/file"), content=self._download)
        mock.get(re.compile(r"http://s3\.test/.*"), content=self._object)
        base = re.escape(keystone.URL)
        mock.get(re.compile(f"{base}/users/u1/credentials/OS-EC2/.*"), json=self._read_credential)
        mock.post(f"{keystone.URL}/ec2tokens", json=self._mint)

    # -- Keystone -------------------------------------------------------------

    def _read_credential(self, request: Any, response: Any) -> Any:
        if not self.credential:
            response.status_code = 404
            return keystone.error(404, "Could not find credential.")
        row = {"access": ACCESS, "secret": SECRET, "tenant_id": MINE, "user_id": "u1"}
        return {"credential": row}

    def _mint(self, request: Any, response: Any) -> Any:
        if not self.enabled:
            response.status_code = 401
            return keystone.error(401)
        assert request.json()["ec2Credentials"]["access"] == ACCESS
        self.minted += 1
        response.headers["X-Subject-Token"] = "minted-token"
        return keystone.token_body()

    # -- S3 and Glance --------------------------------------------------------

    def _object(self, request: Any, response: Any) -> bytes:
        self.seen_keys.add(request.headers["Authorization"].split("Credential=")[1].split("/")[0])
        key = unquote(request.url.removeprefix("http://s3.test/"))
        for pattern, status in self.fail.items():
            if re.search(pattern, request.url):
                response.status_code = status
                return b"<Error><Code>Broken</Code><Message>no &amp; no</Message></Error>"
        if key not in self.objects:
            response.status_code = 404
            return b"<Error><Code>NoSuchKey</Code><Message>gone</Message></Error>"
        return self.objects[key]

    def _download(self, request: Any, response: Any) -> bytes:
        token = request.headers["X-Auth-Token"]
        self.project, self.admin = TOKENS.get(token, "service"), token in self.keystone.valid
        image = self.images.get(request.url.split("/")[-2])
        if image is None or not self._sees(image):
            response.status_code = 404
            return b"{}"
        return self.data[image["id"]]

    def _glance(self, request: Any, response: Any, path: str) -> Any:
        image = self.images.get(path.split("/")[1]) if "/" in path else None
        if path.endswith("/import"):
            if "forbidden" in request.json()["method"]["uri"]:
                return self.refused(response, 400, "not from there")
            response.status_code = 202
            image["status"] = "importing"  # type: ignore[index]
            return None
        if path.endswith("/file") and image is not None and self._sees(image):
            if image["status"] != "queued":
                return self.refused(response, 409, "Image status transition not allowed")
            self.data[image["id"]] = request.body
            image["size"] = len(request.body)
        if request.method == "PATCH":
            self.states += [c["value"] for c in request.json() if c["path"] == "/image_state"]
        return super()._glance(request, response, path)

    # -- Nova -----------------------------------------------------------------

    def _answer(self, request: Any, response: Any) -> Any:
        if request.headers["X-Auth-Token"] in self.expired:
            return self.refused(response, 401, "This token has ended.")
        if request.url.endswith("/file") and not isinstance(request.body, bytes):
            # The data comes as it is sent; what is above it is written for JSON.
            request._request.body = b"".join(request.body or ())
        return super()._answer(request, response)

    def _nova(self, request: Any, response: Any, path: str) -> Any:
        if path.startswith("servers/") and request.method == "GET":
            self._go_on(path.split("/")[1])
        return super()._nova(request, response, path)

    def _go_on(self, server_id: str) -> None:
        server = self.servers.get(server_id)
        if server is None or not server["OS-EXT-STS:task_state"]:
            return
        self._left[server_id] -= 1
        if self._left[server_id] < 0:
            off = server["OS-EXT-STS:task_state"] == "powering-off"
            server["OS-EXT-STS:vm_state"] = "stopped" if off else "active"
            server["OS-EXT-STS:task_state"] = None

    def _own_action(self, response: Any, server: dict[str, Any], body: dict[str, Any]) -> Any:
        for action, wrong, task in (
            ("os-stop", "stopped", "powering-off"),
            ("os-start", "active", "powering-on"),
        ):
            if action in body:
                if server["OS-EXT-STS:task_state"] or server["OS-EXT-STS:vm_state"] == wrong:
                    return self.refused(response, 409, "not in this state")
                server["OS-EXT-STS:task_state"] = task
                self._left[server["id"]] = self.slow
        if "createImage" in body and server["OS-EXT-STS:task_state"]:
            return self.refused(response, 409, "busy")
        return super()._own_action(response, server, body)

    def done(self, action: str) -> int:
        """How often Nova was asked for an action."""
        return sum(action in body for _, body in self.actions)
