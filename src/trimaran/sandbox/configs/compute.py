"""Nova: one compute host with a fake hypervisor large enough for a thousand servers."""

from __future__ import annotations

import os

from trimaran.sandbox.configs.parts import Sections, common, credentials
from trimaran.sandbox.settings import HOST, PASSWORD, REGION, Settings
from trimaran.sandbox.venv import Environment

QUOTAS = {
    "instances": 2000,
    "cores": 10000,
    "ram": 16 * 1024 * 1024,
    "key_pairs": 1000,
    "server_groups": 100,
    "server_group_members": 2000,
}


def nova(settings: Settings, venv: Environment) -> Sections:
    """API, conductor and scheduler."""
    sections = common(settings, "nova")
    sections["DEFAULT"] |= {
        "compute_driver": "sandbox.SandboxDriver",
        "concurrency_backend": "threading",
        "state_path": settings.path("data", "nova"),
        "instances_path": settings.path("data", "nova", "instances"),
        "my_ip": HOST,
        "allow_resize_to_same_host": "true",
        "vif_plugging_is_fatal": "false",
        "vif_plugging_timeout": 0,
        # seconds that a deleted server stays SOFT_DELETED (0: gone at once)
        "reclaim_instance_interval": os.environ.get("TRIMARAN_SANDBOX_SOFT_DELETE", "0"),
        "resume_guests_state_on_host_boot": "false",
        "flat_injected": "false",
        "enabled_apis": "osapi_compute",
        "rootwrap_config": venv.etc("nova", "rootwrap.conf"),
        "metadata_workers": 1,
        # a host that was down for a minute is usable again after its first report
        "report_interval": 5,
    }
    return sections | {
        "api": {"auth_strategy": "keystone"},
        "api_database": sections["database"] | {"connection": settings.database_url("nova_api")},
        "quota": dict(QUOTAS),
        "glance": {"region_name": REGION, "endpoint_override": settings.url("glance")},
        "placement": credentials(settings, "placement"),
        "neutron": credentials(settings, "neutron")
        | {
            "endpoint_override": settings.url("neutron"),
            "service_metadata_proxy": "true",
            "metadata_proxy_shared_secret": PASSWORD,
        },
        "cinder": credentials(settings, "cinder")
        | {"os_region_name": REGION, "catalog_info": "block-storage:cinder:publicURL"},
        "keystone": {"region_name": REGION},
        "key_manager": {
            "backend": "nova.keymgr.conf_key_mgr.ConfKeyManager",
            "fixed_key": "0" * 64,
        },
        "scheduler": {"workers": 1},
        "conductor": {"workers": 1},
        "vnc": {
            "enabled": "true",
            "novncproxy_base_url": f"http://{HOST}:6080/vnc_auto.html",
        },
        "os_vif_ovs": {"ovsdb_connection": f"tcp:{HOST}:1"},
    }


def nova_compute(settings: Settings, venv: Environment) -> Sections:
    """The compute host's own file.

    It must know no database: with ``[api_database]`` nova-compute tries to read all
    cells itself, and is refused.
    """
    sections = nova(settings, venv)
    return {name: options for name, options in sections.items() if not name.endswith("database")}
