"""Ports, with the names of their networks and servers (spec/skyline.md 1.5)."""

from __future__ import annotations

import ipaddress
from functools import lru_cache, partial

from trimaran.cloud import Row
from trimaran.console.listings import joins
from trimaran.console.listings.foresight import Join, joined
from trimaran.console.listings.view import View, page_size
from trimaran.console.schemas.extension_queries import DeviceOwner, PortsQuery

# Nova writes "compute:" and the zone; a container's port looks alike.
_SERVER = "compute:"


def ports(view: View, asked: PortsQuery) -> list[Row]:
    """Returns the ports that the caller asked for, joined.

    Raises:
        errors.TrimaranError: Neutron refused or failed.
    """
    network_ids = _networks(view, asked)
    if network_ids is not None and not network_ids:
        return []
    direction = asked.sort_dirs.value if asked.sort_dirs else "asc"
    query = {
        "limit": page_size(asked.limit),
        "marker": asked.marker,
        "project_id": view.scoped(asked.project_id),
        "name": asked.name,
        "status": asked.status,
        "device_owner": asked.device_owner,
        "id": asked.uuid,
        "network_id": network_ids,
        "device_id": asked.device_id,
        # Neutron wants as many directions as keys.
        "sort_key": asked.sort_keys,
        "sort_dir": [direction] * len(asked.sort_keys) if asked.sort_keys else None,
    }

    def listed() -> tuple[int, list[Row]]:
        if asked.limit is None:
            # Without a size there is nothing to go on from: all of them, as Neutron sends them.
            rows = view.user.network.ports(**query)
        else:
            rows = view.user.network.page("ports", "ports", query).rows
        return len(rows), rows

    _, rows, found = joined(
        view,
        "ports",
        asked,
        listed,
        networks=Join(
            lambda rows: (row.get("network_id") for row in rows),
            partial(joins.network_names, view),
        ),
        servers=Join(lambda rows: map(_server, rows), partial(joins.server_names, view)),
    )
    return [_port(row, found["networks"], found["servers"]) for row in rows]


def _networks(view: View, asked: PortsQuery) -> list[str] | None:
    """The networks to filter by, None for no filter.

    Both filters hold when both are given; upstream forgets the id when several
    networks have the name (second section 10, row 4).
    """
    if asked.network_name is None:
        return None if asked.network_id is None else [asked.network_id]
    named = view.user.network.networks(name=asked.network_name, fields=["id"])
    ids = [str(row["id"]) for row in named]
    if asked.network_id is None:
        return ids
    return [asked.network_id] if asked.network_id in ids else []


def _server(row: Row) -> str | None:
    owner = str(row.get("device_owner") or "")
    if owner.startswith(_SERVER) and owner != DeviceOwner.compute_kuryr:
        return str(row.get("device_id") or "") or None
    return None


# The same networks' addresses come again with each page.
@lru_cache(maxsize=10_000)
def _version(address: str) -> int:
    try:
        return ipaddress.ip_address(address).version
    except ValueError:
        return 0


def _addresses(row: Row, version: int) -> list[str]:
    found = (str(each.get("ip_address")) for each in row.get("fixed_ips") or ())
    return [address for address in found if _version(address) == version]


def _port(row: Row, networks: dict[str, str], servers: dict[str, str]) -> Row:
    data = dict(row)
    if "admin_state_up" in row:
        data["admin_state"] = "UP" if row["admin_state_up"] else "DOWN"
    server_id = _server(row)
    return {
        "id": row["id"],
        "origin_data": data,
        "server_name": servers.get(server_id) if server_id else None,
        "network_name": networks.get(str(row.get("network_id"))),
        "ipv4": _addresses(row, 4),
        "ipv6": _addresses(row, 6),
        "name": row.get("name"),
        "mac_address": row.get("mac_address"),
        "project_id": row.get("project_id"),
        "device_owner": row.get("device_owner"),
        "device_id": row.get("device_id"),
        "status": row.get("status"),
        "created_at": row.get("created_at"),
        "network_id": row.get("network_id"),
        "binding_vnic_type": row.get("binding:vnic_type"),
        "description": row.get("description"),
        "port_security_enabled": row.get("port_security_enabled"),
        "qos_policy_id": row.get("qos_policy_id"),
        "fixed_ips": row.get("fixed_ips"),
    }
