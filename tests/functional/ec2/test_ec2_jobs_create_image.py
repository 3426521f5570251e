"""CreateImage of a running instance on a real cloud, with kill -9 at each step of the job."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import _database
from tests.support import ec2_victims
from tests.support.cloud import DEMO, CloudEnv
from tests.support.ec2 import write_conf
from tests.support.ec2_direct import requester
from tests.support.ec2_jobs import jobs_of
from tests.support.processes import Fleet
from trimaran.db import migrate
from trimaran.db.models import work as states
from trimaran.db.queries import ec2 as queries
from trimaran.ec2 import journal
from trimaran.ec2.kinds.images.image import describe_images
from trimaran.ec2.kinds.images.image_create import create_image
from trimaran.ec2.kinds.images.image_modify import deregister_image
from trimaran.ec2.kinds.instances.instance import describe_instances
from trimaran.ec2.parts import Parts

FLAVOR = "m1.tiny"
PATIENCE = 120.0

#: Each moment at which the process is killed.
MOMENTS = [
    "before note stop",
    "after note stop",
    "before os-stop",
    "after os-stop",
    "after note snapshot",
    "before createImage",
    "after createImage",
    "after note link",
    "before note linked",
    "after note linked",
    "before os-start",
    "after os-start",
]


@pytest.fixture(scope="module")
def conf(cloud_env: CloudEnv, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("create-image")
    for url in _database("mariadb", home):
        migrate.upgrade(url, "ec2")
        # The patience with an answer of Nova that never came follows from these.
        times = {"trimaran__connect_timeout": 2.0, "trimaran__read_timeout": 8.0}
        yield write_conf(home, cloud_env, url, **times)


@pytest.fixture(scope="module")
def parts(conf: Path) -> Iterator[Parts]:
    made = ec2_victims.parts_of(conf)
    yield made
    made.close()


@pytest.fixture(scope="module")
def call(parts: Parts, cloud_env: CloudEnv) -> Callable[..., Any]:
    """Runs an action as a request of the demo member would."""
    return requester(parts, cloud_env)


@pytest.fixture(scope="module")
def server(cloud_env: CloudEnv) -> Iterator[str]:
    """A running server whose root is a volume."""
    images = cloud_env.call(DEMO, "image", "GET", "/v2/images")["images"]
    networks = cloud_env.call(DEMO, "network", "GET", "/v2.0/networks?name=private")["networks"]
    flavors = cloud_env.call(DEMO, "compute", "GET", "/flavors")["flavors"]
    image = next(row for row in images if row["disk_format"] == "qcow2")
    device = {
        "uuid": image["id"],
        "source_type": "image",
        "destination_type": "volume",
        "boot_index": 0,
        "volume_size": 1,
        "delete_on_termination": True,
    }
    body = {
        "name": f"create-image-{uuid.uuid4().hex[:8]}",
        "flavorRef": next(row["id"] for row in flavors if row["name"] == FLAVOR),
        "networks": [{"uuid": networks[0]["id"]}],
        "block_device_mapping_v2": [device],
    }
    made = cloud_env.call(DEMO, "compute", "POST", "/servers", json={"server": body})["server"]
    until(lambda: status(cloud_env, made["id"]) == "ACTIVE")
    yield str(made["id"])
    cloud_env.call(DEMO, "compute", "DELETE", f"/servers/{made['id']}", raise_exc=False)


def status(cloud: CloudEnv, server_id: str) -> str:
    return str(cloud.call(DEMO, "compute", "GET", f"/servers/{server_id}")["server"]["status"])


def until(question: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (answer := question()):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    return answer


@pytest.fixture(scope="module")
def instance(call: Callable[..., Any], parts: Parts, server: str) -> str:
    """The EC2 id of the server."""
    call(describe_instances)
    return parts.db.read(lambda session: queries.by_os_ids(session, [server]))[server].id


def unfinished(parts: Parts) -> list[Any]:
    kinds = (journal.CREATE_IMAGE, journal.START)
    found = [job for kind in kinds for job in jobs_of(parts.db, kind)]
    return [job for job in found if job.state in states.UNFINISHED]


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_process_leaves_one_image_and_a_running_instance(
    moment: str,
    conf: Path,
    parts: Parts,
    call: Callable[..., Any],
    cloud_env: CloudEnv,
    server: str,
    instance: str,
) -> None:
    name = f"killed {moment} {uuid.uuid4().hex[:6]}"
    with Fleet() as fleet:
        victim = fleet.start(ec2_victims.work, str(conf), moment)
        successor = fleet.start(ec2_victims.work, str(conf), "")
        fleet.until(lambda events: len(fleet.named("ready")) == 2, PATIENCE)
        victim.say("work")
        image_id = call(create_image, InstanceId=instance, Name=name, Description="d")["ImageId"]
        [pending] = call(describe_images, ImageIds=[image_id])["Images"]
        assert pending["State"] in ("pending", "available")
        victim.process.join(PATIENCE)
        assert victim.process.exitcode == -9, "the moment never came"
        successor.say("work")
        until(lambda: not unfinished(parts))
        successor.say("stop")
        fleet.until(lambda events: fleet.named("stopped"), PATIENCE)
    [made] = call(describe_images, ImageIds=[image_id])["Images"]
    assert (made["State"], made["Name"], made["Description"]) == ("available", name, "d")
    assert made["RootDeviceType"] == "ebs"
    assert status(cloud_env, server) == "ACTIVE"
    mine = cloud_env.call(DEMO, "image", "GET", f"/v2/images?name={name}")["images"]
    assert len(mine) == 1
    assert mine[0]["owner"] == cloud_env.session(DEMO).get_project_id()
    snapshots = cloud_env.call(DEMO, "block-storage", "GET", "/snapshots/detail")["snapshots"]
    assert len([row for row in snapshots if name in row["name"]]) == 1
    answer = call(deregister_image, ImageId=image_id, DeleteAssociatedSnapshots=True)
    assert [row["ReturnCode"] for row in answer["DeleteSnapshotResults"]] == ["success"]
