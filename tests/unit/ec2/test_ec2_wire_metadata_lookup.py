"""What the metadata service asks for, keeps and forgets."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
import requests_mock as mocking
import sqlalchemy as sa

from tests.support.ec2_guest import SUBNET, GuestCloud
from tests.support.ec2_openstack import MINE, THEIRS
from tests.support.ec2_openstack import Caller as Api
from trimaran.cloud.client import Client
from trimaran.config import common
from trimaran.db import Database
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import NewItem
from trimaran.ec2 import ids
from trimaran.ec2.kinds.instances.instance import describe_instances
from trimaran.ec2.kinds.instances.instance_options import modify_instance_metadata_options
from trimaran.ec2.kinds.tag import create_tags, delete_tags
from trimaran.ec2.metadata.caller import Caller, Provider
from trimaran.ec2.metadata.contents import Facts
from trimaran.ec2.metadata.lookup import SURE_SECONDS, Lookup
from trimaran.ec2.metadata.providers import Providers
from trimaran.ec2.metadata.tree import LATEST, look_up, steps_of
from trimaran.ec2.parts import Parts
from trimaran.errors import NotFound, Unavailable

SECONDS = 15


@pytest.fixture
def openstack(requests_mock: mocking.Mocker) -> GuestCloud:
    return GuestCloud(requests_mock)


class Time:
    """A clock that stands still until told otherwise."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def parts(me: Api) -> Parts:
    me.conf.set_override("cache_expiration", SECONDS, "metadata")
    own = common.defaults()
    return Parts(me.conf, own, me.cloud.identity, me.cloud, me.db, region="RegionOne")


@pytest.fixture
def lookup(parts: Parts, clock: Time) -> Lookup:
    return Lookup(parts, clock)


@pytest.fixture
def server(openstack: GuestCloud) -> dict[str, Any]:
    return openstack.guest()


@pytest.fixture
def guest(server: dict[str, Any]) -> Caller:
    return Caller(server["id"], MINE, "10.0.0.5")


def read(facts: Facts, path: str) -> Any:
    return look_up(facts.tree(LATEST), steps_of(path))


@contextmanager
def statements(db: Database) -> Iterator[list[str]]:
    """The SELECTs, INSERTs and UPDATEs of a block."""
    seen: list[str] = []

    def note(conn: Any, cursor: Any, statement: str, *rest: Any) -> None:
        if not statement.startswith(("BEGIN", "PRAGMA")):
            seen.append(statement)

    sa.event.listen(db.engine, "before_cursor_execute", note)
    yield seen
    sa.event.remove(db.engine, "before_cursor_execute", note)


def test_a_miss_asks_for_this_server_only_and_in_one_round(
    openstack: GuestCloud, lookup: Lookup, guest: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    openstack.guest()
    waiting = threading.Barrier(3, timeout=60)
    request = Client.request

    def together(*args: Any, **kwargs: Any) -> Any:
        # Each question waits for the other two: asked one after the other they would never end.
        waiting.wait()
        return request(*args, **kwargs)

    monkeypatch.setattr(Client, "request", together)
    facts = lookup.facts(guest)
    there = f"/servers/{guest.server_id}"
    assert sorted(openstack.asked()) == ["/ports", there, f"{there}/os-volume_attachments"]
    assert facts.instance["InstanceId"].startswith("i-")


def test_what_few_paths_show_is_asked_for_by_those(
    openstack: GuestCloud, lookup: Lookup, guest: Caller
) -> None:
    facts = lookup.facts(guest)
    openstack.asked()
    assert read(facts, "meta-data").count("\n") > 15
    assert openstack.asked() == []
    assert read(facts, "meta-data/public-keys/0/openssh-key") == "ssh-rsa AAAA"
    assert openstack.asked() == ["/os-keypairs/mine"]
    assert read(facts, "meta-data/security-groups") == "default"
    assert sorted(openstack.asked()) == ["/floatingips", "/security-groups", "/subnets"]
    macs = "meta-data/network/interfaces/macs/"
    assert read(facts, f"{macs}{read(facts, macs)}subnet-ipv4-cidr-block") == "10.0.0.0/24"
    assert openstack.asked() == []


def test_a_hit_asks_nobody_and_the_version_is_compared_once_a_second(
    openstack: GuestCloud, parts: Parts, lookup: Lookup, guest: Caller, clock: Time
) -> None:
    first = lookup.facts(guest)
    openstack.asked()
    with statements(parts.db) as seen:
        assert lookup.at_hand(guest) is first
        assert seen == []
        clock.pass_(SURE_SECONDS)
        assert lookup.at_hand(guest) is None
        assert lookup.facts(guest) is first
        assert len(seen) == 1
        assert lookup.at_hand(guest) is first
        assert len(seen) == 1
    assert openstack.asked() == []
    clock.pass_(SECONDS)
    assert lookup.facts(guest) is not first


def test_a_change_by_the_api_is_seen_within_a_second(
    me: Api, lookup: Lookup, guest: Caller, clock: Time
) -> None:
    instance = lookup.facts(guest).instance["InstanceId"]

    def now() -> Facts:
        clock.pass_(SURE_SECONDS)
        return lookup.facts(guest)

    me(modify_instance_metadata_options, InstanceId=instance, InstanceMetadataTags="enabled")
    assert read(now(), "meta-data/tags/instance") == ""
    me(create_tags, Resources=[instance], Tags=[{"Key": "Name", "Value": "web"}])
    assert read(now(), "meta-data/tags/instance/Name") == "web"
    me(create_tags, Resources=[instance], Tags=[{"Key": "Name", "Value": "db"}])
    assert read(now(), "meta-data/tags/instance/Name") == "db"
    me(delete_tags, Resources=[instance])
    assert read(now(), "meta-data/tags/instance") == ""
    me(modify_instance_metadata_options, InstanceId=instance, HttpEndpoint="disabled")
    assert now().options["HttpEndpoint"] == "disabled"
    assert lookup.options(guest)["HttpEndpoint"] == "disabled"


def test_nothing_is_kept_when_the_operator_wants_it_so(
    openstack: GuestCloud, parts: Parts, guest: Caller, clock: Time
) -> None:
    parts.conf.set_override("cache_expiration", 0, "metadata")
    lookup = Lookup(parts, clock)
    first = lookup.facts(guest)
    assert lookup.at_hand(guest) is None
    assert lookup.facts(guest) is not first


def test_the_owner_is_checked_also_when_the_facts_are_known(
    openstack: GuestCloud, lookup: Lookup, guest: Caller
) -> None:
    theirs = Caller(guest.server_id, THEIRS, guest.address)
    for _ in range(2):
        with pytest.raises(NotFound):
            lookup.facts(theirs)
        lookup.facts(guest)
        with pytest.raises(NotFound):
            lookup.at_hand(theirs)
        with pytest.raises(NotFound):
            lookup.options(theirs)
    with pytest.raises(NotFound):
        lookup.facts(Caller(str(uuid.uuid4()), MINE, "10.0.0.5"))
    assert lookup.options(Caller(str(uuid.uuid4()), MINE, ""))["HttpEndpoint"] == "enabled"


def test_a_first_look_makes_the_whole_item(
    openstack: GuestCloud, me: Api, lookup: Lookup, guest: Caller
) -> None:
    shown = lookup.facts(guest).instance
    assert shown["ReservationId"] == "r-" + guest.server_id[:8]
    [item] = me.db.read(lambda s: queries.items_of(s, MINE, ["i"]))
    assert (item.id, item.data["reservation_id"]) == (shown["InstanceId"], shown["ReservationId"])
    [described] = me(describe_instances)["Reservations"]
    assert described["Instances"][0]["InstanceId"] == shown["InstanceId"]


def test_a_server_that_is_gone_is_not_found_any_more(
    openstack: GuestCloud, lookup: Lookup, guest: Caller, clock: Time
) -> None:
    lookup.facts(guest)
    del openstack.servers[guest.server_id]
    clock.pass_(SECONDS)
    with pytest.raises(NotFound):
        lookup.facts(guest)


def test_guests_that_come_together_ask_once_each(
    openstack: GuestCloud, lookup: Lookup, guest: Caller
) -> None:
    go = threading.Event()
    first = threading.Event()

    def hold(method: str, path: str) -> None:
        first.set()
        assert go.wait(60)

    openstack.before = hold
    with ThreadPoolExecutor(10) as pool:
        asking = [pool.submit(lookup.facts, guest) for _ in range(10)]
        assert first.wait(60)
        go.set()
        found = {id(each.result(60)) for each in asking}
    assert len(found) == 1
    assert openstack.asked().count(f"/servers/{guest.server_id}") == 1


def test_a_failure_is_told_and_not_kept(
    openstack: GuestCloud, lookup: Lookup, guest: Caller
) -> None:
    for path in (rf"servers/{guest.server_id}$", "os-volume_attachments", "/ports"):
        openstack.fail = {path: 503}
        with pytest.raises(Unavailable):
            lookup.facts(guest)
    openstack.fail = {"/os-keypairs": 503, "/floatingips": 503}
    facts = lookup.facts(guest)
    for path in ("meta-data/public-keys", "meta-data/security-groups"):
        with pytest.raises(Unavailable):
            read(facts, path)
    openstack.fail = {}
    assert read(facts, "meta-data/public-keys") == "0=mine"
    assert read(facts, "meta-data/security-groups") == "default"


def test_interfaces_in_a_vpc_are_known_by_their_ids(
    openstack: GuestCloud, me: Api, lookup: Lookup, guest: Caller
) -> None:
    first, second = dict(openstack.ports[0]), dict(openstack.ports[0])
    second |= {"id": str(uuid.uuid4()), "mac_address": "fa:16:3e:00:00:02"}
    second["created_at"] = "2026-01-01T00:00:00Z"
    openstack.ports = [second, first]
    openstack.floating = [
        {
            "port_id": first["id"],
            "floating_ip_address": "172.24.4.9",
            "fixed_ip_address": "10.0.0.5",
        }
    ]
    vpc, subnet, eni, other = "vpc-00000001", "subnet-00000002", "eni-00000003", "eni-00000004"
    new = [
        NewItem("vpc", None, MINE, {"cidr_block": "10.0.0.0/16"}, id=vpc),
        NewItem("subnet", SUBNET, MINE, vpc_id=vpc, id=subnet),
        NewItem("eni", first["id"], MINE, {"device_index": 0}, vpc_id=vpc, id=eni),
        NewItem("eni", second["id"], MINE, {"device_index": 2}, vpc_id=vpc, id=other),
    ]
    me.db.write(lambda s: queries.add_items(s, new, ids.mint))
    facts = lookup.facts(guest)
    assert read(facts, "meta-data/mac") == first["mac_address"]
    told = {
        "device-number": "0",
        "interface-id": eni,
        "subnet-id": subnet,
        "vpc-id": vpc,
        "vpc-ipv4-cidr-block": "10.0.0.0/16",
        "public-ipv4s": "172.24.4.9",
    }
    macs = "meta-data/network/interfaces/macs"
    there = {name: read(facts, f"{macs}/{first['mac_address']}/{name}") for name in told}
    assert there == told
    assert read(facts, f"{macs}/{second['mac_address']}/device-number") == "2"
    assert read(facts, "meta-data/public-ipv4") == "172.24.4.9"


def test_the_image_behind_a_root_volume_is_asked_for_once(
    openstack: GuestCloud, me: Api, lookup: Lookup, clock: Time
) -> None:
    server = openstack.guest(image="")
    image = openstack.image()
    volume = openstack.volume(server, "/dev/vda", volume_image_metadata={"image_id": image["id"]})
    openstack.devices[server["id"]] = [{"volumeId": volume["id"], "device": "/dev/vda"}]
    guest = Caller(server["id"], MINE, "10.0.0.5")
    shown = lookup.facts(guest).instance
    assert shown["ImageId"].startswith("ami-")
    assert [row["DeviceName"] for row in shown["BlockDeviceMappings"]] == ["/dev/vda"]
    assert any("/volumes/" in path for path in openstack.asked())
    clock.pass_(SECONDS)
    assert lookup.facts(guest).instance["ImageId"] == shown["ImageId"]
    assert not any("/volumes/" in path for path in openstack.asked())


def test_a_provider_leads_to_the_server_with_the_address(
    openstack: GuestCloud, parts: Parts, guest: Caller
) -> None:
    providers = Providers(parts.cloud, SECONDS)
    asked = Provider("provider-1", "10.0.0.5")
    assert providers.at_hand(asked) is None
    assert providers.caller(asked) == guest
    openstack.asked()
    assert providers.caller(asked) == providers.at_hand(asked) == guest
    assert openstack.asked() == []
    for unknown in (Provider("provider-2", "10.0.0.5"), Provider("provider-1", "10.0.0.6")):
        with pytest.raises(NotFound):
            providers.caller(unknown)
    openstack.guest()
    with pytest.raises(NotFound):
        Providers(parts.cloud, SECONDS).caller(asked)
