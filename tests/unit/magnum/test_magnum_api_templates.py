"""Spec sections 1.7 and 2.4: cluster templates."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.magnum_api import World, detail, world
from trimaran.magnum.api.schemas.cluster_template import ClusterTemplate

URL = "/v1/clustertemplates"
MINIMAL = {
    "name": "ct",
    "coe": "kubernetes",
    "image_id": "ub",
    "flavor_id": "m1",
    "external_network_id": "ext",
}


@pytest.fixture
def api(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


def patch(api: World, ident: str, *steps: dict[str, Any], who: str = "t-member") -> Any:
    return api.call("PATCH", f"{URL}/{ident}", who, json=list(steps))


def test_create_minimal(api: World) -> None:
    answer = api.call("POST", URL, json=MINIMAL)
    assert answer.status_code == 201
    body = answer.json()
    assert list(body) == list(ClusterTemplate.model_fields)
    ClusterTemplate.model_validate(body)
    assert answer.headers["Location"] == f"http://magnum.test:9511{URL}/{body['uuid']}"
    expected = {
        **MINIMAL,
        "network_driver": "flannel",
        "cluster_distro": "ubuntu",
        "server_type": "vm",
        "labels": {},
        "driver": "sandbox_ubuntu",
        "project_id": "p1",
        "user_id": "u1",
        "updated_at": None,
        "floating_ip_enabled": True,
        "public": False,
        "hidden": False,
        "tls_disabled": False,
        "registry_enabled": False,
        "master_lb_enabled": False,
        "links": [
            {"href": f"http://magnum.test:9511{URL}/{body['uuid']}", "rel": "self"},
            {"href": f"http://magnum.test:9511/clustertemplates/{body['uuid']}", "rel": "bookmark"},
        ],
    }
    assert {key: body[key] for key in expected} == expected
    assert body["created_at"].endswith("+00:00")
    assert api.call("GET", f"{URL}/ct").json() == body


def test_null_is_as_good_as_absent(api: World) -> None:
    # What `openstack coe cluster template create` sends.
    nulls = dict.fromkeys(
        ("keypair_id", "master_flavor_id", "volume_driver", "http_proxy", "labels", "tags", "uuid")
    )
    body = api.call("POST", URL, json={**MINIMAL, **nulls, "public": None}).json()
    assert body["labels"] == {}
    assert body["public"] is False
    assert body["master_flavor_id"] is None


def test_name_is_made_up(api: World) -> None:
    body = {key: value for key, value in MINIMAL.items() if key != "name"}
    name = api.call("POST", URL, json=body).json()["name"]
    letter, number, kind = name.split("-")
    assert letter.isalpha()
    assert 1 <= int(number) <= 24
    assert kind == "template"


def test_client_chooses_the_uuid(api: World) -> None:
    chosen = str(uuid.uuid4())
    assert api.template(uuid=chosen)["uuid"] == chosen
    answer = api.call("POST", URL, json={**MINIMAL, "uuid": chosen.upper()})
    assert answer.status_code == 409
    assert detail(answer) == f"A ClusterTemplate with UUID {chosen} already exists."


@pytest.mark.parametrize(
    ("changes", "status", "text"),
    [
        (
            {"image_id": None},
            400,
            "Invalid input for field/attribute image_id. Value: 'None'. Mandatory field missing.",
        ),
        (
            {"coe": "swarm"},
            400,
            "Invalid input for field/attribute coe. Value: 'swarm'. "
            "Value should be one of: kubernetes",
        ),
        ({"coe": None}, 400, "Requested COE type Unset is not supported."),
        ({"image_id": "zz"}, 400, "Image zz could not be found."),
        ({"image_id": "noos"}, 400, "Image noos doesn't contain os_distro field."),
        (
            {"external_network_id": "dup"},
            409,
            "Multiple external networks exist with same name 'dup'. "
            "Please use the external network ID instead.",
        ),
        ({"external_network_id": "priv"}, 400, "Unable to find external network priv."),
        ({"fixed_network": "zz"}, 400, "Unable to find fixed network zz."),
        (
            {"fixed_network": "dup"},
            409,
            "Multiple networks exist with same name 'dup'. Please use the network ID instead.",
        ),
        ({"fixed_subnet": "zz"}, 400, "Unable to find fixed subnet zz."),
        (
            {"fixed_subnet": "dup"},
            409,
            "Multiple subnets exist with same name 'dup'. Please use the subnet ID instead.",
        ),
        ({"flavor_id": "zz"}, 400, "Unable to find flavor zz."),
        ({"master_flavor_id": "zz"}, 400, "Unable to find flavor zz."),
        (
            {"network_driver": "foo"},
            400,
            "Network driver type foo is not supported, expecting a "
            "flannel/calico/cilium/unspecified network driver.",
        ),
        (
            {"network_driver": "cilium"},
            400,
            "Network driver type cilium is not allowed, expecting a "
            "flannel/calico/unspecified network driver. ",
        ),
        (
            {"volume_driver": "rexray"},
            400,
            "Volume driver type rexray is not supported, expecting a "
            "cinder/unspecified volume driver.",
        ),
        (
            {"docker_storage_driver": "devicemapper", "docker_volume_size": 2},
            400,
            "docker volume size 2 GB is not valid, expecting minimum value 3GB for "
            "devicemapper storage driver.",
        ),
        (
            {"flavor_id": "m0"},
            400,
            "Flavor with zero root volume size is not supported when boot_volume_size is zero.",
        ),
        (
            {"dns_nameserver": "2001:db8::1"},
            400,
            "Expected a single dns address or comma separated dns list, but received 2001:db8::1.",
        ),
        (
            {"apiserver_port": 80},
            400,
            "Invalid input for field/attribute apiserver_port. Value: '80'. "
            "Value should be greater or equal to 1024",
        ),
        (
            {"apiserver_port": 65536},
            400,
            "Invalid input for field/attribute apiserver_port. Value: '65536'. "
            "Value should be lower or equal to 65535",
        ),
        (
            {"name": ""},
            400,
            "Invalid input for field/attribute name. Value: ''. "
            "Value should have a minimum character requirement of 1",
        ),
        (
            {"http_proxy": "x" * 256},
            400,
            f"Invalid input for field/attribute http_proxy. Value: '{'x' * 256}'. "
            "Value should have a maximum character requirement of 255",
        ),
        (
            {"server_type": "lxc"},
            400,
            "Invalid input for field/attribute server_type. Value: 'lxc'. "
            "Value should be one of: vm, bm",
        ),
        ({"foo": 1}, 400, "Unknown attribute for argument cluster_template: foo"),
        (
            {"project_id": "p2"},
            400,
            "Invalid input for field/attribute project_id. Value: 'p2'. "
            "Cannot set read only field.",
        ),
        (
            {"links": None},
            400,
            "Invalid input for field/attribute links. Value: 'None'. Cannot set read only field.",
        ),
        ({"driver": "none-such"}, 400, "Cluster driver (none-such) not supported."),
    ],
)
def test_create_is_refused(api: World, changes: dict[str, Any], status: int, text: str) -> None:
    answer = api.call("POST", URL, json={**MINIMAL, **changes})
    assert (answer.status_code, detail(answer)) == (status, text)
    assert api.call("GET", URL).json() == {"clustertemplates": []}


def test_labels_become_text(api: World) -> None:
    labels = {"n": 1, "b": True, "f": 1.5, "t": "x"}
    assert api.template(labels=labels)["labels"] == {"n": "1", "b": "True", "f": "1.5", "t": "x"}


def test_boot_volume_makes_up_for_a_flavor_without_disk(api: World) -> None:
    assert api.template(flavor_id="m0", labels={"boot_volume_size": "20"})["flavor_id"] == "m0"


def test_port_as_text(api: World) -> None:
    assert api.template(apiserver_port="8443")["apiserver_port"] == 8443


def test_boolean_as_text(api: World) -> None:
    assert api.template(master_lb_enabled="True", floating_ip_enabled="no")["master_lb_enabled"]


def test_public_and_hidden_are_for_administrators(api: World) -> None:
    for flag in ("public", "hidden"):
        answer = api.call("POST", URL, json={**MINIMAL, flag: True})
        assert answer.status_code == 403
        assert detail(answer) == (
            "Not authorized to set public or hidden flag for cluster template."
        )
        assert api.template("t-admin", **{flag: True})[flag] is True


def test_who_sees_what(api: World) -> None:
    api.template(name="own")
    api.template("t-admin", name="public", public=True)
    api.template("t-admin", name="hidden", public=True, hidden=True)
    api.template("t-admin", name="private")

    def names(who: str) -> set[str]:
        body = api.call("GET", URL, who).json()
        return {item["name"] for item in body["clustertemplates"]}

    assert names("t-member") == {"own", "public"}
    assert names("t-other") == {"public"}
    assert names("t-admin") == {"own", "public", "hidden", "private"}
    assert api.call("GET", f"{URL}/hidden").status_code == 404
    assert api.call("GET", f"{URL}/private").status_code == 404
    assert api.call("GET", f"{URL}/own", "t-other").status_code == 404
    assert api.call("GET", f"{URL}/public", "t-other").status_code == 200
    assert api.call("GET", f"{URL}/own", "t-admin").status_code == 200


def test_owner_sees_hidden(api: World) -> None:
    made = api.template()
    assert (
        patch(
            api, made["uuid"], {"op": "replace", "path": "/hidden", "value": True}, who="t-admin"
        ).status_code
        == 200
    )
    assert api.call("GET", f"{URL}/ct").json()["hidden"] is True
    assert len(api.call("GET", URL).json()["clustertemplates"]) == 1


def test_detail_shows_the_same(api: World) -> None:
    api.template()
    assert api.call("GET", f"{URL}/detail").json() == api.call("GET", URL).json()


def test_same_name_twice(api: World) -> None:
    api.template()
    api.template()
    answer = api.call("GET", f"{URL}/ct")
    assert answer.status_code == 409
    assert detail(answer) == (
        "Multiple ClusterTemplates exist with same name. "
        "Please use the ClusterTemplate uuid instead."
    )


def test_delete(api: World) -> None:
    made = api.template()
    answer = api.call("DELETE", f"{URL}/{made['uuid']}")
    assert answer.status_code == 204
    assert answer.content == b""
    assert "content-type" not in answer.headers
    answer = api.call("DELETE", f"{URL}/{made['uuid']}")
    assert answer.status_code == 404
    assert detail(answer) == f"ClusterTemplate {made['uuid']} could not be found."


def test_delete_in_use(api: World) -> None:
    made = api.template()
    api.cluster(cluster_template_id="ct")
    answer = api.call("DELETE", f"{URL}/ct")
    assert answer.status_code == 400
    assert detail(answer) == (
        f"ClusterTemplate {made['uuid']} is referenced by one or multiple clusters."
    )


def test_delete_of_a_foreign_public_one(api: World) -> None:
    api.template("t-admin", public=True)
    answer = api.call("DELETE", f"{URL}/ct")
    assert answer.status_code == 403
    assert detail(answer) == "Policy doesn't allow clustertemplate:delete to be performed."


def test_reader(api: World) -> None:
    api.template()
    assert api.call("GET", URL, "t-reader").status_code == 200
    assert api.call("GET", f"{URL}/ct", "t-reader").status_code == 200
    answer = api.call("POST", URL, "t-reader", json=MINIMAL)
    assert answer.status_code == 403
    assert detail(answer) == "Policy doesn't allow clustertemplate:create to be performed."
    answer = patch(api, "ct", {"op": "replace", "path": "/name", "value": "x"}, who="t-reader")
    assert detail(answer) == "Policy doesn't allow clustertemplate:update to be performed."


def test_patch(api: World) -> None:
    made = api.template(labels={"old": "1"})
    answer = patch(
        api,
        "ct",
        {"op": "replace", "path": "/name", "value": "new"},
        {"op": "add", "path": "/labels/new", "value": "v"},
    )
    assert answer.status_code == 200
    body = answer.json()
    assert body["name"] == "new"
    assert body["labels"] == {"old": "1", "new": "v"}
    assert body["updated_at"] is not None
    assert api.call("GET", f"{URL}/{made['uuid']}").json() == body


def test_patch_replaces_labels_as_a_literal(api: World) -> None:
    api.template(labels={"old": "1"})
    body = patch(api, "ct", {"op": "replace", "path": "/labels", "value": "{'q': 'r'}"}).json()
    assert body["labels"] == {"q": "r"}


def test_removed_attributes_have_their_defaults(api: World) -> None:
    api.template(tags="a,b", master_lb_enabled=True, fixed_network="priv")
    body = patch(
        api,
        "ct",
        {"op": "remove", "path": "/tags"},
        {"op": "remove", "path": "/master_lb_enabled"},
        {"op": "remove", "path": "/fixed_network"},
        {"op": "remove", "path": "/name"},
    ).json()
    assert (body["tags"], body["master_lb_enabled"], body["fixed_network"], body["name"]) == (
        None,
        False,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("step", "status", "text"),
    [
        (
            {"op": "remove", "path": "/coe"},
            400,
            "'/coe' is a mandatory attribute and can not be removed",
        ),
        (
            {"op": "replace", "path": "/uuid", "value": "x"},
            400,
            "'/uuid' is an internal attribute and can not be updated",
        ),
        (
            {"op": "add", "path": "/foo", "value": "x"},
            400,
            "Adding a new attribute /foo to the root of the resource is not allowed.",
        ),
        (
            {"op": "replace", "path": "/foo", "value": "x"},
            400,
            "Couldn't apply patch '[{'path': '/foo', 'op': 'replace', 'value': 'x'}]'. "
            "Reason: can't replace a non-existent object 'foo'",
        ),
        (
            {"op": "replace", "path": "/network_driver", "value": "foo"},
            400,
            "Network driver type foo is not supported, expecting a "
            "flannel/calico/cilium/unspecified network driver.",
        ),
        ({"op": "replace", "path": "/flavor_id", "value": "zz"}, 400, "Unable to find flavor zz."),
        (
            {"op": "replace", "path": "/public", "value": True},
            403,
            "Not authorized to set public or hidden flag for cluster template.",
        ),
        (
            {"op": "replace", "path": "/apiserver_port", "value": 1},
            400,
            "Invalid input for field/attribute apiserver_port. Value: '1'. "
            "Value should be greater or equal to 1024",
        ),
    ],
)
def test_patch_is_refused(api: World, step: dict[str, Any], status: int, text: str) -> None:
    made = api.template()
    answer = patch(api, "ct", step)
    assert (answer.status_code, detail(answer)) == (status, text)
    assert api.call("GET", f"{URL}/ct").json() == made


def test_patch_in_use(api: World) -> None:
    made = api.template()
    api.cluster(cluster_template_id="ct")
    name = {"op": "replace", "path": "/name", "value": "new"}
    tags = {"op": "add", "path": "/tags", "value": "a"}
    refused = f"ClusterTemplate {made['uuid']} is referenced by one or multiple clusters."
    flavor = {"op": "replace", "path": "/flavor_id", "value": "f1"}
    answer = patch(api, made["uuid"], flavor)
    assert (answer.status_code, detail(answer)) == (400, refused)
    assert patch(api, made["uuid"], name, tags).status_code == 400
    assert patch(api, made["uuid"], name).status_code == 200
    assert patch(api, made["uuid"], tags).status_code == 200
