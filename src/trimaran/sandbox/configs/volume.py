"""Cinder: one back end that keeps each volume as a sparse file."""

from __future__ import annotations

from trimaran.sandbox.configs.parts import Sections, common, credentials
from trimaran.sandbox.settings import HOST, Settings
from trimaran.sandbox.venv import Environment


def cinder(settings: Settings, venv: Environment) -> Sections:
    """The file driver, large quotas."""
    sections = common(settings, "cinder")
    sections["DEFAULT"] |= {
        "api_paste_config": venv.etc("cinder", "api-paste.ini"),
        "resource_query_filters_file": venv.etc("cinder", "resource_filters.json"),
        "auth_strategy": "keystone",
        "state_path": settings.path("data", "cinder"),
        "my_ip": HOST,
        "enabled_backends": "sandbox",
        "default_volume_type": "sandbox",
        "image_conversion_dir": settings.path("data", "conversion"),
        "rootwrap_config": venv.etc("cinder", "rootwrap.conf"),
        "glance_api_servers": settings.url("glance"),
        "enable_force_upload": "true",
        "report_interval": 5,
        # the scheduler knows a back end only after its first report of capacity, and
        # loses the one that is sent before it listens
        "periodic_interval": 5,
        "periodic_fuzzy_delay": 0,
        "backend_stats_polling_interval": 5,
        "quota_volumes": 2000,
        "quota_snapshots": 2000,
        "quota_gigabytes": 100000,
    }
    return sections | {
        "sandbox": {
            "volume_driver": "sandbox_drivers.cinder_file.FileDriver",
            "volume_backend_name": "sandbox",
            "sandbox_volume_dir": settings.path("data", "volumes"),
        },
        "nova": credentials(settings, "nova"),
        "coordination": {
            "backend_url": f"file://{settings.path('data', 'cinder', 'coordination')}"
        },
    }
