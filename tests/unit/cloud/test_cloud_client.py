"""What the clients share: URLs, pages, microversions, errors, tokens."""

from __future__ import annotations

from typing import Any

import pytest
import requests
import requests_mock as mocking

from tests.support.keystone import (
    ENDPOINTS,
    REGION,
    URL,
    Keystone,
    catalog,
    error,
    identity,
    token,
)
from trimaran import errors
from trimaran.cloud import Cloud, CloudError, CloudSession, NoEndpoint, client
from trimaran.identity import count_calls

NOVA = "http://nova.test/v2.1"


@pytest.fixture(autouse=True)
def _no_ceilings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client.Client, "_ceilings", {})


def _user(endpoints: dict[str, str], **options: Any) -> CloudSession:
    return Cloud(identity(), region=REGION, **options).as_user(token(catalog=catalog(endpoints)))


class TestUrls:
    @pytest.mark.parametrize(
        ("kind", "name", "written", "used"),
        [
            ("compute", "compute", "http://n/v2.1", "http://n/v2.1"),
            ("compute", "compute", "http://n/v2.1/", "http://n/v2.1"),
            ("compute", "compute", "http://n/v2/abc", "http://n/v2/abc"),
            ("compute", "compute", "http://n/compute", "http://n/compute/v2.1"),
            ("network", "network", "http://n:9696", "http://n:9696/v2.0"),
            ("network", "network", "http://n:9696/v2.0/", "http://n:9696/v2.0"),
            ("network", "network", "http://n/networking", "http://n/networking/v2.0"),
            ("image", "image", "http://g:9292", "http://g:9292/v2"),
            ("image", "image", "http://g/image/v2", "http://g/image/v2"),
            ("volumev3", "volume", "http://c/v3/abc", "http://c/v3/abc"),
            ("block-storage", "volume", "http://c/volume", "http://c/volume/v3"),
            ("key-manager", "keys", "http://b:9311", "http://b:9311/v1"),
            ("key-manager", "keys", "http://v1.test/keys", "http://v1.test/keys/v1"),
        ],
    )
    def test_catalog_url(self, kind: str, name: str, written: str, used: str) -> None:
        assert getattr(_user({kind: written}), name).base_url == used

    def test_service_type_of_the_option(self) -> None:
        both = {"compute": "http://a/v2.1", "compute_legacy": "http://b/v2"}
        found = _user(both, service_types={"compute": "compute_legacy"})
        assert found.compute.base_url == "http://b/v2"

    def test_interface_of_the_option(self) -> None:
        rows = catalog()
        for endpoint in rows[1]["endpoints"]:
            endpoint["url"] = f"http://{endpoint['interface']}/v2.1"
        cloud = Cloud(identity(), region=REGION, interface="internal")
        assert cloud.as_user(token(catalog=rows)).compute.base_url == "http://internal/v2.1"

    def test_another_region(self, cloud: Cloud) -> None:
        rows = catalog() + catalog({"compute": "http://two/v2.1"}, "Two")
        found = cloud.as_user(token(catalog=rows), region="Two")
        assert found.compute.base_url == "http://two/v2.1"

    def test_missing_service(self, requests_mock: mocking.Mocker) -> None:
        with pytest.raises(NoEndpoint) as caught:
            _user({"compute": "http://n/v2.1"}).network.networks()
        assert isinstance(caught.value, errors.Unavailable)
        assert caught.value.service == "network"

    @pytest.mark.parametrize("bad", ["", ".", ".."])
    def test_ids_that_would_leave_the_path(self, user: CloudSession, bad: str) -> None:
        with pytest.raises(errors.NotFound):
            user.compute.server(bad)

    def test_ids_are_quoted(self, user: CloudSession, requests_mock: mocking.Mocker) -> None:
        requests_mock.get(f"{NOVA}/servers/a%2F..%2Fb%3Fc%3Dd", json={"server": {"id": "x"}})
        assert user.compute.server("a/../b?c=d") == {"id": "x"}


class Pages:
    """A listing of Nova's kind over a list of rows."""

    def __init__(self, rows: list[dict[str, Any]], size: int) -> None:
        self.rows = rows
        self.size = size

    def __call__(self, request: requests.Request, context: Any) -> dict[str, Any]:
        query = request.qs  # type: ignore[attr-defined]
        size = int(query.get("limit", [self.size])[0])
        start = 0
        if "marker" in query:
            start = [row["id"] for row in self.rows].index(query["marker"][0]) + 1
        rows = self.rows[start : start + size]
        answer: dict[str, Any] = {"servers": rows}
        if start + size < len(self.rows):
            # What the service believes its address to be is not where it was asked.
            link = f"http://10.0.0.1:8774/v2.1/servers?limit={size}&marker={rows[-1]['id']}"
            answer["servers_links"] = [{"rel": "next", "href": link}]
        return answer


SERVERS = [{"id": f"s{number}"} for number in range(7)]


class TestPages:
    @pytest.mark.parametrize("size", [1, 2, 3, 6, 7, 8])
    def test_to_the_end(self, user: CloudSession, requests_mock: mocking.Mocker, size: int) -> None:
        requests_mock.get(f"{NOVA}/servers/detail", json=Pages(SERVERS, size))
        assert user.compute.servers() == SERVERS
        assert requests_mock.call_count == -(-7 // size)

    def test_limit_is_the_size_of_a_part(
        self, user: CloudSession, requests_mock: mocking.Mocker
    ) -> None:
        requests_mock.get(f"{NOVA}/servers/detail", json=Pages(SERVERS, 1000))
        assert user.compute.servers(limit=1) == SERVERS
        assert requests_mock.call_count == 7

    def test_filters_stay_on_every_page(
        self, user: CloudSession, requests_mock: mocking.Mocker
    ) -> None:
        requests_mock.get(f"{NOVA}/servers/detail", json=Pages(SERVERS, 3))
        user.compute.servers(all_tenants=True, project_id="p9", name=None)
        for request in requests_mock.request_history:
            assert request.qs["project_id"] == ["p9"]
            assert request.qs["all_tenants"] == ["true"]
            assert "name" not in request.qs

    def test_a_failing_page_fails_the_listing(
        self, user: CloudSession, requests_mock: mocking.Mocker
    ) -> None:
        first = Pages(SERVERS, 3)
        requests_mock.get(f"{NOVA}/servers/detail", json=first)
        requests_mock.get(f"{NOVA}/servers/detail?marker=s5", status_code=500)
        with pytest.raises(errors.Unavailable) as caught:
            user.compute.servers()
        assert caught.value.service == "compute"

    def test_a_page_that_goes_round_in_circles(
        self, user: CloudSession, requests_mock: mocking.Mocker
    ) -> None:
        link = {"rel": "next", "href": "http://x/v2.1/servers?marker=s0"}
        answer = {"json": {"servers": SERVERS[:1], "servers_links": [link]}}
        requests_mock.get(f"{NOVA}/servers/detail", [answer] * 9 + [{"status_code": 500}])
        with pytest.raises(errors.Unavailable) as caught:
            user.compute.servers()
        assert "do not end" in caught.value.remote_message  # type: ignore[attr-defined]
        assert requests_mock.call_count == 2

    def test_circles_of_two_pages(self, user: CloudSession, requests_mock: mocking.Mocker) -> None:
        def there_and_back(request: Any, context: Any) -> dict[str, Any]:
            if requests_mock.call_count > 9:
                context.status_code = 500
            other = "b" if request.qs.get("marker") == ["a"] else "a"
            link = {"rel": "next", "href": f"http://x/?marker={other}"}
            return {"servers": [], "servers_links": [link]}

        requests_mock.get(f"{NOVA}/servers/detail", json=there_and_back)
        with pytest.raises(errors.Unavailable):
            user.compute.servers()
        assert requests_mock.call_count == 3

    def test_a_marker_deleted_meanwhile_starts_again(
        self, user: CloudSession, requests_mock: mocking.Mocker
    ) -> None:
        gone = [
            {"status_code": 400, "json": {"badRequest": {"message": "marker [s2] not found"}}},
            {"json": {"servers": SERVERS[3:]}},
        ]
        requests_mock.get(f"{NOVA}/servers/detail", json=Pages(SERVERS[:6], 3))
        requests_mock.get(f"{NOVA}/servers/detail?marker=s2", gone)
        assert user.compute.servers() == SERVERS

    def test_a_listing_that_never_holds_still(
        self, user: CloudSession, requests_mock: mocking.Mocker
    ) -> None:
        requests_mock.get(f"{NOVA}/servers/detail", json=Pages(SERVERS, 3))
        requests_mock.get(
            f"{NOVA}/servers/detail?marker=s2", status_code=400, json={"badRequest": {}}
        )
        with pytest.raises(errors.Unavailable):
            user.compute.servers()

    def test_a_wrong_question_is_asked_once(
        self, user: CloudSession, requests_mock: mocking.Mocker
    ) -> None:
        requests_mock.get(f"{NOVA}/servers/detail", status_code=400, json={"badRequest": {}})
        with pytest.raises(errors.BadRequest):
            user.compute.servers(changes__since="x")
        assert requests_mock.call_count == 1

    @pytest.mark.parametrize("body", [{}, {"servers": None}, {"servers": {}}, [], 7])
    def test_an_answer_without_the_listing(
        self, user: CloudSession, requests_mock: mocking.Mocker, body: object
    ) -> None:
        requests_mock.get(f"{NOVA}/servers/detail", json=body)
        with pytest.raises(errors.Unavailable):
            user.compute.servers()

    def test_an_answer_that_is_not_json(
        self, user: CloudSession, requests_mock: mocking.Mocker
    ) -> None:
        requests_mock.get(f"{NOVA}/servers/detail", text="<html>login</html>")
        with pytest.raises(errors.Unavailable):
            user.compute.servers()

    def test_lists_repeat_the_parameter(
        self, user: CloudSession, requests_mock: mocking.Mocker
    ) -> None:
        requests_mock.get("http://neutron.test/v2.0/ports", json={"ports": []})
        assert user.network.ports(fields=["id", "name"], device_id=["a", "b"]) == []
        assert requests_mock.last_request.query == ("fields=id&fields=name&device_id=a&device_id=b")


class TestMicroversions:
    def test_default_and_wish(self, user: CloudSession, requests_mock: mocking.Mocker) -> None:
        requests_mock.get(f"{NOVA}/servers/1", json={"server": {}})
        user.compute.server("1")
        user.compute.server("1", microversion="2.90")
        sent = [
            (
                request.headers["OpenStack-API-Version"],
                request.headers["X-OpenStack-Nova-API-Version"],
            )
            for request in requests_mock.request_history
        ]
        assert sent == [("compute 2.79", "2.79"), ("compute 2.90", "2.90")]

    def test_an_old_nova_gets_its_newest(
        self, user: CloudSession, cloud: Cloud, requests_mock: mocking.Mocker
    ) -> None:
        def old(request: Any, context: Any) -> dict[str, Any]:
            if request.headers["X-OpenStack-Nova-API-Version"] not in ("2.32", "2.1"):
                context.status_code = 406
                text = (
                    "Version 2.79 is not supported by the API. Minimum is 2.1 and maximum is 2.32."
                )
                return {"computeFault": {"code": 406, "message": text}}
            return {"server": {"id": "1"}}

        requests_mock.get(f"{NOVA}/servers/1", json=old)
        assert user.compute.server("1") == {"id": "1"}
        assert requests_mock.call_count == 2
        # Known from then on, also to other callers; an older wish stays.
        assert cloud.as_user(token("other")).compute.server("1") == {"id": "1"}
        assert user.compute.server("1", microversion="2.1") == {"id": "1"}
        assert requests_mock.call_count == 4
        assert requests_mock.last_request.headers["X-OpenStack-Nova-API-Version"] == "2.1"

    def test_406_without_a_version(self, user: CloudSession, requests_mock: mocking.Mocker) -> None:
        requests_mock.get(f"{NOVA}/servers/1", status_code=406, text="no")
        with pytest.raises(errors.BadRequest):
            user.compute.server("1")
        assert requests_mock.call_count == 1

    def test_none_for_neutron_glance_and_cinder(
        self, user: CloudSession, requests_mock: mocking.Mocker
    ) -> None:
        requests_mock.get("http://neutron.test/v2.0/ports", json={"ports": []})
        requests_mock.get("http://glance.test/v2/images", json={"images": []})
        requests_mock.get("http://cinder.test/v3/project/types", json={"volume_types": []})
        user.network.ports()
        user.image.images()
        user.volume.volume_types()
        for request in requests_mock.request_history:
            assert "OpenStack-API-Version" not in request.headers


class TestErrors:
    def test_error_tree_with_the_service_s_words(
        self, user: CloudSession, requests_mock: mocking.Mocker
    ) -> None:
        requests_mock.delete(
            f"{NOVA}/servers/1",
            status_code=409,
            json={"conflictingRequest": {"message": "Cannot 'delete' while it is locked"}},
            headers={"x-openstack-request-id": "req-n"},
        )
        with pytest.raises(errors.Conflict) as caught:
            user.compute.delete_server("1")
        found = caught.value
        assert isinstance(found, CloudError)
        assert (found.service, found.remote_status) == ("compute", 409)
        assert found.remote_message == "Cannot 'delete' while it is locked"
        assert found.request_id == "req-n"
        assert "locked" not in str(found)

    def test_an_ended_user_token(self, user: CloudSession, requests_mock: mocking.Mocker) -> None:
        requests_mock.get(f"{NOVA}/servers/1", status_code=401, json=error(401))
        with pytest.raises(errors.Unauthenticated):
            user.compute.server("1")
        assert requests_mock.call_count == 1

    def test_redirects_are_followed_with_the_method(
        self, user: CloudSession, requests_mock: mocking.Mocker
    ) -> None:
        requests_mock.delete(
            f"{NOVA}/servers/1", status_code=307, headers={"Location": f"{NOVA}/servers/1/"}
        )
        requests_mock.delete(f"{NOVA}/servers/1/", status_code=204)
        user.compute.delete_server("1")
        assert requests_mock.last_request.method == "DELETE"

    @pytest.mark.parametrize("call", ["server", "flavor"])
    def test_an_answer_without_the_thing(
        self, user: CloudSession, requests_mock: mocking.Mocker, call: str
    ) -> None:
        requests_mock.get(f"{NOVA}/{call}s/1", json={"other": {}})
        with pytest.raises(errors.Unavailable):
            getattr(user.compute, call)("1")


class TestAsService:
    def test_own_token_and_catalog(self, cloud: Cloud, requests_mock: mocking.Mocker) -> None:
        Keystone(requests_mock)
        requests_mock.get(f"{NOVA}/servers/detail", json={"servers": []})
        cloud.as_service().compute.servers(all_tenants=True)
        assert requests_mock.last_request.headers["X-Auth-Token"] == "service-1"

    def test_a_revoked_token_is_replaced(
        self, cloud: Cloud, requests_mock: mocking.Mocker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = [100.0]
        monkeypatch.setattr("trimaran.identity.auth.time.monotonic", lambda: now[0])
        keystone = Keystone(requests_mock)

        def nova(request: Any, context: Any) -> dict[str, Any]:
            if request.headers["X-Auth-Token"] not in keystone.valid:
                context.status_code = 401
            return {"server": {"id": "1"}}

        requests_mock.get(f"{NOVA}/servers/1", json=nova)
        cloud.as_service().compute.server("1")
        keystone.valid.clear()
        now[0] += 60
        assert cloud.as_service().compute.server("1") == {"id": "1"}
        assert keystone.service_tokens == ["service-1", "service-2"]

    def test_a_service_that_refuses_us_is_not_the_caller_s_fault(
        self, cloud: Cloud, requests_mock: mocking.Mocker
    ) -> None:
        Keystone(requests_mock)
        requests_mock.get(f"{NOVA}/servers/1", status_code=401)
        with pytest.raises(errors.Unavailable) as caught:
            cloud.as_service().compute.server("1")
        assert caught.value.service == "compute"

    def test_keystone_down(self, cloud: Cloud, requests_mock: mocking.Mocker) -> None:
        requests_mock.post(f"{URL}/auth/tokens", exc=requests.ConnectTimeout)
        with pytest.raises(errors.Unavailable) as caught:
            cloud.as_service().compute.servers()
        assert caught.value.service == "identity"


def test_a_user_s_calls_ask_no_keystone(user: CloudSession, requests_mock: mocking.Mocker) -> None:
    requests_mock.get(f"{NOVA}/servers/detail", json={"servers": []})
    requests_mock.get("http://neutron.test/v2.0/networks", json={"networks": []})
    with count_calls() as calls:
        user.compute.servers()
        user.network.networks()
    assert calls.by_service == {"compute": 1, "network": 1}
    assert set(ENDPOINTS) >= set(calls.by_service)
