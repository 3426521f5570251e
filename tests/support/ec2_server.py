"""A server that Nova's own clients made: the EC2 API has never heard of it."""

from __future__ import annotations

import base64
import contextlib
import time
import uuid
from collections.abc import Iterator
from typing import Any

from tests.support.cloud import DEMO, CloudEnv

PATIENCE = 180.0


@contextlib.contextmanager
def server_with_key(cloud: CloudEnv, user_data: bytes) -> Iterator[dict[str, Any]]:
    """An ACTIVE server of the demo project, with a key (``public_key``) and user data."""
    name = f"metadata-{uuid.uuid4().hex[:8]}"
    key = cloud.call(DEMO, "compute", "POST", "/os-keypairs", json={"keypair": {"name": name}})
    images = cloud.call(DEMO, "image", "GET", "/v2/images?name=cirros-sandbox")["images"]
    flavors = cloud.call(DEMO, "compute", "GET", "/flavors")["flavors"]
    networks = cloud.call(DEMO, "network", "GET", "/v2.0/networks?name=private")["networks"]
    body = {
        "name": name,
        "imageRef": images[0]["id"],
        "flavorRef": next(row["id"] for row in flavors if row["name"] == "m1.tiny"),
        "networks": [{"uuid": networks[0]["id"]}],
        "key_name": name,
        "user_data": base64.b64encode(user_data).decode(),
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
        yield {**row, "public_key": key["keypair"]["public_key"]}
    finally:
        cloud.call(DEMO, "compute", "DELETE", f"/servers/{made['id']}")
        cloud.call(DEMO, "compute", "DELETE", f"/os-keypairs/{name}")
