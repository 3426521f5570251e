"""What the configuration files have in common."""

from __future__ import annotations

import os
from collections.abc import Mapping

from trimaran.sandbox.settings import PASSWORD, REGION, Settings

Sections = dict[str, dict[str, object]]

_TYPES = {
    "nova": "compute",
    "cinder": "block-storage",
    "neutron": "network",
    "glance": "image",
    "placement": "placement",
    "barbican": "key-manager",
}


def credentials(settings: Settings, user: str) -> dict[str, object]:
    """keystoneauth's loading options for a service user."""
    return {
        "auth_type": "password",
        "auth_url": settings.auth_url,
        "username": user,
        "password": PASSWORD,
        "project_name": "service",
        "user_domain_name": "Default",
        "project_domain_name": "Default",
        "region_name": REGION,
    }


def common(settings: Settings, service: str) -> Sections:
    """Messaging, database, token checking, locks: the same for every service."""
    sections: Sections = {
        "DEFAULT": {
            "transport_url": settings.amqp_url,
            "debug": os.environ.get("TRIMARAN_SANDBOX_DEBUG", "false"),
            "use_stderr": "true",
            "host": "sandbox",
            "rpc_response_timeout": 60,
        },
        "database": {
            "connection": settings.database_url(service),
            "max_pool_size": 5,
            "max_overflow": 20,
            "connection_recycle_time": 3600,
        },
        "oslo_concurrency": {"lock_path": settings.path("data", "lock")},
        "oslo_messaging_notifications": {"driver": "noop"},
        "oslo_messaging_rabbit": {"rpc_conn_pool_size": 10},
        "oslo_middleware": {"enable_proxy_headers_parsing": "true"},
    }
    if service in _TYPES:
        sections["keystone_authtoken"] = credentials(settings, service) | {
            "www_authenticate_uri": settings.url("keystone"),
            "service_token_roles": "service",
            "service_token_roles_required": "true",
            "service_type": _TYPES[service],
            # a revoked token lives on in each process for this long
            "token_cache_time": 10,
        }
        # cinder checks nova's service token at detach (CVE-2023-2088)
        sections["service_user"] = credentials(settings, service) | {
            "send_service_user_token": "true"
        }
    return sections


def render(sections: Mapping[str, Mapping[str, object]]) -> str:
    """The text of an oslo.config file."""
    lines = []
    for section, options in sections.items():
        lines.append(f"[{section}]")
        lines += [f"{key} = {value}" for key, value in options.items()]
        lines.append("")
    return "\n".join(lines)
