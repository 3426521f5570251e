"""CreateImage on a real cloud while Nova or our database is away, and while tokens end.

A proxy in front of each is cut at a moment of the job, for a few seconds: longer
than the job's lease (3 s here).  ``TRIMARAN_TEST_OUTAGE=60`` makes it a minute.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.conftest import _database
from tests.support import ec2_victims
from tests.support.cloud import ADMIN, DEMO, CloudEnv
from tests.support.ec2 import write_conf
from tests.support.ec2_direct import requester
from tests.support.ec2_jobs import jobs_of
from tests.support.ec2_moments import OUTAGES
from tests.support.ec2_server import server_on_volume
from tests.support.processes import Fleet
from tests.support.tcp_proxy import Proxy
from trimaran.db import migrate
from trimaran.db.models import work as states
from trimaran.db.models.work import Job
from trimaran.db.queries import ec2 as queries
from trimaran.ec2 import journal
from trimaran.ec2.kinds.images.image import describe_images
from trimaran.ec2.kinds.images.image_create import create_image
from trimaran.ec2.kinds.images.image_modify import deregister_image
from trimaran.ec2.kinds.instances.instance import describe_instances
from trimaran.ec2.on_behalf import Deputies, Person
from trimaran.ec2.parts import Parts
from trimaran.identity import Token

OUTAGE = float(os.environ.get("TRIMARAN_TEST_OUTAGE", ec2_victims.LEASE + 1))
PATIENCE = 400.0
#: The patience with an answer of Nova that never came follows from these.
TIMES = {"trimaran__connect_timeout": 5.0, "trimaran__read_timeout": 15.0}

Call = Callable[..., Any]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("outages")


@pytest.fixture(scope="module")
def db_url(home: Path) -> Iterator[str]:
    for url in _database("mariadb", home):
        migrate.upgrade(url, "ec2")
        yield url


@pytest.fixture(scope="module")
def parts(home: Path, cloud_env: CloudEnv, db_url: str) -> Iterator[Parts]:
    """The test's own way to cloud and database, which is never cut."""
    made = ec2_victims.parts_of(write_conf(home, cloud_env, db_url, **TIMES))
    yield made
    made.close()


@pytest.fixture(scope="module")
def call(parts: Parts, cloud_env: CloudEnv) -> Call:
    """Runs an action as a request of the demo member would."""
    return requester(parts, cloud_env)


@pytest.fixture(scope="module")
def server(cloud_env: CloudEnv) -> Iterator[str]:
    with server_on_volume(cloud_env) as made:
        yield made


@pytest.fixture(scope="module")
def instance(call: Call, parts: Parts, server: str) -> str:
    """The EC2 id of the server."""
    call(describe_instances)
    return parts.db.read(lambda session: queries.by_os_ids(session, [server]))[server].id


def status(cloud: CloudEnv, server: str) -> str:
    return str(cloud.call(DEMO, "compute", "GET", f"/servers/{server}")["server"]["status"])


def jobs(parts: Parts) -> list[Any]:
    kinds = (journal.CREATE_IMAGE, journal.START)
    return [job for kind in kinds for job in jobs_of(parts.db, kind)]


def until(parts: Parts, question: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not question():
        told = [(job.kind, job.state, job.step, job.error) for job in jobs(parts)]
        assert time.monotonic() < deadline, told
        time.sleep(0.1)


def until_done(parts: Parts) -> None:
    """Waits until the image is made and the instance started."""
    until(parts, lambda: all(job.state not in states.UNFINISHED for job in jobs(parts)))


def check(call: Call, parts: Parts, cloud: CloudEnv, server: str, image_id: str) -> None:
    """One image, available; the instance runs; each of the two jobs ended well, once."""
    [image] = call(describe_images, ImageIds=[image_id])["Images"]
    assert (image["State"], image["RootDeviceType"]) == ("available", "ebs")
    assert status(cloud, server) == "ACTIVE"
    name = image["Name"]
    made = cloud.call(DEMO, "image", "GET", f"/v2/images?name={name}")["images"]
    assert len(made) == 1
    snapshots = cloud.call(DEMO, "block-storage", "GET", "/snapshots/detail")["snapshots"]
    assert len([row for row in snapshots if name in row["name"]]) == 1
    assert [(job.kind, job.state, job.error) for job in jobs(parts)] == [
        (journal.CREATE_IMAGE, states.DONE, ""),
        (journal.START, states.DONE, ""),
    ]
    parts.db.write(lambda session: session.execute(sa.delete(Job)))
    answer = call(deregister_image, ImageId=image_id, DeleteAssociatedSnapshots=True)
    assert [row["ReturnCode"] for row in answer["DeleteSnapshotResults"]] == ["success"]


@contextmanager
def way_to(what: str, cloud: CloudEnv, db_url: str) -> Iterator[tuple[Proxy, str, dict[str, str]]]:
    """(proxy, database URL, places of services) with the proxy in front of one part."""
    if what == "database":
        url = sa.make_url(db_url)
        with Proxy(str(url.host), int(url.port or 3306)) as proxy:
            through = url.set(host="127.0.0.1", port=proxy.port)
            yield proxy, through.render_as_string(hide_password=False), {}
        return
    endpoint = cloud.session(DEMO).get_endpoint(service_type="compute", interface="public")
    nova = sa.make_url(str(endpoint))
    with Proxy(str(nova.host), int(nova.port or 80)) as proxy:
        yield proxy, db_url, {"compute": f"127.0.0.1:{proxy.port}"}


@pytest.mark.parametrize(("what", "moment"), OUTAGES)
def test_a_part_that_is_away_for_a_while_is_waited_for(
    what: str,
    moment: str,
    home: Path,
    db_url: str,
    parts: Parts,
    call: Call,
    cloud_env: CloudEnv,
    server: str,
    instance: str,
) -> None:
    with way_to(what, cloud_env, db_url) as (proxy, url, places), Fleet() as fleet:
        directory = home / uuid.uuid4().hex
        directory.mkdir()
        conf = write_conf(directory, cloud_env, url, **TIMES)
        first = fleet.start(ec2_victims.interrupted, str(conf), moment, places)
        second = fleet.start(ec2_victims.interrupted, str(conf), "", places)
        fleet.until(lambda _: len(fleet.named("ready")) == 2, PATIENCE)
        first.say("work")
        name = f"away {uuid.uuid4().hex[:8]}"
        image_id = call(create_image, InstanceId=instance, Name=name)["ImageId"]
        fleet.until(lambda _: fleet.named("reached"), PATIENCE)
        proxy.cut()
        second.say("work")
        first.say("go on")
        time.sleep(OUTAGE)
        [pending] = call(describe_images, ImageIds=[image_id])["Images"]
        # Once Nova has made the image, any look links it.
        made = moment in ("after createImage", "before os-start")
        assert pending["State"] == ("available" if made else "pending")
        proxy.mend()
        until_done(parts)
        for child in fleet.children:
            child.say("stop")
        fleet.until(lambda _: len(fleet.named("stopped")) == 2, PATIENCE)
    check(call, parts, cloud_env, server, image_id)


def test_tokens_that_end_in_the_middle_do_not_matter(
    parts: Parts,
    call: Call,
    cloud_env: CloudEnv,
    home: Path,
    db_url: str,
    server: str,
    instance: str,
) -> None:
    """The request's own token ends with its answer; the job's ends at its first use by Nova,
    and again before the first use by Glance (a service keeps one that it has seen for 10 s)."""
    minted: list[Token] = []
    mint = Deputies.token

    def token(self: Deputies, person: Person) -> Token:
        minted.append(mint(self, person))
        return minted[-1]

    def waits_for(what: str) -> None:
        until(parts, lambda: what in jobs(parts)[0].error)

    conf = write_conf(home, cloud_env, db_url, **TIMES)
    with Fleet() as fleet:
        moments = ("after note snapshot",)
        worker = fleet.start(ec2_victims.revoked, str(conf), str(cloud_env.state), moments)
        fleet.until(lambda _: fleet.named("ready"), PATIENCE)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Deputies, "token", token)
            image_id = call(create_image, InstanceId=instance, Name=f"t {uuid.uuid4()}")["ImageId"]
        cloud_env.session(ADMIN).delete(
            f"{cloud_env.auth_url}/auth/tokens", headers={"X-Subject-Token": minted[0].id}
        )
        worker.say("work")
        waits_for("a token that compute takes")
        waits_for("a token that image takes")
        until_done(parts)
        worker.say("stop")
        fleet.until(lambda _: fleet.named("stopped"), PATIENCE)
    check(call, parts, cloud_env, server, image_id)
