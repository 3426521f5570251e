"""Parts that are away, at start and while running: a 503 of the wire, then it heals."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import sqlalchemy
from botocore.exceptions import ClientError

from tests.support.cloud import ADMIN, CloudEnv
from tests.support.ec2 import Daemon, keys_of, running, write_conf
from tests.support.ports import free_port
from tests.support.tcp_proxy import Proxy

UNAVAILABLE = (503, "Unavailable")
FINE = (200, "")
Keys = tuple[str, str]


@pytest.fixture(scope="module")
def keys(cloud_env: CloudEnv) -> Keys:
    return keys_of(cloud_env)


def outcome(call: Any, **arguments: Any) -> tuple[int, str]:
    """Status and code of one call without retries."""
    try:
        call(**arguments)
    except ClientError as error:
        response = error.response
        assert response["ResponseMetadata"]["RequestId"].startswith("req-")
        return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"]
    return FINE


def heals(call: Any, tries: int = 400) -> bool:
    """Whether a call works again soon; the deck backs off for a second at most."""
    pause = threading.Event()
    return any(outcome(call) == FINE or pause.wait(0.25) for _ in range(tries))


def started(
    tmp_path: Path, cloud: CloudEnv, database: str = "", **options: Any
) -> tuple[Path, int]:
    port = free_port()
    database = database or f"sqlite:///{tmp_path}/ec2.sqlite"
    conf = write_conf(tmp_path, cloud, database, ec2api_listen_port=port, **options)
    return conf, port


def quiet(daemon: Daemon) -> None:
    """No trace for what is expected to happen, and no secret."""
    log = daemon.lines()
    assert "Traceback" not in log
    assert "InternalError" not in log


def test_keystone_away(cloud_env: CloudEnv, keys: Keys, tmp_path: Path) -> None:
    real = urlsplit(cloud_env.auth_url)
    with Proxy(str(real.hostname), int(real.port or 80)) as keystone:
        keystone.cut()
        conf, port = started(
            tmp_path,
            cloud_env,
            keystone_authtoken__auth_url=f"http://127.0.0.1:{keystone.port}/v3",
        )
        with running("ec2-api", conf, port) as daemon:  # it starts without Keystone
            who = daemon.client(keys, "sts").get_caller_identity
            assert outcome(who) == UNAVAILABLE
            keystone.mend()
            assert heals(who)
            keystone.cut()
            assert outcome(who) == UNAVAILABLE
            keystone.mend()
            assert heals(who)
            quiet(daemon)


def test_our_own_wrong_password(cloud_env: CloudEnv, keys: Keys, tmp_path: Path) -> None:
    conf, port = started(tmp_path, cloud_env, keystone_authtoken__password="pa55-of-nobody")
    with running("ec2-api", conf, port) as daemon:
        assert outcome(daemon.client(keys).describe_regions) == UNAVAILABLE
        assert "service user" in daemon.lines()
        assert "pa55-of-nobody" not in daemon.lines()


def test_the_database_away(
    cloud_env: CloudEnv,
    keys: Keys,
    tmp_path: Path,
    mariadb_url: str,
    migrated: Callable[..., str],
) -> None:
    migrated(mariadb_url, "ec2")
    url = sqlalchemy.make_url(mariadb_url)
    with Proxy(str(url.host), int(url.port or 3306)) as server:
        server.cut()
        through = url.set(host="127.0.0.1", port=server.port)
        conf, port = started(tmp_path, cloud_env, through.render_as_string(hide_password=False))
        with running("ec2-api", conf, port) as daemon:
            ec2 = daemon.client(keys)
            assert outcome(ec2.describe_tags) == UNAVAILABLE
            assert outcome(ec2.describe_regions) == FINE, "it needs no database"
            server.mend()
            assert heals(ec2.describe_tags)
            server.cut()
            assert outcome(ec2.describe_tags) == UNAVAILABLE
            assert outcome(ec2.describe_instances) == UNAVAILABLE
            server.mend()
            assert heals(ec2.describe_tags)
            quiet(daemon)


def test_a_database_that_was_never_migrated(
    cloud_env: CloudEnv, keys: Keys, tmp_path: Path
) -> None:
    conf, port = started(tmp_path, cloud_env)
    with running("ec2-api", conf, port) as daemon:
        assert outcome(daemon.client(keys).describe_tags) == UNAVAILABLE
        assert "db upgrade" in daemon.lines()


@pytest.fixture
def nova(cloud_env: CloudEnv) -> Iterator[tuple[str, Proxy]]:
    """A service type of its own in the catalog that leads to Nova through a proxy."""
    admin = cloud_env.session(ADMIN)
    real = urlsplit(str(admin.get_endpoint(service_type="compute", interface="public")))
    kind = f"compute-{uuid.uuid4().hex[:8]}"
    base = cloud_env.auth_url
    with Proxy(str(real.hostname), int(real.port or 80)) as proxy:
        service = admin.post(f"{base}/services", json={"service": {"type": kind, "name": kind}})
        service_id = service.json()["service"]["id"]
        try:
            for interface in ("public", "internal"):
                endpoint = {
                    "service_id": service_id,
                    "interface": interface,
                    "region_id": cloud_env.region,
                    "url": f"http://127.0.0.1:{proxy.port}{real.path}",
                }
                admin.post(f"{base}/endpoints", json={"endpoint": endpoint})
            yield kind, proxy
        finally:
            admin.delete(f"{base}/services/{service_id}")


def test_nova_away(
    cloud_env: CloudEnv,
    keys: Keys,
    tmp_path: Path,
    migrated: Callable[..., str],
    nova: tuple[str, Proxy],
) -> None:
    kind, proxy = nova
    database = migrated(f"sqlite:///{tmp_path}/ec2.sqlite", "ec2")
    # With EC2-Classic a launch without subnet goes into the project's own network.
    options = {"nova_service_type": kind, "disable_ec2_classic": False}
    conf, port = started(tmp_path, cloud_env, database, **options)
    with running("ec2-api", conf, port) as daemon:
        ec2 = daemon.client(keys)
        assert outcome(ec2.describe_instances) == FINE
        proxy.cut()
        assert outcome(ec2.describe_instances) == UNAVAILABLE
        assert outcome(ec2.describe_availability_zones) == UNAVAILABLE
        named = [{"Name": "name", "Values": ["cirros-sandbox"]}]
        image = ec2.describe_images(Filters=named)["Images"][0]["ImageId"]
        run = {"ImageId": image, "InstanceType": "m1.tiny", "MinCount": 1, "MaxCount": 1}
        assert outcome(ec2.run_instances, **run) == UNAVAILABLE
        proxy.mend()
        assert heals(ec2.describe_instances)
        quiet(daemon)


def test_a_service_that_the_catalog_lacks(
    cloud_env: CloudEnv, keys: Keys, tmp_path: Path, migrated: Callable[..., str]
) -> None:
    database = migrated(f"sqlite:///{tmp_path}/ec2.sqlite", "ec2")
    conf, port = started(tmp_path, cloud_env, database, nova_service_type="compute-nowhere")
    with running("ec2-api", conf, port) as daemon:
        assert outcome(daemon.client(keys).describe_instances) == UNAVAILABLE
        assert "compute" in daemon.lines()
