"""cloud-init's Ec2 data source crawls the metadata service through an agent's proxy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cloud import DEMO, CloudEnv
from tests.support.cloud_init import crawl
from tests.support.ec2 import Daemon, keys_of, running, write_conf
from tests.support.ec2_server import server_with_key
from tests.support.ec2_tenant import until
from tests.support.metadata_agent import Agent, agent, agents_headers
from tests.support.ports import free_port

SECRET = "s3cret"
USER_DATA = b"#cloud-config\nfinal_message: \xc3\xa9\n"


@pytest.fixture(scope="module")
def server(cloud_env: CloudEnv) -> Iterator[dict[str, Any]]:
    with server_with_key(cloud_env, USER_DATA) as made:
        yield made


@pytest.fixture(scope="module")
def daemons(
    cloud_env: CloudEnv, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Daemon, Daemon]]:
    from trimaran.db import migrate

    home: Path = tmp_path_factory.mktemp("cloud-init")
    database = f"sqlite:///{home}/ec2.sqlite"
    migrate.upgrade(database, "ec2")
    ports = free_port(), free_port()
    conf = write_conf(
        home, cloud_env, database, metadata_listen_port=ports[0], ec2api_listen_port=ports[1]
    )
    with (
        running("ec2-metadata", conf, ports[0]) as metadata,
        running("ec2-api", conf, ports[1]) as api,
    ):
        yield metadata, api


@pytest.fixture
def guest(
    daemons: tuple[Daemon, Daemon], cloud_env: CloudEnv, server: dict[str, Any]
) -> Iterator[Agent]:
    project = cloud_env.session(DEMO).get_project_id()
    headers = agents_headers(server["id"], project, SECRET)
    with agent(daemons[0].url, headers) as running_agent:
        yield running_agent


def mac_of(server: dict[str, Any]) -> str:
    return str(server["addresses"]["private"][0]["OS-EXT-IPS-MAC:mac_addr"])


def instance_of(meta: dict[str, Any], daemons: tuple[Daemon, Daemon], cloud: CloudEnv) -> Any:
    client = daemons[1].client(keys_of(cloud))
    answer = client.describe_instances(InstanceIds=[meta["instance-id"]])
    return answer["Reservations"][0]["Instances"][0]


def test_cloud_init_crawls_without_a_complaint(
    guest: Agent, daemons: tuple[Daemon, Daemon], cloud_env: CloudEnv, server: dict[str, Any]
) -> None:
    """As on OpenStack: the platform is not AWS's, so no tokens are asked for."""
    seen = crawl(guest.url, "unknown", mac_of(server))
    assert seen.complaints == ""
    assert {status for _, _, status in guest.answers} == {200}
    assert seen.found["_metadata_api_version"] == "2021-03-23"
    meta = seen.found["meta-data"]
    shown = instance_of(meta, daemons, cloud_env)
    assert meta["ami-id"] == shown["ImageId"]
    assert meta["local-ipv4"] == shown["PrivateIpAddress"]
    assert meta["public-keys"] == {server["key_name"]: server["public_key"].strip()}
    assert bytes(seen.found["user-data"]) == USER_DATA
    network = seen.found["config"]["ethernets"]["eth0"]
    assert network["match"] == {"macaddress": mac_of(server)}
    assert network["dhcp4"] is True


def test_cloud_init_uses_session_tokens_where_they_are_required(
    guest: Agent, daemons: tuple[Daemon, Daemon], cloud_env: CloudEnv, server: dict[str, Any]
) -> None:
    """As on AWS: with tokens, tags in the metadata, and the identity document."""
    first = crawl(guest.url, "aws", mac_of(server))
    assert first.complaints == ""
    instance_id = first.found["meta-data"]["instance-id"]
    client = daemons[1].client(keys_of(cloud_env))
    client.create_tags(Resources=[instance_id], Tags=[{"Key": "Name", "Value": "crawled"}])
    change = client.modify_instance_metadata_options
    change(InstanceId=instance_id, HttpTokens="required", InstanceMetadataTags="enabled")
    try:
        # Another process's facts hold for a second before they are compared.
        until(lambda: "tags" in crawl(guest.url, "aws", mac_of(server)).found["meta-data"])
        guest.answers.clear()
        seen = crawl(guest.url, "aws", mac_of(server))
    finally:
        change(InstanceId=instance_id, HttpTokens="optional", InstanceMetadataTags="disabled")
    assert seen.complaints == ""
    assert guest.answers[0] == ("PUT", "/latest/api/token", 200)
    assert {status for _, _, status in guest.answers} == {200}
    assert seen.found["meta-data"]["tags"] == {"instance": {"Name": "crawled"}}
    document = seen.found["dynamic"]["instance-identity"]["document"]
    assert document["instanceId"] == instance_id
    assert document["accountId"] == (cloud_env.session(DEMO).get_project_id())
