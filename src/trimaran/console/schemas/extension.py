"""Answers of the extension listings, for the documentation (spec/skyline.md 1.5).

The listings build plain dictionaries: validating thousands of rows that were
built here would cost more than building them.  A test holds both together.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

Json = dict[str, Any]


class FlavorInfo(BaseModel):
    """A server's flavor, sizes in MB (ram, swap) and GB."""

    ephemeral: int | None
    ram: int | None
    original_name: str | None
    vcpus: int | None
    extra_specs: Json | None
    swap: int | None
    disk: int | None


class Server(BaseModel):
    """A server with the names of what it is made of."""

    id: str
    origin_data: Json
    project_name: str | None
    image: str | None
    image_name: str | None
    image_os_distro: str | None
    fixed_addresses: list[str]
    floating_addresses: list[str]
    name: str | None
    project_id: str | None
    host: str | None
    hostname: str | None
    flavor: str | None
    flavor_info: FlavorInfo | None
    status: str | None
    locked: bool | None
    created_at: str | None
    task_state: str | None
    vm_state: str | None
    power_state: int | None
    root_device_name: str | None
    metadata: Json | None


class Servers(BaseModel):
    """Servers."""

    servers: list[Server]


class RecycleServer(BaseModel):
    """A server that was deleted and can be restored until ``reclaim_timestamp``."""

    id: str
    origin_data: Json
    project_name: str | None
    image: str | None
    image_name: str | None
    image_os_distro: str | None
    fixed_addresses: list[str]
    floating_addresses: list[str]
    deleted_at: str | None
    updated_at: str | None
    reclaim_timestamp: float
    name: str | None
    project_id: str | None
    host: str | None
    hostname: str | None
    flavor: str | None
    flavor_info: FlavorInfo | None
    status: str | None


class RecycleServers(BaseModel):
    """The recycle bin."""

    recycle_servers: list[RecycleServer]


class Attachment(BaseModel):
    """Where a volume is attached."""

    id: str | None
    device: str | None
    server_id: str | None
    server_name: str | None


class Volume(BaseModel):
    """A volume with the names of the servers that it is attached to."""

    id: str
    origin_data: Json
    project_name: str | None
    attachments: list[Attachment]
    name: str | None
    project_id: str | None
    host: str | None
    snapshot_id: str | None
    source_volid: str | None
    size: int | None
    status: str | None
    volume_type: str | None
    encrypted: bool | None
    bootable: str | None
    multiattach: bool | None
    availability_zone: str | None
    created_at: str | None


class Volumes(BaseModel):
    """A part of the volumes, and how many there are."""

    count: int
    volumes: list[Volume]


class ChildVolume(BaseModel):
    """A volume made from a snapshot."""

    volume_id: str
    volume_name: str | None


class VolumeSnapshot(BaseModel):
    """A snapshot, its volume and what was made from it."""

    id: str
    origin_data: Json
    project_name: str | None
    host: str | None
    volume_name: str | None
    child_volumes: list[ChildVolume]
    name: str | None
    project_id: str | None
    size: int | None
    status: str | None
    volume_id: str | None
    created_at: str | None
    metadata: Json | None


class VolumeSnapshots(BaseModel):
    """A part of the snapshots, and how many there are."""

    count: int
    volume_snapshots: list[VolumeSnapshot]


class Port(BaseModel):
    """A port with the names of its network and server."""

    id: str
    origin_data: Json
    server_name: str | None
    network_name: str | None
    ipv4: list[str]
    ipv6: list[str]
    name: str | None
    mac_address: str | None
    project_id: str | None
    device_owner: str | None
    device_id: str | None
    status: str | None
    created_at: str | None
    network_id: str | None
    binding_vnic_type: str | None
    description: str | None
    port_security_enabled: bool | None
    qos_policy_id: str | None
    fixed_ips: list[Json] | None


class Ports(BaseModel):
    """Ports."""

    ports: list[Port]


class ComputeService(BaseModel):
    """One of Nova's services; members that it does not have are left out."""

    id: str
    binary: str | None = None
    disabled_reason: str | None = None
    host: str | None = None
    state: str | None = None
    status: str | None = None
    updated_at: str | None = None
    forced_down: bool | None = None
    zone: str | None = None


class ComputeServices(BaseModel):
    """Nova's services."""

    services: list[ComputeService]
