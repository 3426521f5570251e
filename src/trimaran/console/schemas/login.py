"""Login, profile and configuration (spec/skyline.md 1.3 and 1.4)."""

from __future__ import annotations

from pydantic import BaseModel


class Credential(BaseModel):
    """Body of a password login; ``region`` is accepted and has no effect."""

    username: str
    password: str
    domain: str | None = None
    region: str | None = None


class Domain(BaseModel):
    """A domain."""

    id: str | None
    name: str | None


class Project(BaseModel):
    """The project of the token."""

    id: str
    name: str
    domain: Domain


class User(BaseModel):
    """The user of the token."""

    id: str
    name: str
    domain: Domain


class Role(BaseModel):
    """A role in the token."""

    id: str
    name: str


class ProjectOfUser(BaseModel):
    """A project that the user may switch to, or could if it were enabled."""

    name: str
    enabled: bool
    domain_id: str | None
    domain_name: str | None
    description: str | None


class Profile(BaseModel):
    """Who the caller is; the order of the members is the wire's."""

    keystone_token: str
    region: str
    exp: int
    uuid: str
    project: Project
    user: User
    roles: list[Role]
    keystone_token_exp: str
    base_domains: list[str] | None
    endpoints: dict[str, str] | None
    projects: dict[str, ProjectOfUser] | None
    default_project_id: str | None
    version: str
    regions: list[str] | None


class Config(BaseModel):
    """What the login page must know."""

    default_domain: str
    default_region: str
