"""Debian's cloud-init, unpacked beside the tests: installed, it would act at the next boot."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: What its Ec2 data source imports and our environment has not.
_PACKAGES = ("cloud-init", "python3-configobj")
_MODULES = "usr/lib/python3/dist-packages"

_DRIVER = """
import json, logging, sys, tempfile
logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
from cloudinit import helpers
from cloudinit.sources import DataSourceEc2 as ec2

url, cloud, mac = sys.argv[1:]
settings = {"metadata_urls": [url], "max_wait": 120, "timeout": 60}
home = tempfile.mkdtemp()
paths = helpers.Paths({"cloud_dir": home, "run_dir": home})
source = ec2.DataSourceEc2({"datasource": {"Ec2": settings}}, None, paths)
source._cloud_name = cloud
crawled = source.crawl_metadata()
user_data = crawled.pop("user-data", b"")
crawled["user-data"] = list(user_data if isinstance(user_data, bytes) else user_data.encode())
network = crawled.get("meta-data", {}).get("network")
if network:
    crawled["config"] = ec2.convert_ec2_metadata_network_config(
        network, macs_to_nics={mac: "eth0"}, fallback_nic="eth0"
    )
json.dump(crawled, sys.stdout)
"""


def unpacked() -> Path:
    """The directory with its Python modules; downloaded by apt-get once."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "trimaran" / "tests" / "cloud-init"
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "root" / _MODULES / "cloudinit").is_dir():
            _download(home)
    return home / "root" / _MODULES


def _download(home: Path) -> None:
    part = home / "part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    subprocess.run(
        ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", *_PACKAGES],
        cwd=part,
        check=True,
        timeout=300,
    )
    for package in sorted(part.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", package.name, "root"], cwd=part, check=True, timeout=60)
    shutil.rmtree(home / "root", ignore_errors=True)
    (part / "root").rename(home / "root")
    shutil.rmtree(part)


@dataclass(frozen=True)
class Crawl:
    """What cloud-init found, and what it complained about."""

    found: dict[str, Any]
    complaints: str


def crawl(url: str, cloud: str, mac: str) -> Crawl:
    """Runs the crawl of cloud-init's Ec2 data source.

    Args:
        url: of the metadata service.
        cloud: the platform that cloud-init takes it for: ``aws`` wants session tokens.
        mac: of the guest's network card.
    """
    done = subprocess.run(
        [sys.executable, "-c", _DRIVER, url, cloud, mac],
        env={**os.environ, "PYTHONPATH": str(unpacked()), "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return Crawl(json.loads(done.stdout), done.stderr)
