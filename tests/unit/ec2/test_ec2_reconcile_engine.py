"""The engine by way of DescribeInstances: races, faults and what they must never do."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import sqlalchemy as sa

from tests.support.ec2_openstack import MINE, NOVA, THEIRS, Caller, OpenStack, instances_of
from trimaran.db import Database
from trimaran.db.queries import ec2 as queries
from trimaran.ec2 import ids
from trimaran.ec2.kinds.images.image import describe_images
from trimaran.ec2.kinds.instances.instance import describe_instances
from trimaran.ec2.kinds.tag import create_tags, describe_tags
from trimaran.ec2.protocol.errors import EC2Error
from trimaran.errors import TrimaranError, Unavailable
from trimaran.identity import count_calls


def _ids(answer: dict[str, Any]) -> list[str]:
    return [each["InstanceId"] for each in instances_of(answer)]


def _code(error: pytest.ExceptionInfo[EC2Error]) -> str:
    return error.value.code


def _statements(db: Database) -> list[str]:
    seen: list[str] = []

    def note(conn: Any, cursor: Any, statement: str, *rest: Any) -> None:
        seen.append(statement)

    sa.event.listen(db.engine, "before_cursor_execute", note)
    return seen


def test_a_server_made_by_others_appears_with_one_id_for_ever(
    openstack: OpenStack, me: Caller
) -> None:
    server = openstack.server()
    first = instances_of(me(describe_instances))
    again = instances_of(me(describe_instances))
    assert len(first) == 1
    assert first[0]["InstanceId"] == again[0]["InstanceId"]
    assert first[0]["State"] == {"Code": 16, "Name": "running"}
    answer = me(describe_instances)
    assert answer["Reservations"][0]["ReservationId"] == "r-" + server["id"][:8]
    assert answer["Reservations"][0]["OwnerId"] == MINE


def test_ten_first_describes_at_once_agree_on_each_id(openstack: OpenStack, me: Caller) -> None:
    for _ in range(12):
        openstack.server()
    start = threading.Barrier(10)
    answers: list[dict[str, str]] = []

    def describe() -> None:
        start.wait(30)
        found = instances_of(me(describe_instances))
        answers.append({each["PrivateDnsName"]: each["InstanceId"] for each in found})

    threads = [threading.Thread(target=describe) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(answers) == 10
    assert len(answers[0]) == 12
    assert all(answer == answers[0] for answer in answers)


def test_a_describe_of_an_unchanged_cloud_writes_nothing(
    openstack: OpenStack, me: Caller, ec2_db: Database
) -> None:
    openstack.image()
    server = openstack.server()
    openstack.volume(server, "/dev/vdb")
    me(describe_instances)
    statements = _statements(ec2_db)
    me(describe_instances)
    assert all(
        each.lstrip().upper().startswith("SELECT") for each in statements if "BEGIN" not in each
    )
    # Instances and what they refer to, and their network interfaces: of which there are none.
    assert len(statements) <= 8


def test_changes_are_written_in_one_order(
    openstack: OpenStack, me: Caller, ec2_db: Database
) -> None:
    """Whatever order the cloud lists in: processes would lock the rows crosswise otherwise."""
    servers = {server["id"]: server for server in (openstack.server() for _ in range(6))}
    found = _ids(me(describe_instances))
    openstack.servers.clear()
    me(describe_instances)
    items = ec2_db.read(lambda s: queries.items_of(s, MINE, ["i"]))
    for item in sorted(items, key=lambda each: each.id, reverse=True):
        openstack.servers[str(item.os_id)] = servers[str(item.os_id)]
    written: list[str] = []

    def note(conn: Any, cursor: Any, statement: str, parameters: Any, *rest: Any) -> None:
        if statement.startswith("UPDATE items"):
            written.extend(value for value in parameters if value in found)

    sa.event.listen(ec2_db.engine, "before_cursor_execute", note)
    assert _ids(me(describe_instances)) == found
    assert written == sorted(found)


@pytest.mark.parametrize("selective", [False, True])
def test_backend_calls_and_statements_do_not_grow_with_instances(
    openstack: OpenStack, me: Caller, ec2_db: Database, selective: bool
) -> None:
    openstack.image()
    seen: list[tuple[int, int]] = []
    for more in (3, 27, 60):
        for _ in range(more):
            openstack.volume(openstack.server(), "/dev/vdb")
        found = _ids(me(describe_instances))
        statements = _statements(ec2_db)
        with count_calls() as calls:
            answer = me(describe_instances, **({"InstanceIds": found[:1]} if selective else {}))
        assert len(_ids(answer)) == (1 if selective else len(found))
        seen.append((calls.total, len(statements)))
    assert {total for total, _ in seen} == {seen[0][0]}
    assert seen[0][0] <= 8
    assert {count for _, count in seen} == {seen[0][1]}


def test_a_describe_of_one_id_asks_for_one_server_only(openstack: OpenStack, me: Caller) -> None:
    for _ in range(5):
        openstack.server()
    wanted = _ids(me(describe_instances))[2]
    openstack.seen.clear()
    assert _ids(me(describe_instances, InstanceIds=[wanted, wanted])) == [wanted]
    paths = [path for _, path in openstack.calls(NOVA)]
    assert len(paths) == 1
    assert "detail" not in paths[0]


def test_many_ids_are_read_with_one_listing(openstack: OpenStack, me: Caller) -> None:
    for _ in range(9):
        openstack.server()
    wanted = _ids(me(describe_instances))[:7]
    openstack.server()
    openstack.seen.clear()
    assert _ids(me(describe_instances, InstanceIds=wanted)) == wanted
    assert [path for _, path in openstack.calls(NOVA)] == [f"{NOVA}/servers/detail"]
    # What was not asked for is not touched.
    assert len(me.db.read(lambda s: queries.items_of(s, MINE, ["i"]))) == 9


def test_a_vanished_server_is_shown_as_terminated_with_what_it_was(
    openstack: OpenStack, me: Caller
) -> None:
    image = openstack.image()
    server = openstack.server(key_name="mykey", image={"id": image["id"]})
    [before] = instances_of(me(describe_instances))
    me(create_tags, Resources=[before["InstanceId"]], Tags=[{"Key": "Name", "Value": "x"}])
    openstack.servers.clear()
    for request in ({}, {"InstanceIds": [before["InstanceId"]]}, {}):
        [after] = instances_of(me(describe_instances, **request))
        assert after["State"] == {"Code": 48, "Name": "terminated"}
        same = ("InstanceId", "ImageId", "InstanceType", "KeyName", "LaunchTime", "AmiLaunchIndex")
        assert {name: after[name] for name in same} == {name: before[name] for name in same}
        assert after["Tags"] == [{"Key": "Name", "Value": "x"}]
        assert "PrivateIpAddress" not in after
    assert server["id"] not in str(me(describe_instances))


def test_a_tombstone_goes_after_its_time_with_its_tags(
    openstack: OpenStack, me: Caller, ec2_db: Database
) -> None:
    openstack.server()
    [instance_id] = _ids(me(describe_instances))
    me(create_tags, Resources=[instance_id], Tags=[{"Key": "k", "Value": "v"}])
    openstack.servers.clear()
    me(describe_instances)
    with ec2_db.engine.begin() as connection:
        connection.execute(sa.text("UPDATE items SET deleted_at = deleted_at - 3500"))
    assert _ids(me(describe_instances)) == [instance_id]
    with ec2_db.engine.begin() as connection:
        connection.execute(sa.text("UPDATE items SET deleted_at = deleted_at - 200"))
    with pytest.raises(EC2Error) as caught:
        me(describe_instances, InstanceIds=[instance_id])
    assert _code(caught) == "InvalidInstanceID.NotFound"
    assert _ids(me(describe_instances)) == []
    assert me(describe_tags)["Tags"] == []
    assert ec2_db.read(lambda s: queries.items_of(s, MINE, ["i"])) == []


def test_a_server_that_comes_back_has_its_old_id(openstack: OpenStack, me: Caller) -> None:
    server = openstack.server()
    [instance_id] = _ids(me(describe_instances))
    openstack.servers.clear()
    me(describe_instances)
    openstack.servers[server["id"]] = server
    [instance] = instances_of(me(describe_instances))
    assert (instance["InstanceId"], instance["State"]["Name"]) == (instance_id, "running")
    [item] = me.db.read(lambda s: queries.items_of(s, MINE, ["i"]))
    assert item.dead_for is None


def test_without_tombstones_a_vanished_instance_is_gone_at_once(
    openstack: OpenStack, me: Caller, tmp_path: Any
) -> None:
    plain = Caller(me.cloud, me.db, me.token, tmp_path, "terminated_instances_seconds = 0")
    openstack.server()
    [instance_id] = _ids(plain(describe_instances))
    openstack.servers.clear()
    with pytest.raises(EC2Error) as caught:
        plain(describe_instances, InstanceIds=[instance_id])
    assert _code(caught) == "InvalidInstanceID.NotFound"
    assert plain.db.read(lambda s: queries.items_of(s, MINE, ["i"])) == []


@pytest.mark.parametrize("status", [500, 400, 401, 403, 404])
def test_a_second_page_that_fails_deletes_nothing(
    openstack: OpenStack, me: Caller, status: int
) -> None:
    for _ in range(5):
        openstack.server()
    before = _ids(me(describe_instances))
    openstack.page = 2
    assert _ids(me(describe_instances)) == before
    openstack.fail = {r"servers/detail.*marker=": status}
    with pytest.raises(TrimaranError):
        me(describe_instances)
    openstack.fail = {}
    assert _ids(me(describe_instances)) == before
    states = {each["State"]["Name"] for each in instances_of(me(describe_instances))}
    assert states == {"running"}


@pytest.mark.parametrize("path", ["servers/detail", "security-groups", "volumes/detail"])
def test_a_listing_that_fails_fails_the_describe(
    openstack: OpenStack, me: Caller, path: str
) -> None:
    openstack.server()
    before = _ids(me(describe_instances))
    openstack.servers.clear()
    openstack.fail = {path: 500}
    with pytest.raises(Unavailable):
        me(describe_instances)
    items = me.db.read(lambda s: queries.items_of(s, MINE, ["i"]))
    assert [(item.id, item.dead_for) for item in items] == [(before[0], None)]


@pytest.mark.parametrize("vanish", [1, 6])
def test_a_listing_without_servers_that_exist_buries_nothing(
    openstack: OpenStack, me: Caller, vanish: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A cell is down: Nova leaves its servers out of a filtered listing, but still knows them."""
    servers = [openstack.server() for _ in range(vanish)]
    before = _ids(me(describe_instances))
    openstack.blind = {server["id"] for server in servers}
    with pytest.raises(Unavailable):
        me(describe_instances)
    assert "cell" in caplog.text
    openstack.blind = set()
    assert _ids(me(describe_instances)) == before
    items = me.db.read(lambda s: queries.items_of(s, MINE, ["i"]))
    assert all(item.dead_for is None for item in items)


def test_a_service_user_without_rights_is_our_fault_and_deletes_nothing(
    openstack: OpenStack, me: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    openstack.server()
    before = _ids(me(describe_instances))
    openstack.fail = {"servers/detail": 403}
    with pytest.raises(Unavailable):
        me(describe_instances)
    assert "role admin" in caplog.text
    openstack.fail = {}
    assert _ids(me(describe_instances)) == before


def test_rows_of_another_project_are_refused(openstack: OpenStack, me: Caller) -> None:
    """Nova ignored the filter: nothing of it may be shown, or taken for the truth."""
    openstack.server()
    openstack.server(THEIRS)
    before = _ids(me(describe_instances))
    assert len(before) == 1
    openstack.filters = False
    with pytest.raises(Unavailable):
        me(describe_instances)
    openstack.filters = True
    assert _ids(me(describe_instances)) == before


def test_a_server_of_a_down_cell_is_no_lie(openstack: OpenStack, me: Caller) -> None:
    server = openstack.server()
    [instance_id] = _ids(me(describe_instances))
    whole = dict(server)
    server.clear()
    server.update(id=whole["id"], status="UNKNOWN", tenant_id=MINE, created=whole["created"])
    with pytest.raises(Unavailable):
        me(describe_instances, InstanceIds=[instance_id])


def test_projects_do_not_see_each_other(openstack: OpenStack, me: Caller, them: Caller) -> None:
    openstack.server()
    openstack.server(THEIRS)
    [mine] = _ids(me(describe_instances))
    [theirs] = _ids(them(describe_instances))
    assert mine != theirs
    for request in ({"InstanceIds": [mine]}, {"InstanceIds": [theirs, mine]}):
        with pytest.raises(EC2Error) as caught:
            them(describe_instances, **request)
        assert _code(caught) == "InvalidInstanceID.NotFound"
        assert theirs not in caught.value.message
    me(create_tags, Resources=[mine], Tags=[{"Key": "secret", "Value": "v"}])
    assert them(describe_tags)["Tags"] == []
    assert "Tags" not in instances_of(them(describe_instances))[0]
    # An image id that both know carries each project's own tags only.
    openstack.image()
    [image] = them(describe_images)["Images"]
    them(create_tags, Resources=[image["ImageId"]], Tags=[{"Key": "theirs", "Value": "v"}])
    [same] = me(describe_images)["Images"]
    assert same["ImageId"] == image["ImageId"]
    assert "Tags" not in same


def test_an_object_made_while_the_listing_ran_gets_the_id_it_was_made_for(
    openstack: OpenStack, me: Caller
) -> None:
    """Items are read, then a launch stores an item and creates a server, then Nova lists it."""
    me(describe_instances)
    made: list[str] = []

    def launch(method: str, path: str) -> None:
        if path.endswith("servers/detail") and not made:
            made.append("i-00c0ffee")
            new = queries.NewItem("i", None, MINE, {"stage": "launching"}, id=made[0])
            done = threading.Thread(
                target=lambda: me.db.write(lambda s: queries.add_items(s, [new], ids.mint))
            )
            done.start()
            done.join(30)
            openstack.server(name=made[0])

    openstack.before = launch
    assert _ids(me(describe_instances)) == made
    [item] = me.db.read(lambda s: queries.items_of(s, MINE, ["i"]))
    assert item.os_id in openstack.servers
