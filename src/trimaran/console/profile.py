"""The profile: token, session and what the front end wants to know beside them.

Upstream makes a new Keystone token and asks seven questions one after the
other for each profile (spec/skyline.md 2.5).  Here the validated token already
carries roles, regions and project, what changes seldom is remembered, and the
rest is asked in parallel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trimaran.cloud import gather
from trimaran.console import catalog
from trimaran.console.parts import Parts
from trimaran.console.schemas.login import Domain, Profile, Project, ProjectOfUser, Role, User
from trimaran.console.sessions import Session
from trimaran.identity import Token

# Upstream's package version, which the front end shows (spec/skyline.md 1.3).
VERSION = "9.0.0"


def build(
    parts: Parts,
    token: Token,
    session: Session,
    *,
    user: dict[str, Any] | None = None,
    projects: list[dict[str, Any]] | None = None,
) -> Profile:
    """Builds the profile of a session.

    Args:
        parts: Keystone, Neutron and the options.
        token: the project-scoped token.
        session: region, end and uuid.
        user: Keystone's user, when it is known already.
        projects: the user's projects, when they are known already.

    Raises:
        errors.Unauthenticated: the user is gone.
        errors.Unavailable: Keystone does not answer.
    """
    region = session.region
    has_network = token.endpoint(
        "network", region=region, interface=parts.settings.openstack.interface_type
    )
    questions: dict[str, Callable[[], Any]] = {
        "extensions": lambda: parts.extensions.names(region) if has_network else [],
        "domains": parts.domains.names,
        "user": lambda: user if user is not None else parts.identity.user(token.user_id),
        "projects": lambda: projects if projects is not None else _projects(parts, token),
    }
    answers = gather(**questions)
    stack = parts.settings.openstack
    return Profile(
        keystone_token=token.id,
        region=region,
        exp=session.exp,
        uuid=session.uuid,
        project=Project(
            id=token.project_id or "",
            name=token.project_name or "",
            domain=Domain(id=token.project_domain_id, name=token.project_domain_name),
        ),
        user=User(
            id=token.user_id,
            name=token.user_name,
            domain=Domain(id=token.user_domain_id, name=token.user_domain_name),
        ),
        roles=[Role(id=key, name=name) for key, name in token.role_pairs],
        keystone_token_exp=str(token.body["expires_at"]),
        base_domains=stack.base_domains,
        endpoints=catalog.endpoints(
            parts.identity.service_catalog(),
            region=region,
            interface=stack.interface_type,
            prefix=stack.nginx_prefix,
            mapping=stack.service_mapping,
            extensions=answers["extensions"],
        ),
        projects={item["id"]: _project(item, answers["domains"]) for item in answers["projects"]},
        default_project_id=answers["user"].get("default_project_id"),
        version=VERSION,
        regions=token.regions(stack.interface_type),
    )


def _projects(parts: Parts, token: Token) -> list[dict[str, Any]]:
    """The user's projects; a federated user has them by groups, which only he can ask for."""
    return parts.identity.user_projects(token.user_id) or parts.identity.projects(token)


def _project(item: dict[str, Any], domains: dict[str, str]) -> ProjectOfUser:
    domain_id = item.get("domain_id")
    return ProjectOfUser(
        name=item["name"],
        enabled=bool(item.get("enabled", True)),
        domain_id=domain_id,
        domain_name=domains.get(domain_id or ""),
        description=item.get("description"),
    )
