"""Identities out of configuration.

The option names are keystoneauth's and keystonemiddleware's, as every
OpenStack operator writes them in ``[keystone_authtoken]``.  A password becomes
the plain v3 plugin, not the generic one, which would discover versions before
each first authentication and guess when Keystone is away.
"""

from __future__ import annotations

import os
from typing import Any

from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import loading
from keystoneauth1.identity import generic, v3
from keystoneauth1.identity.base import BaseIdentityPlugin

from trimaran.config.common import Own
from trimaran.config.common import own as own_of
from trimaran.errors import ConfigError
from trimaran.identity.keystone import Identity
from trimaran.identity.rest import v3_url

_PASSWORD_OPTIONS = (
    "user_id",
    "username",
    "user_domain_id",
    "user_domain_name",
    "password",
    "project_id",
    "project_name",
    "project_domain_id",
    "project_domain_name",
    "domain_id",
    "domain_name",
    "system_scope",
    "trust_id",
)


def from_password(
    *,
    auth_url: str,
    username: str,
    password: str,
    project_name: str,
    user_domain_name: str = "Default",
    project_domain_name: str = "Default",
    own: Own,
    region: str | None = None,
    interface: str = "public",
    verify: bool | str = True,
    cert: str | tuple[str, str] | None = None,
    ec2_tokens_url: str | None = None,
) -> Identity:
    """Makes an identity of a service user given by name and password."""
    auth = v3.Password(
        auth_url=v3_url(auth_url),
        username=username,
        password=password,
        user_domain_name=user_domain_name,
        project_name=project_name,
        project_domain_name=project_domain_name,
    )
    return Identity(
        auth,
        own=own,
        region=region,
        interface=interface,
        verify=verify,
        cert=cert,
        ec2_tokens_url=ec2_tokens_url,
    )


def from_conf(
    conf: Any,
    group: str = "keystone_authtoken",
    *,
    own: Own | None = None,
    region: str | None = None,
    interface: str | None = None,
    ec2_tokens_url: str | None = None,
) -> Identity:
    """Makes an identity of an oslo.config group.

    Args:
        conf: loaded configuration.
        group: group with keystoneauth's plugin and session options.
        own: the deck's options; taken from ``conf`` when None.
        region: wins over the group's ``region_name``.
        interface: wins over the group's ``interface``.
        ec2_tokens_url: see ``Identity``.

    Raises:
        ConfigError: no usable credentials; names the group.
    """
    loading.register_auth_conf_options(conf, group)
    loading.register_session_conf_options(conf, group)
    try:
        auth = loading.load_auth_from_conf_options(conf, group)
    except ks_exceptions.ClientException as failure:
        raise ConfigError(f"[{group}]: {failure}") from failure
    if isinstance(auth, generic.Password):
        auth = _v3_password(conf[group], group)
    if not isinstance(auth, BaseIdentityPlugin):
        raise ConfigError(f"[{group}] auth_type is missing or makes no token (use password)")
    options = conf[group]
    for name in ("cafile", "certfile", "keyfile"):
        path = getattr(options, name)
        if path and not os.path.exists(path):
            raise ConfigError(f"[{group}] {name}: there is no file {path}")
    certificate = options.certfile
    if certificate and options.keyfile:
        certificate = (certificate, options.keyfile)
    return Identity(
        auth,
        own=own or own_of(conf),
        region=region or _text(options, "region_name"),
        interface=interface or _text(options, "interface") or "internal",
        verify=False if options.insecure else options.cafile or True,
        cert=certificate or None,
        ec2_tokens_url=ec2_tokens_url,
    )


def _v3_password(options: Any, group: str) -> v3.Password:
    values = {name: _text(options, name) for name in _PASSWORD_OPTIONS}
    if not _text(options, "auth_url"):
        raise ConfigError(f"[{group}] auth_url is missing")
    if values["project_id"] or values["project_name"]:
        # As keystoneauth's generic plugin: a project wins over a domain to scope to.
        values["domain_id"] = values["domain_name"] = None
    for kind in ("user", "project"):
        if not values[f"{kind}_domain_id"] and not values[f"{kind}_domain_name"]:
            values[f"{kind}_domain_id"] = _text(options, "default_domain_id")
            values[f"{kind}_domain_name"] = _text(options, "default_domain_name")
    return v3.Password(auth_url=v3_url(options.auth_url), **values)


def _text(options: Any, name: str) -> str | None:
    value = options.get(name) if hasattr(options, "get") else getattr(options, name, None)
    return str(value) if value else None
