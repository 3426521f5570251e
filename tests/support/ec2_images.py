"""What images are made with: instances that stop and start, and Keystone's EC2 credentials."""

from __future__ import annotations

import re
from typing import Any

import requests_mock

from tests.support import keystone
from tests.support.ec2_openstack import ACCESS, MINE
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
    """

    def __init__(self, mock: requests_mock.Mocker) -> None:
        self.credential = True
        self.enabled = True
        self.expired: set[str] = set()
        self.minted = 0
        self.slow = 1
        self._left: dict[str, int] = {}
        super().__init__(mock)
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

    # -- Nova -----------------------------------------------------------------

    def _answer(self, request: Any, response: Any) -> Any:
        if request.headers["X-Auth-Token"] in self.expired:
            return self.refused(response, 401, "This token has ended.")
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
