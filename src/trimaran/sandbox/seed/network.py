"""The external network, and for each project a private one behind a router."""

from __future__ import annotations

from typing import Any

from trimaran.sandbox.seed.rest import Api

PUBLIC_CIDR, PUBLIC_GATEWAY = "172.24.4.0/22", "172.24.4.1"
PUBLIC_POOL = {"start": "172.24.4.10", "end": "172.24.7.250"}
# A /20 each: a thousand servers on one network
PRIVATE = {
    "demo": ("private", "private-subnet", "router1", "10.0.0.0/20", "10.0.0.2"),
    "alt_demo": ("alt-private", "alt-private-subnet", "alt-router1", "10.1.0.0/20", "10.1.0.2"),
}
POOL = "shared-default-v4"


def seed(api: Api, projects: dict[str, str]) -> dict[str, Any]:
    """Make what is missing, as admin; returns the ids for the description."""
    networks, subnets, routers = (
        {item["name"]: item for item in api.get("neutron", f"/{kind}")[kind]}
        for kind in ("networks", "subnets", "routers")
    )

    def make(kind: str, known: dict[str, Any], **values: Any) -> str:
        name = values["name"]
        if name not in known:
            known[name] = api.post("neutron", f"/{kind}s", {kind: values})[kind]
        return str(known[name]["id"])

    public = make(
        "network",
        networks,
        name="public",
        is_default=True,
        **{
            "router:external": True,
            "provider:network_type": "flat",
            "provider:physical_network": "public",
        },
    )
    make(
        "subnet",
        subnets,
        name="public-subnet",
        network_id=public,
        ip_version=4,
        cidr=PUBLIC_CIDR,
        gateway_ip=PUBLIC_GATEWAY,
        enable_dhcp=False,
        allocation_pools=[PUBLIC_POOL],
    )
    pools = {pool["name"] for pool in api.get("neutron", "/subnetpools")["subnetpools"]}
    if POOL not in pools:
        values = {"name": POOL, "prefixes": ["10.96.0.0/12"], "shared": True, "is_default": True}
        api.post("neutron", "/subnetpools", {"subnetpool": values | {"default_prefixlen": 24}})
    for owner, (network_name, subnet_name, router_name, cidr, dns) in PRIVATE.items():
        project = projects[owner]
        network = make("network", networks, name=network_name, project_id=project)
        subnet = make(
            "subnet",
            subnets,
            name=subnet_name,
            project_id=project,
            network_id=network,
            ip_version=4,
            cidr=cidr,
            dns_nameservers=[dns],
        )
        router = make(
            "router",
            routers,
            name=router_name,
            project_id=project,
            external_gateway_info={"network_id": public},
        )
        ports = api.get("neutron", f"/ports?device_id={router}&network_id={network}")["ports"]
        if not ports:
            api.put("neutron", f"/routers/{router}/add_router_interface", {"subnet_id": subnet})
    return {
        kind: {name: item["id"] for name, item in known.items()}
        for kind, known in (("networks", networks), ("subnets", subnets), ("routers", routers))
    }
