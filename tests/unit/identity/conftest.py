"""A Keystone that is played, for unit tests of the identity layer."""

from __future__ import annotations

import pytest
import requests_mock as mocking

from tests.support.keystone import Keystone


@pytest.fixture
def keystone(requests_mock: mocking.Mocker) -> Keystone:
    return Keystone(requests_mock)


@pytest.fixture(autouse=True)
def _no_ca_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """requests takes these in place of its own CA file, which the tests look at."""
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
