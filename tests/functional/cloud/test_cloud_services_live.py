"""The five clients on real services."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from trimaran import errors
from trimaran.cloud import Cloud, CloudError, CloudSession, gather
from trimaran.identity import Identity, Token, count_calls, sending

Rows = list[dict[str, Any]]


def _assert_same(listing: Callable[..., Rows], **query: Any) -> None:
    """Read row by row it is what it is when read at once, but for what others change meanwhile."""
    for _ in range(20):
        before = set(_ids(listing(**query)))
        try:
            small = _ids(listing(**query, limit=1))
        except (errors.BadRequest, errors.NotFound):
            continue  # the row to go on from was deleted
        stayed = before & set(_ids(listing(**query)))
        assert stayed <= set(small)
        assert len(small) == len(set(small))
        return
    raise AssertionError("the listing breaks off")


def _ids(rows: Rows) -> list[str]:
    return [row["id"] for row in rows]


@pytest.fixture
def name() -> str:
    return f"test-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def undo() -> Iterator[list[Callable[[], object]]]:
    """What to do at the end, last first."""
    steps: list[Callable[[], object]] = []
    yield steps
    for step in reversed(steps):
        step()


def _wait(ask: Callable[[], Any], seconds: float = 180) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := ask()):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    return found


class TestPaging:
    """A listing read one row at a time is the listing read at once."""

    def test_networks_ports_and_security_groups(
        self, demo: CloudSession, name: str, undo: list[Callable[[], object]]
    ) -> None:
        network = demo.network
        for _ in range(3):
            row = network.create_security_group({"name": name})
            undo.append(lambda row=row: network.delete_security_group(row["id"]))
        with count_calls() as calls:
            assert len(network.security_groups(limit=1, name=name)) == 3
        assert calls.total >= 3
        for listing in (
            network.security_groups,
            network.networks,
            network.subnets,
            network.ports,
            network.security_group_rules,
        ):
            _assert_same(listing)

    def test_servers(self, demo: CloudSession, name: str, undo: list[Callable[[], object]]) -> None:
        compute = demo.compute
        flavor = min(compute.flavors(), key=lambda row: int(row["ram"]))["id"]
        images = demo.image.images(visibility="public", status="active")
        image = next(row["id"] for row in images if row["size"])
        for number in range(3):
            body = {"name": f"{name}-{number}", "flavorRef": flavor, "imageRef": image}
            server = compute.create_server(body | {"networks": "none"})
            undo.append(lambda server=server: compute.delete_server(server["id"]))
        _wait(lambda: all(row["status"] == "ACTIVE" for row in compute.servers(name=f"^{name}")))
        with count_calls() as calls:
            small = compute.servers(limit=1, name=f"^{name}")
        assert _ids(small) == _ids(compute.servers(name=f"^{name}"))
        assert len(small) == 3
        assert calls.total >= 3

    def test_flavors_and_images(self, demo: CloudSession, service: CloudSession) -> None:
        for listing in (demo.compute.flavors, demo.image.images, service.image.images):
            _assert_same(listing)

    def test_volumes_and_snapshots(
        self, demo: CloudSession, name: str, undo: list[Callable[[], object]]
    ) -> None:
        volumes = demo.volume
        made = [volumes.create_volume({"name": name, "size": 1}) for _ in range(3)]
        for row in made:
            undo.append(lambda row=row: volumes.delete_volume(row["id"], cascade=True))
        wanted = set(_ids(made))
        _wait(lambda: {row["id"] for row in volumes.volumes(status="available")} >= wanted)
        with count_calls() as calls:
            assert wanted == set(_ids(volumes.volumes(limit=1, name=name)))
        assert calls.total >= 3
        _assert_same(volumes.volumes)

    def test_secrets(self, demo: CloudSession, name: str, undo: list[Callable[[], object]]) -> None:
        keys = demo.keys
        references = [
            keys.create_secret({"name": name, "payload": f"v{number}",
                                "payload_content_type": "text/plain"})
            for number in range(3)
        ]  # fmt: skip
        for reference in references:
            undo.append(lambda reference=reference: keys.delete_secret(reference))
        with count_calls() as calls:
            found = keys.secrets(limit=1, name=name)
        assert sorted(row["secret_ref"] for row in found) == sorted(references)
        assert calls.total >= 3
        assert keys.secret_payload(references[1]) == b"v1"
        assert keys.secret(references[0])["name"] == name


class TestFanOut:
    def test_calls_of_all_threads_are_counted(self, demo: CloudSession) -> None:
        with sending(request_id="req-00000000-0000-4000-8000-000000000001"), count_calls() as calls:
            found = gather(
                networks=demo.network.networks,
                images=demo.image.images,
                flavors=demo.compute.flavors,
                volumes=demo.volume.volumes,
                secrets=demo.keys.secrets,
            )
        assert {name: type(rows) for name, rows in found.items()} == dict.fromkeys(found, list)
        assert calls.by_service == {
            "network": 1,
            "image": 1,
            "compute": 1,
            "volumev3": 1,
            "key-manager": 1,
        }

    def test_our_request_id_reaches_the_service(self, demo: CloudSession) -> None:
        ours = "req-00000000-0000-4000-8000-000000000002"
        with sending(request_id=ours):
            answer = demo.compute.request("GET", "flavors")
        # Nova answers with an id of its own; ours was the global one and is not refused.
        assert answer.headers["x-openstack-request-id"].startswith("req-")
        assert answer.request.headers["X-OpenStack-Request-ID"] == ours


class TestErrors:
    @pytest.mark.parametrize(
        "ask",
        [
            lambda demo: demo.compute.server("nonsense"),
            lambda demo: demo.compute.server("../flavors"),
            lambda demo: demo.compute.keypair("nobody's"),
            lambda demo: demo.network.port(str(uuid.uuid4())),
            lambda demo: demo.image.image("nonsense"),
            lambda demo: demo.volume.volume(str(uuid.uuid4())),
            lambda demo: demo.keys.secret(str(uuid.uuid4())),
        ],
    )
    def test_missing(self, demo: CloudSession, ask: Callable[[CloudSession], object]) -> None:
        with pytest.raises(errors.NotFound) as caught:
            ask(demo)
        assert isinstance(caught.value, CloudError)
        assert caught.value.remote_status == 404

    @pytest.mark.parametrize(
        "ask",
        [
            lambda demo: demo.compute.services(),
            lambda demo: demo.compute.hypervisors(),
            lambda demo: demo.volume.services(),
        ],
    )
    def test_forbidden(self, demo: CloudSession, ask: Callable[[CloudSession], object]) -> None:
        with pytest.raises(errors.Forbidden):
            ask(demo)

    @pytest.mark.parametrize(
        "ask",
        [
            lambda demo: demo.compute.create_server({"name": ""}),
            lambda demo: demo.network.create_subnet({"cidr": "x"}),
            lambda demo: demo.network.networks(no_such_filter="x"),
            lambda demo: demo.image.images(limit=-1),
            lambda demo: demo.volume.create_volume({"size": "huge"}),
            lambda demo: demo.keys.create_secret({"payload": 7}),
        ],
    )
    def test_bad_request(self, demo: CloudSession, ask: Callable[[CloudSession], object]) -> None:
        with pytest.raises(errors.BadRequest) as caught:
            ask(demo)
        assert caught.value.remote_message  # type: ignore[attr-defined]

    def test_conflict(
        self, demo: CloudSession, name: str, undo: list[Callable[[], object]]
    ) -> None:
        network = demo.network.create_network({"name": name})
        undo.append(lambda: demo.network.delete_network(network["id"]))
        cidr = {"network_id": network["id"], "ip_version": 4, "cidr": "10.99.0.0/24"}
        subnet = demo.network.create_subnet(cidr)
        port = demo.network.create_port({"network_id": network["id"], "name": name})
        undo.append(lambda: demo.network.delete_port(port["id"]))
        with pytest.raises(errors.Conflict) as caught:
            demo.network.delete_subnet(subnet["id"])
        assert caught.value.remote_code == "SubnetInUse"  # type: ignore[attr-defined]

    def test_quotas(
        self, demo: CloudSession, service: CloudSession, demo_token: Token, name: str
    ) -> None:
        assert demo_token.project_id
        limit = service.volume.quota(demo_token.project_id)["gigabytes"]["limit"]
        assert limit >= 0
        with pytest.raises(errors.QuotaExceeded) as caught:
            demo.volume.create_volume({"name": name, "size": limit + 1})
        assert caught.value.remote_status == 413  # type: ignore[attr-defined]
        cores = service.compute.quota(demo_token.project_id)["cores"]["limit"]
        assert cores > 0

    def test_other_projects_are_not_seen(
        self, demo: CloudSession, alt: CloudSession, name: str, undo: list[Callable[[], object]]
    ) -> None:
        group = alt.network.create_security_group({"name": name})
        undo.append(lambda: alt.network.delete_security_group(group["id"]))
        with pytest.raises(errors.NotFound):
            demo.network.security_group(group["id"])
        assert demo.network.security_groups(name=name) == []


class TestCallers:
    def test_service_sees_all_projects(self, service: CloudSession, demo_token: Token) -> None:
        rows = service.compute.servers(all_tenants=True, project_id=demo_token.project_id)
        assert {row["tenant_id"] for row in rows} <= {demo_token.project_id}
        assert service.compute.services()

    def test_service_token_revoked_behind_our_back(self, cloud: Cloud, identity: Identity) -> None:
        mine = identity.service_token()
        identity.revoke(mine)
        # Services keep tokens for some seconds (sandbox/NOTES 13): wait until they refuse it.
        own = Cloud(identity, region=cloud.region).as_service()
        deadline = time.monotonic() + 120
        while identity.service_token() == mine and time.monotonic() < deadline:
            assert own.compute.zones()
            time.sleep(0.5)
        assert identity.service_token() != mine
        assert own.compute.zones()

    def test_an_ended_user_token(self, cloud: Cloud, identity: Identity) -> None:
        scope = {"project": {"name": "demo", "domain": {"name": "Default"}}}
        token = identity.password(
            username="demo", password="password", domain_name="Default", scope=scope
        )
        identity.revoke(token)

        def refused() -> bool:
            with contextlib.suppress(errors.Unauthenticated):
                cloud.as_user(token).network.networks()
                return False
            return True

        # Keystone itself may take it for a moment longer, and Neutron then keeps that answer.
        _wait(refused)

    def test_microversion_too_new_is_lowered(self, demo: CloudSession) -> None:
        assert _ids(demo.compute.flavors(microversion="2.9999")) == _ids(demo.compute.flavors())

    def test_service_token_beside_the_user_s(self, cloud: Cloud, demo_token: Token) -> None:
        both = cloud.as_user(demo_token, service_token=True)
        answer = both.network.request("GET", "ports")
        assert answer.request.headers["X-Service-Token"] != demo_token.id
        assert answer.request.headers["X-Auth-Token"] == demo_token.id


class TestImage:
    def test_upload_and_download(
        self, demo: CloudSession, name: str, undo: list[Callable[[], object]]
    ) -> None:
        body = {"name": name, "disk_format": "raw", "container_format": "bare"}
        image = demo.image.create_image(body)
        undo.append(lambda: demo.image.delete_image(image["id"]))
        data = bytes(range(256)) * 4096
        demo.image.upload_image(image["id"], iter([data, data]))
        assert demo.image.image(image["id"])["size"] == 2 * len(data)
        assert b"".join(demo.image.download_image(image["id"])) == 2 * data
        changed = demo.image.update_image(
            image["id"], [{"op": "add", "path": "/os_distro", "value": "test"}]
        )
        assert changed["os_distro"] == "test"


def test_long_filters_are_asked_in_parts(demo: CloudSession) -> None:
    known = demo.network.networks()
    wanted = [str(uuid.uuid4()) for _ in range(400)] + _ids(known)
    with count_calls() as calls:
        found = set(_ids(demo.network.networks(id=wanted)))
    # Others may have deleted some meanwhile.
    assert set(_ids(known)) & set(_ids(demo.network.networks())) <= found <= set(_ids(known))
    assert found
    assert calls.total > 1
