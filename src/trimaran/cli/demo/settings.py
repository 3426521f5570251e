"""The configuration of the demo: the files an operator would write.

Secrets are made once and kept: a second ``make demo`` must not end the
sessions of the first.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

SERVICE_PROJECT = "service"


@dataclass(frozen=True)
class Places:
    """Where the demo keeps what.

    Args:
        root: the demo's directory.
    """

    root: Path

    @property
    def etc(self) -> Path:
        return self.root / "etc"

    @property
    def log(self) -> Path:
        return self.root / "log" / "trimaran.log"

    @property
    def pid(self) -> Path:
        return self.root / "run" / "trimaran.pid"

    @property
    def nginx(self) -> Path:
        return self.root / "run" / "nginx"

    @property
    def env(self) -> Path:
        return self.root / "env"

    @property
    def database(self) -> Path:
        return self.root / "data" / "trimaran.sqlite"

    @property
    def magnum_sandbox(self) -> Path:
        return self.root / "data" / "magnum-sandbox"

    @property
    def secrets(self) -> Path:
        return self.root / "etc" / "secrets.json"


def private(path: Path, text: str) -> None:
    """Write a file that only its owner may read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(text)


def load_secrets(places: Places, cloud: Mapping[str, Any]) -> dict[str, str]:
    """The demo's secrets: {"console", "metadata", "magnum"}; made when missing."""
    if places.secrets.exists():
        known: dict[str, str] = json.loads(places.secrets.read_text())
        return known
    made = {
        "console": secrets.token_hex(32),
        "metadata": cloud.get("metadata_secret") or secrets.token_hex(16),
        "magnum": secrets.token_hex(32),
    }
    private(places.secrets, json.dumps(made))
    return made


def console(places: Places, cloud: Mapping[str, Any], secret: str) -> str:
    """skyline.yaml of the demo."""
    content = {
        "default": {
            "database_url": f"sqlite:///{places.database}",
            "secret_key": secret,
            "log_dir": str(places.log.parent),
            "ssl_enabled": False,
            # The demo's nginx sends it, and nobody else reaches the port.
            "secure_proxy_addr_header": "X-Real-IP",
        },
        "openstack": {
            "keystone_url": cloud["auth_url"].rstrip("/") + "/",
            "system_user_name": "skyline",
            "system_user_password": cloud["password"],
            "system_project": SERVICE_PROJECT,
            "default_region": cloud["region"],
        },
        # The login page in PyPI's wheel offers the domains.
        "trimaran": {"anonymous_domains": True},
    }
    return yaml.safe_dump(content, sort_keys=False)


def _keystone(cloud: Mapping[str, Any], user: str) -> dict[str, str]:
    return {
        "auth_type": "password",
        "auth_url": cloud["auth_url"],
        "username": user,
        "password": cloud["password"],
        "project_name": SERVICE_PROJECT,
        "user_domain_name": "Default",
        "project_domain_name": "Default",
        "region_name": cloud["region"],
    }


def _ini(sections: Mapping[str, Mapping[str, str]]) -> str:
    lines: list[str] = []
    for section, options in sections.items():
        lines.append(f"[{section}]")
        lines.extend(f"{key} = {value}" for key, value in options.items())
        lines.append("")
    return "\n".join(lines)


def ec2(places: Places, cloud: Mapping[str, Any], secret: str) -> str:
    """ec2api.conf of the demo."""
    return _ini(
        {
            "DEFAULT": {
                "ec2api_listen": "127.0.0.1",
                "metadata_listen": "127.0.0.1",
                "s3_listen": "127.0.0.1",
                "my_ip": "127.0.0.1",
                "region_list": f"{cloud['region']}=127.0.0.1",
                "keystone_ec2_tokens_url": f"{cloud['auth_url']}/ec2tokens",
                "external_network": "public",
                "state_path": str(places.root / "data"),
                "buckets_path": str(places.root / "data" / "buckets"),
            },
            "database": {"connection": f"sqlite:///{places.database}"},
            "keystone_authtoken": _keystone(cloud, "ec2api"),
            "metadata": {
                "metadata_proxy_shared_secret": secret,
                "nova_metadata_port": str(cloud.get("nova_metadata_port") or 8775),
            },
        }
    )


def magnum(places: Places, cloud: Mapping[str, Any], secret: str) -> str:
    """magnum.conf of the demo."""
    return _ini(
        {
            "DEFAULT": {"transport_url": "fake://", "log_file": str(places.log)},
            "api": {"host": "127.0.0.1"},
            "database": {"connection": f"sqlite:///{places.database}"},
            "keystone_authtoken": _keystone(cloud, "magnum"),
            "keystone_auth": _keystone(cloud, "magnum"),
            "certificates": {"cert_manager_type": "x509keypair"},
            "drivers": {"disabled_drivers": "sandbox_disabled"},
            "trimaran": {"secret_keys": secret},
        }
    )


def write(places: Places, cloud: Mapping[str, Any]) -> None:
    """Write the three configuration files and make the demo's directories."""
    for directory in (
        places.log.parent,
        places.nginx,
        places.database.parent,
        places.magnum_sandbox,
    ):
        directory.mkdir(parents=True, exist_ok=True)
    known = load_secrets(places, cloud)
    private(places.etc / "skyline.yaml", console(places, cloud, known["console"]))
    private(places.etc / "ec2api.conf", ec2(places, cloud, known["metadata"]))
    private(places.etc / "magnum.conf", magnum(places, cloud, known["magnum"]))
