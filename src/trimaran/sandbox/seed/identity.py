"""Users, roles, EC2 keys and the catalog."""

from __future__ import annotations

import json
from typing import Any

import requests

from trimaran.sandbox.seed import people
from trimaran.sandbox.seed.rest import TIMEOUT, Api, login
from trimaran.sandbox.settings import PASSWORD, REGION, Settings


def catalog(settings: Settings) -> list[tuple[str, str, str]]:
    """(type, name, URL) of every service but Keystone's own entry."""
    return [
        ("image", "glance", settings.url("glance")),
        ("placement", "placement", settings.url("placement")),
        ("network", "neutron", settings.url("neutron")),
        ("compute", "nova", settings.url("nova", "/v2.1")),
        ("block-storage", "cinder", settings.url("cinder", "/v3")),
        # the older name of the same API: Skyline and many clients look for this one
        ("volumev3", "cinderv3", settings.url("cinder", "/v3/%(project_id)s")),
        ("key-manager", "barbican", settings.url("barbican")),
        *settings.own_services,
    ]


def seed(settings: Settings, check_passwords: bool = True) -> dict[str, Any]:
    """Make what is missing.

    Args:
        check_passwords: also log in as everybody, and set passwords that were changed.

    Returns:
        ``projects`` and ``user_ids`` by name.
    """
    api = Api(settings, "admin", "admin")
    try:
        roles = _roles(api)
        projects = _projects(api)
        users = _users(api, settings if check_passwords else None)
        _magnum_domain(api, roles["admin"])
        _grants(api, roles, projects, users)
        _ec2(api, projects, users)
        _catalog(api, settings)
        return {"projects": projects, "user_ids": users}
    finally:
        api.close()


def _roles(api: Api) -> dict[str, str]:
    have = {role["name"]: role["id"] for role in api.get("keystone", "/roles")["roles"]}
    for name in people.ROLES:
        if name not in have:
            have[name] = api.post("keystone", "/roles", {"role": {"name": name}})["role"]["id"]
    return have


def _projects(api: Api) -> dict[str, str]:
    found = api.get("keystone", "/projects?domain_id=default")["projects"]
    have = {project["name"]: project["id"] for project in found}
    for name, text in people.PROJECTS.items():
        if name not in have:
            body = {"project": {"name": name, "domain_id": "default", "description": text}}
            have[name] = api.post("keystone", "/projects", body)["project"]["id"]
    return have


def _users(api: Api, check: Settings | None) -> dict[str, str]:
    found = api.get("keystone", "/users?domain_id=default")["users"]
    have = {user["name"]: user for user in found}
    for user in people.USERS:
        wanted = {"name": user.name, "enabled": user.enabled}
        entry = have.get(user.name)
        if entry is None:
            wanted |= {"domain_id": "default", "password": PASSWORD}
            wanted["email"] = f"{user.name}@sandbox.test"
            have[user.name] = api.post("keystone", "/users", {"user": wanted})["user"]
        elif entry["enabled"] != user.enabled:
            api.patch("keystone", f"/users/{entry['id']}", {"user": {"enabled": user.enabled}})
        elif user.enabled and check and not _password_fits(check, user.name):
            api.patch("keystone", f"/users/{entry['id']}", {"user": {"password": PASSWORD}})
    return {name: entry["id"] for name, entry in have.items()}


def _password_fits(settings: Settings, user: str) -> bool:
    with requests.Session() as http:
        http.trust_env = False
        url = f"{settings.auth_url}/auth/tokens"
        return http.post(url, json=login(user, None), timeout=TIMEOUT).status_code == 201


def _grants(
    api: Api, roles: dict[str, str], projects: dict[str, str], users: dict[str, str]
) -> None:
    wanted = {
        (projects[user.project], users[user.name], roles[role])
        for user in people.USERS
        if user.project
        for role in user.roles
    }
    wanted |= {(projects[name], users["admin"], roles["admin"]) for name in people.ADMIN_PROJECTS}
    have = {
        (item["scope"]["project"]["id"], item["user"]["id"], item["role"]["id"])
        for item in api.get("keystone", "/role_assignments")["role_assignments"]
        if "user" in item and "project" in item["scope"]
    }
    for project, user, role in wanted - have:
        api.put("keystone", f"/projects/{project}/users/{user}/roles/{role}")


def _magnum_domain(api: Api, admin_role: str) -> None:
    """Cluster users live in a domain of their own, which one user administers."""
    name = people.MAGNUM_DOMAIN
    found = api.get("keystone", f"/domains?name={name}")["domains"]
    if found:
        domain = found[0]["id"]
    else:
        body = {"domain": {"name": name, "description": "Users and trusts of clusters"}}
        domain = api.post("keystone", "/domains", body)["domain"]["id"]
    boss = people.MAGNUM_DOMAIN_ADMIN
    known = api.get("keystone", f"/users?domain_id={domain}&name={boss}")["users"]
    if known:
        user = known[0]["id"]
    else:
        body = {"user": {"name": boss, "domain_id": domain, "password": PASSWORD}}
        user = api.post("keystone", "/users", body)["user"]["id"]
    api.put("keystone", f"/domains/{domain}/users/{user}/roles/{admin_role}")


def _ec2(api: Api, projects: dict[str, str], users: dict[str, str]) -> None:
    found = api.get("keystone", "/credentials?type=ec2")["credentials"]
    have = {json.loads(entry["blob"]).get("access") for entry in found}
    for name in people.EC2_USERS:
        access, secret = people.ec2_keys(name)
        if access not in have:
            blob = json.dumps({"access": access, "secret": secret})
            credential = {"type": "ec2", "blob": blob, "user_id": users[name]}
            credential["project_id"] = projects[name]
            api.post("keystone", "/credentials", {"credential": credential})


def _catalog(api: Api, settings: Settings) -> None:
    services = {
        (entry["type"], entry["name"]): entry["id"]
        for entry in api.get("keystone", "/services")["services"]
    }
    endpoints = {
        (entry["service_id"], entry["interface"]): entry
        for entry in api.get("keystone", "/endpoints")["endpoints"]
    }
    for kind, name, url in catalog(settings):
        service = services.get((kind, name))
        if service is None:
            body = {"service": {"type": kind, "name": name}}
            service = api.post("keystone", "/services", body)["service"]["id"]
        for interface in ("public", "internal", "admin"):
            entry = endpoints.get((service, interface))
            if entry is None:
                values = {"service_id": service, "interface": interface, "url": url}
                values["region_id"] = REGION
                api.post("keystone", "/endpoints", {"endpoint": values})
            elif entry["url"] != url:
                api.patch("keystone", f"/endpoints/{entry['id']}", {"endpoint": {"url": url}})
