"""A caller whose catalog names mocked services."""

from __future__ import annotations

import pytest
import requests_mock as mocking

from tests.support.keystone import REGION, identity, token
from trimaran.cloud import Cloud, CloudSession


@pytest.fixture
def cloud() -> Cloud:
    return Cloud(identity(), region=REGION)


@pytest.fixture
def user(cloud: Cloud, requests_mock: mocking.Mocker) -> CloudSession:
    return cloud.as_user(token())


@pytest.fixture(autouse=True)
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    taken: list[float] = []
    monkeypatch.setattr("trimaran.identity.exchange.time.sleep", taken.append)
    return taken
