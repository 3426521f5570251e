"""The newcomer's way in: the demo comes up, its tour passes, it goes away."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.support.cloud import CloudEnv
from trimaran.cli.demo import proxy
from trimaran.cli.demo.process import PORTS as SERVICES

PORTS = {**SERVICES, "nginx": proxy.PORT}

WANTED = {
    "OS_AUTH_URL",
    "OS_USERNAME",
    "OS_PASSWORD",
    "OS_PROJECT_NAME",
    "EC2_URL",
    "S3_URL",
    "METADATA_URL",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_DEFAULT_REGION",
    "CONSOLE_URL",
    "CONSOLE_UI_URL",
    "MAGNUM_URL",
    "CONSOLE_SECRET_KEY",
    "METADATA_SECRET",
    "MAGNUM_SANDBOX_DIR",
}


def run_demo(*words: str, state: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trimaran", "demo", *words],
        env={**os.environ, "TRIMARAN_SANDBOX": str(state)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def where(
    tmp_path_factory: pytest.TempPathFactory, cloud_env: CloudEnv
) -> Iterator[tuple[Path, str]]:
    """The demo's directory and what the first run printed."""
    busy = [name for name, port in PORTS.items() if listening(port)]
    assert not busy, f"the demo's ports are taken: {busy}"
    directory = tmp_path_factory.mktemp("demo") / ".demo"
    try:
        done = run_demo("up", "--dir", str(directory), state=cloud_env.state)
        assert done.returncode == 0, done.stdout + done.stderr
        yield directory, done.stdout
    finally:
        run_demo("stop", "--keep-cloud", "--dir", str(directory), state=cloud_env.state)


def test_the_tour_shows_each_service_doing_its_work(where: tuple[Path, str]) -> None:
    _, said = where
    for answer in (
        "logged in as demo in project demo",
        "the profile now answers 401",
        "described   running",
        "terminated  i-",
        "CREATE_COMPLETE",
        "make demo-stop",
    ):
        assert answer in said


def test_the_environment_file_is_private_and_complete(where: tuple[Path, str]) -> None:
    directory, _ = where
    env = directory / "env"
    assert env.stat().st_mode & 0o077 == 0
    words = [line.split(" ", 1)[1] for line in env.read_text().splitlines()[1:]]
    values = dict(shlex.split(word)[0].split("=", 1) for word in words)
    assert set(values) >= WANTED
    assert all(values.values())


def test_every_service_is_healthy_in_detail(where: tuple[Path, str]) -> None:
    for name, port in SERVICES.items():
        answer = requests.get(f"http://127.0.0.1:{port}/healthcheck?detailed", timeout=120)
        assert answer.status_code == 200, (name, answer.text)


def test_a_browser_finds_the_console_the_api_and_the_cloud(where: tuple[Path, str]) -> None:
    site = f"http://127.0.0.1:{proxy.PORT}"
    page = requests.get(f"{site}/base/overview", timeout=120)
    assert '<div id="app">' in page.text
    assert page.cookies["lang"] == "en"
    api = f"{site}/api/openstack/skyline/api/v1"
    assert "Default" in requests.get(f"{api}/contrib/domains", timeout=120).json()
    browser = requests.Session()
    person = {"username": "demo", "password": "password", "domain": "Default"}
    profile = browser.post(f"{api}/login", json=person, timeout=120).json()
    token = {"X-Auth-Token": profile["keystone_token"]}
    nova = site + profile["endpoints"]["nova"] + "/v2.1/flavors"
    assert requests.get(nova, headers=token, timeout=120).json()["flavors"]


def test_a_second_run_is_harmless(where: tuple[Path, str], cloud_env: CloudEnv) -> None:
    directory, _ = where
    secrets = (directory / "etc" / "secrets.json").read_text()
    again = run_demo("up", "--dir", str(directory), state=cloud_env.state)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "The services run already." in again.stdout
    assert "The console's front end is served already." in again.stdout
    assert (directory / "etc" / "secrets.json").read_text() == secrets


def test_after_stop_nothing_listens(where: tuple[Path, str], cloud_env: CloudEnv) -> None:
    directory, _ = where
    done = run_demo("stop", "--keep-cloud", "--dir", str(directory), state=cloud_env.state)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not [name for name, port in PORTS.items() if listening(port)]
    log = (directory / "log" / "trimaran.log").read_text(errors="replace")
    assert "Traceback" not in log
