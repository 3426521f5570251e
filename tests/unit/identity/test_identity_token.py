"""Token: Keystone's document as a value."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.support.keystone import catalog, token, token_body
from trimaran.identity import Token
from trimaran.identity.catalog import find_url, regions
from trimaran.identity.rest import v3_url


def test_project_scope() -> None:
    found = token("abc")
    assert (found.id, found.user_id, found.user_name) == ("abc", "u1", "demo")
    assert (found.project_id, found.project_name, found.project_domain_id) == (
        "p1",
        "demo",
        "default",
    )
    assert found.roles == ("member", "reader")
    assert found.role_pairs == (("r1", "member"), ("r2", "reader"))
    assert found.system_scope == ""
    assert found.domain_id is None
    assert 3590 < found.expires_in() <= 3600


def test_system_scope() -> None:
    found = token(project=None, system={"all": True})
    assert found.system_scope == "all"
    assert found.project_id is None


def test_domain_scope() -> None:
    found = token(project=None, domain={"id": "d1", "name": "acme"})
    assert (found.domain_id, found.domain_name) == ("d1", "acme")


def test_unscoped_has_no_roles_and_no_catalog() -> None:
    found = token(project=None, roles=None, catalog=None)
    assert found.roles == ()
    assert found.catalog == ()
    assert found.endpoint("compute", region=None, interface="public") is None


def test_expiry_is_aware_utc() -> None:
    body = token_body(expires_at="2030-01-02T03:04:05.000000Z")
    assert Token.from_body("x", body).expires_at == datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_ended_token_has_negative_life() -> None:
    assert token(seconds=-1).expires_in() < 0


def test_repr_shows_no_secret() -> None:
    text = repr(token("very-secret-id"))
    assert "very-secret-id" not in text
    assert "nova.test" not in text
    assert "demo" in text


@pytest.mark.parametrize(
    "body", [{}, {"token": {}}, {"token": {"user": None}}, {"access": {"token": {"id": "x"}}}]
)
def test_what_is_no_v3_token_is_refused(body: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="not a v3 token"):
        Token.from_body("x", body)


class TestCatalog:
    def test_type_asked_for_wins_over_its_alias(self) -> None:
        both = catalog({"volumev3": "http://old", "block-storage": "http://new"})
        assert find_url(both, "volumev3", region=None, interface="public") == "http://old"
        assert find_url(both, "block-storage", region=None, interface="public") == "http://new"

    @pytest.mark.parametrize("kind", ["block-storage", "block-store", "volumev3", "volume"])
    def test_volume_is_found_under_any_of_its_names(self, kind: str) -> None:
        only = catalog({kind: "http://cinder"})
        assert find_url(only, "volumev3", region=None, interface="public") == "http://cinder"

    def test_other_families_are_not_mixed(self) -> None:
        assert (
            find_url(catalog({"volumev2": "x"}), "volumev3", region=None, interface="public")
            is None
        )

    def test_region_and_interface_must_match(self) -> None:
        one = [
            {
                "type": "compute",
                "endpoints": [
                    {"interface": "public", "region_id": "A", "url": "http://a"},
                    {"interface": "internal", "region_id": "B", "url": "http://b-in"},
                    {"interface": "public", "region": "B", "url": "http://b"},
                ],
            }
        ]
        assert find_url(one, "compute", region="B", interface="public") == "http://b"
        assert find_url(one, "compute", region="B", interface="internal") == "http://b-in"
        assert find_url(one, "compute", region="C", interface="public") is None
        assert find_url(one, "compute", region="A", interface="admin") is None
        assert find_url(one, "compute", region=None, interface="public") == "http://a"
        assert regions(one, interface="public") == ["A", "B"]
        assert regions(one, interface="public", service_type="network") == []

    @pytest.mark.parametrize(
        "broken", [[{}], [{"type": "compute"}], [{"type": "compute", "endpoints": None}]]
    )
    def test_odd_entries_are_passed_over(self, broken: list[dict[str, object]]) -> None:
        assert find_url(broken, "compute", region=None, interface="public") is None


@pytest.mark.parametrize(
    ("written", "used"),
    [
        ("http://k:5000", "http://k:5000/v3"),
        ("http://k:5000/", "http://k:5000/v3"),
        ("http://k:5000/v3", "http://k:5000/v3"),
        ("http://k:5000/v3/", "http://k:5000/v3"),
        ("http://k/identity", "http://k/identity/v3"),
        ("http://k:5000/v2.0", "http://k:5000/v3"),
    ],
)
def test_v3_url(written: str, used: str) -> None:
    assert v3_url(written) == used
