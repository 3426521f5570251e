"""openstacksdk against our Magnum on a real cloud, in one process and in two."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openstack
import pytest

from tests.support.cloud import ALT, DEMO, READER, CloudEnv, Person
from tests.support.magnum_daemons import Magnum, image, one_process, two_processes

# The SDK warns about parts of itself that it still uses.
pytestmark = pytest.mark.filterwarnings(
    "ignore::openstack.warnings.RemovedInSDK50Warning",
    "ignore::openstack.warnings.RemovedInSDK60Warning",
)


@pytest.fixture(params=["one process", "two processes"])
def magnum(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    cloud_env: CloudEnv,
    migrated: Callable[..., str],
) -> Iterator[Magnum]:
    with contextlib.ExitStack() as stack:
        if request.param == "one process":
            url = migrated(f"sqlite:///{tmp_path}/magnum.sqlite", "magnum")
            yield stack.enter_context(one_process(tmp_path, cloud_env, url))
        else:
            url = migrated(request.getfixturevalue("mariadb_url"), "magnum")
            yield stack.enter_context(two_processes(tmp_path, cloud_env, url))


def connect(magnum: Magnum, who: Person = DEMO) -> Any:
    """The SDK's proxy of the service."""
    connection = openstack.connect(
        load_yaml_config=False,
        load_envvars=False,
        auth_url=magnum.cloud.auth_url,
        username=who.name,
        password=who.password,
        project_name=who.project,
        user_domain_name=who.domain,
        project_domain_name=who.domain,
        region_name=magnum.cloud.region,
        container_infrastructure_management_endpoint_override=magnum.url,
    )
    return connection.container_infrastructure_management


@pytest.fixture
def distro(cloud_env: CloudEnv) -> Iterator[str]:
    with image(cloud_env) as name:
        yield name


def servers(cloud: CloudEnv, cluster: str) -> list[str]:
    """Names of a cluster's servers in Nova; others may work in the project as well."""
    body = cloud.call(DEMO, "compute", "GET", f"/servers?name=^{cluster}-")
    return [server["name"] for server in body["servers"]]


def make_template(sdk: Any, distro: str, name: str = "sdk") -> Any:
    return sdk.create_cluster_template(
        name=name,
        coe="kubernetes",
        image_id=distro,
        flavor_id="m1.tiny",
        master_flavor_id="m1.tiny",
        external_network_id="public",
    )


def refusal(call: Callable[[], Any]) -> str:
    """The text of the 400 that a call gets; the SDK itself does not read it."""
    with pytest.raises(openstack.exceptions.BadRequestException) as caught:
        call()
    return str(caught.value.response.json()["errors"][0]["detail"])


def test_a_template_and_a_cluster_of_servers_from_making_to_removal(
    magnum: Magnum, distro: str, cloud_env: CloudEnv
) -> None:
    sdk = connect(magnum)
    template = make_template(sdk, distro)
    assert [row.name for row in sdk.cluster_templates()] == ["sdk"]
    assert sdk.find_cluster_template("sdk").uuid == template.uuid
    changed = sdk.update_cluster_template(template, docker_volume_size=5)
    assert changed.docker_volume_size == 5

    name = f"c{uuid.uuid4().hex[:8]}"
    made = sdk.create_cluster(name=name, cluster_template_id="sdk", node_count=1)
    # No wait: the row is there when the answer is.
    assert sdk.get_cluster(made.id).status == "CREATE_IN_PROGRESS"
    magnum.wait_for(made.id, "CREATE_COMPLETE")
    cluster = sdk.get_cluster(made.id)
    assert (cluster.name, cluster.node_count, cluster.master_count) == (name, 1, 1)
    assert cluster.cluster_template_id == template.id
    assert cluster.stack_id
    assert len(servers(cloud_env, name)) == 2
    assert [row.name for row in sdk.clusters()] == [name]
    assert sdk.find_cluster(name).uuid == made.uuid

    assert connect(magnum, ALT).find_cluster(name) is None
    with pytest.raises(openstack.exceptions.ForbiddenException):
        connect(magnum, READER).delete_cluster(made.id, ignore_missing=False)

    assert "is referenced by one or multiple clusters" in refusal(
        lambda: sdk.delete_cluster_template(template)
    )
    sdk.delete_cluster(made.id)
    magnum.wait_for(made.id, "gone")
    assert sdk.find_cluster(name) is None
    assert servers(cloud_env, name) == []
    sdk.delete_cluster_template(template)
    assert list(sdk.cluster_templates()) == []


def test_update_of_the_number_of_nodes(magnum: Magnum, distro: str) -> None:
    sdk = connect(magnum)
    make_template(sdk, distro)
    labels = {"sandbox_polls": "1"}
    made = sdk.create_cluster(name="c1", cluster_template_id="sdk", labels=labels)
    magnum.wait_for(made.id, "CREATE_COMPLETE")
    sdk.update_cluster(sdk.get_cluster(made.id), node_count=3)
    body = magnum.wait_for(made.id, "UPDATE_COMPLETE")
    assert body["node_count"] == 3
    sdk.delete_cluster(made.id)
    magnum.wait_for(made.id, "gone")


def test_errors_of_the_wire(magnum: Magnum, distro: str) -> None:
    sdk = connect(magnum)
    make_template(sdk, distro)
    # Without a version header: 1.1, where an unknown template is a 400.
    assert refusal(lambda: sdk.create_cluster(name="c1", cluster_template_id="nope")) == (
        "ClusterTemplate nope could not be found."
    )
    flavor = {"cluster_template_id": "sdk", "flavor_id": "nope"}
    assert refusal(lambda: sdk.create_cluster(name="c1", **flavor)) == (
        "Unable to find flavor nope."
    )
    assert list(sdk.clusters()) == []
