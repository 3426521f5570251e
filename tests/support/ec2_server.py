"""A server that Nova's own clients made: the EC2 API has never heard of it."""

from __future__ import annotations

import base64
import contextlib
import time
import uuid
from collections.abc import Iterator
from typing import Any

from tests.support.cloud import DEMO, CloudEnv

PATIENCE = 300.0


@contextlib.contextmanager
def server_with_key(cloud: CloudEnv, user_data: bytes) -> Iterator[dict[str, Any]]:
    """An ACTIVE server of the demo project, with a key (``public_key``) and user data."""
    name = f"metadata-{uuid.uuid4().hex[:8]}"
    key = cloud.call(DEMO, "compute", "POST", "/os-keypairs", json={"keypair": {"name": name}})
    image = cloud.call(DEMO, "image", "GET", "/v2/images?name=cirros-sandbox")["images"][0]
    encoded = base64.b64encode(user_data).decode()
    more = {"imageRef": image["id"], "key_name": name, "user_data": encoded}
    try:
        with _server(cloud, name, **more) as row:
            yield {**row, "public_key": key["keypair"]["public_key"]}
    finally:
        cloud.call(DEMO, "compute", "DELETE", f"/os-keypairs/{name}")


@contextlib.contextmanager
def server_on_volume(cloud: CloudEnv) -> Iterator[str]:
    """An ACTIVE server of the demo project whose root is a volume; its id."""
    images = cloud.call(DEMO, "image", "GET", "/v2/images?name=cirros-sandbox")["images"]
    device = {
        "uuid": images[0]["id"],
        "source_type": "image",
        "destination_type": "volume",
        "boot_index": 0,
        "volume_size": 1,
        "delete_on_termination": True,
    }
    name = f"volume-{uuid.uuid4().hex[:8]}"
    with _server(cloud, name, block_device_mapping_v2=[device]) as row:
        yield str(row["id"])


@contextlib.contextmanager
def _server(cloud: CloudEnv, name: str, **more: Any) -> Iterator[dict[str, Any]]:
    flavors = cloud.call(DEMO, "compute", "GET", "/flavors")["flavors"]
    networks = cloud.call(DEMO, "network", "GET", "/v2.0/networks?name=private")["networks"]
    body = {
        "name": name,
        "flavorRef": next(row["id"] for row in flavors if row["name"] == "m1.tiny"),
        "networks": [{"uuid": networks[0]["id"]}],
        **more,
    }
    made = cloud.call(DEMO, "compute", "POST", "/servers", json={"server": body})["server"]
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            row = cloud.call(DEMO, "compute", "GET", f"/servers/{made['id']}")["server"]
            if row["status"] == "ACTIVE":
                break
            assert row["status"] == "BUILD", row
            assert time.monotonic() < deadline
            time.sleep(0.5)
        yield row
    finally:
        cloud.call(DEMO, "compute", "DELETE", f"/servers/{made['id']}", raise_exc=False)
