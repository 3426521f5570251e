"""Which endpoints the proxy leads to, and where (spec/skyline.md 6.2, F6, F41 to F43)."""

from __future__ import annotations

import logging

import pytest

from trimaran.config.console import Settings
from trimaran.console.tools.nginx_catalog import Endpoint, Location, locations, proxied_url

MAPPING = Settings().openstack.service_mapping


def rows(*found: tuple[str, str, str]) -> list[Endpoint]:
    """Endpoints of (region, type, URL), with ids in this order."""
    return [
        Endpoint(id=f"e{number}", region=region, type=kind, url=url)
        for number, (region, kind, url) in enumerate(found)
    ]


def chosen(*found: tuple[str, str, str]) -> list[tuple[str, str]]:
    return [(each.name, each.url) for each in locations(rows(*found), MAPPING)]


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/volume/v3/%(project_id)s", "/volume/"),
        ("/swift/v1/AUTH_%(project_id)s", "/swift/"),
        ("/swift/v1/AUTH_$(project_id)s", "/swift/"),
        ("/v1/%(tenant_id)s", "/"),
        ("/v1/$(tenant_id)s/", "/"),
        ("/v3/", "/"),
        ("/v2.1", "/"),
        ("/identity", "/identity/"),
        ("/identity/v3", "/identity/"),
        ("/v10", "/v10/"),
        ("/v2.10", "/v2.10/"),
        ("/AUTH_%(project_id)s", "/"),
        ("", "/"),
        ("/", "/"),
        ("/a//v3", "/a/"),
    ],
)
def test_the_root_of_a_service(path: str, kept: str) -> None:
    assert proxied_url(f"http://host:8776{path}") == f"http://host:8776{kept}"


def test_host_and_scheme_are_kept() -> None:
    assert proxied_url("HTTPS://Nova.example/v2.1") == "https://Nova.example/"
    assert proxied_url("http://[2001:db8::1]:8774/v2.1") == "http://[2001:db8::1]:8774/"
    # A password in a URL must not go into a file that everybody reads.
    assert proxied_url("http://user:secret@host/v3") == "http://host/"


@pytest.mark.parametrize("url", ["", "ftp://host/", "//host/", "http://", "host:80"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="is not an http URL"):
        proxied_url(url)


def test_only_mapped_services_are_proxied_sorted_by_region_and_type() -> None:
    found = locations(
        rows(
            ("b", "compute", "http://n2/v2.1"),
            ("a", "ec2-api", "http://e/"),
            ("a", "network", "http://q/"),
            ("a", "compute", "http://n/v2.1"),
        ),
        MAPPING,
    )
    assert [(each.region, each.name) for each in found] == [
        ("a", "nova"),
        ("a", "neutron"),
        ("b", "nova"),
    ]
    assert found[2].path("/api/openstack") == "/api/openstack/b/nova/"
    assert Location("RegionOne", "x", "y", "http://h:1/z/").path("/p") == "/p/regionone/y/"
    assert Location("RegionOne", "x", "y", "http://h:1/z/").host == "h:1"


def test_aliases_of_a_type_are_found() -> None:
    assert chosen(("r", "volumev3", "http://c/v3/%(project_id)s")) == [("cinder", "http://c/")]


def test_two_types_of_one_service_make_one_location(caplog: pytest.LogCaptureFixture) -> None:
    both = (
        ("r", "volumev3", "http://c/v3/%(project_id)s"),
        ("r", "block-storage", "http://c/v3"),
    )
    assert chosen(*both) == [("cinder", "http://c/")]
    # They lead to the same place: nothing to warn of.
    assert not caplog.records
    assert chosen(("r", "volumev3", "http://old/v3"), ("r", "block-storage", "http://new/v3")) == [
        ("cinder", "http://new/")
    ]
    assert "http://old/ is not" in caplog.text


def test_the_first_of_two_endpoints_is_used_and_the_other_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    two = rows(("r", "compute", "http://one/v2.1"), ("r", "compute", "http://two/v2.1"))
    for order in (two, two[::-1]):
        caplog.clear()
        assert [each.url for each in locations(order, MAPPING)] == ["http://one/"]
        (record,) = caplog.records
        assert record.levelno == logging.WARNING
        assert record.getMessage() == (
            "region r has more than one endpoint of nova: http://one/ is used, http://two/ is not"
        )


def test_a_disabled_endpoint_does_not_count(caplog: pytest.LogCaptureFixture) -> None:
    off = Endpoint(id="e0", region="r", type="compute", url="http://off/", enabled=False)
    on = Endpoint(id="e1", region="r", type="compute", url="http://on/")
    assert [each.url for each in locations([off, on], MAPPING)] == ["http://on/"]
    assert not caplog.records
    assert locations([off], MAPPING) == []


def test_regions_that_differ_in_case_only_share_a_path(caplog: pytest.LogCaptureFixture) -> None:
    found = locations(
        rows(("RegionOne", "compute", "http://a/"), ("regionone", "compute", "http://b/")), MAPPING
    )
    assert [each.url for each in found] == ["http://a/"]
    assert "http://b/ is not" in caplog.text


@pytest.mark.parametrize(
    ("region", "url"),
    [
        ("r", "http://host/x;} server { listen 1"),
        ("r", "http://host;/"),
        ("r", "http://host/$request_uri"),
        ("r", "http://host/a b"),
        ("r", "http://host/%(project_id)s/more"),
        ("r", 'http://host/"'),
        ("r {", "http://host/"),
        ("", "http://host/"),
        ("a/b", "http://host/"),
        ("r", "not a url"),
    ],
)
def test_nothing_from_the_catalog_can_write_the_configuration(
    region: str, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = locations(rows((region, "compute", url), ("good", "image", "http://glance/")), MAPPING)
    assert [each.name for each in found] == ["glance"]
    assert "e0 is left out" in caplog.text


def test_line_breaks_do_not_get_through() -> None:
    assert chosen(("r", "compute", "http://ho\nst/v\r3")) == [("nova", "http://host/")]
