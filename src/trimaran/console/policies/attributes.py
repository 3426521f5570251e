"""What the rules see of a caller: credentials and target (spec/skyline.md 5.2).

The console asks about nothing in particular, so the target is the caller's own
in every spelling that the 16 services use.  The lists are upstream's: one attribute more may turn a
refusal into a permission, and the front end would offer what the service then
denies.  The exceptions are ``is_admin_project``, without which today's Heat has
no administrator at all (its older rules also asked for the system's scope), and
the owners of parents.  Today's Neutron lets a member make subnets in networks
of its own, where the rules that upstream carries ask for the member alone:
without the network's owner the front end has no button "Create Network".
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from trimaran.identity import Token


def credentials(
    token: Token,
    *,
    system_scope: str,
    admin_roles: Collection[str],
    reader_roles: Collection[str],
) -> dict[str, Any]:
    """Returns the left sides of checks.

    Args:
        token: the project-scoped token.
        system_scope: "all" when the user may act on the system, otherwise "".
        admin_roles: option ``openstack.system_admin_roles``.
        reader_roles: option ``openstack.system_reader_roles``.
    """
    return {
        "auth_token": token.id,
        "user_id": token.user_id,
        "project_id": token.project_id,
        "tenant_id": token.project_id,
        "domain_id": token.domain_id,
        "user_domain_id": token.user_domain_id,
        "project_domain_id": token.project_domain_id,
        "username": token.user_name,
        "project_name": token.project_name,
        "domain_name": token.domain_name,
        "user_domain_name": token.user_domain_name,
        "project_domain_name": token.project_domain_name,
        "system_scope": system_scope,
        "role_ids": list(token.role_ids),
        "roles": list(token.roles),
        "is_admin": not set(admin_roles).isdisjoint(token.roles),
        "is_admin_project": token.is_admin_project,
        "is_reader_admin": not set(reader_roles).isdisjoint(token.roles),
    }


def target(token: Token, *, enforce_new_defaults: bool) -> dict[str, Any]:
    """Returns the right sides of checks.

    Args:
        token: the project-scoped token.
        enforce_new_defaults: option ``openstack.enforce_new_defaults``, which
            Designate's rules ask for.
    """
    user, project = token.user_id, token.project_id
    user_domain, project_domain = token.user_domain_id, token.project_domain_id
    return {
        "user_id": user,
        "project_id": project,
        "enforce_new_defaults": enforce_new_defaults,
        "tenant": project,
        "tenant_id": project,
        "trust.trustor_user_id": user,
        "target.user.id": user,
        "target.user.domain_id": user_domain,
        "target.project.id": project,
        "target.project.domain_id": project_domain,
        "target.trust.trustor_user_id": user,
        "target.trust.trustee_user_id": user,
        "target.token.user_id": user,
        "target.domain.id": project_domain,
        "target.domain_id": project_domain,
        "target.credential.user_id": user,
        "target.role.domain_id": project_domain,
        "target.group.domain_id": project_domain,
        "target.limit.domain.id": project_domain,
        # A domain under a project's name: upstream's slip, kept because the
        # front end shows what follows from it (F51).
        "target.limit.project_id": project_domain,
        "target.limit.project.domain_id": project_domain,
        "network:project_id": project,
        "network:tenant_id": project,
        "ext_parent:project_id": project,
        "ext_parent:tenant_id": project,
        "security_group:project_id": project,
        "security_group:tenant_id": project,
        "target.container.project_id": project,
        "target.container.creator_id": user,
        "target.secret.project_id": project,
        "target.order.project_id": project,
        "target.secret.creator_id": user,
        "allocation.owner": project,
        "node.lessee": project,
        "node.owner": project,
        "member_id": project,
        "owner": project,
        "domain_id": project_domain,
    }
