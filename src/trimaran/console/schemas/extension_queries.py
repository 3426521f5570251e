"""What the extension listings can be asked (spec/skyline.md 1.5).

A value that is not on these lists is 422; the OpenStack services would ignore
some of them and answer with everything.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, Field


class SortDirection(StrEnum):
    """Ascending or descending."""

    asc = "asc"
    desc = "desc"


class ServerStatus(StrEnum):
    """Nova's."""

    ACTIVE = "ACTIVE"
    BUILD = "BUILD"
    ERROR = "ERROR"
    HARD_REBOOT = "HARD_REBOOT"
    MIGRATING = "MIGRATING"
    PAUSED = "PAUSED"
    REBOOT = "REBOOT"
    REBUILD = "REBUILD"
    RESCUE = "RESCUE"
    RESIZE = "RESIZE"
    SHELVED = "SHELVED"
    SHELVED_OFFLOADED = "SHELVED_OFFLOADED"
    SHUTOFF = "SHUTOFF"
    SOFT_DELETED = "SOFT_DELETED"
    SUSPENDED = "SUSPENDED"
    UNKNOWN = "UNKNOWN"


class ServerSort(StrEnum):
    """Sort keys of servers."""

    uuid = "uuid"
    display_name = "display_name"
    vm_state = "vm_state"
    locked = "locked"
    created_at = "created_at"
    host = "host"
    project_id = "project_id"


class RecycleServerSort(StrEnum):
    """Sort keys of servers in the recycle bin."""

    uuid = "uuid"
    display_name = "display_name"
    updated_at = "updated_at"
    project_id = "project_id"


class VolumeStatus(StrEnum):
    """Cinder's."""

    creating = "creating"
    available = "available"
    reserved = "reserved"
    attaching = "attaching"
    detaching = "detaching"
    in_use = "in-use"
    maintenance = "maintenance"
    deleting = "deleting"
    awaiting_transfer = "awaiting-transfer"
    error = "error"
    error_deleting = "error_deleting"
    backing_up = "backing-up"
    restoring_backup = "restoring-backup"
    error_backing_up = "error_backing-up"
    error_restoring = "error_restoring"
    error_extending = "error_extending"
    downloading = "downloading"
    uploading = "uploading"
    retyping = "retyping"
    extending = "extending"


class VolumeSort(StrEnum):
    """Sort keys of volumes."""

    id = "id"
    name_ = "name"
    size = "size"
    status = "status"
    bootable = "bootable"
    created_at = "created_at"


class SnapshotStatus(StrEnum):
    """Cinder's, written large."""

    CREATING = "CREATING"
    AVAILABLE = "AVAILABLE"
    DELETING = "DELETING"
    ERROR = "ERROR"
    ERROR_DELETING = "ERROR_DELETING"


class SnapshotSort(StrEnum):
    """Sort keys of snapshots."""

    id = "id"
    name_ = "name"
    status = "status"
    created_at = "created_at"


class PortStatus(StrEnum):
    """Neutron's."""

    ACTIVE = "ACTIVE"
    DOWN = "DOWN"
    BUILD = "BUILD"
    ERROR = "ERROR"
    N_A = "N/A"


class DeviceOwner(StrEnum):
    """What a port is for; empty for a port that nothing uses."""

    none = ""
    compute_nova = "compute:nova"
    compute_kuryr = "compute:kuryr"
    network_router_ha_interface = "network:router_ha_interface"
    network_ha_router_replicated_interface = "network:ha_router_replicated_interface"
    network_router_interface = "network:router_interface"
    network_router_gateway = "network:router_gateway"
    network_floatingip = "network:floatingip"
    network_local_ip = "network:local_ip"
    network_dhcp = "network:dhcp"
    network_router_interface_distributed = "network:router_interface_distributed"
    network_floatingip_agent_gateway = "network:floatingip_agent_gateway"
    network_router_centralized_snat = "network:router_centralized_snat"
    network_routed = "network:routed"
    network_distributed = "network:distributed"
    Octavia = "Octavia"


class PortSort(StrEnum):
    """Sort keys of ports."""

    id = "id"
    name_ = "name"
    mac_address = "mac_address"
    status = "status"
    project_id = "project_id"


class _Paged(BaseModel):
    limit: int | None = Field(None, gt=0)
    marker: str | None = None
    sort_dirs: SortDirection | None = None
    all_projects: bool = False
    project_id: str | None = None
    name: str | None = None


class ServersQuery(_Paged):
    """Of servers; ``name`` is a part of the name."""

    sort_keys: list[ServerSort] | None = None
    project_name: str | None = None
    status: ServerStatus | None = None
    host: str | None = None
    flavor_id: str | None = None
    uuid: str | None = None
    ip: str | None = None


class RecycleServersQuery(_Paged):
    """Of servers in the recycle bin."""

    sort_keys: list[RecycleServerSort] | None = None
    project_name: str | None = None
    uuid: str | None = None
    ip: str | None = None


class VolumesQuery(_Paged):
    """Of volumes."""

    sort_keys: list[VolumeSort] | None = None
    multiattach: bool | None = None
    status: VolumeStatus | None = None
    bootable: bool | None = None
    uuid: list[str] | None = None


class SnapshotsQuery(_Paged):
    """Of snapshots."""

    sort_keys: list[SnapshotSort] | None = None
    status: SnapshotStatus | None = None
    volume_id: str | None = None
    uuid: str | None = None


class PortsQuery(_Paged):
    """Of ports."""

    sort_keys: list[PortSort] | None = None
    status: PortStatus | None = None
    network_name: str | None = None
    network_id: str | None = None
    device_id: str | None = None
    device_owner: list[DeviceOwner] | None = None
    uuid: list[str] | None = None


class ComputeServicesQuery(BaseModel):
    """Of Nova's services."""

    binary: str | None = None
    host: str | None = None
