"""A person's way through the console: log in, use the cloud, log out; with a cookie jar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests

from tests.support.cloud import CloudEnv
from tests.support.console_service import SECRET, Console, eventually


@pytest.fixture
def console(
    migrated: Callable[[str, str], str],
    cloud_env: CloudEnv,
    tmp_path: Path,
    free_port: Callable[[], int],
) -> Iterator[Console]:
    """A console on SQLite, as a newcomer has it."""
    settings = {
        "default": {
            "database_url": migrated(f"sqlite:///{tmp_path}/console.sqlite", "console"),
            "secret_key": SECRET,
            "log_file": "/dev/stdout",
        },
        "openstack": {
            "keystone_url": cloud_env.auth_url,
            "system_user_password": "password",
            "default_region": cloud_env.region,
        },
    }
    service = Console(tmp_path / "console", free_port(), settings, 2)
    service.wait_until_ready()
    yield service
    assert service.stop() == 0


def test_log_in_use_the_cloud_and_log_out(console: Console, cloud_env: CloudEnv) -> None:
    browser = requests.Session()
    credentials = {"username": "demo", "password": "password", "domain": "Default"}
    assert browser.get(f"{console.url}/profile", timeout=60).status_code == 401
    answer = browser.post(f"{console.url}/login", json=credentials, timeout=60)
    assert answer.status_code == 200
    profile = answer.json()
    assert browser.get(f"{console.url}/profile", timeout=60).json()["uuid"] == profile["uuid"]
    session = next(cookie for cookie in browser.cookies if cookie.name == "session")
    assert session.has_nonstandard_attr("HttpOnly")

    # The front end talks to the services itself, with the token of the profile.
    token = {"X-Auth-Token": profile["keystone_token"]}
    nova = cloud_env.session().get_endpoint(service_type="compute", interface="public")
    flavors = requests.get(f"{nova}/flavors", headers=token, timeout=60)
    assert flavors.json()["flavors"]
    itself = f"{cloud_env.auth_url}/auth/projects"
    assert requests.get(itself, headers=token, timeout=60).status_code == 200

    answer = browser.post(f"{console.url}/logout", json={}, timeout=60)
    assert answer.json() == {"message": "Logout OK", "code": 200, "title": "OK"}
    assert not browser.cookies
    assert browser.get(f"{console.url}/profile", timeout=60).status_code == 401
    # Keystone 30 itself takes a token for a moment longer that it has just revoked.
    eventually(
        lambda: requests.get(itself, headers=token, timeout=60).status_code == 401,
        "Keystone refuses the token",
    )
