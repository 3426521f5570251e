"""Who is in the cloud: users, their roles and EC2 keys.

Names, password and keys are the same in every sandbox, so that documentation and tests
can name them; they guard nothing but a throw-away cloud on loopback.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

ROLES = (
    "admin",
    "manager",
    "member",
    "reader",
    "service",
    "creator",
    "load-balancer_member",
    "heat_stack_owner",
)
PROJECTS = {
    "demo": "The newcomer's project",
    "alt_demo": "A second project, to show that one does not see the other",
    "service": "Users of the services",
}


@dataclass(frozen=True)
class User:
    """A user of the default domain, with roles on at most one project."""

    name: str
    project: str | None
    roles: tuple[str, ...]
    enabled: bool = True


def _of_project(project: str) -> tuple[User, ...]:
    return (
        # creator: barbican's role for those who may store secrets
        User(project, project, ("member", "creator")),
        User(f"{project}_manager", project, ("manager", "member")),
        User(f"{project}_reader", project, ("reader",)),
    )


SERVICE_USERS = ("glance", "barbican", "neutron", "nova", "cinder", "placement")
# the services under test: they exist so that those need not be the cloud's admin
OWN_SERVICE_USERS = ("skyline", "ec2api", "magnum")
USERS: tuple[User, ...] = (
    *_of_project("demo"),
    *_of_project("alt_demo"),
    User("demo_lost", None, ()),
    User("demo_disabled", "demo", ("member",), enabled=False),
    *(User(name, "service", ("admin", "service")) for name in SERVICE_USERS + OWN_SERVICE_USERS),
)
# admin is admin everywhere
ADMIN_PROJECTS = ("admin", *PROJECTS)
EC2_USERS = ("demo", "alt_demo")
MAGNUM_DOMAIN, MAGNUM_DOMAIN_ADMIN = "magnum", "magnum_domain_admin"


def ec2_keys(user: str) -> tuple[str, str]:
    """The (access, secret) pair of a user."""
    access = hashlib.sha256(f"access of {user}".encode()).hexdigest()[:32]
    secret = hashlib.sha256(f"secret of {user}".encode()).hexdigest()[:32]
    return access, secret
