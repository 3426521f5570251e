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
from tests.support.ec2_moments import CREATE_IMAGE
from tests.support.ec2_server import server_on_volume
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

PATIENCE = 400.0


@pytest.fixture(scope="module")
def conf(cloud_env: CloudEnv, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("create-image")
    for url in _database("mariadb", home):
        migrate.upgrade(url, "ec2")
        # The patience with an answer of Nova that never came follows from these.
        times = {"trimaran__connect_timeout": 5.0, "trimaran__read_timeout": 15.0}
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
    with server_on_volume(cloud_env) as made:
        yield made


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


@pytest.mark.parametrize("moment", CREATE_IMAGE)
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
