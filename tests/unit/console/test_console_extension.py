"""The extension listings from the wire's side (spec/skyline.md 1.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests_mock
from starlette.testclient import TestClient

from tests.support.console import Cloud
from tests.support.console_listings import Services, port, server, snapshot, volume
from trimaran.console.schemas import extension as schemas
from trimaran.identity import count_calls

Person = Callable[..., TestClient]

E = "/api/v1/extension"
REQUEST_ID = "req-01234567-89ab-cdef-0123-456789abcdef"
LISTINGS = ["servers", "recycle_servers", "volumes", "volume_snapshots", "ports"]


def rows(answer: Any) -> Any:
    assert answer.status_code == 200, answer.text
    return next(value for value in answer.json().values() if isinstance(value, list))


# -- who may ask what ------------------------------------------------------


@pytest.mark.parametrize("listing", LISTINGS)
def test_a_member_may_not_see_all_projects(
    person: Person, services: Services, listing: str
) -> None:
    answer = person().get(f"{E}/{listing}?all_projects=true")
    what = listing.replace("_", " ")
    assert answer.status_code == 403
    assert answer.json() == {"detail": f"Not allowed to get {what} for all projects."}
    assert services.asked == []


def test_compute_services_are_for_administrators_and_readers(
    person: Person, services: Services
) -> None:
    services.services = [
        {"id": "s1", "binary": "nova-compute", "host": "h", "disabled_reason": None, "other": 1}
    ]
    refused = person().get(f"{E}/compute-services")
    assert (refused.status_code, refused.json()) == (
        403,
        {"detail": "Not allowed to get compute services."},
    )
    for kind in ("admin", "reader"):
        answer = person(kind).get(f"{E}/compute-services?binary=nova-compute")
        assert answer.json() == {"services": [{"id": "s1", "binary": "nova-compute", "host": "h"}]}
    assert services.calls("os-services")[0] == {"binary": ["nova-compute"]}
    assert services.tokens("os-services") == ["service", "service"]


def test_readers_of_all_projects_ask_as_the_system(person: Person, services: Services) -> None:
    services.servers = [server("s1", tenant_id="p2")]
    services.snapshots = [snapshot("n1", "v1")]
    services.ports = [port("o1")]
    reader, admin = person("reader"), person("admin")
    for client, token in ((reader, "service"), (admin, "t-admin")):
        services.asked.clear()
        for listing in ("servers", "volumes", "volume_snapshots", "ports"):
            assert client.get(f"{E}/{listing}?all_projects=true").status_code == 200
        for path in ("servers/detail", "snapshots/detail", "ports"):
            assert services.tokens(path) == [token], path
        assert services.tokens("volumes/detail")[0] == token


@pytest.mark.parametrize(
    ("listing", "query"),
    [
        *((listing, "limit=0") for listing in LISTINGS),
        *((listing, "limit=-1") for listing in LISTINGS),
        *((listing, "limit=x") for listing in LISTINGS),
        *((listing, "sort_keys=x") for listing in LISTINGS),
        *((listing, "sort_dirs=up") for listing in LISTINGS),
        *((listing, "all_projects=maybe") for listing in LISTINGS),
        ("servers", "status=DELETED"),
        ("volumes", "status=AVAILABLE"),
        ("volumes", "bootable=maybe"),
        ("volume_snapshots", "status=available"),
        ("ports", "device_owner=nobody"),
        ("ports", "status=up"),
    ],
)
def test_values_that_no_service_knows_are_refused(
    person: Person, services: Services, listing: str, query: str
) -> None:
    answer = person().get(f"{E}/{listing}?{query}")
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"][:2] == ["query", query.split("=")[0]]
    assert services.asked == []


@pytest.mark.parametrize("listing", [*LISTINGS, "compute-services"])
def test_request_ids_are_checked_and_passed_on(
    person: Person, services: Services, listing: str
) -> None:
    client = person("admin", default={"secure_proxy_addr_header": "X-Real-IP"})
    bad = client.get(f"{E}/{listing}", headers={"X-Openstack-Request-Id": "foo"})
    assert bad.status_code == 422
    assert bad.json()["detail"][0]["type"] == "string_pattern_mismatch"
    headers = {"X-Openstack-Request-Id": REQUEST_ID, "X-Real-IP": "9.9.9.9"}
    assert client.get(f"{E}/{listing}", headers=headers).status_code == 200
    for sent in services.headers:
        assert sent["X-OpenStack-Request-ID"] == REQUEST_ID
        assert sent["Forwarded"].startswith("for=9.9.9.9;by=")


def test_booleans_are_read_as_upstream_reads_them(person: Person, services: Services) -> None:
    for text in ("true", "1", "yes", "on", "True"):
        assert person("admin").get(f"{E}/servers?all_projects={text}").status_code == 200
    assert all(query["all_tenants"] == ["True"] for query in services.calls("servers/detail"))


# -- the rows ----------------------------------------------------------------


def test_rows_have_exactly_the_members_of_the_wire(person: Person, services: Services) -> None:
    services.servers = [server("s1"), server("s2", status="SOFT_DELETED")]
    services.volumes = [volume("v1", "s1")]
    services.snapshots = [snapshot("n1", "v1")]
    services.ports = [port("o1")]
    client = person()
    for listing, model in (
        ("servers", schemas.Server),
        ("recycle_servers", schemas.RecycleServer),
        ("volumes", schemas.Volume),
        ("volume_snapshots", schemas.VolumeSnapshot),
        ("ports", schemas.Port),
    ):
        (row,) = rows(client.get(f"{E}/{listing}"))
        assert list(row) == list(model.model_fields), listing
        model.model_validate(row, strict=True)


def test_a_server_is_joined_with_its_image(person: Person, services: Services) -> None:
    services.servers = [server("s1"), server("s2", image={"id": "gone"}), server("s3", image="")]
    services.images = [{"id": "i1", "name": "cirros", "os_distro": "cirros"}]
    known, unknown, none = rows(person().get(f"{E}/servers"))
    members = ("image", "image_name", "image_os_distro")
    assert [known[name] for name in members] == ["i1", "cirros", "cirros"]
    assert [unknown[name] for name in members] == ["gone", "", ""]
    assert [none[name] for name in members] == [None, None, None]
    assert known["fixed_addresses"] == ["10.0.0.5"]
    assert known["floating_addresses"] == ["172.24.4.9"]
    assert known["flavor"] == "m1.tiny"
    assert known["host"] is None
    assert known["project_name"] is None
    data = known["origin_data"]
    assert "unknown-member" not in data
    assert len(data) == 45
    assert data["fault"] is None
    assert data["OS-EXT-SRV-ATTR:host"] == "host-1"
    assert services.calls("images") == [{"id": ["in:i1,gone"], "limit": ["1000"]}]
    assert services.tokens("images") == ["service"]
    assert services.tokens("servers/detail") == ["t-member"]


def _from_volume(**changes: Any) -> dict[str, Any]:
    attached = [{"id": "data"}, {"id": "root"}]
    return server("s1", **{"os-extended-volumes:volumes_attached": attached, **changes})


def _image_metadata(name: str) -> dict[str, Any]:
    return {"image_id": f"i-{name}", "image_name": name, "os_distro": "os"}


def _volumes(root: str = "/dev/vda") -> list[dict[str, Any]]:
    made = []
    for name, device, bootable in (("data", "/dev/vdb", "true"), ("root", root, "true")):
        made.append(
            volume(
                name,
                attachments=[{"server_id": "s1", "device": device}],
                bootable=bootable,
                volume_image_metadata=_image_metadata(name),
            )
        )
    return made


@pytest.mark.parametrize(
    ("changes", "image"),
    [
        ({"image": ""}, "i-root"),
        # Members are not told which device is the root.
        ({"image": "", "OS-EXT-SRV-ATTR:root_device_name": None}, "i-root"),
        # A data volume says nothing about a server with an image of its own (F33).
        ({"OS-EXT-SRV-ATTR:root_device_name": None}, "i1"),
        ({"OS-EXT-SRV-ATTR:root_device_name": "/dev/sda"}, "i1"),
    ],
)
def test_the_image_of_a_server_on_volumes(
    person: Person, services: Services, changes: dict[str, Any], image: str
) -> None:
    services.servers = [_from_volume(**changes)]
    services.volumes = _volumes()
    (row,) = rows(person().get(f"{E}/servers"))
    assert row["image"] == image
    (query,) = services.calls("volumes/detail")
    assert query == {"all_tenants": ["True"], "id": ["['data', 'root']"]}
    assert services.tokens("volumes/detail") == ["service"]


def test_all_projects_have_hosts_and_names(person: Person, services: Services) -> None:
    services.servers = [server("s1"), server("s2", tenant_id="gone")]
    projects = [{"id": "p1", "name": "demo"}]
    client = person("admin")
    cloud = _projects(client, projects)
    first, second = rows(client.get(f"{E}/servers?all_projects=true"))
    assert (first["host"], first["project_name"]) == ("host-1", "demo")
    assert second["project_name"] == "gone"
    # Remembered, the other listings' too.
    services.volumes = [volume("v1")]
    (row,) = rows(client.get(f"{E}/volumes?all_projects=true"))
    assert row["project_name"] == "demo"
    assert cloud == ["projects"]


def _projects(client: TestClient, projects: list[dict[str, Any]]) -> list[str]:
    """Lets Keystone list projects; returns the paths that were asked."""
    identity = client.app.state.parts.identity  # type: ignore[attr-defined]
    asked: list[str] = []
    plain = identity.call

    def call(method: str, url: str, **kwargs: Any) -> Any:
        path = url.split("/v3/")[1]
        if not path.startswith("projects"):
            return plain(method, url, **kwargs)
        asked.append(path)
        name = path.partition("name=")[2]

        class Answer:
            status_code = 200

            def json(self) -> Any:
                return {"projects": [row for row in projects if name in ("", row["name"])]}

        return Answer()

    identity.call = call
    return asked


@pytest.mark.parametrize("listing", ["servers", "recycle_servers"])
def test_a_project_can_be_named(person: Person, services: Services, listing: str) -> None:
    status = "ACTIVE" if listing == "servers" else "SOFT_DELETED"
    services.servers = [server("s1", status=status), server("s2", status=status, tenant_id="p2")]
    client = person("admin")
    _projects(client, [{"id": "p1", "name": "demo"}, {"id": "p2", "name": "demo2"}])
    found = rows(client.get(f"{E}/{listing}?all_projects=1&project_name=demo2"))
    assert [row["id"] for row in found] == ["s2"]
    for query in ("project_name=nobody", "project_name=demo2&project_id=p1"):
        assert rows(client.get(f"{E}/{listing}?all_projects=1&{query}")) == []
    # Without all_projects both are dropped.
    services.asked.clear()
    found = rows(client.get(f"{E}/{listing}?project_name=demo2&project_id=p2"))
    assert [row["id"] for row in found] == ["s1"]


def test_what_nova_is_asked(person: Person, services: Services) -> None:
    client = person("admin")
    client.get(
        f"{E}/servers?all_projects=1&project_id=p9&name=n&status=ACTIVE&host=h&flavor_id=1&ip=10."
        "&limit=5&sort_keys=display_name&sort_keys=created_at&sort_dirs=desc"
    )
    assert services.calls("servers/detail") == [
        {
            "name": ["n"],
            "status": ["ACTIVE"],
            "host": ["h"],
            "flavor": ["1"],
            "ip": ["10."],
            "project_id": ["p9"],
            "all_tenants": ["True"],
            "limit": ["5"],
            "sort_key": ["display_name", "created_at"],
            "sort_dir": ["desc"],
        }
    ]
    assert services.headers[0]["OpenStack-API-Version"] == "compute 2.79"


def test_a_member_finds_a_server_by_id(person: Person, services: Services) -> None:
    services.servers = [server("s1"), server("s2"), server("s3", tenant_id="p2")]
    client = person()
    assert [row["id"] for row in rows(client.get(f"{E}/servers?uuid=s2"))] == ["s2"]
    # Nova's answer would have been all of the project.
    assert services.calls("servers/detail") == []
    assert rows(client.get(f"{E}/servers?uuid=gone")) == []
    assert rows(client.get(f"{E}/servers?uuid=s3")) == []
    assert [row["id"] for row in rows(client.get(f"{E}/servers?uuid=s1&name=n"))] == ["s1"]
    assert rows(client.get(f"{E}/servers?uuid=../flavors")) == []


def test_a_page_is_what_was_asked_for_and_no_limit_is_everything(
    person: Person, services: Services
) -> None:
    services.servers = [server(f"s{number}") for number in range(7)]
    services.nova_page = 3
    client = person()
    assert len(rows(client.get(f"{E}/servers"))) == 7
    assert len(rows(client.get(f"{E}/servers?limit=2"))) == 2
    after = rows(client.get(f"{E}/servers?limit=2&marker=s1"))
    assert [row["id"] for row in after] == ["s2", "s3"]


def test_the_recycle_bin_is_the_callers_own(person: Person, services: Services) -> None:
    services.servers = [
        server("s1", status="SOFT_DELETED", updated="2026-01-02T00:00:00Z"),
        server("s2", status="SOFT_DELETED", tenant_id="p2"),
        server("s3"),
    ]
    client = person(openstack={"reclaim_instance_interval": 100})
    (row,) = rows(client.get(f"{E}/recycle_servers?project_id=p2"))
    assert row["id"] == "s1"
    assert row["reclaim_timestamp"] == 1767312000.0 + 100
    assert row["deleted_at"] == row["updated_at"] == "2026-01-02T00:00:00Z"
    # The system account read it; what Nova tells administrators only is not passed on.
    assert row["origin_data"]["OS-EXT-SRV-ATTR:host"] is None
    assert services.tokens("servers/detail") == ["service"]
    assert services.calls("servers/detail") == [
        {
            "status": ["soft_deleted"],
            "deleted": ["True"],
            "project_id": ["p1"],
            "all_tenants": ["True"],
        }
    ]
    services.servers = []
    assert client.get(f"{E}/recycle_servers").text == '{"recycle_servers":[]}'


def test_volumes_by_id_are_read_by_the_system_for_the_project(
    person: Person, services: Services
) -> None:
    services.volumes = [volume("a"), volume("b"), volume("c")]
    answer = person().get(f"{E}/volumes?uuid=a&uuid=b")
    assert answer.json()["count"] == 2
    assert services.calls("volumes/detail") == [
        {
            "with_count": ["True"],
            "all_tenants": ["True"],
            "project_id": ["p1"],
            "id": ["['a', 'b']"],
        }
    ]
    assert services.tokens("volumes/detail") == ["service"]
    assert services.headers[0]["OpenStack-API-Version"] == "volume 3.59"
    assert rows(answer)[0]["host"] is None


def test_ids_with_quotes_stay_ids(person: Person, services: Services) -> None:
    client = person()
    assert rows(client.get(E + "/volumes", params={"uuid": ["a'b\"", "\\"]})) == []
    assert rows(client.get(E + "/volume_snapshots", params={"uuid": "a'/../b"})) == []


@pytest.mark.parametrize(
    ("query", "sort"),
    [
        ("sort_keys=name&sort_keys=size&sort_dirs=desc", "display_name:desc,size:desc"),
        ("sort_keys=name", "display_name"),
        ("sort_dirs=desc", None),
    ],
)
@pytest.mark.parametrize("listing", ["volumes", "volume_snapshots"])
def test_sorting_for_cinder(
    person: Person, services: Services, listing: str, query: str, sort: str | None
) -> None:
    query = query.replace("size", "status") if listing == "volume_snapshots" else query
    sort = sort.replace("size", "status") if sort and listing == "volume_snapshots" else sort
    person().get(f"{E}/{listing}?{query}")
    (asked,) = services.calls("volumes/detail" if listing == "volumes" else "snapshots/detail")
    assert asked.get("sort") == ([sort] if sort else None)


def test_multiattach_is_filtered_here_where_cinder_does_not(
    person: Person, services: Services
) -> None:
    services.volumes = [volume(f"v{number}", multiattach=number % 2 == 0) for number in range(6)]
    client = person()
    answer = client.get(f"{E}/volumes?multiattach=true&limit=1&marker=v0")
    assert answer.json()["count"] == 3
    assert [row["id"] for row in rows(answer)] == ["v2"]
    assert [row["id"] for row in rows(client.get(f"{E}/volumes?multiattach=false"))] == [
        "v1",
        "v3",
        "v5",
    ]
    assert client.get(f"{E}/volumes?multiattach=true&marker=v1").status_code == 400


def test_attachments_carry_the_names_of_servers(person: Person, services: Services) -> None:
    services.servers = [server(f"s{number}") for number in range(9)]
    services.servers.append(server("old", status="SOFT_DELETED"))
    services.servers.append(server("other", status="SOFT_DELETED", tenant_id="p2"))
    attached = [f"s{number}" for number in range(9)] + ["old", "gone", "other"]
    services.volumes = [volume(f"v-{each}", each) for each in attached]
    found = rows(person().get(f"{E}/volumes"))
    names = {row["attachments"][0]["server_id"]: row["attachments"][0] for row in found}
    assert names["s3"]["server_name"] == "name-s3"
    assert list(names["s3"]) == ["id", "device", "server_id", "server_name"]
    assert names["old"]["server_name"] == "name-old"
    assert names["gone"]["server_name"] is None
    assert names["other"]["server_name"] is None
    assert found[0]["origin_data"]["attachments"][0]["server_name"] == "name-s0"
    assert len(found[0]["origin_data"]) == 30


def test_snapshots_have_volumes_and_children(person: Person, services: Services) -> None:
    services.volumes = [volume("v1"), volume("c1", snapshot_id="n1"), volume("c2")]
    services.snapshots = [snapshot("n1", "v1"), snapshot("n2", "gone")]
    answer = person().get(f"{E}/volume_snapshots?status=AVAILABLE")
    first, second = rows(answer)
    assert answer.json()["count"] == 2
    assert first["volume_name"] == "name-v1"
    assert first["child_volumes"] == [{"volume_id": "c1", "volume_name": "name-c1"}]
    assert first["project_name"] == "demo"
    assert first["host"] is None
    assert second["volume_name"] is None
    assert services.calls("snapshots/detail")[0]["status"] == ["available"]
    assert len(first["origin_data"]) == 14


def test_a_snapshot_of_another_project_is_not_there(person: Person, services: Services) -> None:
    services.snapshots = [
        snapshot("mine", "v1"),
        snapshot("other", "v2", **{"os-extended-snapshot-attributes:project_id": "p2"}),
    ]
    client = person()
    for foreign in ("other", "gone"):
        answer = client.get(f"{E}/volume_snapshots?uuid={foreign}")
        assert answer.json() == {"count": 0, "volume_snapshots": []}
    assert services.calls("snapshots/detail") == []
    assert [row["id"] for row in rows(client.get(f"{E}/volume_snapshots?uuid=mine"))] == ["mine"]
    (query,) = services.calls("snapshots/detail")
    assert query["id"] == ["mine"]
    assert query["project_id"] == ["p1"]


def test_ports_have_networks_and_servers(person: Person, services: Services) -> None:
    services.servers = [server("s1")]
    # The network is of another project and not shared (F34).
    services.networks = [{"id": "n1", "name": "public", "project_id": "p2"}]
    services.ports = [
        port("o1", device_id="s1"),
        port("o2", network_id="gone", device_owner="network:dhcp", device_id="s1"),
        port("o3", device_owner="compute:kuryr", device_id="c1", admin_state_up=False),
    ]
    first, second, third = rows(person().get(f"{E}/ports"))
    assert (first["network_name"], first["server_name"]) == ("public", "name-s1")
    assert (first["ipv4"], first["ipv6"]) == (["10.0.0.5"], ["2001:db8::5"])
    assert first["origin_data"]["admin_state"] == "UP"
    assert first["binding_vnic_type"] == "normal"
    assert (second["network_name"], second["server_name"]) == (None, None)
    assert third["server_name"] is None
    assert third["origin_data"]["admin_state"] == "DOWN"
    assert "project_id" not in services.calls("networks")[0]


def test_what_neutron_is_asked(person: Person, services: Services) -> None:
    client = person()
    client.get(
        f"{E}/ports?project_id=p9&name=n&status=N/A&device_owner=&device_owner=compute:nova"
        "&uuid=a&uuid=b&device_id=d&network_id=x&limit=3&sort_keys=name&sort_keys=id"
    )
    assert services.calls("ports") == [
        {
            "limit": ["3"],
            "project_id": ["p1"],
            "name": ["n"],
            "status": ["N/A"],
            "device_owner": ["", "compute:nova"],
            "id": ["a", "b"],
            "network_id": ["x"],
            "device_id": ["d"],
            "sort_key": ["name", "id"],
            "sort_dir": ["asc", "asc"],
        }
    ]


def test_network_name_and_id_hold_together(person: Person, services: Services) -> None:
    services.networks = [{"id": "n1", "name": "net"}, {"id": "n2", "name": "net"}]
    services.ports = [port("o1", "n1"), port("o2", "n2")]
    client = person()

    def found(query: str) -> list[str]:
        return [row["id"] for row in rows(client.get(f"{E}/ports?{query}"))]

    assert found("network_name=net") == ["o1", "o2"]
    assert found("network_name=net&network_id=n2") == ["o2"]
    assert found("network_name=net&network_id=n3") == []
    assert found("network_name=nobody") == []
    assert found("network_id=n1") == ["o1"]


# -- many rows, broken services ----------------------------------------------


@pytest.mark.parametrize("kind", ["member", "admin"])
@pytest.mark.parametrize("listing", LISTINGS)
def test_the_number_of_calls_does_not_grow_with_the_rows(
    person: Person, services: Services, listing: str, kind: str
) -> None:
    client = person(kind)
    counts = []
    for size in (10, 100):
        services.servers = [
            server(
                f"s{number}",
                status="SOFT_DELETED" if listing == "recycle_servers" else "ACTIVE",
                image={"id": f"i{number}"},
                **{"os-extended-volumes:volumes_attached": [{"id": f"v{number}"}]},
            )
            for number in range(size)
        ]
        services.volumes = [volume(f"v{number}", f"s{number}") for number in range(size)]
        services.snapshots = [snapshot(f"n{number}", f"v{number}") for number in range(size)]
        services.ports = [port(f"o{number}", f"n{number}", f"s{number}") for number in range(size)]
        query = "?all_projects=true" if kind == "admin" else ""
        client.get(f"{E}/{listing}{query}")
        with count_calls() as calls:
            assert len(rows(client.get(f"{E}/{listing}{query}"))) == size
        counts.append(calls.total)
    assert counts[0] == counts[1]
    assert counts[0] <= 4


def test_marker_and_size_mistakes_are_the_callers(person: Person, services: Services) -> None:
    client = person()
    services.ports = [port("o1")]
    for listing in ("volumes", "volume_snapshots", "ports"):
        answer = client.get(f"{E}/{listing}?marker=gone&limit=1")
        assert answer.status_code == 400, listing
        assert "gone could not be found. (HTTP 404)" in answer.json()["detail"]
        assert client.get(f"{E}/{listing}?limit={10**20}").status_code == 200


@pytest.mark.parametrize(
    ("listing", "path"),
    [
        ("servers", "servers/detail"),
        ("recycle_servers", "servers/detail"),
        ("volumes", "volumes/detail"),
        ("volume_snapshots", "snapshots/detail"),
        ("ports", "ports"),
    ],
)
@pytest.mark.parametrize(
    ("status", "shown"), [(400, 400), (403, 403), (404, 500), (409, 500), (500, 500), (503, 500)]
)
def test_errors_of_the_listing_itself(
    person: Person,
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
    listing: str,
    path: str,
    status: int,
    shown: int,
) -> None:
    monkeypatch.setattr("trimaran.identity.exchange._DELAYS", ())
    services.refuse[path] = (status, "no way")
    answer = person().get(f"{E}/{listing}")
    assert answer.status_code == shown
    assert answer.json()["detail"].startswith(f"no way (HTTP {status})")


def test_an_ended_token_is_401(person: Person, services: Services) -> None:
    services.refuse["ports"] = (401, "who are you")
    assert person().get(f"{E}/ports").status_code == 401


def test_a_service_that_is_not_in_the_catalog(
    person: Person, services: Services, keystone: Cloud
) -> None:
    client = person()
    for entry in keystone.tokens["t-member"]["token"]["catalog"]:
        if entry["type"] == "network":
            entry["endpoints"] = []
    answer = client.get(f"{E}/ports")
    assert (answer.status_code, answer.json()) == (500, {"detail": "Endpoint not found"})


def test_a_broken_neighbour_takes_only_its_names(
    person: Person, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trimaran.identity.exchange._DELAYS", ())
    services.servers = [server("s1", **{"os-extended-volumes:volumes_attached": [{"id": "v1"}]})]
    services.volumes = [volume("v1", "s1")]
    services.ports = [port("o1", device_id="s1")]
    client = person()
    services.down = {"glance", "cinder"}
    (row,) = rows(client.get(f"{E}/servers"))
    assert (row["id"], row["image"], row["image_name"]) == ("s1", "i1", "")
    services.down = {"nova"}
    (row,) = rows(client.get(f"{E}/ports"))
    assert row["server_name"] is None
    (row,) = rows(client.get(f"{E}/volumes"))
    assert row["attachments"][0]["server_name"] is None
    answer = client.get(f"{E}/servers")
    assert answer.status_code == 500
    assert set(answer.json()) == {"detail"}


def test_slow_services_are_waited_for_within_the_requests_time(
    person: Person,
    services: Services,
    adapter: requests_mock.Mocker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trimaran.console.time_stage.PATIENCE", 4.0)
    monkeypatch.setattr("trimaran.console.listings.joins.PATIENCE", 2.0)
    services.servers = [server("s1", **{"os-extended-volumes:volumes_attached": [{"id": "v1"}]})]
    client = person()
    rows(client.get("/api/v1/extension/servers"))
    connect_and_read = {
        urlsplit(request.url).netloc: request.timeout for request in adapter.request_history
    }
    # The caller's token was validated within the same time.
    times = {"keystone.test:5000": 4.0, "nova.test": 4.0, "glance.test": 2.0, "cinder.test": 2.0}
    for service, most in times.items():
        connect, read = connect_and_read[service]
        assert 0 < connect <= most, service
        assert 0 < read <= most, service


def test_ids_need_not_be_version_4(person: Person, services: Services) -> None:
    services.servers = [server("11111111-1111-1111-1111-111111111111", image={"id": "img:1"})]
    assert rows(person().get(f"{E}/servers"))[0]["image"] == "img:1"


def test_a_slash_too_many_and_heads(person: Person, services: Services) -> None:
    client = person()
    answer = client.get(f"{E}/servers/")
    assert answer.status_code == 307
    assert answer.headers["location"] == "../servers"
    assert client.head("/api/v1/config").status_code == 405
