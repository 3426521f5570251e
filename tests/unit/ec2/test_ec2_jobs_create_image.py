"""CreateImage of a running instance: deaths, outages, refusals, and what is there in the end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import requests_mock as mocking

from tests.support import keystone
from tests.support.ec2_deaths import Death, Deaths, crew_of, dying, run_all, run_one
from tests.support.ec2_images import Darkroom
from tests.support.ec2_jobs import jobs_of
from tests.support.ec2_openstack import MINE, THEIRS, Caller, instances_of
from trimaran.cloud import Cloud
from trimaran.cloud.compute import Compute
from trimaran.cloud.image import Image
from trimaran.db import Database
from trimaran.db.models import work as states
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import work_jobs
from trimaran.ec2 import ids, journal
from trimaran.ec2.jobs import create_image as job_module
from trimaran.ec2.jobs import trouble
from trimaran.ec2.kinds.images import image_snapshot
from trimaran.ec2.kinds.images.image import describe_images
from trimaran.ec2.kinds.images.image_create import create_image
from trimaran.ec2.kinds.images.image_modify import deregister_image
from trimaran.ec2.kinds.instances.instance import describe_instances
from trimaran.ec2.protocol.errors import EC2Error
from trimaran.errors import Unavailable
from trimaran.work.run import JobRun

WATCHED = (
    (JobRun, "commit"),
    (Compute, "action"),
    (Image, "update_image"),
)
DEVICES = [
    {"DeviceName": "/dev/vda", "Ebs": {"VolumeSize": 9}},
    {"DeviceName": "/dev/vdb", "NoDevice": ""},
]
TAGS = [
    {"ResourceType": "image", "Tags": [{"Key": "a", "Value": "image"}]},
    {"ResourceType": "snapshot", "Tags": [{"Key": "a", "Value": "snapshot"}]},
]


@pytest.fixture
def openstack(requests_mock: mocking.Mocker) -> Darkroom:
    return Darkroom(requests_mock)


@pytest.fixture
def me(
    openstack: Darkroom, ec2_cloud: Cloud, ec2_db: Database, tmp_path: Path, _address: None
) -> Caller:
    # Short, because the patience with Nova's missing answers follows from them.
    patience = ("connect_timeout = 0.1", "read_timeout = 0.1")
    return Caller(ec2_cloud, ec2_db, keystone.token(), tmp_path, *patience)


@pytest.fixture
def server(openstack: Darkroom) -> dict[str, Any]:
    made = openstack.server()
    openstack.volume(made, "/dev/vda", size=2)
    openstack.volume(made, "/dev/vdb", size=3)
    return made


@pytest.fixture
def ask(me: Caller, server: dict[str, Any]) -> Callable[..., str]:
    [found] = instances_of(me(describe_instances))

    def call(**request: Any) -> str:
        request = {"InstanceId": found["InstanceId"], "Name": "backup", **request}
        return str(me(create_image, **request)["ImageId"])

    return call


def shown(me: Caller, image_id: str) -> dict[str, Any]:
    [found] = me(describe_images, ImageIds=[image_id])["Images"]
    made: dict[str, Any] = found
    return made


def refused(call: Callable[..., Any], *args: Any, **request: Any) -> str:
    with pytest.raises(EC2Error) as caught:
        call(*args, **request)
    return str(caught.value.code)


def test_the_instance_is_stopped_and_started_and_the_image_pending_meanwhile(
    openstack: Darkroom, me: Caller, ask: Callable[..., str], server: dict[str, Any]
) -> None:
    image_id = ask(Description="d", TagSpecifications=TAGS, BlockDeviceMappings=DEVICES)
    pending = shown(me, image_id)
    assert pending == {
        "ImageId": image_id,
        "OwnerId": MINE,
        "ImageType": "machine",
        "Public": False,
        "Description": "d",
        "State": "pending",
        "Tags": [{"Key": "a", "Value": "image"}],
    }
    assert refused(me, deregister_image, ImageId=image_id) == "IncorrectState"
    seen = []
    crew = crew_of(me)
    while run_one(me, crew):
        seen.append((shown(me, image_id)["State"], server["OS-EXT-STS:vm_state"]))
    assert ("pending", "stopped") in seen or ("available", "stopped") in seen
    assert seen[-1] == ("available", "active")
    made = shown(me, image_id)
    assert (made["Name"], made["Description"]) == ("backup", "d")
    assert [row["Ebs"]["VolumeSize"] for row in made["BlockDeviceMappings"]] == [9]
    assert (openstack.done("os-stop"), openstack.done("os-start")) == (1, 1)
    # Nova was asked with the person's own, fresh token: the snapshots are the project's.
    assert {row["owner"] for row in openstack.images.values()} == {MINE}
    assert openstack.minted > 0
    [job] = jobs_of(me.db, journal.CREATE_IMAGE)
    assert job.state == states.DONE
    assert "s3cr3t" not in str(job.payload)


def test_an_image_without_a_name_is_named_after_the_server_and_the_time(
    me: Caller, ask: Callable[..., str], server: dict[str, Any]
) -> None:
    image_id = ask(Name=None)
    run_all(me)
    name = shown(me, image_id)["Name"]
    begin, _, moment = name.partition(" at ")
    assert begin == f"image of {server['id']}"
    assert datetime.fromisoformat(moment).tzinfo is not None


#: Before and after each note, each action of Nova and each change of the image.
MOMENTS = 18


@pytest.mark.parametrize("at", range(MOMENTS + 1))
def test_a_death_at_any_moment_changes_nothing_in_the_end(
    openstack: Darkroom, me: Caller, ask: Callable[..., str], server: dict[str, Any], at: int
) -> None:
    image_id = ask(TagSpecifications=TAGS, BlockDeviceMappings=DEVICES)
    deaths = Deaths(at)
    with dying(deaths, *WATCHED):
        try:
            run_all(me)
        except Death:
            assert deaths.fired
    assert deaths.fired is (at < MOMENTS)
    run_all(me)
    made = shown(me, image_id)
    assert made["State"] == "available", deaths.moment
    assert [row["Ebs"]["VolumeSize"] for row in made["BlockDeviceMappings"]] == [9]
    assert server["OS-EXT-STS:vm_state"] == "active", deaths.moment
    # One image, and one snapshot of what is in it.
    assert len(openstack.images) == 1, deaths.moment
    left = [row for row in openstack.snapshots.values() if row["status"] == "available"]
    assert len(left) == 1, deaths.moment
    assert {job.state for job in jobs_of(me.db, journal.CREATE_IMAGE)} == {states.DONE}
    assert {job.state for job in jobs_of(me.db, journal.START)} == {states.DONE}


@pytest.mark.parametrize("at", range(11))
def test_a_database_that_is_away_at_any_note_is_waited_for(
    openstack: Darkroom, me: Caller, ask: Callable[..., str], server: dict[str, Any], at: int
) -> None:
    image_id = ask(BlockDeviceMappings=DEVICES)
    # After the note as well: it was written, and nobody was told.
    deaths = Deaths(at, Unavailable(service="database"))
    with dying(deaths, (JobRun, "commit")):
        run_all(me)
    assert deaths.fired is (at < 10)
    assert shown(me, image_id)["State"] == "available", deaths.moment
    assert server["OS-EXT-STS:vm_state"] == "active", deaths.moment
    assert len(openstack.images) == 1
    assert [job.state for job in jobs_of(me.db, journal.CREATE_IMAGE)] == [states.DONE]


def test_the_end_of_the_requests_token_does_not_matter(
    openstack: Darkroom, me: Caller, ask: Callable[..., str], server: dict[str, Any]
) -> None:
    image_id = ask()
    openstack.expired.add("user-token")
    run_all(me)
    openstack.expired.clear()
    assert shown(me, image_id)["State"] == "available"
    assert server["OS-EXT-STS:vm_state"] == "active"


def test_a_token_that_ends_in_the_middle_is_renewed(
    openstack: Darkroom, me: Caller, ask: Callable[..., str], server: dict[str, Any]
) -> None:
    image_id = ask()
    crew = crew_of(me)
    run_one(me, crew)
    openstack.expired.add("minted-token")
    run_one(me, crew)
    openstack.expired.clear()
    run_all(me)
    assert shown(me, image_id)["State"] == "available"


@pytest.mark.parametrize("how", ["credential", "enabled"])
def test_who_lost_its_rights_gets_no_image_but_a_running_instance(
    openstack: Darkroom, me: Caller, ask: Callable[..., str], server: dict[str, Any], how: str
) -> None:
    image_id = ask()
    crew = crew_of(me)
    while server["OS-EXT-STS:task_state"] != "powering-off":
        run_one(me, crew)
    setattr(openstack, how, False)
    run_all(me)
    assert shown(me, image_id)["State"] == "failed"
    assert server["OS-EXT-STS:vm_state"] == "active"
    assert openstack.images == {}
    [job] = jobs_of(me.db, journal.CREATE_IMAGE)
    assert (job.state, "credential" in job.error) == (states.FAILED, True)
    me(deregister_image, ImageId=image_id)


def test_without_the_credential_the_request_itself_is_refused(
    openstack: Darkroom, me: Caller, ask: Callable[..., str]
) -> None:
    openstack.fail = {"credentials": 403}
    openstack.keystone.mock.get(mocking.ANY, status_code=403, json=keystone.error(403))
    with pytest.raises(Unavailable):
        ask()
    assert me.db.read(lambda s: queries.items_of(s, MINE, ids.IMAGE_PREFIXES)) == []


@pytest.mark.parametrize("service", ["nova", "glance", "cinder"])
def test_a_service_that_is_away_for_a_while_is_waited_for(
    openstack: Darkroom,
    me: Caller,
    ask: Callable[..., str],
    server: dict[str, Any],
    service: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trimaran.identity.exchange._DELAYS", ())
    image_id = ask()
    crew = crew_of(me)
    for away in range(12):
        openstack.fail = {rf"{service}\.test": 503} if away % 2 else {}
        run_one(me, crew)
    openstack.fail = {}
    run_all(me)
    assert shown(me, image_id)["State"] == "available"
    assert server["OS-EXT-STS:vm_state"] == "active"
    assert len(openstack.images) == 1
    assert {job.attempt for job in jobs_of(me.db, journal.CREATE_IMAGE)} <= {0, 1}


def test_an_answer_that_was_lost_makes_no_second_image(
    openstack: Darkroom, me: Caller, ask: Callable[..., str], server: dict[str, Any]
) -> None:
    image_id = ask()
    crew = crew_of(me)
    openstack.quiet = ["POST .*/action$"]
    for _ in range(8):
        run_one(me, crew)
    openstack.quiet = []
    run_all(me)
    assert len(openstack.images) == 1
    assert shown(me, image_id)["State"] == "available"
    assert server["OS-EXT-STS:vm_state"] == "active"


def test_of_two_images_one_is_taken_back(
    openstack: Darkroom,
    me: Caller,
    ask: Callable[..., str],
    server: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    image_id = ask()
    make = openstack._image_of

    def twice(row: dict[str, Any], body: dict[str, Any]) -> str:
        # One of an earlier request, for which nobody waited long enough.
        make(row, body)
        return make(row, body)

    monkeypatch.setattr(openstack, "_image_of", twice)
    foreign = openstack.image(THEIRS, ec2_id=image_id)
    run_all(me)
    assert len(openstack.images) == 2
    assert foreign["id"] in openstack.images
    left = [row for row in openstack.snapshots.values() if row["status"] == "available"]
    assert len(left) == 2
    assert shown(me, image_id)["State"] == "available"


@pytest.mark.parametrize("status", [403, 400])
def test_what_nova_refuses_ends_as_failed_and_running(
    openstack: Darkroom,
    me: Caller,
    ask: Callable[..., str],
    server: dict[str, Any],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    image_id = ask()
    own = openstack._own_action

    def refuse(response: Any, row: dict[str, Any], body: dict[str, Any]) -> Any:
        if "createImage" in body:
            return openstack.refused(response, status, "Quota exceeded")
        return own(response, row, body)

    monkeypatch.setattr(openstack, "_own_action", refuse)
    run_all(me)
    assert shown(me, image_id)["State"] == "failed"
    assert server["OS-EXT-STS:vm_state"] == "active"
    me(deregister_image, ImageId=image_id)
    assert me(describe_images)["Images"] == []


def test_an_image_that_glance_could_not_keep_is_taken_back(
    openstack: Darkroom,
    me: Caller,
    ask: Callable[..., str],
    server: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make = image_snapshot.snapshot

    def spoilt(*args: Any) -> str:
        os_id = make(*args)
        openstack.images[os_id]["status"] = "killed"
        return os_id

    monkeypatch.setattr(image_snapshot, "snapshot", spoilt)
    image_id = ask()
    run_all(me)
    assert shown(me, image_id)["State"] == "failed"
    assert openstack.images == {}
    assert server["OS-EXT-STS:vm_state"] == "active"


def test_after_an_hour_it_is_given_up_and_the_instance_runs(
    openstack: Darkroom,
    me: Caller,
    ask: Callable[..., str],
    server: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    image_id = ask()
    crew = crew_of(me)
    while server["OS-EXT-STS:task_state"] != "powering-off":
        run_one(me, crew)
    monkeypatch.setattr(job_module, "LIMIT", 0.0)
    run_all(me)
    assert shown(me, image_id)["State"] == "failed"
    assert server["OS-EXT-STS:vm_state"] == "active"
    [job] = jobs_of(me.db, journal.CREATE_IMAGE)
    assert "not done within" in job.error


def test_an_instance_that_is_terminated_meanwhile(
    openstack: Darkroom, me: Caller, ask: Callable[..., str], server: dict[str, Any]
) -> None:
    image_id = ask()
    crew = crew_of(me)
    run_one(me, crew)
    del openstack.servers[server["id"]]
    run_all(me)
    assert shown(me, image_id)["State"] == "failed"
    assert {job.state for job in jobs_of(me.db, journal.START)} == {states.DONE}


def test_an_instance_that_somebody_starts_meanwhile_is_stopped_again(
    openstack: Darkroom, me: Caller, ask: Callable[..., str], server: dict[str, Any]
) -> None:
    image_id = ask()
    crew = crew_of(me)

    def restart(method: str, path: str) -> None:
        # Between the step before the snapshot and the snapshot itself, once.
        if path.endswith("/images") and server["OS-EXT-STS:vm_state"] == "stopped":
            server["OS-EXT-STS:vm_state"] = "active"
            openstack.before = lambda method, path: None

    openstack.before = restart
    while run_one(me, crew):
        pass
    assert openstack.done("os-stop") == 2
    assert shown(me, image_id)["State"] == "available"
    assert server["OS-EXT-STS:vm_state"] == "active"


def test_one_image_of_an_instance_at_a_time(
    openstack: Darkroom, me: Caller, ask: Callable[..., str], server: dict[str, Any]
) -> None:
    ask()
    assert refused(ask) == "IncorrectState"
    items = me.db.read(lambda s: queries.items_of(s, MINE, ids.IMAGE_PREFIXES))
    assert len(items) == 1
    run_all(me)
    assert ask()


@pytest.mark.parametrize(
    "fields",
    [{"OS-EXT-STS:task_state": "rebooting"}, {"locked": True}, {"OS-EXT-STS:vm_state": "paused"}],
)
def test_what_cannot_be_stopped_now(
    openstack: Darkroom, me: Caller, ask: Callable[..., str], server: dict[str, Any], fields: Any
) -> None:
    server.update(fields)
    openstack._left[server["id"]] = 99
    assert refused(ask) == "IncorrectState"
    assert jobs_of(me.db, journal.CREATE_IMAGE) == []


@pytest.mark.parametrize(
    ("device", "code"),
    [
        ({"DeviceName": "/dev/vda", "Ebs": {"VolumeSize": 1}}, "InvalidBlockDeviceMapping"),
        ({"DeviceName": "/dev/vdc", "Ebs": {}}, "MissingParameter"),
    ],
)
def test_devices_are_refused_before_anything_stops(
    me: Caller, ask: Callable[..., str], device: dict[str, Any], code: str
) -> None:
    assert refused(ask, BlockDeviceMappings=[device]) == code
    assert jobs_of(me.db, journal.CREATE_IMAGE) == []


@pytest.mark.parametrize("more", [{"SnapshotLocation": "local"}, {"BootModeOverride": "uefi"}])
def test_what_cannot_be_honoured_stops_nothing(
    me: Caller, ask: Callable[..., str], more: dict[str, str]
) -> None:
    assert refused(ask, **more) == "UnsupportedOperation"
    assert jobs_of(me.db, journal.CREATE_IMAGE) == []


def test_a_dry_run_stops_nothing(me: Caller, ask: Callable[..., str]) -> None:
    assert refused(ask, DryRun=True) == "DryRunOperation"
    assert jobs_of(me.db, journal.CREATE_IMAGE) == []


def test_a_project_that_took_the_server_over_is_not_touched(
    openstack: Darkroom, me: Caller, ask: Callable[..., str], server: dict[str, Any]
) -> None:
    ask()
    server["tenant_id"] = THEIRS
    run_all(me)
    assert openstack.actions == []


def test_waiting_is_for_what_passes() -> None:
    assert trouble.will_pass(Unavailable(service="compute"))
    assert not trouble.will_pass(EC2Error("X", "y"))


# -- operators ----------------------------------------------------------------


def cancel(me: Caller) -> str:
    [job] = jobs_of(me.db, journal.CREATE_IMAGE)
    assert me.db.write(lambda session: journal.give_up(session, job.id))
    assert not me.db.write(lambda session: journal.give_up(session, job.id))
    return str(job.id)


@pytest.mark.parametrize("runs", range(3))
def test_a_cancelled_job_leaves_a_failed_image_and_a_running_instance(
    me: Caller, ask: Callable[..., str], server: dict[str, Any], runs: int
) -> None:
    image_id = ask()
    crew = crew_of(me)
    for _ in range(runs):
        run_one(me, crew)
    job_id = cancel(me)
    run_all(me)
    assert server["OS-EXT-STS:vm_state"] == "active"
    assert shown(me, image_id)["State"] == "failed"
    assert [job.state for job in jobs_of(me.db, journal.CANCELLED)] == [states.DONE]
    # It may be run again, as if it had been asked for now.
    assert me.db.write(lambda session: work_jobs.retry(session, job_id))
    run_all(me)
    made = shown(me, image_id)
    assert (made["State"], made["Name"]) == ("available", "backup")
    assert server["OS-EXT-STS:vm_state"] == "active"


def test_a_cancelled_job_that_runs_is_left_to_its_process_for_a_while(
    me: Caller, ask: Callable[..., str], server: dict[str, Any]
) -> None:
    ask()
    crew = crew_of(me)
    deaths = Deaths(0)
    with dying(deaths, (Compute, "action")), pytest.raises(Death):
        run_one(me, crew)
    cancel(me)
    run_one(me, crew)
    [job] = jobs_of(me.db, journal.CANCELLED)
    assert (job.state, job.error) == (states.QUEUED, "the cancelled job's process to notice")
    run_all(me)
    assert server["OS-EXT-STS:vm_state"] == "active"


def test_who_runs_a_cancelled_job_again_at_once_has_it_done(
    me: Caller, ask: Callable[..., str]
) -> None:
    image_id = ask()
    job_id = cancel(me)
    assert me.db.write(lambda session: work_jobs.retry(session, job_id))
    run_all(me)
    assert shown(me, image_id)["State"] == "available"


def test_a_failed_image_that_was_deregistered_is_not_made_again(
    openstack: Darkroom, me: Caller, ask: Callable[..., str], server: dict[str, Any]
) -> None:
    image_id = ask()
    job_id = cancel(me)
    run_all(me)
    me(deregister_image, ImageId=image_id)
    assert me.db.write(lambda session: work_jobs.retry(session, job_id))
    run_all(me)
    assert openstack.images == {}
    assert server["OS-EXT-STS:vm_state"] == "active"
