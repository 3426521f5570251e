"""What clients read: clouds.yaml, openrc files and the machine-readable sandbox.json."""

from __future__ import annotations

import json
import shlex
from typing import Any

import yaml

from trimaran.sandbox import postgresql
from trimaran.sandbox.places import write_file
from trimaran.sandbox.problem import SandboxError
from trimaran.sandbox.seed import people
from trimaran.sandbox.settings import PASSWORD, REGION, Settings
from trimaran.sandbox.venv import Environment

SHORT_NAMES = {"admin": "admin", "demo": "demo", "alt": "alt_demo"}


def user_projects() -> dict[str, str | None]:
    """Every user of the default domain with the project it works in."""
    return {"admin": "admin"} | {user.name: user.project for user in people.USERS}


def exports(settings: Settings, venv: Environment, who: str) -> str:
    """Shell lines that make the environment of a user.

    Args:
        who: admin, demo, alt, or the name of any other user.

    Raises:
        SandboxError: there is no such user.
    """
    user = SHORT_NAMES.get(who, who)
    projects = user_projects()
    if user not in projects:
        raise SandboxError(f"There is no user {who}: choose from {', '.join(sorted(projects))}.")
    values = {
        "OS_AUTH_TYPE": "password",
        "OS_AUTH_URL": settings.auth_url,
        "OS_USERNAME": user,
        "OS_PASSWORD": PASSWORD,
        "OS_USER_DOMAIN_NAME": "Default",
        "OS_REGION_NAME": REGION,
        "OS_IDENTITY_API_VERSION": "3",
        "OS_INTERFACE": "public",
        "OS_CLIENT_CONFIG_FILE": str(settings.path("clouds.yaml")),
        "TRIMARAN_SANDBOX": str(settings.state),
    }
    if project := projects[user]:
        values |= {"OS_PROJECT_NAME": project, "OS_PROJECT_DOMAIN_NAME": "Default"}
    if user in people.EC2_USERS:
        access, secret = people.ec2_keys(user)
        values |= {
            "AWS_ACCESS_KEY_ID": access,
            "AWS_SECRET_ACCESS_KEY": secret,
            "AWS_DEFAULT_REGION": REGION,
            "EC2_URL": {kind: url for kind, _, url in settings.own_services}["ec2"],
        }
    gone = ["OS_CLOUD", "OS_TOKEN", "OS_SYSTEM_SCOPE", "OS_PROJECT_ID", "OS_TENANT_NAME"]
    lines = [f"unset {' '.join(gone)}"]
    lines += [f"export {key}={shlex.quote(value)}" for key, value in values.items()]
    # last on the PATH: the services' environment must not hide the caller's programs
    lines.append(f'export PATH="$PATH:"{shlex.quote(str(venv.path / "bin"))}')
    return "\n".join(lines) + "\n"


def clouds(settings: Settings) -> dict[str, Any]:
    """The content of clouds.yaml."""
    result: dict[str, Any] = {}
    for short, user in SHORT_NAMES.items():
        result[f"sandbox-{short}"] = _cloud(settings, user) | {}
        result[f"sandbox-{short}"]["auth"] |= {
            "project_name": user,
            "project_domain_name": "Default",
        }
    result["sandbox-system"] = _cloud(settings, "admin")
    result["sandbox-system"]["auth"]["system_scope"] = "all"
    return {"clouds": result}


def _cloud(settings: Settings, user: str) -> dict[str, Any]:
    return {
        "region_name": REGION,
        "identity_api_version": 3,
        "auth": {
            "auth_url": settings.auth_url,
            "username": user,
            "password": PASSWORD,
            "user_domain_name": "Default",
        },
    }


def write_client_files(settings: Settings, venv: Environment) -> None:
    """Write clouds.yaml and the openrc files."""
    text = yaml.safe_dump(clouds(settings), sort_keys=False)
    write_file(settings.path("clouds.yaml"), text, 0o600)
    for short in SHORT_NAMES:
        write_file(settings.path(f"openrc.{short}"), exports(settings, venv, short), 0o600)


def description(settings: Settings, venv: Environment, ids: dict[str, Any]) -> dict[str, Any]:
    """The content of sandbox.json.

    Args:
        ids: what seeding found or made: projects, user_ids, images, flavors, networks,
            subnets, routers, ebs.
    """
    users: dict[str, dict[str, Any]] = {}
    roles = {user.name: list(user.roles) for user in people.USERS} | {"admin": ["admin"]}
    for name, project in user_projects().items():
        users[name] = {
            "id": ids["user_ids"][name],
            "password": PASSWORD,
            "domain": "Default",
            "project": project,
            "project_id": ids["projects"].get(project),
            "roles": roles[name],
        }
    ec2 = {}
    for name in people.EC2_USERS:
        access, secret = people.ec2_keys(name)
        ec2[name] = {
            "access": access,
            "secret": secret,
            "user_id": users[name]["id"],
            "project_id": users[name]["project_id"],
        }
    metadata = "nova-metadata" in settings.extras
    return {
        "format": 1,
        "state": str(settings.state),
        "base_port": settings.base_port,
        "region": REGION,
        "auth_url": settings.auth_url,
        "urls": {name: settings.url(name) for name in settings.apis},
        "password": PASSWORD,
        "users": users,
        "projects": ids["projects"],
        "roles": list(people.ROLES),
        "service_project": "service",
        "service_users": list(people.OWN_SERVICE_USERS),
        "magnum_domain": {
            "name": people.MAGNUM_DOMAIN,
            "admin": people.MAGNUM_DOMAIN_ADMIN,
            "password": PASSWORD,
        },
        "ec2": ec2,
        "services": {kind: url for kind, _, url in settings.own_services},
        "images": ids["images"],
        "ebs": ids["ebs"],
        "flavors": ids["flavors"],
        "networks": ids["networks"],
        "subnets": ids["subnets"],
        "routers": ids["routers"],
        "mysql_url": f"{settings.mysql_url}/",
        "amqp_url": settings.amqp_url,
        "postgresql_url": postgresql.url(settings) if "postgresql" in settings.extras else None,
        "nova_metadata_port": settings.port("nova-metadata") if metadata else None,
        "metadata_secret": PASSWORD,
        "openrc": {short: str(settings.path(f"openrc.{short}")) for short in SHORT_NAMES},
        "clouds_yaml": str(settings.path("clouds.yaml")),
        "venv": str(venv.path),
    }


def write_description(settings: Settings, venv: Environment, ids: dict[str, Any]) -> None:
    """Write sandbox.json, readable by its owner only: it holds passwords and keys."""
    text = json.dumps(description(settings, venv, ids), indent=1, sort_keys=True) + "\n"
    write_file(settings.path("sandbox.json"), text, 0o600)
