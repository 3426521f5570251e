"""What a console login needs of Keystone.

Plain v3 requests instead of keystoneauth plugins: the console must see
Keystone's own words (spec/skyline.md 1.4 lists the texts that the front end
searches for), the receipt of a second factor, and must not pay for discovery.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import requests

from trimaran import errors
from trimaran.identity import remote
from trimaran.identity.rest import Rest, our_fault, read_token
from trimaran.identity.token import Token

RECEIPT_HEADER = "Openstack-Auth-Receipt"


class MoreMethodsRequired(remote.RemoteUnauthenticated):
    """The password was right; Keystone wants another factor too.

    Attributes:
        receipt: to be sent with the next factor; "" when Keystone gave none.
        methods: what has been accepted so far.
        required: sets of methods, any of which is enough.
    """

    receipt: str = ""
    methods: tuple[str, ...] = ()
    required: tuple[tuple[str, ...], ...] = ()


class Login(Rest):
    """Authentication of people, in steps that a hull puts in order.

    All methods raise ``errors.Unauthenticated`` (with Keystone's text in
    ``message`` and ``remote_message``) when Keystone refuses the caller, and
    ``errors.Unavailable`` when it fails.  ``region`` names the Keystone to ask.
    """

    def password(
        self,
        *,
        username: str,
        password: str,
        domain_name: str | None = None,
        domain_id: str | None = None,
        scope: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        region: str | None = None,
    ) -> Token:
        """Authenticates with a password.

        Args:
            username: name in the domain.
            password: the secret.
            domain_name: the user's domain by name.
            domain_id: or by id, which wins.
            scope: v3 scope object; None lets Keystone choose (it may take the
                user's default project).
            headers: more headers (``Forwarded``).
            region: whose Keystone.

        Raises:
            MoreMethodsRequired: a second factor is needed.
        """
        user = {"name": username, "domain": _domain(domain_name, domain_id), "password": password}
        identity = {"methods": ["password"], "password": {"user": user}}
        return self._authenticate(identity, scope, headers, region)

    def totp(
        self,
        *,
        username: str,
        passcode: str,
        receipt: str,
        domain_name: str | None = None,
        domain_id: str | None = None,
        scope: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        region: str | None = None,
    ) -> Token:
        """Completes a login with a one-time code and the receipt of the first factor."""
        user = {"name": username, "domain": _domain(domain_name, domain_id), "passcode": passcode}
        identity = {"methods": ["totp"], "totp": {"user": user}}
        sent = {**(headers or {}), RECEIPT_HEADER: receipt}
        return self._authenticate(identity, scope, sent, region)

    def rescope(
        self,
        token: Token | str,
        project_id: str | None = None,
        *,
        system: bool = False,
        domain_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        region: str | None = None,
    ) -> Token:
        """Gets a token of the same user with another scope.

        Args:
            token: the token, or its id.
            project_id: the project; without it and the next two: no scope.
            system: the whole system.
            domain_id: a domain.
            headers: more headers.
            region: whose Keystone.
        """
        scope: Mapping[str, Any] | str = "unscoped"
        if project_id is not None:
            scope = {"project": {"id": project_id}}
        elif system:
            scope = {"system": {"all": True}}
        elif domain_id is not None:
            scope = {"domain": {"id": domain_id}}
        identity = {"methods": ["token"], "token": {"id": _id(token)}}
        return self._authenticate(identity, scope, headers, region)

    def projects(self, token: Token | str, *, region: str | None = None) -> list[dict[str, Any]]:
        """Returns the projects that the token's user may scope to, disabled ones included."""
        response = self.call("GET", f"{self.endpoint(region)}/auth/projects", token=_id(token))
        if response.status_code != 200:
            raise _refusal(response)
        return _list(response, "projects")

    def revoke(self, token: Token | str, *, region: str | None = None) -> None:
        """Revokes a token; one that is already gone is fine."""
        token_id = _id(token)
        response = self.call(
            "DELETE",
            f"{self.endpoint(region)}/auth/tokens",
            token=token_id,
            headers={"X-Subject-Token": token_id},
            repeatable=True,
        )
        if response.status_code not in (200, 204, 401, 404):
            raise _refusal(response)

    def user(self, user_id: str, *, region: str | None = None) -> dict[str, Any]:
        """Returns a user as Keystone describes it, asked with our service token.

        Raises:
            errors.NotFound: no such user.
        """
        found = self._as_service(f"users/{_segment(user_id)}", region).get("user")
        return found if isinstance(found, dict) else {}

    def user_projects(self, user_id: str, *, region: str | None = None) -> list[dict[str, Any]]:
        """Returns the projects of a user, asked with our service token.

        A federated user has none here; ask ``projects`` with the user's token.
        """
        found = self._as_service(f"users/{_segment(user_id)}/projects", region)
        return [item for item in found.get("projects") or () if isinstance(item, dict)]

    def project(self, project_id: str, *, region: str | None = None) -> dict[str, Any]:
        """Returns a project as Keystone describes it, asked with our service token.

        Raises:
            errors.NotFound: no such project.
        """
        found = self._as_service(f"projects/{_segment(project_id)}", region).get("project")
        return found if isinstance(found, dict) else {}

    def domains(self, *, region: str | None = None) -> list[dict[str, Any]]:
        """Returns all domains, asked with our service token."""
        found = self._as_service("domains", region)
        return [item for item in found.get("domains") or () if isinstance(item, dict)]

    def _as_service(self, path: str, region: str | None) -> dict[str, Any]:
        url = f"{self.endpoint(region)}/{path}"
        response = self.with_service_token(lambda mine: self.call("GET", url, token=mine))
        if response.status_code == 200:
            return _object(response)
        error = remote.error_from(response, service="identity")
        raise error if isinstance(error, errors.NotFound) else our_fault(error)

    def _authenticate(
        self,
        identity: Mapping[str, Any],
        scope: Mapping[str, Any] | str | None,
        headers: Mapping[str, str] | None,
        region: str | None,
    ) -> Token:
        auth: dict[str, Any] = {"identity": identity}
        if scope is not None:
            auth["scope"] = scope
        response = self.call(
            "POST", f"{self.endpoint(region)}/auth/tokens", json={"auth": auth}, headers=headers
        )
        if response.status_code in (200, 201):
            return read_token(response)
        if response.status_code == 401:
            raise _more_methods(response) or _refusal(response)
        refusal = _refusal(response)
        if response.status_code == 404:
            # So Keystone says that the token given is not (any more) valid.
            raise remote.as_unauthenticated(refusal, refusal.message)
        raise refusal


def _segment(thing_id: str) -> str:
    """An id as a part of a path; what is no id of anything is not found."""
    if thing_id in ("", ".", ".."):
        raise errors.NotFound()
    return quote(thing_id, safe="")


def _domain(name: str | None, domain_id: str | None) -> dict[str, str]:
    if domain_id is not None:
        return {"id": domain_id}
    return {"name": name} if name else {"id": "default"}


def _id(token: Token | str) -> str:
    return token if isinstance(token, str) else token.id


def _refusal(response: requests.Response) -> remote.RemoteError:
    """Keystone's refusal with Keystone's words as the message, for the front end looks for them."""
    error = remote.error_from(response, service="identity")
    if not isinstance(error, errors.Unavailable) and error.remote_message:
        error.message = error.remote_message
        error.args = (error.message,)
    return error


def _more_methods(response: requests.Response) -> MoreMethodsRequired | None:
    try:
        body = response.json()
    except ValueError:
        return None
    if not isinstance(body, dict) or "required_auth_methods" not in body:
        return None
    error = MoreMethodsRequired("Additional authentications steps required.")
    error.service = "identity"
    error.remote_status = response.status_code
    error.remote_message = error.message
    error.request_id = remote.request_id_of(response.headers)
    error.receipt = response.headers.get(RECEIPT_HEADER, "")
    error.methods = tuple((body.get("receipt") or {}).get("methods") or ())
    error.required = tuple(tuple(rule) for rule in body["required_auth_methods"] or ())
    return error


def _object(response: requests.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError as failure:
        raise remote.unreachable("identity", "the answer is not JSON") from failure
    return body if isinstance(body, dict) else {}


def _list(response: requests.Response, name: str) -> list[dict[str, Any]]:
    return [item for item in _object(response).get(name) or () if isinstance(item, dict)]
