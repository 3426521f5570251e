"""The metadata service of a running daemon, for a real server that nobody has described.

The EC2 API runs in a process of its own, as in a deployment: what it changes
must reach the guest all the same.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.support.cloud import ADMIN, ALT, DEMO, CloudEnv
from tests.support.ec2 import Daemon, keys_of, running, write_conf
from tests.support.ec2_server import server_with_key
from tests.support.ec2_tenant import tenant, until
from tests.support.metadata_agent import agents_headers
from tests.support.nova_metadata import SECRET, nova_metadata
from tests.support.ports import free_port

USER_DATA = b"\x1f\x8b\x00binary\xff"
META = "/latest/meta-data"
TTL = "X-aws-ec2-metadata-token-ttl-seconds"
TOKEN = "X-aws-ec2-metadata-token"


@pytest.fixture(scope="module")
def server(cloud_env: CloudEnv) -> Iterator[dict[str, Any]]:
    with server_with_key(cloud_env, USER_DATA) as made:
        yield made


@pytest.fixture(scope="module")
def daemons(
    cloud_env: CloudEnv, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Daemon, Daemon]]:
    """The metadata service and the EC2 API, with Nova's metadata service behind."""
    from trimaran.db import migrate

    home: Path = tmp_path_factory.mktemp("metadata")
    database = f"sqlite:///{home}/ec2.sqlite"
    migrate.upgrade(database, "ec2")
    ports = free_port(), free_port()
    with nova_metadata(cloud_env.state, home) as nova:
        conf = write_conf(
            home,
            cloud_env,
            database,
            metadata_listen_port=ports[0],
            ec2api_listen_port=ports[1],
            metadata__metadata_proxy_shared_secret=SECRET,
            metadata__nova_metadata_port=nova,
            # Longer than the tests: what is seen earlier was not waited for.
            metadata__cache_expiration=3600,
        )
        with (
            running("ec2-metadata", conf, ports[0]) as metadata,
            running("ec2-api", conf, ports[1]) as api,
        ):
            yield metadata, api


@pytest.fixture(scope="module")
def daemon(daemons: tuple[Daemon, Daemon]) -> Daemon:
    return daemons[0]


@pytest.fixture(scope="module")
def ec2(daemons: tuple[Daemon, Daemon], cloud_env: CloudEnv) -> Any:
    return daemons[1].client(keys_of(cloud_env))


Get = Callable[..., requests.Response]


@pytest.fixture(scope="module")
def get(daemon: Daemon, cloud_env: CloudEnv, server: dict[str, Any]) -> Get:
    """Asks as Neutron's agent does for this server; ``changed`` replaces headers."""
    project = cloud_env.session(DEMO).get_project_id()

    def ask(path: str, method: str = "GET", **changed: Any) -> requests.Response:
        data = changed.pop("data", None)
        server_id = str(changed.pop("server_id", None) or server["id"])
        headers: dict[str, Any] = dict(agents_headers(server_id, project, SECRET))
        headers.update({name.replace("_", "-"): value for name, value in changed.items()})
        sent = {name: value for name, value in headers.items() if value is not None}
        return requests.request(method, daemon.url + path, headers=sent, data=data, timeout=120)

    return ask


@pytest.fixture(scope="module")
def instance_id(get: Get) -> str:
    response = get(f"{META}/instance-id")
    assert response.status_code == 200
    return response.text


def test_a_guest_learns_what_describe_instances_shows(
    get: Get, ec2: Any, server: dict[str, Any], instance_id: str
) -> None:
    assert instance_id.startswith("i-")
    [reservation] = ec2.describe_instances(InstanceIds=[instance_id])["Reservations"]
    [instance] = reservation["Instances"]
    told = {
        "ami-id": instance["ImageId"],
        "instance-type": "m1.tiny",
        "local-ipv4": instance["PrivateIpAddress"],
        "local-hostname": instance["PrivateDnsName"],
        "hostname": instance["PrivateDnsName"],
        "reservation-id": reservation["ReservationId"],
        "placement/availability-zone": instance["Placement"]["AvailabilityZone"],
        "security-groups": "default",
        "public-keys/0/openssh-key": server["public_key"],
        "public-keys/": f"0={server['key_name']}",
    }
    assert {name: get(f"{META}/{name}").text for name in told} == told
    document = json.loads(get("/latest/dynamic/instance-identity/document").text)
    assert document["instanceId"] == instance_id
    assert document["accountId"] == reservation["OwnerId"]
    assert document["privateIp"] == instance["PrivateIpAddress"]


def test_the_network_is_neutrons(
    get: Get, cloud_env: CloudEnv, server: dict[str, Any], instance_id: str
) -> None:
    query = f"/v2.0/ports?device_id={server['id']}"
    [port] = cloud_env.call(DEMO, "network", "GET", query)["ports"]
    path = f"/v2.0/subnets/{port['fixed_ips'][0]['subnet_id']}"
    subnet = cloud_env.call(DEMO, "network", "GET", path)["subnet"]
    base = f"{META}/network/interfaces/macs/{port['mac_address']}"
    told = {
        f"{META}/mac": port["mac_address"],
        f"{base}/local-ipv4s": port["fixed_ips"][0]["ip_address"],
        f"{base}/subnet-ipv4-cidr-block": subnet["cidr"],
        f"{base}/device-number": "0",
        f"{base}/security-groups": "default",
    }
    assert {path: get(path).text for path in told} == told


def test_user_data_is_byte_for_byte(get: Get) -> None:
    response = get("/latest/user-data")
    assert response.content == USER_DATA
    assert response.headers["Content-Type"].startswith("text/plain")


def test_versions_need_no_identity(daemon: Daemon) -> None:
    lines = requests.get(daemon.url + "/", timeout=60).text.split("\n")
    assert (lines[0], lines[-1]) == ("1.0", "latest")
    assert requests.get(daemon.url + "/2020-10-27/meta-data", timeout=60).status_code == 404


@pytest.mark.parametrize("path", [f"{META}/instance-id", "/openstack/latest/meta_data.json"])
@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"X_Instance_ID_Signature": "0" * 64}, 403),
        ({"X_Instance_ID_Signature": None}, 400),
        ({"X_Tenant_ID": None}, 400),
        ({"X_Forwarded_For": None}, 400),
        ({"server_id": str(uuid.uuid4())}, 404),
        ({"server_id": "../../x"}, 400),
    ],
)
def test_who_may_not_read(get: Get, path: str, changed: dict[str, Any], status: int) -> None:
    assert get(path, **changed).status_code == status


@pytest.mark.parametrize("path", [f"{META}/instance-id", "/openstack/latest/meta_data.json"])
def test_a_server_of_another_project_is_not_found(
    get: Get, cloud_env: CloudEnv, path: str, instance_id: str
) -> None:
    other = cloud_env.session(ALT).get_project_id()
    assert get(path, X_Tenant_ID=other).status_code == 404
    assert get(path).status_code == 200


@pytest.mark.parametrize(
    "path",
    [f"{META}/ami-id/x", f"{META}/iam/", "/latest/nothing", "/latest/api/x", "/1.0/api/token"],
)
def test_paths_that_are_not_there_are_404(get: Get, path: str) -> None:
    assert get(path).status_code == 404


def test_a_session_token_opens_what_needs_one(get: Get, ec2: Any, instance_id: str) -> None:
    assert get("/latest/api/token", "PUT").status_code == 400
    assert get("/latest/api/token", "PUT", **{TTL: "21601"}).status_code == 400
    assert get("/latest/api/token").status_code == 405
    given = get("/latest/api/token", "PUT", **{TTL: "21600"})
    assert (given.status_code, given.headers[TTL]) == (200, "21600")
    short = get("/latest/api/token", "PUT", **{TTL: "1"}).text
    through = get("/latest/api/token", "PUT", **{TTL: "60", "X-Forwarded-For": "192.0.2.1, 10.1"})
    assert through.status_code == 403
    path = f"{META}/instance-id"
    assert get(path, **{TOKEN: given.text}).text == instance_id
    until(lambda: get(path, **{TOKEN: short}).status_code == 401)
    assert get(path, **{TOKEN: "x"}).status_code == 401
    assert get(path).status_code == 200
    change = ec2.modify_instance_metadata_options
    change(InstanceId=instance_id, HttpTokens="required")
    try:
        until(lambda: get(path).status_code == 401)
        assert get("/openstack/latest/meta_data.json").status_code == 401
        assert get(path, **{TOKEN: given.text}).text == instance_id
        nova = get("/openstack/latest/meta_data.json", **{TOKEN: given.text})
        assert nova.status_code == 200
    finally:
        change(InstanceId=instance_id, HttpTokens="optional")
    until(lambda: get(path).status_code == 200)


def test_a_guest_is_shut_out_and_let_in_again(get: Get, ec2: Any, instance_id: str) -> None:
    paths = (f"{META}/instance-id", "/openstack/latest/meta_data.json")
    ec2.modify_instance_metadata_options(InstanceId=instance_id, HttpEndpoint="disabled")
    try:
        until(lambda: all(get(path).status_code == 403 for path in paths))
        assert get("/latest/api/token", "PUT", **{TTL: "60"}).status_code == 403
    finally:
        ec2.modify_instance_metadata_options(InstanceId=instance_id, HttpEndpoint="enabled")
    until(lambda: all(get(path).status_code == 200 for path in paths))


def test_tags_change_for_the_guest_as_the_api_changes_them(
    get: Get, ec2: Any, instance_id: str
) -> None:
    assert get(f"{META}/tags/").status_code == 404
    ec2.modify_instance_metadata_options(InstanceId=instance_id, InstanceMetadataTags="enabled")
    until(lambda: get(f"{META}/tags/instance/").status_code == 200)
    ec2.create_tags(Resources=[instance_id], Tags=[{"Key": "Role", "Value": "web\nß"}])
    until(lambda: get(f"{META}/tags/instance/Role").text == "web\nß")
    ec2.delete_tags(Resources=[instance_id])
    until(lambda: get(f"{META}/tags/instance/Role").status_code == 404)


def test_addresses_and_groups_change_for_the_guest_as_the_api_changes_them(
    daemons: tuple[Daemon, Daemon], cloud_env: CloudEnv
) -> None:
    """In a VPC, whose interfaces, subnets and groups have ids of their own."""
    metadata, api = daemons
    with tenant(cloud_env) as mine:
        ec2 = api.client(mine.keys)
        named = [{"Name": "name", "Values": ["cirros-sandbox"]}]
        image = ec2.describe_images(Filters=named)["Images"][0]["ImageId"]
        [made] = ec2.run_instances(ImageId=image, InstanceType="m1.tiny", MinCount=1, MaxCount=1)[
            "Instances"
        ]
        instance_id = made["InstanceId"]

        def shown() -> dict[str, Any]:
            answer = ec2.describe_instances(InstanceIds=[instance_id])
            return dict(answer["Reservations"][0]["Instances"][0])

        until(lambda: shown()["State"]["Name"] == "running", 300)
        server_id = mine.servers()[instance_id]["id"]
        headers = agents_headers(server_id, mine.project.id, SECRET)

        def get(path: str) -> str:
            response = requests.get(f"{metadata.url}{META}/{path}", headers=headers, timeout=120)
            return response.text if response.status_code == 200 else ""

        [interface] = shown()["NetworkInterfaces"]
        base = f"network/interfaces/macs/{interface['MacAddress']}"
        [vpc] = ec2.describe_vpcs(VpcIds=[interface["VpcId"]])["Vpcs"]
        told = {
            "instance-id": instance_id,
            "local-ipv4": interface["PrivateIpAddress"],
            "security-groups": "default",
            f"{base}/interface-id": interface["NetworkInterfaceId"],
            f"{base}/subnet-id": interface["SubnetId"],
            f"{base}/vpc-id": vpc["VpcId"],
            f"{base}/vpc-ipv4-cidr-block": vpc["CidrBlock"],
            f"{base}/security-group-ids": interface["Groups"][0]["GroupId"],
        }
        assert {path: get(path) for path in told} == told
        before = get("public-ipv4")
        address = ec2.allocate_address(Domain="vpc")
        public = address["PublicIp"]
        ec2.associate_address(AllocationId=address["AllocationId"], InstanceId=instance_id)
        until(lambda: get("public-ipv4") == public != before)
        assert get(f"{base}/ipv4-associations/{public}") == interface["PrivateIpAddress"]
        group = ec2.create_security_group(GroupName="web", Description="web", VpcId=vpc["VpcId"])[
            "GroupId"
        ]
        ec2.modify_instance_attribute(InstanceId=instance_id, Groups=[group])
        until(lambda: get("security-groups") == "web")
        assert get(f"{base}/security-group-ids") == group
        association = ec2.describe_addresses()["Addresses"][0]["AssociationId"]
        ec2.disassociate_address(AssociationId=association)
        until(lambda: get("public-ipv4") != public)
        ec2.release_address(AllocationId=address["AllocationId"])
        ec2.terminate_instances(InstanceIds=[instance_id])
        until(lambda: get("instance-id") == "")


def test_novas_metadata_is_passed_on(get: Get, cloud_env: CloudEnv, server: dict[str, Any]) -> None:
    response = get("/openstack/latest/meta_data.json")
    assert response.headers["Content-Type"].startswith("application/json")
    assert response.json()["uuid"] == server["id"]
    assert get("/openstack/latest/user_data").content == USER_DATA
    assert "latest" in get("/openstack").text.split("\n")
    assert get("/openstack/latest/nothing").status_code == 404
    posted = get("/openstack/latest/password", "POST", data=b"encrypted")
    assert posted.status_code == 200
    password = cloud_env.call(
        ADMIN, "compute", "GET", f"/servers/{server['id']}/os-server-password"
    )
    assert password == {"password": "encrypted"}
    long = get("/openstack/latest/password", "POST", data=b"x" * 5000)
    assert long.status_code == 400


def test_the_secrets_stay_out_of_the_log(get: Get, daemon: Daemon) -> None:
    get(f"{META}/", X_Instance_ID_Signature="0" * 64)
    token = get("/latest/api/token", "PUT", **{TTL: "60"}).text
    get(f"{META}/", **{TOKEN: token})
    log = daemon.lines()
    assert token not in log
    assert "Traceback" not in log
