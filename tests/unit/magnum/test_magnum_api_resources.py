"""Spec sections 2.2 and 2.3: how the cloud is asked, and which error is told."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.magnum_api import World, detail, world
from trimaran.errors import BadRequest, Conflict, NotFound
from trimaran.magnum.validation.resources import Resources, first_error


@pytest.fixture
def api(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


@pytest.fixture
def resources(api: World) -> Resources:
    token = api.parts.identity.validate("t-member")
    return Resources(api.parts.cloud.as_user(token))


def test_each_question_is_asked_once_a_request(api: World) -> None:
    api.template(fixed_network="priv", fixed_subnet="subnet")
    api.asked.clear()
    api.cluster(
        cluster_template_id="ct",
        flavor_id="m1",
        master_flavor_id="f1",
        keypair="kp",
        fixed_network="priv",
    )
    # Two networks: the external one and the fixed one.
    assert sorted(api.asked) == ["flavors", "images", "keypair", "networks", "networks", "subnets"]


def test_image_by_id_is_one_question(api: World, resources: Resources) -> None:
    assert resources.distro("11111111-1111-4111-8111-111111111111") == "ubuntu"
    assert api.asked.count("image") == 1
    assert "images" not in api.asked


def test_uuid_may_be_a_name(api: World, resources: Resources) -> None:
    name = "99999999-9999-4999-8999-999999999999"
    api.images.append({"id": "i", "name": name, "os_distro": "ubuntu"})
    assert resources.image(name)["id"] == "i"


def test_the_first_error_in_upstreams_order_is_told(api: World) -> None:
    api.template()
    body = {
        "cluster_template_id": "ct",
        "keypair": "zz",
        "fixed_subnet": "zz",
        "fixed_network": "dup",
        "labels": {"boot_volume_size": "5"},
    }
    answer = api.call("POST", "/v1/clusters", json=body)
    assert answer.status_code == 409
    assert detail(answer).startswith("Multiple networks exist")
    answer = api.call("POST", "/v1/clusters", json={**body, "flavor_id": "zz"})
    assert detail(answer) == "Unable to find flavor zz."


def test_questions_go_out_together() -> None:
    barrier = threading.Barrier(3, timeout=60)
    first_error(dict.fromkeys(("a", "b", "c"), barrier.wait))


def test_order_of_errors_is_not_order_of_arrival() -> None:
    late = threading.Event()

    def slow() -> None:
        assert late.wait(60)
        raise BadRequest("first in order")

    def quick() -> None:
        late.set()
        raise Conflict("first to arrive")

    with pytest.raises(BadRequest, match=r"^first in order$"):
        first_error({"a": slow, "b": quick})


def test_an_error_is_kept_like_an_answer(api: World, resources: Resources) -> None:
    for _ in range(2):
        with pytest.raises(NotFound, match=r"^Unable to find keypair zz\.$"):
            resources.keypair("zz")
    assert api.asked.count("keypair") == 1


@pytest.mark.parametrize(
    ("flavor", "labels", "default", "passes"),
    [
        ("m1", {}, 0, True),
        ("f1", {}, 0, True),
        ("m0", {}, 0, False),
        ("m0", {}, 10, True),
        ("m0", {"boot_volume_size": "10"}, 0, True),
        ("m0", {"boot_volume_size": "0"}, 10, False),
        ("zz", {}, 10, True),
        ("zz", {}, 0, False),
        (None, {}, 0, True),
    ],
)
def test_root_volume(
    resources: Resources, flavor: str | None, labels: dict[str, Any], default: int, passes: bool
) -> None:
    def check() -> None:
        resources.check_root_volume(flavor, labels, default)

    if passes:
        check()
    else:
        with pytest.raises(BadRequest):
            check()


@pytest.mark.parametrize("service", ["compute", "image", "network"])
def test_service_away(api: World, service: str) -> None:
    api.template()
    down: Callable[..., Any] = api.cloud.get
    down(re.compile(rf"^http://{service}\.test/"), status_code=503)
    answer = api.call("POST", "/v1/clusters", json={"cluster_template_id": "ct"})
    assert answer.status_code == 503
    assert "test" not in detail(answer)


def test_image_that_is_refused(api: World) -> None:
    api.cloud.get(re.compile(r"^http://image\.test/"), status_code=403, json={})
    answer = api.call("POST", "/v1/clustertemplates", json={"coe": "kubernetes", "image_id": "ub"})
    assert (answer.status_code, detail(answer)) == (403, "Not authorized for image ub.")
