"""Spec section 1.3: which version a header asks for, and what is told otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.magnum_api import World, detail, world
from trimaran.magnum.api import microversions
from trimaran.magnum.api.errors import NotAcceptable, VersionUnsupported
from trimaran.magnum.api.microversions import Version

LONG = "container-infrastructure-management"
VERSION_HEADERS = (
    "OpenStack-API-Version",
    "OpenStack-API-Minimum-Version",
    "OpenStack-API-Maximum-Version",
)


@pytest.fixture
def api(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


def test_history_is_complete_and_in_order() -> None:
    versions = [version for version, _, _ in microversions.HISTORY]
    assert versions == [Version(1, minor) for minor in range(1, 15)]


@pytest.mark.parametrize(
    ("header", "version"),
    [
        (None, Version(1, 1)),
        ("container-infra 1.4", Version(1, 4)),
        ("container-infrastructure 1.10", Version(1, 10)),
        (f"{LONG} 1.14", Version(1, 14)),
        ("container-infra latest", Version(1, 14)),
        ("container-infra LaTeSt", Version(1, 14)),
        ("compute latest", Version(1, 14)),
    ],
)
def test_header_that_is_understood(header: str | None, version: Version) -> None:
    assert microversions.requested(header) == version


@pytest.mark.parametrize("header", ["1.4", "", "compute 1.5", "container-infra 1.4 x"])
def test_header_of_another_service(header: str) -> None:
    with pytest.raises(NotAcceptable, match=r"^Invalid service type for OpenStack-API-Version"):
        microversions.requested(header)


@pytest.mark.parametrize("text", ["1", "1.x", "1.2.3", "foo", ".", "1.", "\u0663.\u0661", "1.1e3"])
def test_header_without_a_version(text: str) -> None:
    with pytest.raises(NotAcceptable, match=r"^Invalid value for OpenStack-API-Version header$"):
        microversions.requested(f"container-infra {text}")


@pytest.mark.parametrize("text", ["1.15", "1.0", "2.0", "0.5", "1.-1"])
def test_version_out_of_range(text: str) -> None:
    with pytest.raises(VersionUnsupported) as caught:
        microversions.requested(f"container-infra {text}")
    assert str(caught.value.version) == text


def test_answers_say_the_long_name(api: World) -> None:
    answer = api.call("GET", "/v1/clusters", headers={})
    assert answer.status_code == 200
    assert [answer.headers[name] for name in VERSION_HEADERS] == [
        f"{LONG} 1.1",
        f"{LONG} 1.1",
        f"{LONG} 1.14",
    ]
    assert answer.headers["vary"] == "OpenStack-API-Version"


def test_handlers_errors_have_the_headers_too(api: World) -> None:
    answer = api.call("GET", "/v1/clusters/nope")
    assert answer.status_code == 404
    assert answer.headers["OpenStack-API-Version"] == f"{LONG} 1.14"


def test_minor_version_out_of_range(api: World) -> None:
    headers = {"OpenStack-API-Version": "container-infra 1.15"}
    answer = api.call("GET", "/v1/clusters", headers=headers)
    assert answer.status_code == 406
    assert answer.headers["OpenStack-API-Version"] == f"{LONG} 1.15"
    assert answer.json() == {
        "errors": [
            {
                "code": "magnum.microversion-unsupported",
                "title": "Requested microversion is unsupported",
                "description": "Version 1.15 was requested but the minor version is not "
                "supported by this service. The supported version range is: "
                f"[{LONG} 1.1, {LONG} 1.14].",
                "max_version": "1.14",
                "min_version": "1.1",
                "links": [
                    {
                        "rel": "help",
                        "href": "http://docs.openstack.org/api-guide/compute/microversions.html",
                    }
                ],
            }
        ]
    }


def test_major_version_out_of_range(api: World) -> None:
    headers = {"OpenStack-API-Version": "container-infra 2.0"}
    answer = api.call("GET", "/v1/clusters", headers=headers)
    (error,) = answer.json()["errors"]
    assert error["description"] == (
        "Mutually exclusive versions requested. Version 2.0 requested but not supported by this "
        f"service.The supported version range is: [{LONG} 1.1, {LONG} 1.14]."
    )


def test_f51_406_always_has_text_and_headers(api: World) -> None:
    headers = {"OpenStack-API-Version": "container-infra foo", "Accept": "text/html"}
    answer = api.call("GET", "/v1/clusters", headers=headers)
    assert answer.status_code == 406
    assert detail(answer) == "Invalid value for OpenStack-API-Version header"
    assert answer.json()["errors"][0]["title"] == "Not Acceptable"
    assert all(name in answer.headers for name in VERSION_HEADERS)


def test_f51_404_and_405_have_the_headers(api: World) -> None:
    for answer in (api.call("GET", "/v1/bays"), api.call("PUT", "/v1/clusters")):
        assert all(name in answer.headers for name in VERSION_HEADERS)


@pytest.mark.parametrize("path", ["/v1/clusters/x/nodegroups", "/v1/clusters/x/nodegroups/y"])
def test_method_that_came_later(api: World, path: str) -> None:
    headers = {"OpenStack-API-Version": "container-infra 1.8"}
    answer = api.call("GET", path, headers=headers)
    name = "get_one" if path.endswith("y") else "get_all"
    assert answer.status_code == 406
    assert detail(answer) == (
        f"Version 1.8 was requested but the requested API {name} is not supported for this version."
    )


def test_stack_id_becomes_cluster_id_at_1_13(api: World) -> None:
    api.template()
    cluster = api.cluster(cluster_template_id="ct")
    for path in (f"/v1/clusters/{cluster}", "/v1/clusters", "/v1/clusters/detail"):
        for minor, present, absent in (
            (12, "stack_id", "cluster_id"),
            (13, "cluster_id", "stack_id"),
        ):
            headers = {"OpenStack-API-Version": f"container-infra 1.{minor}"}
            body = api.call("GET", path, headers=headers).json()
            shown = body["clusters"][0] if "clusters" in body else body
            assert present in shown
            assert absent not in shown
