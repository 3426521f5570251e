"""A fake OpenStack, an empty database, and callers of two projects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests_mock as mocking

from tests.support import keystone
from tests.support.ec2_openstack import THEIRS, Caller, OpenStack, database
from trimaran.cloud import Cloud
from trimaran.db import Database


@pytest.fixture
def openstack(request: pytest.FixtureRequest, requests_mock: mocking.Mocker) -> OpenStack:
    """The cloud: that of the test's parameter, of its module's ``CLOUD``, or a plain one."""
    cloud: Any = getattr(request, "param", None) or getattr(request.module, "CLOUD", OpenStack)
    made: OpenStack = cloud(requests_mock)
    return made


@pytest.fixture
def ec2_db(tmp_path: Path) -> Iterator[Database]:
    made = database(tmp_path)
    yield made
    made.dispose()


@pytest.fixture
def ec2_cloud() -> Cloud:
    return Cloud(keystone.identity(), region=keystone.REGION)


@pytest.fixture
def _address(monkeypatch: pytest.MonkeyPatch) -> None:
    # The default of my_ip asks the kernel for a route, which takes a socket.
    monkeypatch.setattr("trimaran.config.ec2.my_ip", lambda: "192.0.2.1")


@pytest.fixture
def me(
    openstack: OpenStack, ec2_cloud: Cloud, ec2_db: Database, tmp_path: Path, _address: None
) -> Caller:
    return Caller(ec2_cloud, ec2_db, keystone.token(), tmp_path)


@pytest.fixture
def them(
    openstack: OpenStack, ec2_cloud: Cloud, ec2_db: Database, tmp_path: Path, _address: None
) -> Caller:
    project = {"id": THEIRS, "name": "theirs", "domain": {"id": "default", "name": "Default"}}
    token = keystone.token("their-token", project=project)
    return Caller(ec2_cloud, ec2_db, token, tmp_path)
