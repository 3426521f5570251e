"""The S3 stub without HTTP: storage, the aws-chunked encoding, listings, digests."""

from __future__ import annotations

import base64
import hashlib
import os
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimaran import errors as deck
from trimaran.ec2 import plain_xml
from trimaran.ec2.s3 import documents, errors, listing
from trimaran.ec2.s3.chunked import Decoder
from trimaran.ec2.s3.errors import S3Error
from trimaran.ec2.s3.payload import Payload
from trimaran.ec2.s3.store import Entry, Store
from trimaran.ec2.s3.uploads import Uploads

ONE, OTHER = "a" * 32, "b" * 32


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "buckets")
    made.create(ONE, "bucket")
    return made


def put(store: Store, key: str, data: bytes = b"data") -> Entry:
    with store.upload(ONE, "bucket", key, "text/plain") as upload:
        upload.write(data[:2])
        upload.write(data[2:])
        return upload.finish()


def get(store: Store, key: str) -> bytes:
    opened = store.open(ONE, "bucket", key)
    return b"".join(opened.chunks(0, opened.entry.size))


def code(call: Any, *args: Any) -> str:
    with pytest.raises(S3Error) as caught:
        call(*args)
    return caught.value.code


KEYS = ["plain", "a/b/c", "../../etc/passwd", "/", "..", "é😀", "x" * 1024, "\n\0", "a" * 300]


@pytest.mark.parametrize("key", KEYS)
def test_any_key_is_kept_inside_its_bucket(store: Store, tmp_path: Path, key: str) -> None:
    entry = put(store, key)
    assert entry == Entry(key, 4, hashlib.md5(b"data").hexdigest(), entry.modified, "text/plain")
    assert get(store, key) == b"data"
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.parent for path in files] == [tmp_path / "buckets" / ONE / "bucket"]
    store.delete(ONE, "bucket", key)
    assert code(store.open, ONE, "bucket", key) == "NoSuchKey"


@pytest.mark.parametrize("bucket", ["", ".", "..", "a/b", "../x", ".hidden", "é", "x" * 300, "a\n"])
def test_bucket_names_cannot_climb(store: Store, bucket: str) -> None:
    assert code(store.create, ONE, bucket) == "InvalidBucketName"


@pytest.mark.parametrize("project", ["", "..", "a/b"])
def test_project_ids_cannot_climb(store: Store, project: str) -> None:
    assert code(store.create, project, "bucket") == "InvalidRequest"


def test_projects_do_not_see_each_other(store: Store) -> None:
    put(store, "k")
    assert store.buckets(OTHER) == []
    assert code(store.entries, OTHER, "bucket") == "NoSuchBucket"
    store.create(OTHER, "bucket")
    assert code(store.open, OTHER, "bucket", "k") == "NoSuchKey"


def test_an_upload_that_breaks_off_leaves_the_old_object(store: Store, tmp_path: Path) -> None:
    put(store, "k", b"old!")
    with store.upload(ONE, "bucket", "k", "x") as upload:
        upload.write(b"new")
    assert get(store, "k") == b"old!"
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1


def test_buckets_are_removed_empty_only(store: Store) -> None:
    put(store, "k")
    assert code(store.remove, ONE, "bucket") == "BucketNotEmpty"
    store.delete(ONE, "bucket", "k")
    store.remove(ONE, "bucket")
    assert code(store.remove, ONE, "bucket") == "NoSuchBucket"
    assert [name for name, _ in store.buckets(ONE)] == []


@pytest.mark.parametrize("read", [0, 1, 3])
def test_who_reads_leaves_nothing_open(store: Store, read: int) -> None:
    store.create("p", "bucket")
    with store.upload("p", "bucket", "k", "x/y") as upload:
        upload.write(b"abc")
        upload.finish()
    opened = store.open("p", "bucket", "k")
    descriptor = opened.descriptor
    pieces = opened.chunks(0, 3, 1)
    assert [next(pieces) for _ in range(read)] == [b"a", b"b", b"c"][:read]
    del pieces, opened
    with pytest.raises(OSError):
        os.fstat(descriptor)


def test_a_foreign_file_is_an_error_and_not_an_object(store: Store, tmp_path: Path) -> None:
    put(store, "k")
    file = next(path for path in tmp_path.rglob("*") if path.is_file())
    file.write_bytes(b"junk")
    assert code(store.open, ONE, "bucket", "k") == "InternalError"


def chunked(data: bytes, size: int, trailer: str = "") -> bytes:
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    body = b"".join(b"%x;chunk-signature=ab\r\n%s\r\n" % (len(each), each) for each in pieces)
    return body + b"0\r\n" + trailer.encode() + b"\r\n"


@given(st.binary(max_size=200), st.integers(1, 50), st.integers(1, 40))
def test_aws_chunked_is_decoded_however_it_arrives(data: bytes, size: int, step: int) -> None:
    body = chunked(data, size, "x-amz-checksum-crc32:AAAA\r\n")
    decoder = Decoder()
    got = b"".join(
        piece for at in range(0, len(body), step) for piece in decoder.feed(body[at : at + step])
    )
    assert got == data
    assert decoder.done
    assert decoder.trailers == {"x-amz-checksum-crc32": "AAAA"}


@pytest.mark.parametrize("body", [b"zz\r\n", b"-1\r\n", b"2\r\nabc\r\n", b"x" * 9000, b"\r\n"])
def test_a_broken_encoding_is_refused(body: bytes) -> None:
    decoder = Decoder()
    with pytest.raises(S3Error):
        list(decoder.feed(body))


def upload_of(store: Store, body: bytes, declared: str, **headers: str) -> bytes:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    with store.upload(ONE, "bucket", "k", "x") as upload:
        payload = Payload(sent, declared, upload)
        payload.feed(body)
        payload.check()
        upload.finish()
    return get(store, "k")


def test_a_payload_must_match_what_was_said_of_it(store: Store) -> None:
    data = b"some bytes"
    sha = hashlib.sha256(data).hexdigest()
    md5 = base64.b64encode(hashlib.md5(data).digest()).decode()
    crc = base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()
    good = {"content_md5": md5, "x_amz_checksum_crc32": crc}
    assert upload_of(store, data, sha, **good) == data
    assert upload_of(store, data, "UNSIGNED-PAYLOAD") == data
    streaming = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
    trailer = f"x-amz-checksum-crc32:{crc}\r\n"
    body = chunked(data, 3, trailer)
    assert upload_of(store, body, streaming, x_amz_decoded_content_length="10") == data
    wrong = base64.b64encode(b"\0" * 4).decode()
    for code_wanted, call in {
        "XAmzContentSHA256Mismatch": lambda: upload_of(store, b"other", sha),
        "BadDigest": lambda: upload_of(store, data, sha, x_amz_checksum_crc32=wrong),
        "InvalidDigest": lambda: upload_of(store, data, sha, content_md5="?"),
        "InvalidRequest": lambda: upload_of(store, data, "nonsense"),
        "IncompleteBody": lambda: upload_of(store, body[:9], streaming),
    }.items():
        assert code(call) == code_wanted
    assert code(lambda: upload_of(store, b"x", "UNSIGNED-PAYLOAD", content_md5=md5)) == "BadDigest"
    short = {"x_amz_decoded_content_length": "11"}
    assert code(lambda: upload_of(store, body, streaming, **short)) == "IncompleteBody"
    bad_trailer = chunked(data, 3, f"x-amz-checksum-crc32:{wrong}\r\n")
    assert code(lambda: upload_of(store, bad_trailer, streaming)) == "BadDigest"
    assert get(store, "k") == data


def test_listings_page_and_filter() -> None:
    found = [Entry(f"p/{n}", n, "e", 0.0) for n in range(5)] + [Entry("q<&>", 1, "e", 0.0)]
    first = listing.objects("b", found, {"list-type": "2", "max-keys": "2", "prefix": "p/"})
    assert b"<IsTruncated>true</IsTruncated>" in first
    assert first.count(b"<Contents>") == 2
    token = first.split(b"<NextContinuationToken>")[1].split(b"<")[0].decode()
    rest = listing.objects("b", found, {"list-type": "2", "continuation-token": token})
    assert rest.count(b"<Contents>") == 4
    assert b"q&lt;&amp;&gt;" in rest
    old = listing.objects("b", found, {"marker": "p/3"})
    assert old.count(b"<Contents>") == 2
    for bad in ({"max-keys": "x"}, {"list-type": "2", "continuation-token": "?"}):
        assert code(listing.objects, "b", found, bad) == "InvalidArgument"


def test_listings_roll_keys_up_at_a_delimiter() -> None:
    keys = ["a/1", "a/2", "b", "c/d/1", "c/e"]
    found = [Entry(key, 1, "e", 0.0) for key in keys]

    def seen(**query: str) -> tuple[list[str], list[str], str]:
        told = {name.replace("_", "-"): value for name, value in query.items()}
        root = plain_xml.parse(listing.objects("b", found, told))
        space = "{http://s3.amazonaws.com/doc/2006-03-01/}"
        rows = [row.text or "" for row in root.iter(f"{space}Key")]
        common = [row[0].text or "" for row in root.iter(f"{space}CommonPrefixes")]
        return rows, common, root.findtext(f"{space}NextMarker") or ""

    assert seen(delimiter="/") == (["b"], ["a/", "c/"], "")
    assert seen(delimiter="/", prefix="c/") == (["c/e"], ["c/d/"], "")
    assert seen(delimiter="/", max_keys="1") == ([], ["a/"], "a/")
    assert seen(delimiter="/", max_keys="1", marker="a/") == (["b"], [], "b")
    assert seen(delimiter="/", marker="a/1") == (["b"], ["a/", "c/"], "")
    assert seen(delimiter="zz") == (keys, [], "")


@pytest.fixture
def uploads(store: Store) -> Uploads:
    return Uploads(store)


def add_part(uploads: Uploads, upload_id: str, number: int, data: bytes) -> str:
    with uploads.part(ONE, "bucket", "big/key", upload_id, number) as target:
        target.write(data)
        return target.finish().etag


def test_parts_become_one_object(store: Store, uploads: Uploads, tmp_path: Path) -> None:
    upload_id = uploads.begin(ONE, "bucket", "big/key", "x/y", {"x-amz-meta-a": "b"})
    assert [each.key for each in uploads.begun(ONE, "bucket")] == ["big/key"]
    pieces = {1: os.urandom(3000), 3: b"", 2: os.urandom(100_000), 10: b"end"}
    etags = {n: add_part(uploads, upload_id, n, data) for n, data in pieces.items()}
    etags[1] = add_part(uploads, upload_id, 1, pieces[1])
    told = uploads.parts(ONE, "bucket", "big/key", upload_id)
    assert [(n, entry.size) for n, entry in told] == [(1, 3000), (2, 100_000), (3, 0), (10, 3)]
    assert store.entries(ONE, "bucket") == []
    wanted = sorted(etags.items())
    entry = uploads.finish(ONE, "bucket", "big/key", upload_id, wanted)
    joined = b"".join(bytes.fromhex(etag) for _, etag in wanted)
    assert entry.etag == f"{hashlib.md5(joined).hexdigest()}-4"
    assert get(store, "big/key") == b"".join(pieces[n] for n, _ in wanted)
    assert (entry.size, entry.content_type) == (103_003, "x/y")
    assert store.entries(ONE, "bucket")[0].headers == {"x-amz-meta-a": "b"}
    assert uploads.begun(ONE, "bucket") == []
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1
    assert code(uploads.parts, ONE, "bucket", "big/key", upload_id) == "NoSuchUpload"


def test_uploads_that_cannot_be(store: Store, uploads: Uploads) -> None:
    upload_id = uploads.begin(ONE, "bucket", "big/key", "x", {})
    etag = add_part(uploads, upload_id, 1, b"x")
    finish = partial(uploads.finish, ONE, "bucket", "big/key", upload_id)
    assert code(finish, [(2, etag)]) == "InvalidPart"
    assert code(finish, [(1, "0" * 32)]) == "InvalidPart"
    assert code(finish, [(1, "../x")]) == "InvalidPart"
    assert code(finish, [(1, etag), (1, etag)]) == "InvalidPartOrder"
    for number in (0, 10_001):
        assert code(uploads.part, ONE, "bucket", "big/key", upload_id, number) == "InvalidArgument"
    for project, key, other in (
        (ONE, "another", upload_id),
        (ONE, "big/key", "0" * 32),
        (ONE, "big/key", "../bucket"),
    ):
        assert code(uploads.parts, project, "bucket", key, other) == "NoSuchUpload"
    assert code(uploads.parts, OTHER, "bucket", "big/key", upload_id) == "NoSuchBucket"
    assert code(uploads.begin, ONE, "bucket", "k" * 1025, "x", {}) == "KeyTooLongError"
    uploads.abort(ONE, "bucket", "big/key", upload_id)
    assert code(uploads.abort, ONE, "bucket", "big/key", upload_id) == "NoSuchUpload"
    uploads.begin(ONE, "bucket", "left", "x", {})
    store.remove(ONE, "bucket")
    assert store.buckets(ONE) == []


def test_old_uploads_go(
    store: Store, uploads: Uploads, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    uploads.begin(ONE, "bucket", "old", "x", {})
    monkeypatch.setattr("trimaran.ec2.s3.uploads.KEPT", -1.0)
    uploads.begin(ONE, "bucket", "new", "x", {})
    assert [each.key for each in uploads.begun(ONE, "bucket")] == ["new"]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"<Delete/>",
        b"<Other><Object><Key>k</Key></Object></Other>",
        b"<Delete><Object><Key></Key></Object></Delete>",
        b"<!DOCTYPE x [<!ENTITY a 'b'>]><Delete><Object><Key>&a;</Key></Object></Delete>",
        b"<Delete>" + b"<Object><Key>k</Key></Object>" * 1001 + b"</Delete>",
    ],
)
def test_documents_that_are_none(text: bytes) -> None:
    assert code(documents.wanted_keys, text) == "MalformedXML"


def test_documents_are_read() -> None:
    space = b"<Delete xmlns='http://s3.amazonaws.com/doc/2006-03-01/'><Quiet>true</Quiet>"
    text = space + b"<Object><Key>a&amp;b</Key></Object></Delete>"
    assert documents.wanted_keys(text) == (["a&b"], True)
    part = b"<Part><ETag>&quot;AB&quot;</ETag><PartNumber>2</PartNumber></Part>"
    whole = b"<CompleteMultipartUpload>%s</CompleteMultipartUpload>"
    assert documents.wanted_parts(whole % part) == [(2, "ab")]
    for bad in (b"", part.replace(b"2", b"x"), part * 10_001):
        assert code(documents.wanted_parts, whole % bad) == "MalformedXML"


def test_errors_of_the_deck_become_s3_errors() -> None:
    told = {
        deck.Unavailable(service="identity"): ("ServiceUnavailable", 503),
        deck.Unauthenticated(): ("AccessDenied", 403),
        deck.BadRequest("x"): ("InvalidRequest", 400),
        deck.TrimaranError("secret"): ("InternalError", 500),
    }
    for error, (code_wanted, status) in told.items():
        made = errors.to_s3(error)
        assert (made.code, made.status) == (code_wanted, status)
        assert "secret" not in made.message
