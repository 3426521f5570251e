"""The shared connections: sizes, time-outs, TLS options, nothing remembered of a caller."""

from __future__ import annotations

import http.cookiejar
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests
import requests_mock as mocking
from prometheus_client import REGISTRY

from tests.support.keystone import URL, Keystone, identity, token, token_body
from trimaran.config.common import defaults
from trimaran.identity import budget, count_calls, transport

NOVA = "http://nova.test/v2.1/servers"


def test_pool_is_as_large_as_the_option_and_waits_when_full() -> None:
    for scheme in ("http", "https"):
        adapter = transport.Transport(7).get_adapter(f"{scheme}://x.test")
        settings = adapter.__getstate__()
        assert settings["_pool_maxsize"] == 7
        assert settings["_pool_block"] is True
        assert adapter.max_retries.total == 0


def test_one_transport_per_process() -> None:
    with ThreadPoolExecutor(8) as pool:
        made = {id(each) for each in pool.map(lambda _n: transport.shared(11), range(32))}
    assert len(made) == 1
    own = defaults(http_pool_size=11)
    assert identity(own=own).service_session.session is transport.shared(11)
    assert identity(own=own).session_for(token()).session is transport.shared(11)


def test_time_outs_on_authentication_and_on_calls(
    keystone: Keystone, requests_mock: mocking.Mocker
) -> None:
    requests_mock.get(NOVA, text="{}")
    ours = identity(own=defaults(connect_timeout=1.5, read_timeout=9.0))
    ours.service_session.get(NOVA)
    keystone.subjects["t"] = token_body()
    ours.session_for(ours.validate("t")).get(NOVA)
    assert requests_mock.call_count == 4
    assert {request.timeout for request in requests_mock.request_history} == {(1.5, 9.0)}


def test_a_blocks_budget_cuts_the_time_outs_of_its_calls(requests_mock: mocking.Mocker) -> None:
    requests_mock.get(NOVA, text="{}")
    session = identity(own=defaults(connect_timeout=5.0, read_timeout=9.0)).session_for(token())

    def timeouts() -> tuple[float, float]:
        session.get(NOVA)
        found: tuple[float, float] = requests_mock.request_history[-1].timeout
        return found

    with budget.within(7.0):
        connect, read = timeouts()
        assert connect <= 5.0
        assert 0 < read <= 7.0
        # An inner block ends no later than the outer one.
        with budget.within(60.0):
            assert timeouts()[1] <= 7.0
        with budget.within(0.0):
            assert timeouts() == (0.001, 0.001)
        assert timeouts()[1] > 0.001
    assert timeouts() == (5.0, 9.0)


def test_our_own_token_is_not_cut_short_by_one_requests_budget(
    keystone: Keystone, requests_mock: mocking.Mocker
) -> None:
    requests_mock.get(NOVA, text="{}")
    ours = identity(own=defaults(connect_timeout=5.0, read_timeout=9.0))
    with budget.within(0.0):
        ours.service_session.get(NOVA)
    authentication, call = requests_mock.request_history
    assert authentication.timeout == (5.0, 9.0)
    assert call.timeout == (0.001, 0.001)


@pytest.mark.parametrize("verify", [True, False, "/etc/ssl/cloud.pem"])
@pytest.mark.parametrize("cert", [None, "/c.pem", ("/c.pem", "/k.pem")])
def test_tls_options_on_authentication_and_on_calls(
    keystone: Keystone, requests_mock: mocking.Mocker, verify: object, cert: object
) -> None:
    requests_mock.get(NOVA, text="{}")
    ours = identity(verify=verify, cert=cert)
    ours.service_session.get(NOVA)
    ours.session_for(token()).get(NOVA)
    assert requests_mock.call_count == 3
    for request in requests_mock.request_history:
        assert request.verify == verify
        assert request.cert == cert


def test_cookies_of_one_caller_do_not_travel_with_another(
    requests_mock: mocking.Mocker,
) -> None:
    shared = transport.Transport(1)
    requests_mock.get(NOVA, cookies=requests.cookies.cookiejar_from_dict({"SRV": "a"}))
    shared.get(NOVA)
    shared.get(NOVA)
    assert "Cookie" not in requests_mock.last_request.headers
    policy = shared.cookies.get_policy()
    cookie = requests.cookies.create_cookie("SRV", "a", domain="nova.test")
    request = requests.cookies.MockRequest(requests.Request("GET", NOVA).prepare())
    assert isinstance(policy, http.cookiejar.DefaultCookiePolicy)
    assert not policy.set_ok(cookie, request)


def test_netrc_is_not_read(
    requests_mock: mocking.Mocker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine nova.test login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    requests_mock.get(NOVA, text="{}")
    identity().session_for(token()).get(NOVA)
    assert "Authorization" not in requests_mock.last_request.headers


def test_proxies_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://proxy.test:3128")
    monkeypatch.setenv("no_proxy", "glance.test")
    shared = transport.Transport(1)
    for _ in range(2):
        found = shared.merge_environment_settings(NOVA, {}, False, True, None)
        assert found["proxies"]["http"] == "http://proxy.test:3128"
        found["proxies"] = {}
        none = shared.merge_environment_settings("http://glance.test/v2", {}, False, True, None)
        assert none["proxies"] == {}
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/operator.pem")
    other = transport.Transport(1)
    assert other.merge_environment_settings(NOVA, {}, False, True, None)["verify"] == (
        "/operator.pem"
    )
    assert other.merge_environment_settings(NOVA, {}, False, False, None)["verify"] is False
    assert other.merge_environment_settings(NOVA, {}, False, "/own.pem", None)["verify"] == (
        "/own.pem"
    )


def test_keystoneauth_logs_no_bodies(
    keystone: Keystone, requests_mock: mocking.Mocker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    requests_mock.post(NOVA, json={"adminPass": "hunter2"})
    identity().service_session.post(NOVA, json={"user_data": "c2VjcmV0"})
    assert "hunter2" not in caplog.text
    assert "c2VjcmV0" not in caplog.text
    assert "s3cret" not in caplog.text


class TestCounting:
    def test_service_of_each_call(self, keystone: Keystone, requests_mock: mocking.Mocker) -> None:
        requests_mock.get(NOVA, text="{}")
        with count_calls() as calls:
            identity().service_session.get("/servers", endpoint_filter={"service_type": "compute"})
        assert calls.by_service == {"identity": 1, "compute": 1}

    def test_nested_recorders_both_see(self, requests_mock: mocking.Mocker) -> None:
        requests_mock.get(NOVA, text="{}")
        session = identity().session_for(token())
        with count_calls() as outer:
            session.get(NOVA)
            with count_calls() as inner:
                session.get(NOVA)
        session.get(NOVA)
        assert (outer.total, inner.total) == (2, 1)

    def test_other_threads_only_when_asked(self, requests_mock: mocking.Mocker) -> None:
        requests_mock.get(NOVA, text="{}")
        session = identity().session_for(token())
        with count_calls() as here, count_calls(everywhere=True) as all_threads:
            thread = threading.Thread(target=session.get, args=(NOVA,))
            thread.start()
            thread.join(60)
        session.get(NOVA)
        assert (here.total, all_threads.total) == (0, 1)

    def test_metrics(self, requests_mock: mocking.Mocker) -> None:
        labels = {"service": "metric-test", "method": "GET", "status": "418"}
        before = REGISTRY.get_sample_value("trimaran_backend_requests_total", labels) or 0
        requests_mock.get(NOVA, status_code=418)
        identity().session_for(token()).get(
            NOVA, endpoint_filter={"service_type": "metric-test"}, raise_exc=False
        )
        after = REGISTRY.get_sample_value("trimaran_backend_requests_total", labels)
        assert after == before + 1
        assert REGISTRY.get_sample_value(
            "trimaran_backend_request_seconds_count", {"service": "metric-test"}
        )


def test_close_keeps_the_identity_usable(keystone: Keystone, requests_mock: mocking.Mocker) -> None:
    ours = identity()
    ours.close()
    assert ours.service_token() == "service-1"
    assert requests_mock.request_history[0].url == f"{URL}/auth/tokens"
