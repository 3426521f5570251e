"""The profile: token, session and what the front end wants to know beside them.

Upstream makes a new Keystone token and asks seven questions one after the
other for each profile (spec/skyline.md 2.5).  Here the validated token already
carries roles, regions and project, what changes seldom is remembered, and the
rest is asked in parallel, once in a while.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trimaran.cloud import gather
from trimaran.console import catalog
from trimaran.console.belongings import Belongings
from trimaran.console.parts import Parts
from trimaran.console.schemas.login import Domain, Profile, Project, ProjectOfUser, Role, User
from trimaran.console.sessions import Session
from trimaran.identity import Token

# Upstream's package version, which the front end shows (spec/skyline.md 1.3).
VERSION = "9.0.0"


def build(
    parts: Parts, token: Token, session: Session, *, known: Belongings | None = None
) -> Profile:
    """Builds the profile of a session.

    Args:
        parts: Keystone, Neutron and the options.
        token: the project-scoped token.
        session: region, end and uuid.
        known: what was just asked of Keystone, if it was.

    Raises:
        errors.Unauthenticated: the user is gone.
        errors.Unavailable: Keystone does not answer.
    """
    region = session.region
    questions: dict[str, Callable[[], Any]] = {
        "extensions": lambda: _extensions(parts, token, region),
        "domains": parts.domains.names,
    }
    own = known or parts.belongings.of(token.id)
    if own is None:
        # Three at a time, and then it is the slowest of them that counts.
        answers = gather(**questions, own=lambda: _asked(parts, token))
        own = known = answers["own"]
    else:
        # From memory, almost always: threads would cost more than they save.
        answers = {name: ask() for name, ask in questions.items()}
    if known is not None:
        # Not what came from memory, which would never end there.
        parts.belongings.keep(token.id, known)
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
        projects={item["id"]: _project(item, answers["domains"]) for item in own.projects},
        default_project_id=own.default_project_id,
        version=VERSION,
        regions=token.regions(stack.interface_type),
    )


def _extensions(parts: Parts, token: Token, region: str) -> list[str]:
    interface = parts.settings.openstack.interface_type
    has_network = token.endpoint("network", region=region, interface=interface)
    return parts.extensions.names(region) if has_network else []


def _asked(parts: Parts, token: Token) -> Belongings:
    answers: dict[str, Any] = gather(
        user=lambda: parts.identity.user(token.user_id),
        projects=lambda: _projects(parts, token),
    )
    return Belongings.of(answers["user"], answers["projects"])


def _projects(parts: Parts, token: Token) -> list[dict[str, Any]]:
    """The user's projects; a federated user has them by groups, which only he can ask for."""
    return parts.identity.user_projects(token.user_id) or parts.identity.projects(token)


def _project(item: Mapping[str, Any], domains: dict[str, str]) -> ProjectOfUser:
    domain_id = item.get("domain_id")
    return ProjectOfUser(
        name=item["name"],
        enabled=bool(item.get("enabled", True)),
        domain_id=domain_id,
        domain_name=domains.get(domain_id or ""),
        description=item.get("description"),
    )
