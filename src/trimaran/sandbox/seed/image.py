"""Images: public ones of several distributions, one of another project, one on a volume."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trimaran.sandbox import packages
from trimaran.sandbox.problem import SandboxError
from trimaran.sandbox.seed.rest import Api

EBS_NAME, EBS_SOURCE = "demo-ebs", "ubuntu-24.04"
VOLUME_TYPE = "sandbox"


@dataclass(frozen=True)
class Image:
    """A machine image; ``owner`` is a project's name."""

    name: str
    owner: str
    properties: dict[str, str]


IMAGES = (
    Image(
        "cirros-sandbox",
        "admin",
        {"os_distro": "cirros", "os_version": "0.6", "os_admin_user": "cirros"},
    ),
    Image(
        "ubuntu-24.04",
        "admin",
        {"os_distro": "ubuntu", "os_version": "24.04", "os_admin_user": "ubuntu"},
    ),
    Image(
        "fedora-coreos-43",
        "admin",
        {"os_distro": "fedora-coreos", "os_version": "43", "os_admin_user": "core"},
    ),
    Image(
        "debian-12-of-alt",
        "alt_demo",
        {"os_distro": "debian", "os_version": "12", "os_admin_user": "debian"},
    ),
)


def missing() -> list[str]:
    """The Debian packages needed and not installed (cinder converts images with it)."""
    return [] if packages.tool("qemu-img") else ["qemu-utils"]


def seed(api: Api, projects: dict[str, str]) -> dict[str, str]:
    """Make missing public images, as admin; returns ids by name."""
    have: dict[str, str] = {}
    for entry in api.get("glance", "/images?visibility=public&limit=500")["images"]:
        if entry["status"] == "active":
            have[entry["name"]] = entry["id"]
        elif entry["name"] in {image.name for image in IMAGES}:
            # an earlier run ended between the record and its data
            api.call("DELETE", "glance", f"/images/{entry['id']}")
    wanted = [image for image in IMAGES if image.name not in have]
    if wanted:
        data = _disk()
        for image in wanted:
            have[image.name] = _create(
                api,
                data,
                name=image.name,
                owner=projects[image.owner],
                visibility="public",
                disk_format="qcow2",
                container_format="bare",
                min_disk=1,
                min_ram=64,
                hw_rng_model="virtio",
                **image.properties,
            )
    return have


def seed_volume_image(demo: Api, source_image: str) -> dict[str, str]:
    """Make demo's image that boots from a snapshot of a volume (EC2 calls it EBS-backed).

    Returns:
        ids of ``image``, ``snapshot`` and ``volume``.
    """
    volume = _find(demo, "volumes", EBS_NAME)
    if volume is None:
        body = {"name": EBS_NAME, "size": 1, "imageRef": source_image, "volume_type": VOLUME_TYPE}
        volume = demo.post("cinder", "/volumes", {"volume": body})["volume"]["id"]
    _wait(demo, "volumes", volume)
    snapshot = _find(demo, "snapshots", EBS_NAME)
    if snapshot is None:
        body = {"name": EBS_NAME, "volume_id": volume}
        snapshot = demo.post("cinder", "/snapshots", {"snapshot": body})["snapshot"]["id"]
    _wait(demo, "snapshots", snapshot)
    images = demo.get("glance", f"/images?name={EBS_NAME}&status=active")["images"]
    if images:
        return {"image": images[0]["id"], "snapshot": snapshot, "volume": volume}
    mapping = {
        "boot_index": 0,
        "source_type": "snapshot",
        "destination_type": "volume",
        "device_name": "/dev/vda",
        "device_type": "disk",
        "disk_bus": "virtio",
        "snapshot_id": snapshot,
        "volume_size": 1,
        "delete_on_termination": True,
    }
    image = _create(
        demo,
        b"",
        name=EBS_NAME,
        visibility="private",
        disk_format="raw",
        container_format="bare",
        min_disk=1,
        os_distro="ubuntu",
        root_device_name="/dev/vda",
        bdm_v2="True",
        block_device_mapping=json.dumps([mapping]),
    )
    return {"image": image, "snapshot": snapshot, "volume": volume}


def volume_type(api: Api) -> None:
    """Make the volume type, as admin."""
    types = {entry["name"] for entry in api.get("cinder", "/types?is_public=None")["volume_types"]}
    if VOLUME_TYPE not in types:
        specs = {"volume_backend_name": "sandbox"}
        body = {"name": VOLUME_TYPE, "extra_specs": specs, "os-volume-type-access:is_public": True}
        api.post("cinder", "/types", {"volume_type": body})


def _create(api: Api, data: bytes, **values: Any) -> str:
    image = str(api.post("glance", "/images", values)["id"])
    headers = {"Content-Type": "application/octet-stream"}
    api.call("PUT", "glance", f"/images/{image}/file", data=data, headers=headers)
    return image


def _disk() -> bytes:
    """An empty 64 MiB disk as a small QCOW2 file."""
    tool = packages.tool("qemu-img")
    if tool is None:
        raise SandboxError("qemu-img is not installed (Debian package qemu-utils).")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "disk.qcow2"
        subprocess.run([tool, "create", "-q", "-f", "qcow2", str(path), "64M"], check=True)
        return path.read_bytes()


def _find(api: Api, kind: str, name: str) -> str | None:
    found = None
    for entry in api.get("cinder", f"/{kind}/detail?name={name}")[kind]:
        if entry["status"] == "error":
            # of an earlier run
            api.call("DELETE", "cinder", f"/{kind}/{entry['id']}")
        else:
            found = str(entry["id"])
    return found


def _wait(api: Api, kind: str, ident: str, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while True:
        status = api.get("cinder", f"/{kind}/{ident}")[kind[:-1]]["status"]
        if status in ("available", "in-use"):
            return
        if status.startswith("error") or time.monotonic() > end:
            raise SandboxError(
                f"The {kind[:-1]} of image {EBS_NAME} is {status}; see cinder's log."
            )
        time.sleep(0.3)
