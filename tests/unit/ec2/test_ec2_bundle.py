"""Bundles: manifests, keys, and archives that mean harm."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.ec2_bundle import Bundle, bundle, other_key, pem, tar_of
from trimaran.ec2.bundle import PIECE, BundleError, place
from trimaran.ec2.bundle.manifest import Part, is_plain_key, parse
from trimaran.ec2.bundle.place import InUse, Place
from trimaran.ec2.bundle.tape import MOST_HEADERS
from trimaran.ec2.bundle.unwrap import gunzipped, image_of, keys_of

LIMIT = 1 << 24
IMAGE = os.urandom(30_000)


def unwrapped(made: Bundle, limit: int = LIMIT) -> bytes:
    manifest = parse(made.manifest())
    keys = keys_of(manifest, pem())
    return b"".join(image_of(iter(made.parts().values()), manifest, keys, limit))


def refusal(made: Bundle, limit: int = LIMIT) -> str:
    with pytest.raises(BundleError) as caught:
        unwrapped(made, limit)
    return caught.value.message


# -- what is right ------------------------------------------------------------


@pytest.mark.parametrize("image", [b"", b"x", IMAGE, bytes(PIECE * 3 + 1)])
@pytest.mark.parametrize("part_size", [17, 4096, 1 << 20])
def test_an_image_comes_out_as_it_went_in(image: bytes, part_size: int) -> None:
    if part_size == 17 and len(image) > 1000:
        image = image[:1000]
    assert unwrapped(bundle(image, part_size=part_size)) == image


def test_nothing_has_to_be_told_of_digests_and_sizes() -> None:
    assert unwrapped(bundle(IMAGE, digests=False, size=None)) == IMAGE


def test_several_gzip_members_and_padding_are_one_stream() -> None:
    def cut(data: bytes) -> bytes:
        return gzip.compress(data[:999]) + gzip.compress(data[999:]) + bytes(64)

    assert unwrapped(bundle(IMAGE, zip=cut)) == IMAGE


def test_further_plain_files_are_passed_over() -> None:
    made = Bundle(tar_of(("image", IMAGE), ("more/notes.txt", b"x" * 700)), size=len(IMAGE))
    assert unwrapped(made) == IMAGE


def test_a_sparse_file_has_its_holes(tmp_path: Path) -> None:
    # The old GNU form, as Amazon's own tool writes it: 1 MiB of hole, then a block.
    block = os.urandom(512)
    info = tarfile.TarInfo("image")
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 512
    buffer = bytearray(info.tobuf(format=tarfile.GNU_FORMAT))
    buffer[386:398] = b"%011o\0" % (1 << 20)
    buffer[398:410] = b"%011o\0" % 512
    buffer[483:495] = b"%011o\0" % ((1 << 20) + 512)
    buffer[148:156] = b" " * 8
    buffer[148:156] = b"%06o\0 " % sum(buffer)
    made = Bundle(bytes(buffer) + block + bytes(1024))
    assert unwrapped(made) == bytes(1 << 20) + block


# -- the manifest -------------------------------------------------------------


def test_a_manifest_is_read() -> None:
    machine = (
        "<block_device_mapping><mapping><virtual>ami</virtual><device>sda1</device></mapping>"
        "<mapping><virtual>swap</virtual><device>sda3</device></mapping></block_device_mapping>"
        "<kernel_id>aki-0123abcd</kernel_id><ramdisk_id>ari-0123abcd</ramdisk_id>"
    )
    made = parse(bundle(IMAGE, machine=machine).manifest())
    assert (made.architecture, made.format, made.size) == ("x86_64", "ami", len(IMAGE))
    assert made.mappings == (("ami", "sda1"), ("swap", "sda3"))
    assert (made.kernel, made.ramdisk) == ("aki-0123abcd", "ari-0123abcd")
    assert [part.name for part in made.parts] == list(bundle(IMAGE).parts())
    assert all(part.digest for part in made.parts)
    assert parse(bundle(IMAGE, machine="<kernel_id>true</kernel_id>").manifest()).format == "aki"
    assert parse(bundle(IMAGE, machine="<ramdisk_id>true</ramdisk_id>").manifest()).format == "ari"


ENTITY = b'<!DOCTYPE m [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><manifest>&b;</manifest>'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"</manifest>", b""),
        (b"<?xml version='1.0'?>", ENTITY),
        (b"image.part.0", b"../../etc/passwd"),
        (b"image.part.0", b"a/../b"),
        (b"image.part.0", b"/etc/passwd"),
        (b"image.part.0", b"a&#9;b"),
        (b"image.part.0", b"x" * 1025),
        (b"image.part.0", b""),
        (b"<filename>", b"<name2>"),
        (b"SHA1", b"CRC7"),
        (b'<digest algorithm="SHA1">', b"<digest>zz"),
        (b"<ec2_encrypted_key algorithm='AES-128-CBC'>", b"<ec2_encrypted_key>zz"),
        (b"ec2_encrypted_iv", b"user_encrypted_iv"),
        (b"<size>30000", b"<size>-1"),
        (b"<size>30000", b"<size>" + b"9" * 30),
        (b"</architecture>", b"</architecture><kernel_id>../x</kernel_id>"),
    ],
)
def test_broken_manifests(old: bytes, new: bytes) -> None:
    good = bundle(IMAGE).manifest()
    bad = good.replace(old, new)
    assert bad != good
    with pytest.raises(BundleError):
        parse(bad)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_manifest_or_none(data: bytes) -> None:
    with pytest.raises(BundleError):
        parse(data)


def test_a_manifest_is_not_read_for_ever() -> None:
    with pytest.raises(BundleError):
        parse(b"<manifest>" + b" " * (5 << 20) + b"</manifest>")


@given(st.text(max_size=40))
def test_plain_keys_stay_what_they_are(key: str) -> None:
    if is_plain_key(key):
        assert "//" not in f"/{key}/"
        assert not {".", ".."} & set(key.split("/"))


# -- keys ---------------------------------------------------------------------


def test_a_bundle_for_another_cloud() -> None:
    assert "key" in refusal(bundle(IMAGE, recipient=other_key()))


def test_a_wrong_data_key() -> None:
    made = bundle(IMAGE)
    manifest = parse(made.manifest())
    with pytest.raises(BundleError, match="decrypted"):
        list(image_of(iter(made.parts().values()), manifest, (bytes(16), made.iv), LIMIT))


def test_a_cloud_key_that_is_none() -> None:
    with pytest.raises(ValueError):
        keys_of(parse(bundle(IMAGE).manifest()), b"nonsense")


# -- parts --------------------------------------------------------------------


@pytest.mark.parametrize("how", ["missing", "swapped", "short", "changed"])
def test_parts_that_are_not_what_they_were(how: str) -> None:
    made = bundle(IMAGE)
    manifest = parse(made.manifest())
    keys = keys_of(manifest, pem())
    parts = list(made.parts().values())
    if how == "missing":
        parts.pop(1)
    elif how == "swapped":
        parts[1], parts[2] = parts[2], parts[1]
    elif how == "short":
        parts[-1] = parts[-1][:-5]
    else:
        parts[1] = bytes([parts[1][0] ^ 1]) + parts[1][1:]
    with pytest.raises(BundleError):
        list(image_of(iter(parts), manifest, keys, LIMIT))


def test_what_the_manifest_says_of_the_whole_is_checked() -> None:
    assert "large" in refusal(bundle(IMAGE, size=len(IMAGE) + 1))
    made = bundle(IMAGE)
    told = parse(made.manifest())
    made.tar = tar_of(("image", IMAGE[:-1] + b"?"))
    keys = (made.key, made.iv)
    with pytest.raises(BundleError, match="digest"):
        list(image_of(iter(made.parts().values()), told, keys, LIMIT))


# -- archives -----------------------------------------------------------------


def member(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@pytest.mark.parametrize("place", ["first", "second"])
@pytest.mark.parametrize(
    "evil",
    [
        "../../etc/cron.d/x",
        "/etc/passwd",
        "a/../../b",
        member("image", tarfile.SYMTYPE, "/etc/passwd"),
        member("image", tarfile.LNKTYPE, "../x"),
        member("image", tarfile.CHRTYPE),
        member("image", tarfile.BLKTYPE),
        member("image", tarfile.FIFOTYPE),
        member("image", tarfile.DIRTYPE),
    ],
    ids=lambda evil: evil if isinstance(evil, str) else f"type {evil.type.decode()}",
)
def test_members_that_mean_harm(evil: Any, place: str) -> None:
    members = [(evil, b"")] if place == "first" else [("image", IMAGE), (evil, b"")]
    refusal(Bundle(tar_of(*members)))


def test_no_archive_at_all() -> None:
    for tar in (b"", b"x" * 5000, bytes(1024), tar_of()):
        refusal(Bundle(tar, size=None))


def test_an_archive_that_ends_in_the_middle() -> None:
    refusal(Bundle(tar_of(("image", IMAGE))[:9000]))


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE])
def test_a_header_that_claims_gigabytes_costs_nothing(kind: bytes) -> None:
    info = member("x", kind)
    info.size = 8 << 30
    began = time.monotonic()
    refusal(Bundle(info.tobuf(format=tarfile.GNU_FORMAT) + bytes(10_000)))
    assert time.monotonic() - began < 30


def test_headers_without_end() -> None:
    one = member("x", tarfile.REGTYPE).tobuf()
    refusal(Bundle(one * (MOST_HEADERS // 512 + 10), digests=False))


def test_a_bomb_stops_at_the_limit() -> None:
    seen = 0

    def count(pieces: Iterator[bytes]) -> None:
        nonlocal seen
        for piece in pieces:
            seen += len(piece)
            assert len(piece) <= PIECE

    bomb = gzip.compress(bytes(64 << 20))
    with pytest.raises(BundleError, match="more than"):
        count(gunzipped(iter([bomb]), 1 << 20))
    assert seen <= 1 << 20


def test_a_hole_larger_than_allowed() -> None:
    info = tarfile.TarInfo("image")
    info.size = 1 << 40
    refusal(Bundle(info.tobuf() + bytes(4096)))


@given(st.data())
def test_a_broken_archive_is_refused_and_never_crashes(data: Any) -> None:
    tar = bytearray(tar_of(("image", b"y" * 700), ("b", b"z")))
    for _ in range(data.draw(st.integers(1, 5))):
        tar[data.draw(st.integers(0, len(tar) - 1))] = data.draw(st.integers(0, 255))
    made = Bundle(bytes(tar), digests=False)
    manifest = parse(made.manifest())
    try:
        got = b"".join(image_of(iter([made.encrypted]), manifest, (made.key, made.iv), LIMIT))
    except BundleError:
        return
    assert len(got) <= LIMIT


# -- the place of the parts ---------------------------------------------------


def put(held: Place, number: int, data: bytes) -> None:
    held.part(number).write_bytes(data)


def test_a_place_is_held_by_one_and_kept_for_the_next(tmp_path: Path) -> None:
    with Place(str(tmp_path), "job") as mine:
        put(mine, 0, b"data")
        with pytest.raises(InUse):
            Place(str(tmp_path), "job")
        assert mine.path.stat().st_mode & 0o777 == 0o700
    with Place(str(tmp_path), "job") as again:
        assert again.has(0, Part("x", None))
        assert not again.has(1, Part("x", None))
        assert b"".join(again.pieces(1)) == b"data"
        again.remove()
    assert list(tmp_path.iterdir()) == []


def test_the_directory_of_places_may_be_still_to_come(tmp_path: Path) -> None:
    with Place(str(tmp_path / "not" / "yet"), "job") as mine:
        assert mine.path.parent == tmp_path / "not" / "yet"
        assert mine.path.stat().st_mode & 0o777 == 0o700


def test_a_place_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    (tmp_path / f"{place.PREFIX}job").mkdir()
    (tmp_path / f"{place.PREFIX}job").chmod(0o777)
    with pytest.raises(PermissionError):
        Place(str(tmp_path), "job")
    (tmp_path / f"{place.PREFIX}other").symlink_to(tmp_path)
    with pytest.raises(OSError):
        Place(str(tmp_path), "other")


def test_the_sweep_takes_what_nobody_needs(tmp_path: Path) -> None:
    for job in ("over", "waiting", "unknown", "held", "ancient"):
        with Place(str(tmp_path), job) as made:
            put(made, 0, b"x")
    old = time.time() - place.ABANDONED - 1
    os.utime(tmp_path / f"{place.PREFIX}ancient", (old, old))
    (tmp_path / "somebody-elses").mkdir()
    with Place(str(tmp_path), "held"):
        assert place.sweep(str(tmp_path), lambda ids: {"over", "held"} & set(ids)) == 2
    left = {path.name.removeprefix(place.PREFIX) for path in tmp_path.iterdir()}
    assert left == {"waiting", "unknown", "held", "somebody-elses"}


def test_tools_of_others_read_the_test_bundles() -> None:
    made = bundle(IMAGE)
    with tarfile.open(fileobj=io.BytesIO(made.tar)) as archive:
        assert archive.getnames() == ["image"]
