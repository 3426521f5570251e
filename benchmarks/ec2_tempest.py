"""The groups of ec2api-tempest-plugin that are not about networks, against our daemons.

They need more than the network groups: an image whose root is a volume, and a
bundle in our own S3, encrypted for the key of the API.  `ec2_conformance` runs
them and keeps what they say.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.ec2_tempest_network import Results, run_suite

from tests.support.cloud import CloudEnv
from tests.support.ec2 import Daemon, running, write_conf
from tests.support.ec2_bundle import bundle, write_pem
from tests.support.ec2_project import fresh_project
from tests.support.ec2_rows import World
from tests.support.ec2_tenant import Tenant, tenant
from tests.support.ports import free_port
from trimaran.db import migrate

MODULES = (
    "api.test_images",
    "api.test_instance_attributes",
    "api.test_instances",
    "api.test_instances_ebs",
    "api.test_key_pairs",
    "api.test_regions",
    "api.test_snapshots",
    "api.test_tags",
    "api.test_volumes",
    "scenario.test_ebs_instances",
    "scenario.test_instance_restart",
    "scenario.test_paging",
)
GROUPS = "|".join(rf"{re.escape(module)}\." for module in MODULES)
BUCKET = "tempest"


@dataclass(frozen=True)
class Services:
    """What the suite is run against.

    Attributes:
        mine: its project.
        api: the EC2 API.
        options: what the suite is told of them.
    """

    mine: Tenant
    api: Daemon
    options: dict[str, str]


@contextlib.contextmanager
def services(cloud: CloudEnv, home: Path) -> Iterator[Services]:
    """Our EC2 API and S3, with a project that has what the suite asks for."""
    url = f"sqlite:///{home}/ec2.sqlite"
    migrate.upgrade(url, "ec2")
    port, s3_port = free_port(), free_port()
    s3_url = f"http://127.0.0.1:{s3_port}"
    conf = write_conf(
        home,
        cloud,
        url,
        ec2api_listen_port=port,
        s3_listen_port=s3_port,
        s3_url=s3_url,
        buckets_path=home / "buckets",
        image_decryption_dir=home / "images",
        x509_root_private_key=write_pem(home),
    )
    with (
        tenant(cloud) as mine,
        fresh_project(cloud) as other,
        running("ec2-api", conf, port) as api,
        running("ec2-s3", conf, s3_port) as store,
    ):
        s3 = store.client(mine.keys, "s3", s3={"addressing_style": "path"})
        s3.create_bucket(Bucket=BUCKET)
        for key, data in bundle(os.urandom(4096)).objects().items():
            s3.put_object(Bucket=BUCKET, Key=key, Body=data)
        options = {
            "ebs_image_id": World(api.url, mine, other).ebs_image,
            "s3_url": s3_url,
            "ami_image_location": f"{BUCKET}/image.manifest.xml",
        }
        yield Services(mine, api, options)


def run(
    cloud: CloudEnv, home: Path, venv: Path, regex: str, *, incompatible: bool, limit: float
) -> Results:
    """One run of the suite; arguments and result as of `run_suite`."""
    with services(cloud, home) as made:
        return run_suite(
            venv,
            cloud,
            made.mine.project,
            made.api,
            regex,
            incompatible=incompatible,
            options=made.options,
            limit=limit,
        )
