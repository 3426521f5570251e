"""A console with played services, logged in as a member, an administrator or a reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests_mock
from fastapi import FastAPI
from starlette.testclient import TestClient

from tests.support.console import Cloud, cookie, settings
from tests.support.console_listings import Services
from trimaran.db import migrate

ROLES = {
    "member": ["member", "reader"],
    "admin": ["admin"],
    "reader": ["system_reader"],
}
Person = Callable[..., TestClient]


@pytest.fixture(scope="session")
def console_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated database, to be copied."""
    file = tmp_path_factory.mktemp("console-template") / "template.sqlite"
    migrate.upgrade(f"sqlite:///{file}", "console")
    return file


@pytest.fixture
def adapter() -> Iterator[requests_mock.Mocker]:
    with requests_mock.Mocker() as mock:
        yield mock


@pytest.fixture
def keystone(adapter: requests_mock.Mocker) -> Cloud:
    return Cloud(adapter)


@pytest.fixture
def services(adapter: requests_mock.Mocker, keystone: Cloud) -> Services:
    return Services(adapter)


@pytest.fixture
def person(keystone: Cloud, console_template: Path, tmp_path: Path) -> Iterator[Person]:
    """Returns a client with the session of somebody with these roles in p1.

    The groups are merged into skyline.yaml; all consoles of a test share a database.
    """
    # Late, because sessions.py filters a warning when it is imported, and pytest
    # forgets the filters of what a conftest imports.
    from trimaran.console import app as console

    file = tmp_path / "console.sqlite"
    file.write_bytes(console_template.read_bytes())
    apps: list[FastAPI] = []

    def maker(kind: str = "member", **groups: Any) -> TestClient:
        app = console.build(settings(f"sqlite:///{file}", **groups))
        apps.append(app)
        client = TestClient(app, follow_redirects=False)
        if kind != "nobody":
            roles = [{"id": f"id-{name}", "name": name} for name in ROLES[kind]]
            token = keystone.token(f"t-{kind}", roles=roles)
            client.headers["Cookie"] = f"session={cookie(keystone_token=token)}"
        return client

    yield maker
    for app in apps:
        app.state.parts.db.dispose()
