"""Keystone, Glance, Placement, Barbican."""

from __future__ import annotations

from trimaran.sandbox import keys
from trimaran.sandbox.configs.parts import Sections, common
from trimaran.sandbox.settings import Settings
from trimaran.sandbox.venv import Environment


def keystone(settings: Settings, venv: Environment) -> Sections:
    """Fernet tokens of one day, passwords hashed cheaply."""
    return common(settings, "keystone") | {
        "token": {"provider": "fernet", "expiration": 86400},
        "fernet_tokens": {
            "key_repository": keys.directory(settings, "fernet"),
            "max_active_keys": 3,
        },
        # of multi-factor logins; by default below /etc, where bootstrap makes it as root
        "fernet_receipts": {
            "key_repository": keys.directory(settings, "fernet"),
            "max_active_keys": 3,
        },
        "credential": {"key_repository": keys.directory(settings, "credential")},
        # bcrypt at its default cost takes 0.2 s of CPU for each password check
        "identity": {"password_hash_rounds": 4},
        "cache": {"enabled": "true", "backend": "dogpile.cache.memory"},
        "resource": {"list_limit": 1000},
    }


def glance(settings: Settings, venv: Environment) -> Sections:
    """One file store."""
    sections = common(settings, "glance")
    staging = settings.path("data", "glance", "staging")
    sections["DEFAULT"] |= {
        "enabled_backends": "file:file",
        "worker_self_reference_url": settings.url("glance"),
        "node_staging_uri": f"file://{staging}",
        "show_multiple_locations": "false",
    }
    return sections | {
        "glance_store": {"default_backend": "file"},
        "file": {"filesystem_store_datadir": settings.path("data", "glance", "images")},
        "os_glance_staging_store": {"filesystem_store_datadir": staging},
        "os_glance_tasks_store": {
            "filesystem_store_datadir": settings.path("data", "glance", "tasks")
        },
        "paste_deploy": {
            "flavor": "keystone",
            "config_file": venv.etc("glance", "glance-api-paste.ini"),
        },
    }


def placement(settings: Settings, venv: Environment) -> Sections:
    """Its database section has a name of its own."""
    sections = common(settings, "placement")
    sections["placement_database"] = sections.pop("database")
    return sections | {"api": {"auth_strategy": "keystone"}}


def barbican(settings: Settings, venv: Environment) -> Sections:
    """Secrets encrypted with a fixed key: tests only."""
    sections = common(settings, "barbican")
    sections["DEFAULT"] |= {
        "host_href": settings.url("barbican"),
        "sql_connection": settings.database_url("barbican"),
        "db_auto_create": "false",
    }
    return sections | {
        "secretstore": {
            "enable_multiple_secret_stores": "false",
            "enabled_secretstore_plugins": "store_crypto",
        },
        "crypto": {"enabled_crypto_plugins": "simple_crypto"},
        "simple_crypto_plugin": {"kek": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="},
        "queue": {"enable": "false"},
    }
