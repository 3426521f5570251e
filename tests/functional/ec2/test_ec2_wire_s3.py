"""The S3 stub through boto3, with signatures that a real Keystone checks."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from boto3.s3.transfer import TransferConfig
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from tests.support.cloud import ALT, CloudEnv
from tests.support.ec2 import Daemon, keys_of, running, write_conf
from tests.support.ec2_service import aws_cli
from tests.support.ports import free_port

Keys = tuple[str, str]


@pytest.fixture(scope="module")
def keys(cloud_env: CloudEnv) -> Keys:
    return keys_of(cloud_env)


@pytest.fixture(scope="module")
def daemon(cloud_env: CloudEnv, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    home = tmp_path_factory.mktemp("s3")
    port = free_port()
    conf = write_conf(home, cloud_env, f"sqlite:///{home}/ec2.sqlite", s3_listen_port=port)
    with running("ec2-s3", conf, port) as started:
        yield started


@pytest.fixture
def s3(daemon: Daemon, keys: Keys) -> Any:
    return daemon.client(keys, "s3", s3={"addressing_style": "path"})


@pytest.fixture
def bucket(s3: Any) -> Iterator[str]:
    name = f"bucket-{os.urandom(4).hex()}"
    s3.create_bucket(Bucket=name)
    yield name
    for row in s3.list_objects_v2(Bucket=name).get("Contents", ()):
        s3.delete_object(Bucket=name, Key=row["Key"])
    s3.delete_bucket(Bucket=name)


def code(call: Any, **arguments: Any) -> tuple[str, int]:
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    response = caught.value.response
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]


@pytest.mark.parametrize("key", ["plain", "a/b c/é+&=?#%2e", "..", "../../x", "//x//"])
def test_an_object_round_trip(s3: Any, bucket: str, key: str) -> None:
    data = os.urandom(3_000_000)
    made = s3.put_object(Bucket=bucket, Key=key, Body=data, ContentType="x/y")
    etag = f'"{hashlib.md5(data).hexdigest()}"'
    assert made["ETag"] == etag
    got = s3.get_object(Bucket=bucket, Key=key)
    assert got["Body"].read() == data
    assert (got["ETag"], got["ContentType"]) == (etag, "x/y")
    head = s3.head_object(Bucket=bucket, Key=key)
    assert head["ContentLength"] == len(data)
    part = s3.get_object(Bucket=bucket, Key=key, Range="bytes=10-19")
    assert part["Body"].read() == data[10:20]
    assert part["ContentRange"] == f"bytes 10-19/{len(data)}"
    assert s3.get_object(Bucket=bucket, Key=key, Range="bytes=-5")["Body"].read() == data[-5:]
    assert code(s3.get_object, Bucket=bucket, Key=key, Range="bytes=9999999-") == (
        "InvalidRange",
        416,
    )
    assert [row["Key"] for row in s3.list_objects(Bucket=bucket)["Contents"]] == [key]
    s3.delete_object(Bucket=bucket, Key=key)
    assert code(s3.get_object, Bucket=bucket, Key=key) == ("NoSuchKey", 404)


def test_buckets(s3: Any, bucket: str) -> None:
    assert bucket in [row["Name"] for row in s3.list_buckets()["Buckets"]]
    assert code(s3.create_bucket, Bucket=bucket) == ("BucketAlreadyOwnedByYou", 403)
    s3.put_object(Bucket=bucket, Key="k", Body=b"")
    assert code(s3.delete_bucket, Bucket=bucket) == ("BucketNotEmpty", 403)
    assert code(s3.get_object, Bucket="no-such", Key="k") == ("NoSuchBucket", 404)
    assert code(s3.head_bucket, Bucket="no-such")[1] == 404


def test_pages(s3: Any, bucket: str) -> None:
    for n in range(5):
        s3.put_object(Bucket=bucket, Key=f"k{n}", Body=b"x")
    pages = s3.get_paginator("list_objects_v2").paginate(
        Bucket=bucket, PaginationConfig={"PageSize": 2}
    )
    assert [row["Key"] for page in pages for row in page["Contents"]] == [f"k{n}" for n in range(5)]


def test_other_projects_and_strangers_see_nothing(
    daemon: Daemon, cloud_env: CloudEnv, keys: Keys, s3: Any, bucket: str
) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    other = daemon.client(keys_of(cloud_env, ALT), "s3", s3={"addressing_style": "path"})
    assert code(other.get_object, Bucket=bucket, Key="k") == ("NoSuchBucket", 404)
    wrong = daemon.client((keys[0], "wrong"), "s3", s3={"addressing_style": "path"})
    assert code(wrong.get_object, Bucket=bucket, Key="k") == ("SignatureDoesNotMatch", 403)
    unknown = daemon.client(("f" * 32, "wrong"), "s3", s3={"addressing_style": "path"})
    assert code(unknown.list_buckets)[1] == 403
    for method in ("GET", "PUT", "DELETE", "POST"):
        response = requests.request(method, f"{daemon.url}/{bucket}/k", data=b"evil", timeout=60)
        assert response.status_code == 403
        assert b"<Code>AccessDenied</Code>" in response.content
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"x"


def test_presigned_urls(s3: Any, bucket: str) -> None:
    url = s3.generate_presigned_url("put_object", Params={"Bucket": bucket, "Key": "p"})
    assert requests.put(url, data=b"hello", timeout=60).status_code == 200
    url = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "p"})
    assert requests.get(url, timeout=60).content == b"hello"
    assert requests.get(url + "x", timeout=60).status_code == 403
    assert requests.delete(url, timeout=60).status_code == 403


def test_a_body_that_was_changed_on_the_way_is_refused(
    daemon: Daemon, keys: Keys, s3: Any, bucket: str
) -> None:
    request = AWSRequest("PUT", f"{daemon.url}/{bucket}/k", data=b"good")
    S3SigV4Auth(Credentials(*keys), "s3", "RegionOne").add_auth(request)
    ready = request.prepare()
    response = requests.put(ready.url, data=b"evil", headers=dict(ready.headers), timeout=60)
    assert response.status_code == 400
    assert b"XAmzContentSHA256Mismatch" in response.content
    assert code(s3.get_object, Bucket=bucket, Key="k") == ("NoSuchKey", 404)


def test_the_encoding_of_todays_sdks_is_decoded(
    daemon: Daemon, keys: Keys, s3: Any, bucket: str
) -> None:
    data = b"streamed bytes"
    crc = base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()
    body = b"%x\r\n%s\r\n0\r\nx-amz-checksum-crc32:%s\r\n\r\n" % (len(data), data, crc.encode())
    request = AWSRequest(
        "PUT",
        f"{daemon.url}/{bucket}/k",
        data=body,
        headers={
            "Content-Encoding": "aws-chunked",
            "X-Amz-Trailer": "x-amz-checksum-crc32",
            "X-Amz-Decoded-Content-Length": str(len(data)),
            "X-Amz-Content-SHA256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
        },
    )
    # botocore signs whatever hash the context names for a trailing checksum.
    request.context["checksum"] = {"request_algorithm": {"in": "trailer"}}
    auth = S3SigV4Auth(Credentials(*keys), "s3", "RegionOne")
    auth.payload = lambda _: "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
    auth.add_auth(request)
    ready = request.prepare()
    response = requests.put(ready.url, data=body, headers=dict(ready.headers), timeout=60)
    assert response.status_code == 200, response.text
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == data


def test_what_is_not_there_says_so(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    for call, arguments in (
        (s3.get_object_acl, {"Bucket": bucket, "Key": "k"}),
        (s3.get_bucket_versioning, {"Bucket": bucket}),
        (s3.put_object, {"Bucket": bucket, "Key": "k", "Body": b"y", "IfNoneMatch": "*"}),
    ):
        assert code(call, **arguments) == ("NotImplemented", 501)
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"x"


def test_large_objects_go_in_parts(s3: Any, bucket: str, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(12_000_000))
    parts = TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20)
    told = {"Metadata": {"who": "me"}, "ContentType": "x/y", "CacheControl": "no-store"}
    s3.upload_file(str(source), bucket, "a/big one", ExtraArgs=told, Config=parts)
    head = s3.head_object(Bucket=bucket, Key="a/big one")
    assert (head["ContentLength"], head["Metadata"]) == (12_000_000, {"who": "me"})
    assert (head["ContentType"], head["CacheControl"]) == ("x/y", "no-store")
    assert head["ETag"].endswith('-3"')
    s3.download_file(bucket, "a/big one", str(target), Config=parts)
    assert target.read_bytes() == source.read_bytes()
    # And as copies, whole and in parts.
    origin = {"Bucket": bucket, "Key": "a/big one"}
    s3.copy_object(Bucket=bucket, Key="whole", CopySource=origin)
    s3.copy(origin, bucket, "in parts", Config=parts)
    for key in ("whole", "in parts"):
        found = s3.get_object(Bucket=bucket, Key=key)
        assert found["Body"].read() == source.read_bytes()
        assert found["Metadata"] == {"who": "me"}
    assert code(s3.copy_object, Bucket=bucket, Key="whole", CopySource=f"{bucket}/whole") == (
        "InvalidRequest",
        400,
    )
    missing = f"{bucket}/absent"
    assert code(s3.copy_object, Bucket=bucket, Key="c", CopySource=missing) == ("NoSuchKey", 404)


def test_an_upload_in_parts_by_hand(s3: Any, bucket: str) -> None:
    begun = s3.create_multipart_upload(Bucket=bucket, Key="k")
    upload = {"Bucket": bucket, "Key": "k", "UploadId": begun["UploadId"]}
    part = s3.upload_part(**upload, PartNumber=1, Body=b"data")
    assert [row["Size"] for row in s3.list_parts(**upload)["Parts"]] == [4]
    assert [row["Key"] for row in s3.list_multipart_uploads(Bucket=bucket)["Uploads"]] == ["k"]
    wrong = {"Parts": [{"PartNumber": 2, "ETag": part["ETag"]}]}
    assert code(s3.complete_multipart_upload, **upload, MultipartUpload=wrong) == (
        "InvalidPart",
        400,
    )
    s3.abort_multipart_upload(**upload)
    assert code(s3.list_parts, **upload) == ("NoSuchUpload", 404)
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)


def test_folders_and_deletions_of_many(s3: Any, bucket: str) -> None:
    for key in ("a/1", "a/2", "b"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    found = s3.list_objects_v2(Bucket=bucket, Delimiter="/")
    assert [row["Prefix"] for row in found["CommonPrefixes"]] == ["a/"]
    assert [row["Key"] for row in found["Contents"]] == ["b"]
    wanted = {"Objects": [{"Key": key} for key in ("a/1", "a/2", "never was", "\0", "x" * 1025)]}
    answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": wanted["Objects"][:3]})
    assert [row["Key"] for row in answer["Deleted"]] == ["a/1", "a/2", "never was"]
    answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": wanted["Objects"][4:]})
    assert [row["Code"] for row in answer["Errors"]] == ["KeyTooLongError"]
    assert [row["Key"] for row in s3.list_objects(Bucket=bucket)["Contents"]] == ["b"]
    assert s3.get_bucket_location(Bucket=bucket)["LocationConstraint"] == "RegionOne"


@pytest.mark.parametrize("key", ["\0", "a\0b", "../..", "é" * 512, "\x7f\n\t"])
def test_keys_that_are_no_file_names(s3: Any, bucket: str, key: str) -> None:
    s3.put_object(Bucket=bucket, Key=key, Body=key.encode())
    assert s3.get_object(Bucket=bucket, Key=key)["Body"].read() == key.encode()
    [row] = s3.list_objects_v2(Bucket=bucket)["Contents"]
    assert row["Key"] == key
    s3.delete_object(Bucket=bucket, Key=key)


@pytest.mark.parametrize("key", ["x" * 1025, "é" * 513])
def test_keys_that_are_too_long(s3: Any, bucket: str, key: str) -> None:
    assert code(s3.put_object, Bucket=bucket, Key=key, Body=b"x") == ("KeyTooLongError", 400)
    assert code(s3.get_object, Bucket=bucket, Key=key)[0] == "KeyTooLongError"


def test_conditions(s3: Any, bucket: str) -> None:
    etag = s3.put_object(Bucket=bucket, Key="k", Body=b"x")["ETag"]
    get = {"Bucket": bucket, "Key": "k"}
    assert code(s3.get_object, **get, IfNoneMatch=etag)[1] == 304
    assert code(s3.get_object, **get, IfMatch='"0"') == ("PreconditionFailed", 412)
    assert s3.get_object(**get, IfMatch=etag, IfNoneMatch='"0"')["Body"].read() == b"x"


def test_what_was_not_signed_does_not_count(daemon: Daemon, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    url = s3.generate_presigned_url("put_object", Params={"Bucket": bucket, "Key": "p"})
    stolen = requests.put(url, headers={"x-amz-copy-source": f"{bucket}/k"}, timeout=60)
    assert stolen.status_code == 403
    more = requests.post(f"{url}&uploads", timeout=60)
    assert more.status_code == 403
    assert code(s3.get_object, Bucket=bucket, Key="p") == ("NoSuchKey", 404)


@pytest.fixture
def aws(daemon: Daemon, keys: Keys, tmp_path: Path) -> Callable[..., str]:
    """Runs ``aws s3``, which has to succeed."""
    program, environment = aws_cli(keys)

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [program, "--endpoint-url", daemon.url, "s3", *arguments],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=180,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_the_cli_keeps_files(aws: Callable[..., str], tmp_path: Path) -> None:
    name = f"s3://cli-{os.urandom(4).hex()}"
    tree = tmp_path / "tree"
    (tree / "deep").mkdir(parents=True)
    (tree / "small.txt").write_text("small")
    big = os.urandom(20_000_000)
    (tree / "deep" / "big").write_bytes(big)
    aws("mb", name)
    assert name.removeprefix("s3://") in aws("ls")
    aws("sync", "tree", f"{name}/tree")
    listed = aws("ls", f"{name}/tree/")
    assert "PRE deep/" in listed
    assert "small.txt" in listed
    # Copies within S3: in parts, since it is larger than 8 MiB.
    aws("cp", f"{name}/tree/deep/big", f"{name}/copy")
    aws("mv", f"{name}/copy", f"{name}/moved")
    aws("cp", f"{name}/moved", "back")
    assert (tmp_path / "back").read_bytes() == big
    assert len(aws("ls", "--recursive", name).splitlines()) == 3
    aws("rb", "--force", name)
    assert name.removeprefix("s3://") not in aws("ls")


def test_the_cli_removes_and_signs(aws: Callable[..., str], tmp_path: Path) -> None:
    name = f"s3://cli-{os.urandom(4).hex()}"
    tree = tmp_path / "tree"
    (tree / "logs").mkdir(parents=True)
    for file in ("a.txt", "b.log", "logs/c.log"):
        (tree / file).write_text(file)
    aws("mb", name)
    aws("cp", "--recursive", "tree", name)
    aws("cp", "--recursive", "--exclude", "*.log", name, "copy")
    assert [path.name for path in (tmp_path / "copy").rglob("*.*")] == ["a.txt"]
    # What is gone here goes there, and what is new there comes here.
    (tree / "b.log").unlink()
    aws("sync", "--delete", "tree", name)
    assert "b.log" not in aws("ls", name)
    aws("sync", name, "back")
    assert (tmp_path / "back" / "logs" / "c.log").read_text() == "logs/c.log"
    url = aws("presign", "--expires-in", "3600", f"{name}/a.txt").strip()
    assert requests.get(url, timeout=60).text == "a.txt"
    assert requests.get(url.replace("a.txt", "logs/c.log"), timeout=60).status_code == 403
    aws("mv", f"{name}/a.txt", "here.txt")
    assert (tmp_path / "here.txt").read_text() == "a.txt"
    assert requests.get(url, timeout=60).status_code == 404
    aws("rm", "--recursive", f"{name}/logs/")
    assert aws("ls", "--recursive", name) == ""
    aws("rb", name)


def test_a_presigned_url_ends(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    what = {"Params": {"Bucket": bucket, "Key": "k"}, "ExpiresIn": 1}
    url = s3.generate_presigned_url("get_object", **what)
    deadline = time.monotonic() + 120
    while (status := requests.get(url, timeout=60).status_code) == 200:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert status == 403


def test_health_needs_no_signature(daemon: Daemon) -> None:
    assert requests.get(daemon.url + "/healthcheck", timeout=60).status_code == 200
