"""RegisterImage of a bundle, and CopyImage: our S3, Glance, PostgreSQL, and processes that die."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import _database
from tests.support import ec2_victims
from tests.support.cloud import DEMO, CloudEnv
from tests.support.ec2 import keys_of, running, write_conf
from tests.support.ec2_bundle import Bundle, bundle, other_key, write_pem
from tests.support.ec2_direct import requester
from tests.support.ec2_jobs import jobs_of
from tests.support.ec2_moments import BUNDLE
from tests.support.ports import free_port
from tests.support.processes import Fleet
from trimaran.db import migrate
from trimaran.db.models import work as states
from trimaran.ec2 import journal
from trimaran.ec2.kinds.images.image import describe_images
from trimaran.ec2.kinds.images.image_copy import copy_image
from trimaran.ec2.kinds.images.image_modify import deregister_image
from trimaran.ec2.kinds.images.image_register import register_image
from trimaran.ec2.parts import Parts
from trimaran.ec2.protocol.errors import EC2Error

PATIENCE = 400.0
IMAGE = os.urandom(2_000_000)
LOCATION = "images/image.manifest.xml"

Call = Callable[..., Any]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bundles")


@pytest.fixture(scope="module")
def files(home: Path) -> Path:
    """Where the parts of bundles lie."""
    made = home / "parts"
    made.mkdir()
    return made


@pytest.fixture(scope="module")
def conf(cloud_env: CloudEnv, home: Path, files: Path) -> Iterator[Path]:
    port = free_port()
    options = {
        "s3_listen_port": port,
        "s3_url": f"http://127.0.0.1:{port}",
        "x509_root_private_key": write_pem(home),
        "image_decryption_dir": files,
    }
    for url in _database("postgresql", home):
        migrate.upgrade(url, "ec2")
        yield write_conf(home, cloud_env, url, **options)


@pytest.fixture(scope="module")
def parts(conf: Path) -> Iterator[Parts]:
    made = ec2_victims.parts_of(conf)
    yield made
    made.close()


@pytest.fixture(scope="module")
def s3(conf: Path, parts: Parts, cloud_env: CloudEnv) -> Iterator[Any]:
    with running("ec2-s3", conf, parts.conf.s3_listen_port) as daemon:
        client = daemon.client(keys_of(cloud_env), "s3", s3={"addressing_style": "path"})
        client.create_bucket(Bucket="images")
        yield client


@pytest.fixture(scope="module")
def call(parts: Parts, s3: Any, cloud_env: CloudEnv) -> Call:
    return requester(parts, cloud_env)


def put(s3: Any, made: Bundle) -> None:
    for key, data in made.objects().items():
        s3.put_object(Bucket="images", Key=key, Body=data)


def shown(call: Call, image_id: str) -> dict[str, Any]:
    [found] = call(describe_images, ImageIds=[image_id])["Images"]
    made: dict[str, Any] = found
    return made


def finish(conf: Path, parts: Parts, *kinds: str, die_at: str = "") -> None:
    """Has jobs done, after the death of one process where there is one to die."""
    with Fleet() as fleet:
        successor = fleet.start(ec2_victims.work, str(conf), "")
        victim = fleet.start(ec2_victims.work, str(conf), die_at) if die_at else None
        fleet.until(lambda _: len(fleet.named("ready")) == len(fleet.children), PATIENCE)
        if victim is not None:
            victim.say("work")
            victim.process.join(PATIENCE)
            assert victim.process.exitcode == -9, "the moment never came"
        successor.say("work")
        deadline = time.monotonic() + PATIENCE
        while any(j.state in states.UNFINISHED for k in kinds for j in jobs_of(parts.db, k)):
            assert time.monotonic() < deadline
            time.sleep(0.2)
        successor.say("stop")
        fleet.until(lambda _: fleet.named("stopped"), PATIENCE)


def data_of(cloud: CloudEnv, image: dict[str, Any]) -> bytes:
    response = cloud.session(DEMO).get(
        f"/v2/images/{image['id']}/file",
        endpoint_filter={"service_type": "image", "interface": "public"},
    )
    return bytes(response.content)


def image_named(cloud: CloudEnv, name: str) -> dict[str, Any]:
    [found] = cloud.call(DEMO, "image", "GET", f"/v2/images?name={name}")["images"]
    made: dict[str, Any] = found
    return made


@pytest.mark.parametrize("moment", BUNDLE)
def test_a_killed_process_leaves_one_whole_image_and_no_files(
    moment: str,
    conf: Path,
    parts: Parts,
    files: Path,
    s3: Any,
    call: Call,
    cloud_env: CloudEnv,
) -> None:
    put(s3, bundle(IMAGE, part_size=500_000))
    name = f"bundle {moment} {uuid.uuid4().hex[:6]}"
    image_id = call(register_image, Name=name, ImageLocation=LOCATION)["ImageId"]
    assert shown(call, image_id)["State"] == "pending"
    finish(conf, parts, journal.BUNDLE, die_at=moment)
    assert shown(call, image_id)["State"] == "available"
    row = image_named(cloud_env, name)
    assert (row["image_state"], row["disk_format"], row["visibility"]) == (
        "available",
        "ami",
        "private",
    )
    assert row["owner"] == cloud_env.session(DEMO).get_project_id()
    assert data_of(cloud_env, row) == IMAGE
    assert list(files.iterdir()) == []
    call(deregister_image, ImageId=image_id)


def test_a_broken_bundle_fails(
    conf: Path, parts: Parts, files: Path, s3: Any, call: Call, cloud_env: CloudEnv
) -> None:
    put(s3, bundle(IMAGE, part_size=500_000, recipient=other_key()))
    name = f"broken key {uuid.uuid4().hex[:6]}"
    image_id = call(register_image, Name=name, ImageLocation=LOCATION)["ImageId"]
    finish(conf, parts, journal.BUNDLE)
    assert shown(call, image_id)["State"] == "failed"
    assert image_named(cloud_env, name)["image_state"] == "failed_decrypt"
    assert list(files.iterdir()) == []
    call(deregister_image, ImageId=image_id)
    with pytest.raises(EC2Error) as caught:
        call(register_image, Name="x", ImageLocation="images/absent.xml")
    assert (caught.value.code, caught.value.status) == ("NoSuchKey", 404)


def test_an_image_is_copied(conf: Path, parts: Parts, call: Call, cloud_env: CloudEnv) -> None:
    named = [{"Name": "name", "Values": ["cirros-sandbox"]}]
    [source] = call(describe_images, Filters=named)["Images"]
    request = {"SourceImageId": source["ImageId"], "SourceRegion": "RegionOne"}
    name = f"the copy {uuid.uuid4().hex[:6]}"
    image_id = call(copy_image, Name=name, **request)["ImageId"]
    finish(conf, parts, journal.COPY_IMAGE)
    made = shown(call, image_id)
    assert (made["State"], made["Name"], made["Public"]) == ("available", name, False)
    row = image_named(cloud_env, name)
    origin = cloud_env.call(DEMO, "image", "GET", f"/v2/images?name={source['Name']}")["images"][0]
    assert row["os_hash_value"] == origin["os_hash_value"]
    assert row["owner"] == cloud_env.session(DEMO).get_project_id()
    call(deregister_image, ImageId=image_id)


def test_a_file_that_glance_cannot_fetch(call: Call, cloud_env: CloudEnv) -> None:
    with pytest.raises(EC2Error) as caught:
        call(register_image, Name="nowhere", ImageLocation="http://127.0.0.1:1/x.qcow2")
    assert caught.value.code == "InvalidParameterValue"
    assert cloud_env.call(DEMO, "image", "GET", "/v2/images?name=nowhere")["images"] == []
