"""Headers that follow a request into the cloud."""

from __future__ import annotations

import pytest
import requests_mock as mocking

from tests.support.keystone import identity, token
from trimaran.identity import outgoing_headers, sending
from trimaran.identity.outgoing import headers_for


def test_id_and_address() -> None:
    assert headers_for(request_id="req-1a", remote_address="192.0.2.1") == {
        "X-OpenStack-Request-ID": "req-1a",
        "Forwarded": "for=192.0.2.1;by=trimaran",
    }


def test_ipv6_is_quoted() -> None:
    assert headers_for(remote_address="2001:db8::1")["Forwarded"] == (
        'for="[2001:db8::1]";by=trimaran'
    )


@pytest.mark.parametrize("bad", ["", "abc", "req-1\r\nX-Evil: 1", "req-", "req-" + "a" * 65])
def test_foreign_request_ids_stay_out(bad: str) -> None:
    assert headers_for(request_id=bad) == {}


@pytest.mark.parametrize(
    "bad", ["", "unknown", "1.2.3.4\r\nX-Evil: 1", "1.2.3.4;by=x", "host.test"]
)
def test_foreign_addresses_stay_out(bad: str) -> None:
    assert headers_for(remote_address=bad) == {}


def test_sent_inside_the_block_only(requests_mock: mocking.Mocker) -> None:
    requests_mock.get("http://nova.test/x", text="{}")
    session = identity().session_for(token())
    with sending(request_id="req-7", remote_address="192.0.2.9"):
        session.get("http://nova.test/x", headers={"Accept": "application/json"})
    session.get("http://nova.test/x")
    inside, outside = requests_mock.request_history
    assert inside.headers["X-OpenStack-Request-ID"] == "req-7"
    assert inside.headers["Forwarded"] == "for=192.0.2.9;by=trimaran"
    assert inside.headers["Accept"] == "application/json"
    assert "X-OpenStack-Request-ID" not in outside.headers
    assert outgoing_headers.get() == {}


def test_a_call_s_own_header_wins(requests_mock: mocking.Mocker) -> None:
    requests_mock.get("http://nova.test/x", text="{}")
    with sending(remote_address="192.0.2.9"):
        identity().session_for(token()).get(
            "http://nova.test/x", headers={"Forwarded": "for=198.51.100.1"}
        )
    assert requests_mock.last_request.headers["Forwarded"] == "for=198.51.100.1"
