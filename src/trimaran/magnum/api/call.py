"""One request as a handler sees it.

A handler that takes a ``Call`` is behind the token stage; a route without one
is public.  The call carries who asks, at which microversion, and the parts that
the process holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any

from fastapi import Depends
from starlette.requests import Request

from trimaran.cloud import CloudSession
from trimaran.db.queries.magnum import Scope
from trimaran.magnum import policies
from trimaran.magnum.api import links
from trimaran.magnum.api.microversions import Version
from trimaran.magnum.api.parts import Parts
from trimaran.policy import Context


class Call:
    """An authenticated request.

    Args:
        parts: what the process holds.
        context: the caller.
        version: the microversion asked for.
        request: the request itself.
    """

    def __init__(self, parts: Parts, context: Context, version: Version, request: Request) -> None:
        self.parts = parts
        self.context = context
        self.version = version
        self._request = request

    @cached_property
    def app_url(self) -> str:
        """Base of links."""
        return links.base(self._request)

    @cached_property
    def is_admin(self) -> bool:
        """Whether rule ``context_is_admin`` holds for the caller."""
        return self.parts.enforcer.allowed(policies.ADMIN, self.context)

    @cached_property
    def cloud(self) -> CloudSession:
        """OpenStack with the caller's token."""
        return self.parts.cloud.as_user(self.context.token)

    def authorize(self, rule: str, target: Mapping[str, Any] | None = None) -> None:
        """Lets the request go on or raises Forbidden.

        Args:
            rule: name of the rule.
            target: what it is about; None: the caller himself.
        """
        if not self._on_behalf_of_the_system(rule, target):
            self.parts.enforcer.authorize(rule, self.context, target)

    def allows(self, rule: str) -> bool:
        """Whether a rule holds for the caller himself."""
        return self._on_behalf_of_the_system(rule, None) or self.parts.enforcer.allowed(
            rule, self.context
        )

    def _on_behalf_of_the_system(self, rule: str, target: Mapping[str, Any] | None) -> bool:
        """Whether an administrator with a system-scoped token may do this (F-54).

        Rules of the API are scoped to projects.  Upstream does not see the
        token's scope and lets its administrators reach every project; so do
        we, except for what is made new, since that belongs to a project.
        """
        if not self.context.token.system_scope or rule.endswith(":create") or not self.is_admin:
            return False
        plain = replace(self.context, system_scope="")
        return self.parts.enforcer.allowed(rule, plain, target)

    def authorize_all_projects(self, rule: str) -> Scope:
        """The scope for an operation that lets administrators into every project.

        Args:
            rule: the ``*_all_projects`` rule, asked of administrators only.
        """
        if self.is_admin:
            self.authorize(rule)
        return self.scope(all_projects=self.is_admin)

    def scope(self, *, all_projects: bool = False) -> Scope:
        """Which rows the caller may see.

        Args:
            all_projects: every project's.
        """
        return Scope(
            project_id=self.context.project_id,
            user_id=self.context.user_id,
            all_projects=all_projects,
            is_admin=self.is_admin,
        )


async def _call(request: Request) -> Call:
    # It waits for nothing, so it needs no thread of its own.
    parts: Parts = request.app.state.parts
    return Call(
        parts,
        request.state.context,
        request.state.version,
        request,
    )


Authenticated = Annotated[Call, Depends(_call)]
