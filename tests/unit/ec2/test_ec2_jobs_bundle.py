"""RegisterImage of a bundle, of a file, and CopyImage: requests, jobs, deaths and refusals."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests_mock as mocking

from tests.support import keystone
from tests.support.ec2_bundle import Bundle, bundle, other_key, tar_of, write_pem
from tests.support.ec2_deaths import Death, Deaths, crew_of, dying, run_all, run_one
from tests.support.ec2_images import Darkroom
from tests.support.ec2_jobs import jobs_of
from tests.support.ec2_openstack import ACCESS, MINE, THEIRS, Caller
from trimaran.cloud import Cloud
from trimaran.cloud.image import Image
from trimaran.db import Database
from trimaran.db.models import work as states
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import work_jobs
from trimaran.ec2 import ids, journal
from trimaran.ec2.bundle.place import Place
from trimaran.ec2.jobs import import_bundle
from trimaran.ec2.kinds.images.image import describe_images
from trimaran.ec2.kinds.images.image_copy import copy_image
from trimaran.ec2.kinds.images.image_modify import deregister_image
from trimaran.ec2.kinds.images.image_register import register_image
from trimaran.ec2.protocol.errors import EC2Error
from trimaran.errors import Unavailable
from trimaran.work.run import JobRun

IMAGE = os.urandom(20_000)
LOCATION = "bucket/image.manifest.xml"
STATES = ["downloading", "decrypting", "untarring", "uploading", "available"]


@pytest.fixture
def openstack(requests_mock: mocking.Mocker) -> Darkroom:
    return Darkroom(requests_mock)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Where the parts of bundles lie."""
    made = tmp_path / "bundles"
    made.mkdir()
    return made


@pytest.fixture
def me(
    openstack: Darkroom,
    ec2_cloud: Cloud,
    ec2_db: Database,
    tmp_path: Path,
    files: Path,
    _address: None,
) -> Caller:
    options = (
        "connect_timeout = 0.1",
        "read_timeout = 0.1",
        "largest_image_gib = 1",
        "[DEFAULT]",
        "s3_url = http://s3.test",
        f"image_decryption_dir = {files}",
        f"x509_root_private_key = {write_pem(tmp_path)}",
    )
    return Caller(ec2_cloud, ec2_db, keystone.token(), tmp_path, *options)


@pytest.fixture
def put(openstack: Darkroom) -> Callable[[Bundle], None]:
    def store(made: Bundle, folder: str = "") -> None:
        openstack.objects |= {f"bucket/{folder}{k}": data for k, data in made.objects().items()}

    return store


def register(me: Caller, **request: Any) -> str:
    request = {"Name": "made", "ImageLocation": LOCATION, **request}
    return str(me(register_image, **request)["ImageId"])


def shown(me: Caller, image_id: str) -> dict[str, Any]:
    [found] = me(describe_images, ImageIds=[image_id])["Images"]
    made: dict[str, Any] = found
    return made


def refused(me: Caller, action: Any, **request: Any) -> str:
    with pytest.raises(EC2Error) as caught:
        me(action, **request)
    return str(caught.value.code)


# -- a good bundle ------------------------------------------------------------


def test_a_bundle_becomes_an_image(
    openstack: Darkroom, me: Caller, put: Callable[[Bundle], None], files: Path
) -> None:
    machine = (
        "<block_device_mapping><mapping><virtual>ami</virtual><device>/dev/sda1</device></mapping>"
        "<mapping><virtual>swap</virtual><device>sda3</device></mapping></block_device_mapping>"
    )
    put(bundle(IMAGE, machine=machine))
    tags = [{"ResourceType": "image", "Tags": [{"Key": "a", "Value": "b"}]}]
    image_id = register(me, Description="123", TagSpecifications=tags)
    pending = shown(me, image_id)
    assert (pending["State"], pending["Name"], pending["ImageType"]) == (
        "pending",
        "made",
        "machine",
    )
    [row] = openstack.images.values()
    assert (row["image_state"], row["status"], row["disk_format"]) == ("pending", "queued", "ami")
    run_all(me)
    assert openstack.states == STATES
    assert openstack.data[row["id"]] == IMAGE
    made = shown(me, image_id)
    assert (made["State"], made["Description"], made["Architecture"]) == (
        "available",
        "123",
        "x86_64",
    )
    assert made["ImageLocation"] == LOCATION
    assert made["RootDeviceName"] == "/dev/sda1"
    assert made["RootDeviceType"] == "instance-store"
    assert made["BlockDeviceMappings"] == [{"DeviceName": "sda3", "VirtualName": "swap"}]
    assert made["Tags"] == [{"Key": "a", "Value": "b"}]
    assert list(files.iterdir()) == []
    assert openstack.seen_keys == {ACCESS}
    [job] = jobs_of(me.db, journal.BUNDLE)
    assert job.state == states.DONE
    assert "s3cr3t" not in str(job.payload)


@pytest.mark.parametrize("location", ["s3://bucket/image.manifest.xml", "/" + LOCATION])
def test_other_spellings_of_a_location(
    openstack: Darkroom, me: Caller, put: Callable[[Bundle], None], location: str
) -> None:
    put(bundle(IMAGE))
    image_id = register(me, ImageLocation=location)
    run_all(me)
    assert shown(me, image_id)["State"] == "available"


@pytest.mark.parametrize("given", ["Name", "ImageLocation"])
def test_the_name_is_the_location_where_there_is_nothing_else(
    openstack: Darkroom, me: Caller, put: Callable[[Bundle], None], given: str
) -> None:
    put(bundle(IMAGE))
    image_id = register(me, **{"Name": None, "ImageLocation": None, given: LOCATION})
    assert shown(me, image_id)["Name"] == LOCATION


@pytest.mark.parametrize(("word", "kind"), [("kernel_id", "aki"), ("ramdisk_id", "ari")])
def test_kernels_and_ramdisks(
    openstack: Darkroom, me: Caller, put: Callable[[Bundle], None], word: str, kind: str
) -> None:
    put(bundle(IMAGE, machine=f"<{word}>true</{word}>"))
    image_id = register(me)
    assert image_id.startswith(f"{kind}-")
    run_all(me)
    [row] = openstack.images.values()
    assert (row["disk_format"], row["container_format"]) == (kind, kind)
    put(bundle(IMAGE, machine=f"<{word}>{image_id}</{word}>"))
    second = register(me)
    assert openstack.images[_os_id(me, second)][word] == row["id"]
    put(bundle(IMAGE, machine=f"<{word}>{kind}-00000001</{word}>"))
    assert refused(me, register_image, ImageLocation=LOCATION) == "InvalidAMIID.NotFound"


def _os_id(me: Caller, item_id: str) -> str:
    [item] = me.db.read(lambda s: queries.items_by_ids(s, MINE, [item_id]))
    assert item.os_id
    return item.os_id


def test_parts_beside_a_manifest_that_is_not_at_the_top(
    openstack: Darkroom, me: Caller, put: Callable[..., None]
) -> None:
    put(bundle(IMAGE), "deep/down/")
    image_id = register(me, ImageLocation="bucket/deep/down/image.manifest.xml")
    run_all(me)
    assert shown(me, image_id)["State"] == "available"


def test_the_request_wins_over_the_manifest(
    openstack: Darkroom, me: Caller, put: Callable[[Bundle], None]
) -> None:
    put(bundle(IMAGE))
    data = {"DeviceName": "/dev/vdb", "Ebs": {"VolumeSize": 5}}
    image_id = register(
        me, Architecture="arm64", RootDeviceName="/dev/vda", BlockDeviceMappings=[data]
    )
    run_all(me)
    made = shown(me, image_id)
    assert (made["Architecture"], made["RootDeviceName"]) == ("arm64", "/dev/vda")
    assert made["RootDeviceType"] == "instance-store"
    assert made["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"] == 5


# -- what dies, and what is away ----------------------------------------------

#: Before and after each note, each change of the image, and its upload.
MOMENTS = 24
WATCHED = ((JobRun, "commit"), (Image, "update_image"), (Image, "upload_image"))


@pytest.mark.parametrize("at", range(MOMENTS + 1))
def test_a_death_at_any_moment_changes_nothing_in_the_end(
    openstack: Darkroom, me: Caller, put: Callable[[Bundle], None], files: Path, at: int
) -> None:
    put(bundle(IMAGE))
    image_id = register(me)
    deaths = Deaths(at)
    with dying(deaths, *WATCHED):
        try:
            run_all(me)
        except Death:
            assert deaths.fired
    assert deaths.fired is (at < MOMENTS)
    run_all(me)
    assert shown(me, image_id)["State"] == "available", deaths.moment
    assert list(openstack.data.values()) == [IMAGE]
    assert list(files.iterdir()) == []
    assert [job.state for job in jobs_of(me.db, journal.BUNDLE)] == [states.DONE]


def test_what_came_already_is_not_fetched_again(
    openstack: Darkroom, me: Caller, put: Callable[[Bundle], None]
) -> None:
    put(bundle(IMAGE))
    register(me)
    crew = crew_of(me)
    openstack.fail = {"part.3": 503}
    run_one(me, crew)
    openstack.fail = {}
    # What is here already could not be fetched any more.
    for number in range(3):
        openstack.objects[f"bucket/image.part.{number}"] = b"other"
    run_all(me)
    assert openstack.states[-1] == "available"


@pytest.mark.parametrize("service", [r"s3\.test", "glance"])
def test_a_service_that_is_away_is_waited_for(
    openstack: Darkroom,
    me: Caller,
    put: Callable[[Bundle], None],
    service: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trimaran.identity.exchange._DELAYS", ())
    put(bundle(IMAGE))
    image_id = register(me)
    crew = crew_of(me)
    openstack.fail = {service: 503}
    for _ in range(5):
        run_one(me, crew)
    openstack.fail = {}
    run_all(me)
    assert shown(me, image_id)["State"] == "available"


def test_an_upload_that_glance_never_answered(
    openstack: Darkroom, me: Caller, put: Callable[[Bundle], None]
) -> None:
    put(bundle(IMAGE))
    image_id = register(me)
    openstack.quiet = ["PUT .*/file$"]
    crew = crew_of(me)
    run_one(me, crew)
    openstack.quiet = []
    run_all(me)
    assert shown(me, image_id)["State"] == "available"
    assert len(openstack.data) == 1


def test_an_image_that_is_deregistered_meanwhile_ends_the_job(
    openstack: Darkroom, me: Caller, put: Callable[[Bundle], None], files: Path
) -> None:
    put(bundle(IMAGE))
    me(deregister_image, ImageId=register(me))
    run_all(me)
    [job] = jobs_of(me.db, journal.BUNDLE)
    assert job.state == states.DONE
    assert list(files.iterdir()) == []


def test_files_of_a_dead_process_are_swept(
    openstack: Darkroom, me: Caller, put: Callable[[Bundle], None], files: Path
) -> None:
    put(bundle(IMAGE))
    register(me)
    run_all(me)
    [job] = jobs_of(me.db, journal.BUNDLE)
    with Place(str(files), job.id) as left:
        left.part(0).write_bytes(b"x")
    with Place(str(files), "another"):
        pass
    import_bundle.sweep(str(files), me.db)
    assert [path.name for path in files.iterdir()] == ["trimaran-bundle-another"]


# -- broken bundles -----------------------------------------------------------


def wreck(kind: str, objects: dict[str, bytes]) -> None:
    first, second = "bucket/image.part.0", "bucket/image.part.1"
    if kind == "missing":
        del objects[second]
    elif kind == "swapped":
        objects[first], objects[second] = objects[second], objects[first]
    elif kind == "manifest":
        objects[LOCATION] += b" "


@pytest.mark.parametrize(
    ("made", "kind", "state"),
    [
        (bundle(IMAGE), "missing", "failed_download"),
        (bundle(IMAGE), "swapped", "failed_download"),
        (bundle(IMAGE), "manifest", "failed_download"),
        (bundle(IMAGE, digests=False), "swapped", "failed_decrypt"),
        (bundle(IMAGE, recipient=other_key()), "", "failed_decrypt"),
        (Bundle(tar_of(("../evil", IMAGE))), "", "failed_untar"),
        (Bundle(tar_of((tarfile.TarInfo("image"), b""), ("/etc/x", b"x"))), "", "failed_untar"),
        (bundle(IMAGE, size=1), "", "failed_untar"),
        (Bundle(b"no tar"), "", "failed_untar"),
    ],
)
def test_a_broken_bundle_is_shown_as_such(
    openstack: Darkroom,
    me: Caller,
    put: Callable[[Bundle], None],
    files: Path,
    made: Bundle,
    kind: str,
    state: str,
) -> None:
    put(made)
    image_id = register(me)
    wreck(kind, openstack.objects)
    run_all(me)
    assert shown(me, image_id)["State"] == "failed"
    [row] = openstack.images.values()
    assert (row["image_state"], row["status"]) == (state, "queued")
    assert openstack.data == {}
    assert list(files.iterdir()) == []
    [job] = jobs_of(me.db, journal.BUNDLE)
    assert job.state == states.FAILED
    me(deregister_image, ImageId=image_id)
    assert openstack.images == {}


def test_a_bundle_larger_than_allowed(
    openstack: Darkroom,
    me: Caller,
    put: Callable[[Bundle], None],
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(import_bundle, "_GIB", 10_000)
    put(bundle(IMAGE))
    register(me)
    run_all(me)
    assert openstack.states[-1] == "failed_download"
    put(bundle(bytes(100_000)))
    register(me)
    run_all(me)
    assert openstack.states[-1] == "failed_untar"
    assert list(files.iterdir()) == []


@pytest.mark.parametrize("how", ["credential", "enabled"])
def test_who_lost_its_rights_gets_no_image(
    openstack: Darkroom, me: Caller, put: Callable[[Bundle], None], how: str
) -> None:
    put(bundle(IMAGE))
    image_id = register(me)
    setattr(openstack, how, False)
    run_all(me)
    assert shown(me, image_id)["State"] == "failed"
    assert openstack.states == ["failed_download"]


def test_glances_refusal_of_the_data(
    openstack: Darkroom, me: Caller, put: Callable[[Bundle], None]
) -> None:
    put(bundle(IMAGE))
    image_id = register(me)
    openstack.fail = {"/file$": 413}
    run_all(me)
    assert shown(me, image_id)["State"] == "failed"
    assert openstack.states[-1] == "failed_upload"


# -- operators ----------------------------------------------------------------


def test_a_cancelled_import_fails_and_may_be_run_again(
    openstack: Darkroom, me: Caller, put: Callable[[Bundle], None], files: Path
) -> None:
    put(bundle(IMAGE))
    image_id = register(me)
    openstack.fail = {"part.3": 503}
    run_one(me, crew_of(me))
    assert list(files.iterdir()) != []
    [job] = jobs_of(me.db, journal.BUNDLE)
    assert me.db.write(lambda session: journal.give_up(session, job.id))
    run_all(me)
    assert shown(me, image_id)["State"] == "failed"
    assert openstack.states[-1] == "failed_download"
    assert list(files.iterdir()) == []
    openstack.fail = {}
    assert me.db.write(lambda session: work_jobs.retry(session, job.id))
    run_all(me)
    assert shown(me, image_id)["State"] == "available"
    assert list(openstack.data.values()) == [IMAGE]


# -- requests -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({}, "InvalidParameterCombination"),
        ({"RootDeviceName": "/dev/vda"}, "MissingParameter"),
        ({"Name": "x", "ImageLocation": "bucket"}, "InvalidParameterValue"),
        ({"Name": "x", "ImageLocation": "bucket/../x"}, "InvalidParameterValue"),
        ({"Name": "x", "ImageLocation": "s3://"}, "InvalidParameterValue"),
        ({"Name": "x", "ImageLocation": "file:///etc/passwd"}, "InvalidParameterValue"),
        ({"Name": "x", "ImageLocation": "ftp://host/x"}, "InvalidParameterValue"),
        ({"Name": "x", "ImageLocation": "http://"}, "InvalidParameterValue"),
        ({"Name": "x", "ImageLocation": "http://u:p@host/x"}, "InvalidParameterValue"),
        ({"Name": "x", "ImageLocation": "http://[::1/x"}, "InvalidParameterValue"),
        ({"Name": "x", "ImageLocation": "bucket/absent.xml"}, "NoSuchKey"),
        ({"Name": "x", "ImageLocation": "bucket/junk.xml"}, "InvalidManifest"),
        ({"Name": "x", "ImageLocation": LOCATION, "Architecture": "vax"}, "InvalidParameterValue"),
        ({"Name": "x", "ImageLocation": LOCATION, "DryRun": True}, "DryRunOperation"),
    ],
)
def test_what_cannot_be_registered(
    openstack: Darkroom,
    me: Caller,
    put: Callable[[Bundle], None],
    request_: dict[str, Any],
    code: str,
) -> None:
    put(bundle(IMAGE))
    openstack.objects["bucket/junk.xml"] = b"<junk"
    assert refused(me, register_image, **request_) == code
    assert openstack.images == {}
    assert me.db.read(lambda s: queries.items_of(s, MINE, ids.IMAGE_PREFIXES)) == []


def test_s3s_own_refusal_is_told(
    openstack: Darkroom, me: Caller, put: Callable[[Bundle], None]
) -> None:
    put(bundle(IMAGE))
    openstack.fail = {r"s3\.test": 403}
    with pytest.raises(EC2Error) as caught:
        register(me)
    assert (caught.value.code, caught.value.status) == ("Broken", 403)
    assert caught.value.message == "no & no"
    openstack.fail = {r"s3\.test": 503}
    with pytest.raises(Unavailable):
        register(me)


def test_a_cloud_without_a_key_takes_no_bundles(openstack: Darkroom, me: Caller) -> None:
    me.conf.set_override("x509_root_private_key", None)
    assert refused(me, register_image, ImageLocation=LOCATION) == "UnsupportedOperation"


# -- files --------------------------------------------------------------------


def test_a_file_is_left_to_glance(openstack: Darkroom, me: Caller) -> None:
    url = "https://images.test/debian.qcow2"
    image_id = register(me, ImageLocation=url)
    [row] = openstack.images.values()
    assert (row["disk_format"], row["container_format"], row["status"]) == (
        "qcow2",
        "bare",
        "importing",
    )
    assert (shown(me, image_id)["State"], shown(me, image_id)["ImageLocation"]) == ("pending", url)
    row["status"] = "active"
    assert shown(me, image_id)["State"] == "available"
    row |= {"status": "queued", "os_glance_failed_import": "file"}
    assert shown(me, image_id)["State"] == "failed"
    forbidden = "http://forbidden.test/x"
    assert refused(me, register_image, ImageLocation=forbidden) == "InvalidParameterValue"
    assert len(openstack.images) == 1


# -- copies -------------------------------------------------------------------


@pytest.fixture
def source(openstack: Darkroom, me: Caller) -> str:
    """A public image of another project."""
    made = openstack.image(
        name="source", size=9, min_disk=3, os_distro="debian", os_hash_value="1", ec2_id="ami-9"
    )
    openstack.data[made["id"]] = b"some data"
    [found] = me(describe_images)["Images"]
    return str(found["ImageId"])


def copy(me: Caller, source: str, **request: Any) -> str:
    request = {"Name": "copy", "SourceImageId": source, "SourceRegion": "RegionOne", **request}
    return str(me(copy_image, **request)["ImageId"])


def test_an_image_is_copied(openstack: Darkroom, me: Caller, source: str) -> None:
    image_id = copy(me, source, Description="d")
    assert shown(me, image_id)["State"] == "pending"
    run_all(me)
    made = openstack.images[_os_id(me, image_id)]
    assert openstack.data[made["id"]] == b"some data"
    assert (made["owner"], made["visibility"], made["name"]) == (MINE, "private", "copy")
    assert (made["min_disk"], made["os_distro"], made["ec2_id"]) == (3, "debian", image_id)
    assert "os_hash_value" not in made
    assert shown(me, image_id)["State"] == "available"
    assert shown(me, image_id)["Description"] == "d"


def test_a_client_token_makes_one_copy(openstack: Darkroom, me: Caller, source: str) -> None:
    image_id = copy(me, source, ClientToken="t")
    assert copy(me, source, ClientToken="t") == image_id
    assert len(openstack.images) == 2
    request = {"SourceImageId": source, "SourceRegion": "RegionOne", "ClientToken": "t"}
    assert refused(me, copy_image, Name="other", **request) == "IdempotentParameterMismatch"
    assert copy(me, source, ClientToken="u") != image_id


def test_of_two_copies_with_one_token_the_first_one_stays(
    openstack: Darkroom, me: Caller, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Both look before either has stored the token.
    monkeypatch.setattr("trimaran.ec2.kinds.images.image_copy.known_token", lambda *_: "")
    image_id = copy(me, source, ClientToken="t")
    with pytest.raises(Unavailable):
        copy(me, source, ClientToken="t")
    monkeypatch.undo()
    run_all(me)
    assert copy(me, source, ClientToken="t") == image_id
    assert len(openstack.images) == 2


@pytest.mark.parametrize("at", range(5))
def test_a_death_while_copying(openstack: Darkroom, me: Caller, source: str, at: int) -> None:
    image_id = copy(me, source)
    deaths = Deaths(at)
    with dying(deaths, *WATCHED):
        try:
            run_all(me)
        except Death:
            assert deaths.fired
    assert deaths.fired is (at < 4)
    run_all(me)
    assert shown(me, image_id)["State"] == "available"
    assert len(openstack.images) == 2


def test_a_source_that_vanishes_fails_the_copy(
    openstack: Darkroom, me: Caller, source: str
) -> None:
    image_id = copy(me, source)
    for row in openstack.images.values():
        if row["name"] == "source":
            row["visibility"] = "private"
    run_all(me)
    assert shown(me, image_id)["State"] == "failed"


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"SourceRegion": "elsewhere"}, "InvalidParameterValue"),
        ({"SourceImageId": "ami-00000001"}, "InvalidAMIID.NotFound"),
        ({"Encrypted": True}, "UnsupportedOperation"),
        ({"Name": ""}, "MissingParameter"),
        ({"DryRun": True}, "DryRunOperation"),
    ],
)
def test_what_cannot_be_copied(
    openstack: Darkroom, me: Caller, source: str, request_: dict[str, Any], code: str
) -> None:
    request = {"Name": "copy", "SourceImageId": source, "SourceRegion": "RegionOne"}
    assert refused(me, copy_image, **{**request, **request_}) == code
    assert jobs_of(me.db, journal.COPY_IMAGE) == []


def test_another_projects_private_image_is_not_copied(openstack: Darkroom, me: Caller) -> None:
    row = openstack.image(THEIRS, name="private", size=5)
    new = queries.NewItem("ami", row["id"], THEIRS)
    [item] = me.db.write(lambda s: queries.add_items(s, [new], ids.mint))
    request = {"Name": "copy", "SourceImageId": item.id, "SourceRegion": "RegionOne"}
    assert refused(me, copy_image, **request) == "InvalidAMIID.NotFound"
