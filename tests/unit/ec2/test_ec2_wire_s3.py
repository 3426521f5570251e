"""The S3 stub without HTTP: storage, the aws-chunked encoding, listings, digests."""

from __future__ import annotations

import base64
import hashlib
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimaran import errors as deck
from trimaran.ec2.s3 import errors, listing
from trimaran.ec2.s3.chunked import Decoder
from trimaran.ec2.s3.errors import S3Error
from trimaran.ec2.s3.payload import Payload
from trimaran.ec2.s3.store import Entry, Store

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
    assert code(listing.objects, "b", found, {"delimiter": "/"}) == "NotImplemented"


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
