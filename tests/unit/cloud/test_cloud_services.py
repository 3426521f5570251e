"""What is special about each service's client."""

from __future__ import annotations

from typing import Any

import pytest
import requests
import requests_mock as mocking

from trimaran import errors
from trimaran.cloud import CloudSession
from trimaran.cloud.network import _LONGEST_QUERY, _questions

NOVA = "http://nova.test/v2.1"
NEUTRON = "http://neutron.test/v2.0"
GLANCE = "http://glance.test/v2"
CINDER = "http://cinder.test/v3/project"
BARBICAN = "http://barbican.test/v1"


class TestCompute:
    @pytest.mark.parametrize(
        "body",
        [
            {"name": "a", "flavorRef": "1"},
            {"server": {"name": "a", "flavorRef": "1"}, "os:scheduler_hints": {"group": "g"}},
        ],
    )
    def test_create_takes_attributes_or_the_document(
        self, user: CloudSession, requests_mock: mocking.Mocker, body: dict[str, Any]
    ) -> None:
        requests_mock.post(f"{NOVA}/servers", status_code=202, json={"server": {"id": "1"}})
        assert user.compute.create_server(body) == {"id": "1"}
        expected = body if "server" in body else {"server": body}
        assert requests_mock.last_request.json() == expected

    def test_reservation_id(self, user: CloudSession, requests_mock: mocking.Mocker) -> None:
        requests_mock.post(f"{NOVA}/servers", status_code=202, json={"reservation_id": "r-1"})
        assert user.compute.create_server({"name": "a"}) == {"reservation_id": "r-1"}

    def test_action_without_answer(self, user: CloudSession, requests_mock: mocking.Mocker) -> None:
        requests_mock.post(f"{NOVA}/servers/1/action", status_code=202)
        assert user.compute.action("1", {"os-stop": None}) == {}
        assert requests_mock.last_request.json() == {"os-stop": None}

    def test_keypairs_are_unwrapped(
        self, user: CloudSession, requests_mock: mocking.Mocker
    ) -> None:
        requests_mock.get(f"{NOVA}/os-keypairs", json={"keypairs": [{"keypair": {"name": "k"}}]})
        assert user.compute.keypairs() == [{"name": "k"}]

    def test_zones(self, user: CloudSession, requests_mock: mocking.Mocker) -> None:
        zone = {"zoneName": "nova", "zoneState": {"available": True}}
        requests_mock.get(f"{NOVA}/os-availability-zone", json={"availabilityZoneInfo": [zone]})
        requests_mock.get(
            f"{NOVA}/os-availability-zone/detail", json={"availabilityZoneInfo": [zone, zone]}
        )
        assert user.compute.zones() == [zone]
        assert user.compute.zones(detail=True) == [zone, zone]

    def test_console_output(self, user: CloudSession, requests_mock: mocking.Mocker) -> None:
        requests_mock.post(f"{NOVA}/servers/1/action", json={"output": "booted"})
        assert user.compute.console_output("1", 5) == "booted"
        assert requests_mock.last_request.json() == {"os-getConsoleOutput": {"length": 5}}

    def test_image_of_a_server(self, user: CloudSession, requests_mock: mocking.Mocker) -> None:
        requests_mock.post(f"{NOVA}/servers/1/action", json={"image_id": "i"})
        assert user.compute.create_image("1", {"name": "snap"}) == "i"
        assert requests_mock.last_request.json() == {"createImage": {"name": "snap"}}

    def test_quota_refusal(self, user: CloudSession, requests_mock: mocking.Mocker) -> None:
        requests_mock.post(
            f"{NOVA}/servers",
            status_code=403,
            json={"forbidden": {"message": "Quota exceeded for cores: Requested 8"}},
        )
        with pytest.raises(errors.QuotaExceeded):
            user.compute.create_server({"name": "a"})


class TestNetwork:
    def test_crud(self, user: CloudSession, requests_mock: mocking.Mocker) -> None:
        row = {"id": "n1", "name": "a"}
        requests_mock.get(f"{NEUTRON}/security-groups/n1", json={"security_group": row})
        requests_mock.post(f"{NEUTRON}/security-groups", json={"security_group": row})
        requests_mock.put(f"{NEUTRON}/security-groups/n1", json={"security_group": row})
        requests_mock.delete(f"{NEUTRON}/security-groups/n1", status_code=204)
        network = user.network
        assert network.security_group("n1") == row
        assert network.create_security_group({"name": "a"}) == row
        assert network.update_security_group("n1", {"security_group": {"name": "a"}}) == row
        network.delete_security_group("n1")
        sent = [request.text for request in requests_mock.request_history]
        assert sent == [
            None,
            '{"security_group": {"name": "a"}}',
            '{"security_group": {"name": "a"}}',
            None,
        ]

    def test_router_interfaces(self, user: CloudSession, requests_mock: mocking.Mocker) -> None:
        requests_mock.put(f"{NEUTRON}/routers/r/add_router_interface", json={"port_id": "p"})
        requests_mock.put(f"{NEUTRON}/routers/r/remove_router_interface", json={})
        assert user.network.add_router_interface("r", {"subnet_id": "s"}) == {"port_id": "p"}
        assert user.network.remove_router_interface("r", {"subnet_id": "s"}) == {}

    def test_pages_that_the_operator_limits(
        self, user: CloudSession, requests_mock: mocking.Mocker
    ) -> None:
        link = {"rel": "next", "href": "http://x/v2.0/networks?shared=True&marker=a"}
        requests_mock.get(
            f"{NEUTRON}/networks", json={"networks": [{"id": "a"}], "networks_links": [link]}
        )
        previous = {"rel": "previous", "href": "http://x/v2.0/networks?marker=b&page_reverse=True"}
        requests_mock.get(
            f"{NEUTRON}/networks?marker=a",
            json={"networks": [{"id": "b"}], "networks_links": [previous]},
        )
        assert user.network.networks(shared=True) == [{"id": "a"}, {"id": "b"}]

    def test_a_long_filter_is_asked_in_parts(
        self, user: CloudSession, requests_mock: mocking.Mocker
    ) -> None:
        wanted = [f"00000000-0000-0000-0000-{number:012}" for number in range(500)]

        def ports(request: requests.Request, context: Any) -> dict[str, Any]:
            query = request.qs  # type: ignore[attr-defined]
            assert len(request.query) <= _LONGEST_QUERY  # type: ignore[attr-defined]
            assert query["fields"] == ["id"]
            return {"ports": [{"id": each} for each in query["device_id"]]}

        requests_mock.get(f"{NEUTRON}/ports", json=ports)
        found = user.network.ports(device_id=wanted, fields=["id"])
        assert [row["id"] for row in found] == wanted
        assert requests_mock.call_count > 1

    def test_no_alternatives_match_nothing(
        self, user: CloudSession, requests_mock: mocking.Mocker
    ) -> None:
        assert user.network.ports(device_id=[]) == []
        assert requests_mock.call_count == 0

    def test_one_value_too_long_is_still_one_question(self) -> None:
        query = {"name": ["x" * 9000]}
        assert _questions(query) == [query]

    def test_repeated_values_are_asked_once(self) -> None:
        parts = _questions({"id": [f"{number:040}" for number in range(200)] * 2})
        asked = [value for part in parts for value in part["id"]]
        assert len(asked) == len(set(asked)) == 200

    def test_quota_details(self, user: CloudSession, requests_mock: mocking.Mocker) -> None:
        quota = {"port": {"limit": 10, "used": 1, "reserved": 0}}
        requests_mock.get(f"{NEUTRON}/quotas/p1/details.json", json={"quota": quota})
        assert user.network.quota("p1") == quota


class TestImage:
    def test_asks_for_large_pages(self, user: CloudSession, requests_mock: mocking.Mocker) -> None:
        requests_mock.get(
            f"{GLANCE}/images",
            json={"images": [{"id": "a"}], "next": "/v2/images?limit=1000&marker=a"},
        )
        requests_mock.get(f"{GLANCE}/images?marker=a", json={"images": [{"id": "b"}]})
        assert user.image.images(visibility="public") == [{"id": "a"}, {"id": "b"}]
        for request in requests_mock.request_history:
            assert request.qs["limit"] == ["1000"]
            assert request.qs["visibility"] == ["public"]

    def test_patch(self, user: CloudSession, requests_mock: mocking.Mocker) -> None:
        requests_mock.patch(f"{GLANCE}/images/i", json={"id": "i"})
        change = {"op": "replace", "path": "/name", "value": "x"}
        assert user.image.update_image("i", [change]) == {"id": "i"}
        sent = requests_mock.last_request
        assert sent.headers["Content-Type"] == "application/openstack-images-v2.1-json-patch"
        assert sent.json() == [change]

    def test_upload_is_a_stream(self, user: CloudSession, requests_mock: mocking.Mocker) -> None:
        requests_mock.put(f"{GLANCE}/images/i/file", status_code=204)
        user.image.upload_image("i", iter([b"ab", b"cd"]))
        sent = requests_mock.last_request
        assert sent.headers["Content-Type"] == "application/octet-stream"
        assert sent.headers["Transfer-Encoding"] == "chunked"
        assert b"".join(sent.body) == b"abcd"

    def test_download(self, user: CloudSession, requests_mock: mocking.Mocker) -> None:
        requests_mock.get(f"{GLANCE}/images/i/file", content=b"x" * (3 << 20))
        parts = list(user.image.download_image("i"))
        assert [len(part) for part in parts] == [1 << 20] * 3

    def test_download_of_a_missing_image(
        self, user: CloudSession, requests_mock: mocking.Mocker
    ) -> None:
        requests_mock.get(f"{GLANCE}/images/i/file", status_code=404, text="<html>none</html>")
        with pytest.raises(errors.NotFound):
            next(user.image.download_image("i"))

    def test_members(self, user: CloudSession, requests_mock: mocking.Mocker) -> None:
        row = {"member_id": "p", "status": "pending"}
        requests_mock.get(f"{GLANCE}/images/i/members", json={"members": [row]})
        requests_mock.post(f"{GLANCE}/images/i/members", json=row)
        requests_mock.put(f"{GLANCE}/images/i/members/p", json=row)
        requests_mock.delete(f"{GLANCE}/images/i/members/p", status_code=204)
        assert user.image.members("i") == [row]
        assert user.image.add_member("i", "p") == row
        assert user.image.update_member("i", "p", "accepted") == row
        user.image.remove_member("i", "p")
        assert [request.method for request in requests_mock.request_history] == [
            "GET",
            "POST",
            "PUT",
            "DELETE",
        ]


class TestVolume:
    def test_details(self, user: CloudSession, requests_mock: mocking.Mocker) -> None:
        requests_mock.get(f"{CINDER}/volumes/detail", json={"volumes": [{"id": "v"}]})
        requests_mock.get(f"{CINDER}/snapshots/detail", json={"snapshots": [{"id": "s"}]})
        assert user.volume.volumes(all_tenants=1) == [{"id": "v"}]
        assert user.volume.snapshots() == [{"id": "s"}]

    def test_microversion_header_of_cinder(
        self, user: CloudSession, requests_mock: mocking.Mocker
    ) -> None:
        requests_mock.get(f"{CINDER}/volumes/v", json={"volume": {"id": "v"}})
        user.volume.volume("v", microversion="3.59")
        assert requests_mock.last_request.headers["OpenStack-API-Version"] == "volume 3.59"

    def test_delete_with_snapshots(self, user: CloudSession, requests_mock: mocking.Mocker) -> None:
        requests_mock.delete(f"{CINDER}/volumes/v", status_code=202)
        user.volume.delete_volume("v")
        user.volume.delete_volume("v", cascade=True)
        assert [request.query for request in requests_mock.request_history] == ["", "cascade=true"]

    def test_action(self, user: CloudSession, requests_mock: mocking.Mocker) -> None:
        requests_mock.post(f"{CINDER}/volumes/v/action", status_code=202)
        assert user.volume.volume_action("v", {"os-extend": {"new_size": 2}}) == {}


class TestKeys:
    def test_links_that_forget_the_filters_and_rows_seen_twice(
        self, user: CloudSession, requests_mock: mocking.Mocker
    ) -> None:
        rows = [{"secret_ref": f"http://b/v1/secrets/{number}"} for number in range(3)]
        requests_mock.get(
            f"{BARBICAN}/secrets",
            json={"secrets": rows[:2], "next": "http://b/v1/secrets?limit=100&offset=2"},
        )
        requests_mock.get(f"{BARBICAN}/secrets?offset=2", json={"secrets": rows[1:]})
        assert user.keys.secrets(name="tls") == rows
        assert requests_mock.last_request.qs["name"] == ["tls"]

    @pytest.mark.parametrize("name", ["abc", "http://b/v1/secrets/abc", "http://b/v1/secrets/abc/"])
    def test_id_or_reference(
        self, user: CloudSession, requests_mock: mocking.Mocker, name: str
    ) -> None:
        requests_mock.get(f"{BARBICAN}/secrets/abc", json={"name": "x"})
        assert user.keys.secret(name) == {"name": "x"}

    def test_payload(self, user: CloudSession, requests_mock: mocking.Mocker) -> None:
        requests_mock.get(f"{BARBICAN}/secrets/abc/payload", content=b"\x00key")
        assert user.keys.secret_payload("abc", "application/octet-stream") == b"\x00key"
        assert requests_mock.last_request.headers["Accept"] == "application/octet-stream"

    def test_create_returns_the_reference(
        self, user: CloudSession, requests_mock: mocking.Mocker
    ) -> None:
        requests_mock.post(
            f"{BARBICAN}/secrets", status_code=201, json={"secret_ref": "http://b/1"}
        )
        requests_mock.post(f"{BARBICAN}/containers", status_code=201, json={})
        assert user.keys.create_secret({"name": "a"}) == "http://b/1"
        with pytest.raises(errors.Unavailable):
            user.keys.create_container({"name": "a"})
