"""A Keystone token as one immutable value.

Everything a request needs to know about its caller is in the token's body, the
service catalog included; whoever holds a ``Token`` never asks Keystone again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from trimaran.identity import catalog as catalogs


@dataclass(frozen=True, eq=False)
class Token:
    """A validated token.

    ``id``, ``catalog`` and ``body`` stay out of ``repr``: a token in a log is
    a key under the door mat.

    Attributes:
        id: what goes into ``X-Auth-Token``.
        system_scope: "all" for a system-scoped token, otherwise "".
        domain_id: the domain of a domain-scoped token.
        expires_at: aware, UTC.
        catalog: Keystone's v3 catalog, unchanged.
        body: the ``token`` object as Keystone sent it; do not change it.
    """

    id: str = field(repr=False)
    user_id: str
    user_name: str
    user_domain_id: str | None
    user_domain_name: str | None
    project_id: str | None
    project_name: str | None
    project_domain_id: str | None
    project_domain_name: str | None
    domain_id: str | None
    domain_name: str | None
    system_scope: str
    roles: tuple[str, ...]
    role_ids: tuple[str, ...]
    methods: tuple[str, ...]
    expires_at: datetime
    catalog: tuple[Mapping[str, Any], ...] = field(repr=False)
    is_admin_project: bool
    trust_id: str | None
    application_credential_id: str | None
    body: Mapping[str, Any] = field(repr=False)

    @classmethod
    def from_body(cls, token_id: str, body: Mapping[str, Any]) -> Token:
        """Reads Keystone's answer.

        Args:
            token_id: value of ``X-Subject-Token``.
            body: the ``token`` object, or the document that holds it.

        Raises:
            ValueError: not a v3 token.
        """
        try:
            return cls._read(token_id, body.get("token", body))
        except (AttributeError, KeyError, TypeError) as failure:
            raise ValueError(f"not a v3 token: {failure!r}") from failure

    @classmethod
    def _read(cls, token_id: str, body: Mapping[str, Any]) -> Token:
        user = body["user"]
        user_domain = user.get("domain") or {}
        project = body.get("project") or {}
        project_domain = project.get("domain") or {}
        domain = body.get("domain") or {}
        roles = body.get("roles") or ()
        return cls(
            id=token_id,
            user_id=user["id"],
            user_name=user["name"],
            user_domain_id=user_domain.get("id"),
            user_domain_name=user_domain.get("name"),
            project_id=project.get("id"),
            project_name=project.get("name"),
            project_domain_id=project_domain.get("id"),
            project_domain_name=project_domain.get("name"),
            domain_id=domain.get("id"),
            domain_name=domain.get("name"),
            system_scope="all" if (body.get("system") or {}).get("all") else "",
            roles=tuple(role["name"] for role in roles),
            role_ids=tuple(role["id"] for role in roles),
            methods=tuple(body.get("methods") or ()),
            expires_at=_parse_time(body["expires_at"]),
            catalog=tuple(body.get("catalog") or ()),
            # Keystone leaves the member out unless an admin project is configured.
            is_admin_project=bool(body.get("is_admin_project", True)),
            trust_id=(body.get("OS-TRUST:trust") or {}).get("id"),
            application_credential_id=(body.get("application_credential") or {}).get("id"),
            body=body,
        )

    @property
    def role_pairs(self) -> Sequence[tuple[str, str]]:
        """The roles as (id, name)."""
        return tuple(zip(self.role_ids, self.roles, strict=True))

    def expires_in(self) -> float:
        """Returns seconds of life left, negative after the end."""
        return (self.expires_at - datetime.now(UTC)).total_seconds()

    def endpoint(self, service_type: str, *, region: str | None, interface: str) -> str | None:
        """Returns the URL of a service in the token's catalog, aliases tried, or None."""
        return catalogs.find_url(self.catalog, service_type, region=region, interface=interface)

    def regions(self, interface: str) -> list[str]:
        """Returns the sorted regions of the token's catalog for an interface."""
        return catalogs.regions(self.catalog, interface=interface)


def _parse_time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
