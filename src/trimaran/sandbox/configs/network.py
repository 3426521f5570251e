"""Neutron: ML2 with a mechanism driver that binds every port at once, no agents."""

from __future__ import annotations

from trimaran.sandbox.configs.parts import Sections, common, credentials
from trimaran.sandbox.settings import Settings
from trimaran.sandbox.venv import Environment

_PLUGINS = (
    "router",
    "qos",
    "trunk",
    "metering",
    "port_forwarding",
    "conntrack_helper",
    "network_segment_range",
    "vpnaas",
    "sandbox_drivers.neutron_sandbox.SandboxAgents",
)
# Large enough for a thousand instances in one project, finite so that quota pages and
# quota errors have a number.
QUOTAS = {
    "quota_network": 1000,
    "quota_subnet": 1000,
    "quota_port": 5000,
    "quota_router": 200,
    "quota_floatingip": 1000,
    "quota_security_group": 1000,
    "quota_security_group_rule": 10000,
}


def neutron(settings: Settings, venv: Environment) -> Sections:
    """All type drivers, the service plugins Skyline's panels show, large quotas."""
    sections = common(settings, "neutron")
    sections["DEFAULT"] |= {
        "core_plugin": "ml2",
        "service_plugins": ",".join(_PLUGINS),
        "api_paste_config": venv.etc("neutron", "api-paste.ini"),
        "auth_strategy": "keystone",
        "state_path": settings.path("data"),
        "allow_overlapping_ips": "true",
        "dns_domain": "sandbox.test.",
        "notify_nova_on_port_status_changes": "false",
        "notify_nova_on_port_data_changes": "true",
        "api_workers": 1,
        "rpc_workers": 0,
    }
    provider = "neutron_vpnaas.services.vpn.service_drivers.ipsec.IPsecVPNDriver"
    return sections | {
        "ml2": {
            "type_drivers": "flat,vlan,vxlan,geneve,gre,local",
            "tenant_network_types": "vxlan",
            "project_network_types": "vxlan",
            "mechanism_drivers": "sandbox",
            "extension_drivers": "port_security,qos,dns_domain_ports",
            "path_mtu": 1500,
        },
        "ml2_type_flat": {"flat_networks": "*"},
        "ml2_type_vlan": {"network_vlan_ranges": "physnet1:100:999"},
        "ml2_type_vxlan": {"vni_ranges": "1:9999"},
        "ml2_type_geneve": {"vni_ranges": "10000:19999"},
        "ml2_type_gre": {"tunnel_id_ranges": "20000:29999"},
        "securitygroup": {"enable_security_group": "true"},
        "quotas": dict(QUOTAS),
        "service_providers": {"service_provider": f"VPN:sandbox:{provider}:default"},
        "nova": credentials(settings, "nova"),
        "placement": credentials(settings, "placement"),
    }
