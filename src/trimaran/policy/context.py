"""The one context object: who asks, as policy sees it.

Made from the token per request and never global.  It gives the attribute names
that the rules of all three services use, so that an operator's override file
written for any of the upstream services finds what it names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

from trimaran.identity import Token


@dataclass(frozen=True)
class Context:
    """One caller of one request.

    Attributes:
        token: the validated token.
        request_id: our id of the request.
        remote_address: the client's address.
        admin_roles: roles that make ``is_admin`` true.
        reader_roles: roles that make ``is_reader_admin`` true (console).
        system_scope: set when another token of the caller proved it (console,
            spec/skyline.md 5.2); None takes the token's own.
        extra: more credentials for the rules of one service.
    """

    token: Token
    request_id: str = ""
    remote_address: str = ""
    admin_roles: Collection[str] = ("admin",)
    reader_roles: Collection[str] = ()
    system_scope: str | None = None
    extra: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def user_id(self) -> str:
        """The user's id."""
        return self.token.user_id

    @property
    def user_name(self) -> str:
        """The user's name."""
        return self.token.user_name

    @property
    def project_id(self) -> str | None:
        """The project that the token is scoped to."""
        return self.token.project_id

    @property
    def project_name(self) -> str | None:
        """Its name."""
        return self.token.project_name

    @property
    def domain_id(self) -> str | None:
        """The domain that the token is scoped to."""
        return self.token.domain_id

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles' names."""
        return self.token.roles

    @property
    def is_admin(self) -> bool:
        """Whether one of the roles is among ``admin_roles`` (case counts)."""
        return not set(self.admin_roles).isdisjoint(self.token.roles)

    @property
    def is_reader_admin(self) -> bool:
        """Whether one of the roles is among ``reader_roles``."""
        return not set(self.reader_roles).isdisjoint(self.token.roles)

    @cached_property
    def own_target(self) -> Mapping[str, Any]:
        """The target of questions that are about no other thing: the caller's own."""
        return MappingProxyType({"project_id": self.project_id, "user_id": self.user_id})

    @cached_property
    def _credentials(self) -> dict[str, Any]:
        token = self.token
        scope = token.system_scope if self.system_scope is None else self.system_scope
        credentials = {
            "auth_token": token.id,
            "user_id": token.user_id,
            "user_name": token.user_name,
            "username": token.user_name,
            # Magnum's context calls the user's *name* "user" (spec/magnum.md 3).
            "user": token.user_name,
            "user_domain_id": token.user_domain_id,
            "user_domain_name": token.user_domain_name,
            "project_id": token.project_id,
            "project": token.project_id,
            "tenant_id": token.project_id,
            "tenant": token.project_id,
            "project_name": token.project_name,
            "project_domain_id": token.project_domain_id,
            "project_domain_name": token.project_domain_name,
            "domain_id": token.domain_id,
            "domain_name": token.domain_name,
            "system_scope": scope,
            "roles": list(token.roles),
            "role_ids": list(token.role_ids),
            "is_admin": self.is_admin,
            "is_reader_admin": self.is_reader_admin,
            "is_admin_project": token.is_admin_project,
            "request_id": self.request_id,
            "remote_address": self.remote_address,
            **self.extra,
        }
        if scope:
            # oslo.policy's own name for it, which scope checks use.
            credentials["system"] = scope
        return credentials

    def credentials(self) -> dict[str, Any]:
        """Returns the attributes of the caller by the names that rules use.

        The same object each time; it must not be changed.
        """
        return self._credentials
