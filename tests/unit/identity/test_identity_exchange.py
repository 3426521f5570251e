"""Which requests are repeated, and what a failure becomes."""

from __future__ import annotations

import socket
from typing import Any

import pytest
import requests
import requests_mock as mocking
from urllib3 import exceptions as pool_exceptions

from tests.support.keystone import identity, token
from trimaran import errors
from trimaran.identity import RemoteError, Session, count_calls
from trimaran.identity.exchange import exchange, never_sent

URL = "http://nova.test/v2.1/servers"


def refused() -> requests.ConnectionError:
    """What requests raises when nobody listens."""
    cause = pool_exceptions.NewConnectionError(None, "refused")  # type: ignore[arg-type]
    return requests.ConnectionError(
        pool_exceptions.MaxRetryError(None, URL, cause)  # type: ignore[arg-type]
    )


def broken() -> requests.ConnectionError:
    """What requests raises when the server closes in the middle."""
    return requests.ConnectionError(
        pool_exceptions.ProtocolError("Connection aborted.", ConnectionResetError(104, "reset"))
    )


@pytest.fixture
def session() -> Session:
    return identity().session_for(token())


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    taken: list[float] = []
    monkeypatch.setattr("trimaran.identity.exchange.time.sleep", taken.append)
    return taken


def _ask(session: Session, method: str, **kwargs: Any) -> requests.Response:
    return exchange(session, method, URL, service="compute", **kwargs)


@pytest.mark.parametrize("status", [502, 503, 504])
def test_get_is_repeated(
    session: Session, requests_mock: mocking.Mocker, naps: list[float], status: int
) -> None:
    requests_mock.get(URL, [{"status_code": status}, {"status_code": status}, {"text": "ok"}])
    assert _ask(session, "GET").text == "ok"
    assert len(naps) == 2
    assert 0.1 <= naps[0] <= 0.15
    assert 0.4 <= naps[1] <= 0.6


def test_get_is_repeated_twice_and_no_more(
    session: Session, requests_mock: mocking.Mocker, naps: list[float]
) -> None:
    requests_mock.get(URL, status_code=503)
    assert _ask(session, "GET").status_code == 503
    assert requests_mock.call_count == 3


@pytest.mark.parametrize("status", [200, 400, 404, 409, 500])
def test_other_answers_are_not_repeated(
    session: Session, requests_mock: mocking.Mocker, naps: list[float], status: int
) -> None:
    requests_mock.get(URL, status_code=status)
    assert _ask(session, "GET").status_code == status
    assert requests_mock.call_count == 1


@pytest.mark.parametrize("failure", [refused, broken])
def test_get_survives_a_broken_connection(
    session: Session, requests_mock: mocking.Mocker, naps: list[float], failure: Any
) -> None:
    requests_mock.get(URL, [{"exc": failure()}, {"text": "ok"}])
    assert _ask(session, "GET").text == "ok"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
class TestWrites:
    def test_not_repeated_when_it_may_have_been_done(
        self,
        session: Session,
        requests_mock: mocking.Mocker,
        naps: list[float],
        method: str,
    ) -> None:
        requests_mock.request(method, URL, exc=broken())
        with pytest.raises(errors.Unavailable) as caught:
            _ask(session, method)
        assert caught.value.service == "compute"
        assert requests_mock.call_count == 1

    @pytest.mark.parametrize("status", [502, 503, 504])
    def test_not_repeated_after_an_answer(
        self,
        session: Session,
        requests_mock: mocking.Mocker,
        naps: list[float],
        method: str,
        status: int,
    ) -> None:
        requests_mock.request(method, URL, status_code=status)
        assert _ask(session, method).status_code == status
        assert requests_mock.call_count == 1

    def test_repeated_when_it_was_never_sent(
        self,
        session: Session,
        requests_mock: mocking.Mocker,
        naps: list[float],
        method: str,
    ) -> None:
        requests_mock.request(method, URL, [{"exc": refused()}, {"text": "ok"}])
        assert _ask(session, method).text == "ok"


@pytest.mark.parametrize("failure", [requests.ConnectTimeout, requests.ReadTimeout])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_time_outs_are_not_repeated(
    session: Session,
    requests_mock: mocking.Mocker,
    naps: list[float],
    method: str,
    failure: type[Exception],
) -> None:
    requests_mock.request(method, URL, exc=failure)
    with pytest.raises(errors.Unavailable) as caught:
        _ask(session, method)
    assert requests_mock.call_count == 1
    assert isinstance(caught.value, RemoteError)
    assert "time-out" in caught.value.remote_message


def test_tls_failure_says_what_to_look_at(
    session: Session, requests_mock: mocking.Mocker, naps: list[float]
) -> None:
    requests_mock.get(URL, exc=requests.exceptions.SSLError("self-signed certificate"))
    with pytest.raises(errors.Unavailable) as caught:
        _ask(session, "GET")
    assert isinstance(caught.value, RemoteError)
    assert "CA file" in caught.value.remote_message
    assert "self-signed" not in str(caught.value)


def test_log_holds_neither_query_nor_body(
    session: Session,
    requests_mock: mocking.Mocker,
    naps: list[float],
    caplog: pytest.LogCaptureFixture,
) -> None:
    for name in ("trimaran", "keystoneauth"):
        caplog.set_level("DEBUG", name)
    requests_mock.post(URL, json={"adminPass": "hunter2"})
    exchange(
        session, "POST", URL, service="compute", json={"user_data": "c2VjcmV0"}, params={"q": "zzz"}
    )
    assert "POST http://nova.test/v2.1/servers -> 200" in caplog.text
    for secret in ("hunter2", "c2VjcmV0", "zzz", "user-token"):
        assert secret not in caplog.text


def test_every_try_is_counted(
    session: Session, requests_mock: mocking.Mocker, naps: list[float]
) -> None:
    requests_mock.get(URL, [{"exc": broken()}, {"status_code": 503}, {"text": "ok"}])
    with count_calls() as calls:
        _ask(session, "GET", params={"limit": "1"})
    assert [(call.service, call.method, call.path, call.status) for call in calls.seen] == [
        ("compute", "GET", "/v2.1/servers", status) for status in ("unreachable", "503", "200")
    ]


def test_never_sent() -> None:
    assert never_sent(refused())
    assert never_sent(requests.ConnectTimeout())
    assert not never_sent(broken())
    assert not never_sent(requests.ReadTimeout())
    assert not never_sent(requests.ConnectionError())
    assert not never_sent(None)
    assert not never_sent(socket.gaierror())
