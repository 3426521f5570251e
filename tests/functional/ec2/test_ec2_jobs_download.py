"""RegisterImage of a file that a real Glance fetches (its method ``web-download``)."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support import ec2_victims
from tests.support.cloud import DEMO, CloudEnv
from tests.support.ec2 import write_conf
from tests.support.ec2_direct import requester
from tests.support.elsewhere import led
from tests.support.own_glance import own_glance
from trimaran.db import migrate
from trimaran.ec2.kinds.images.image import describe_images
from trimaran.ec2.kinds.images.image_modify import deregister_image
from trimaran.ec2.kinds.images.image_register import register_image
from trimaran.ec2.parts import Parts

PATIENCE = 400.0
DATA = os.urandom(300_000)

Call = Callable[..., Any]


@pytest.fixture(scope="module")
def files() -> Iterator[str]:
    """A web server with one file, ``/good.raw``; its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path == "/good.raw"
            self.send_response(200 if found else 404)
            self.send_header("Content-Length", str(len(DATA) if found else 0))
            self.end_headers()
            self.wfile.write(DATA if found else b"")

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="module")
def call(cloud_env: CloudEnv, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Call]:
    """Runs an action as a request of the demo member would; Glance may fetch from here."""
    home: Path = tmp_path_factory.mktemp("download")
    url = f"sqlite:///{home}/ec2.sqlite"
    migrate.upgrade(url, "ec2")
    with own_glance(cloud_env.state, home) as glance:
        parts: Parts = ec2_victims.parts_of(write_conf(home, cloud_env, url))
        with led({"image": glance.removeprefix("http://")}):
            yield requester(parts, cloud_env)
        parts.close()


def ended(call: Call, image_id: str) -> dict[str, Any]:
    """The image as it is shown when it is pending no more."""
    deadline = time.monotonic() + PATIENCE
    while True:
        [found] = call(describe_images, ImageIds=[image_id])["Images"]
        if found["State"] != "pending":
            return dict(found)
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_a_file_becomes_an_image(call: Call, files: str, cloud_env: CloudEnv) -> None:
    name, location = f"fetched-{uuid.uuid4().hex[:8]}", f"{files}/good.raw"
    image_id = call(register_image, Name=name, ImageLocation=location)["ImageId"]
    shown = ended(call, image_id)
    assert (shown["State"], shown["Name"], shown["Public"]) == ("available", name, False)
    assert shown["ImageLocation"] == location
    [row] = cloud_env.call(DEMO, "image", "GET", f"/v2/images?name={name}")["images"]
    assert (row["disk_format"], row["container_format"], row["size"]) == ("raw", "bare", len(DATA))
    assert row["owner"] == cloud_env.session(DEMO).get_project_id()
    stored = cloud_env.session(DEMO).get(
        f"/v2/images/{row['id']}/file",
        endpoint_filter={"service_type": "image", "interface": "public"},
    )
    assert stored.content == DATA
    call(deregister_image, ImageId=image_id)


def test_a_file_that_is_not_there_fails_the_image(call: Call, files: str) -> None:
    image_id = call(register_image, Name="absent", ImageLocation=f"{files}/absent.raw")["ImageId"]
    assert ended(call, image_id)["State"] == "failed"
    call(deregister_image, ImageId=image_id)
