"""Rows 90-95 and 102-109 of the conformance checks (spec ec2.md 10): image jobs and metadata.

Daemons as an operator starts them, a project of its own, boto3, and requests
such as Neutron's agent sends.  One function a row, named by its number.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import uuid
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests
from botocore.exceptions import ClientError

from tests.support.cloud import ADMIN, ALT, CloudEnv
from tests.support.ec2 import Daemon, keys_of, running, write_conf
from tests.support.ec2_bundle import bundle, other_key, write_pem
from tests.support.ec2_tenant import Tenant, tenant, until
from tests.support.metadata_agent import agents_headers
from tests.support.nova_metadata import SECRET, nova_metadata
from tests.support.ports import free_port
from trimaran.db import Database, migrate
from trimaran.db.queries import ec2 as queries

WAIT = {"Delay": 0.4, "MaxAttempts": 800}
TYPE = "cirros256"
USER_DATA = gzip.compress(b"#!/bin/sh\nexit 0\n", mtime=0) + b"\0\xff"
META = "/latest/meta-data"
TTL = "X-aws-ec2-metadata-token-ttl-seconds"
TOKEN = "X-aws-ec2-metadata-token"

Answer = tuple[str, int]


class World:
    """Three daemons in front of a project, and its two instances."""

    def __init__(self, cloud: CloudEnv, mine: Tenant, home: Path, nova: int) -> None:
        self.cloud, self.mine = cloud, mine
        self.db_url = f"sqlite:///{home}/ec2.sqlite"
        migrate.upgrade(self.db_url, "ec2")
        self.ports = {name: free_port() for name in ("ec2api", "metadata", "s3")}
        files = home / "files"
        files.mkdir()
        self.conf = write_conf(
            home,
            cloud,
            self.db_url,
            **{f"{name}_listen_port": port for name, port in self.ports.items()},
            s3_url=f"http://127.0.0.1:{self.ports['s3']}",
            x509_root_private_key=write_pem(home),
            image_decryption_dir=files,
            metadata__metadata_proxy_shared_secret=SECRET,
            metadata__nova_metadata_port=nova,
            # A dead process's jobs are taken over after that.
            trimaran__work_lease_seconds=6,
        )
        self.stack = contextlib.ExitStack()
        self.api = self.start("ec2-api", "ec2api")
        self.metadata = self.start("ec2-metadata", "metadata")
        self.s3_daemon = self.start("ec2-s3", "s3")

    def start(self, command: str, name: str) -> Daemon:
        return self.stack.enter_context(running(command, self.conf, self.ports[name]))

    def kill_and_restart_api(self) -> None:
        workers = psutil.Process(self.api.process.pid).children(recursive=True)
        self.api.kill()
        for each in workers:
            each.kill()
        self.api = self.start("ec2-api", "ec2api")

    @property
    def ec2(self) -> Any:
        return self.api.client(self.mine.keys)

    def wait(self, waiter: str, **arguments: Any) -> None:
        self.ec2.get_waiter(waiter).wait(WaiterConfig=WAIT, **arguments)

    def image(self, image_id: str) -> dict[str, Any]:
        return dict(self.ec2.describe_images(ImageIds=[image_id])["Images"][0])

    def server(self, instance_id: str) -> dict[str, Any]:
        """Nova's server of an instance."""
        return self.mine.servers()[instance_id]

    def actions(self, instance_id: str) -> list[str]:
        """What Nova was asked to do with an instance, newest first."""
        path = f"/servers/{self.server(instance_id)['id']}/os-instance-actions"
        return [row["action"] for row in self.mine.nova("GET", path)["instanceActions"]]

    @cached_property
    def public_image(self) -> str:
        images = self.ec2.describe_images(ExecutableUsers=["all"])["Images"]
        return str(next(r["ImageId"] for r in images if r["RootDeviceType"] == "instance-store"))

    def launch(self, image_id: str, **more: Any) -> str:
        answer = self.ec2.run_instances(
            ImageId=image_id, InstanceType=TYPE, MinCount=1, MaxCount=1, **more
        )
        made = str(answer["Instances"][0]["InstanceId"])
        self.wait("instance_running", InstanceIds=[made])
        return made

    @cached_property
    def instance(self) -> str:
        """A running instance whose root is no volume, with user data."""
        return self.launch(self.public_image, UserData=USER_DATA)

    @cached_property
    def ebs_instance(self) -> str:
        """A running instance whose root is a volume."""
        image = self.mine.glance("GET", "images?name=cirros-sandbox")["images"][0]
        body = {"size": 1, "imageRef": image["id"]}
        volume = self.mine.cinder("POST", "/volumes", json={"volume": body})["volume"]
        look = lambda: self.mine.cinder("GET", f"/volumes/{volume['id']}")["volume"]  # noqa: E731
        until(lambda: look()["status"] == "available")
        [row] = self.ec2.describe_volumes()["Volumes"]
        snapshot_id = self.ec2.create_snapshot(VolumeId=row["VolumeId"])["SnapshotId"]
        self.wait("snapshot_completed", SnapshotIds=[snapshot_id])
        root = {"DeviceName": "/dev/vda", "Ebs": {"SnapshotId": snapshot_id}}
        image_id = self.ec2.register_image(
            Name="ebs", RootDeviceName="/dev/vda", BlockDeviceMappings=[root]
        )["ImageId"]
        self.wait("image_available", ImageIds=[image_id])
        return self.launch(image_id)

    def ask(self, path: str, method: str = "GET", **changed: str | None) -> requests.Response:
        """A request of the instance's guest through the agent; None leaves a header out."""
        server_id = self.server(self.instance)["id"]
        headers: dict[str, str | None] = dict(
            agents_headers(server_id, self.mine.project.id, SECRET)
        )
        headers |= {name.replace("_", "-"): value for name, value in changed.items()}
        sent = {name: value for name, value in headers.items() if value is not None}
        return requests.request(method, self.metadata.url + path, headers=sent, timeout=120)


def refused(call: Any, **arguments: Any) -> Answer:
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    response = caught.value.response
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]


@pytest.fixture(scope="module")
def w(cloud_env: CloudEnv, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    home: Path = tmp_path_factory.mktemp("conformance-jobs")
    with tenant(cloud_env) as mine, nova_metadata(cloud_env.state, home) as nova:
        made = World(cloud_env, mine, home, nova)
        with made.stack:
            yield made


# -- images -------------------------------------------------------------------


def test_row_90_create_image_of_a_running_instance(w: World) -> None:
    instance = w.ebs_instance
    image_id = w.ec2.create_image(InstanceId=instance, Name="backup", Description="é")["ImageId"]
    assert w.image(image_id)["State"] == "pending"
    w.wait("image_available", ImageIds=[image_id])
    until(lambda: w.actions(instance)[0] == "start")
    assert w.actions(instance)[:3] == ["start", "createImage", "stop"]
    w.wait("instance_running", InstanceIds=[instance])
    image = w.image(image_id)
    assert (image["Name"], image["Description"]) == ("backup", "é")


def test_row_91_the_api_dies_meanwhile(w: World) -> None:
    instance = w.ebs_instance
    before = w.actions(instance).count("stop")
    image_id = w.ec2.create_image(InstanceId=instance, Name="killed")["ImageId"]
    until(lambda: w.actions(instance).count("stop") > before)
    w.kill_and_restart_api()
    w.wait("image_available", ImageIds=[image_id])
    w.wait("instance_running", InstanceIds=[instance])
    assert [row["name"] for row in w.mine.images()].count("killed") == 1


def test_row_92_create_image_without_a_volume_as_root(w: World) -> None:
    answer = refused(w.ec2.create_image, InstanceId=w.instance, Name="none")
    assert answer == ("InvalidParameterValue", 400)


def test_row_93_attributes_of_a_foreign_image(w: World) -> None:
    look = {"ImageId": w.public_image}
    call = w.ec2.describe_image_attribute
    assert refused(call, **look, Attribute="description")[0] == "AuthFailure"
    assert refused(call, **look, Attribute="unsupported")[0] == "InvalidRequest"


def test_row_94_launch_permission_to_all_and_back(w: World) -> None:
    """As the administrator: Glance lets nobody else publish."""
    admin = w.api.client(keys_of(w.cloud, ADMIN))
    body = {"name": f"public-{uuid.uuid4()}", "disk_format": "raw", "container_format": "bare"}
    made = w.cloud.call(ADMIN, "image", "POST", "/v2/images", json=body)
    db = Database(w.db_url)

    def seen(image_id: str) -> tuple[bool, bool]:
        """Whether it is public as shown, and as stored."""
        row = db.read(lambda session: queries.by_os_ids(session, [made["id"]]))[made["id"]]
        [shown] = admin.describe_images(ImageIds=[image_id])["Images"]
        return shown["Public"], row.data["is_public"]

    try:
        rows = admin.describe_images(Owners=["self"])["Images"]
        image_id = next(row["ImageId"] for row in rows if row["Name"] == body["name"])
        everybody = {"Add": [{"Group": "all"}]}
        admin.modify_image_attribute(ImageId=image_id, LaunchPermission=everybody)
        assert seen(image_id) == (True, True)
        admin.reset_image_attribute(ImageId=image_id, Attribute="launchPermission")
        assert seen(image_id) == (False, False)
    finally:
        db.dispose()
        w.cloud.call(ADMIN, "image", "DELETE", f"/v2/images/{made['id']}")


@pytest.mark.parametrize("good", [True, False], ids=["good", "for another key"])
def test_row_95_register_image_of_a_bundle(w: World, good: bool) -> None:
    s3 = w.s3_daemon.client(w.mine.keys, "s3", s3={"addressing_style": "path"})
    name = f"bundles-{uuid.uuid4().hex[:8]}"
    s3.create_bucket(Bucket=name)
    options = {} if good else {"recipient": other_key()}
    made = bundle(os.urandom(300_000), part_size=100_000, **options)
    for key, data in made.objects().items():
        s3.put_object(Bucket=name, Key=key, Body=data)
    location = f"{name}/image.manifest.xml"
    image_id = w.ec2.register_image(Name=name, ImageLocation=location)["ImageId"]
    until(lambda: w.image(image_id)["State"] != "pending")
    assert w.image(image_id)["State"] == ("available" if good else "failed")


# -- metadata -----------------------------------------------------------------


def test_row_102_instance_id(w: World) -> None:
    answer = w.ask(f"{META}/instance-id")
    assert (answer.status_code, answer.text) == (200, w.instance)
    assert answer.headers["Content-Type"].startswith("text/plain")


def test_row_103_signature_and_headers(w: World) -> None:
    path = f"{META}/instance-id"
    assert w.ask(path, X_Instance_ID_Signature="0" * 64).status_code == 403
    assert w.ask(path, X_Tenant_ID=None).status_code == 400


def test_row_104_an_older_version(w: World) -> None:
    answer = w.ask("/2008-09-01/meta-data/ami-id")
    assert (answer.status_code, answer.text) == (200, w.public_image)


def test_row_105_below_a_text(w: World) -> None:
    assert w.ask(f"{META}/ami-id/x").status_code == 404


def test_row_106_session_tokens(w: World) -> None:
    path = f"{META}/instance-id"
    given = w.ask("/latest/api/token", "PUT", **{TTL: "60"})
    assert (given.status_code, given.headers[TTL]) == (200, "60")
    assert w.ask(path, **{TOKEN: given.text}).text == w.instance
    short = w.ask("/latest/api/token", "PUT", **{TTL: "1"}).text
    until(lambda: w.ask(path, **{TOKEN: short}).status_code == 401)


def test_row_107_novas_metadata(w: World) -> None:
    answer = w.ask("/openstack/latest/meta_data.json")
    assert answer.json()["uuid"] == w.server(w.instance)["id"]


def test_row_108_another_tenants_header(w: World) -> None:
    other = w.cloud.session(ALT).get_project_id()
    assert w.ask(f"{META}/instance-id", X_Tenant_ID=other).status_code == 404


def test_row_109_user_data(w: World) -> None:
    assert w.ask("/latest/user-data").content == USER_DATA
