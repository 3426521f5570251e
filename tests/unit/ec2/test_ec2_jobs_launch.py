"""A launch whose process dies is finished, or undone, by another one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.ec2_jobs import finish, jobs_of
from tests.support.ec2_openstack import MINE, Caller, OpenStack, instances_of
from trimaran.db.models import work as states
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_tags as tag_queries
from trimaran.db.queries import ec2_tokens as token_queries
from trimaran.db.queries.ec2 import Item
from trimaran.ec2 import journal
from trimaran.ec2.kinds.images.image import describe_images
from trimaran.ec2.kinds.instances import instance_launch
from trimaran.ec2.kinds.instances.instance import describe_instances, terminate_instances
from trimaran.ec2.kinds.instances.instance_launch import run_instances
from trimaran.errors import Unavailable

TAGS = [{"ResourceType": "instance", "Tags": [{"Key": "a", "Value": "b"}]}]


@pytest.fixture
def ami(openstack: OpenStack, me: Caller) -> str:
    openstack.image()
    return str(me(describe_images)["Images"][0]["ImageId"])


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes the process die when it reaches a function."""

    def die_in(function: str) -> None:
        def die(*args: Any, **kwargs: Any) -> Any:
            raise KeyboardInterrupt

        monkeypatch.setattr(instance_launch, function, die)

    return die_in


def _run(me: Caller, ami: str, count: int = 1, **request: Any) -> dict[str, Any]:
    request = {"MinCount": count, "MaxCount": count, **request}
    answer: dict[str, Any] = me(run_instances, ImageId=ami, InstanceType="m1.small", **request)
    return answer


def _items(me: Caller) -> list[Item]:
    return me.db.read(lambda s: queries.items_of(s, MINE, ["i"]))


def _states(me: Caller) -> list[str]:
    return [each["State"]["Name"] for each in instances_of(me(describe_instances))]


def test_a_launch_that_went_well_leaves_nothing_to_do(
    openstack: OpenStack, me: Caller, ami: str
) -> None:
    _run(me, ami)
    [job] = jobs_of(me.db, journal.LAUNCH)
    assert job.state == states.CANCELLED
    openstack.refuse = lambda body: 503
    with pytest.raises(Unavailable):
        _run(me, ami)
    assert [job.state for job in jobs_of(me.db, journal.LAUNCH)] == [states.CANCELLED] * 2


def test_death_after_the_reservation_undoes_the_launch(
    openstack: OpenStack, me: Caller, ami: str, dying: Any
) -> None:
    dying("_boot")
    with pytest.raises(KeyboardInterrupt):
        _run(me, ami, 2, ClientToken="tok", TagSpecifications=TAGS)
    assert _states(me) == ["pending", "pending"]
    [job] = finish(me, journal.LAUNCH)
    assert job.state == states.DONE
    assert _items(me) == []
    assert me.db.read(lambda s: tag_queries.tags_of(s, MINE)) == []
    # The client's retry is a new launch.
    found = me.db.read(lambda s: token_queries.find_token(s, MINE, "RunInstances", "tok"))
    assert found is None


def test_death_after_nova_completes_the_launch(
    openstack: OpenStack, me: Caller, ami: str, dying: Any
) -> None:
    dying("_settle")
    with pytest.raises(KeyboardInterrupt):
        _run(me, ami, 2, ClientToken="tok", TagSpecifications=TAGS)
    finish(me, journal.LAUNCH)
    assert {item.os_id for item in _items(me)} == set(openstack.servers)
    assert all("stage" not in item.data for item in _items(me))
    shown = instances_of(me(describe_instances))
    assert [each["Tags"] for each in shown] == [[{"Key": "a", "Value": "b"}]] * 2


def test_death_between_two_servers_undoes_what_is_too_little(
    openstack: OpenStack, me: Caller, ami: str, dying: Any
) -> None:
    made: list[str] = []

    def second_kills(body: dict[str, Any]) -> int | None:
        made.append(body["name"])
        if len(made) > 1:
            raise KeyboardInterrupt
        return None

    openstack.refuse = second_kills
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(instance_launch, "AT_ONCE", 1)
        with pytest.raises(KeyboardInterrupt):
            _run(me, ami, 2)
    assert len(openstack.servers) == 1
    finish(me, journal.LAUNCH)
    assert openstack.servers == {}
    assert _states(me) == []
    assert _items(me) == []


def test_with_enough_servers_the_missing_ones_are_dropped(
    openstack: OpenStack, me: Caller, ami: str, dying: Any
) -> None:
    refused: list[str] = []

    def refuse_one(body: dict[str, Any]) -> int | None:
        if not refused or body["name"] in refused:
            refused.append(body["name"])
            return 409
        return None

    openstack.refuse = refuse_one
    dying("_settle")
    with pytest.raises(KeyboardInterrupt):
        _run(me, ami, MinCount=1, MaxCount=3)
    finish(me, journal.LAUNCH)
    assert {item.id for item in _items(me)}.isdisjoint(refused)
    assert _states(me) == ["running", "running"]


def test_death_in_the_undoing_still_deletes_the_servers(
    openstack: OpenStack, me: Caller, ami: str, dying: Any
) -> None:
    refused: list[str] = []

    def second(body: dict[str, Any]) -> int | None:
        refused.append(body["name"])
        return 409 if len(refused) == 2 else None

    openstack.refuse = second
    dying("delete_servers")
    with pytest.raises(KeyboardInterrupt):
        _run(me, ami, 2)
    assert len(openstack.servers) == 1
    assert _states(me) == []
    finish(me, journal.LAUNCH)
    assert openstack.servers == {}


def test_the_slow_process_that_was_taken_over_takes_its_servers_back(
    openstack: OpenStack, me: Caller, ami: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    boot = instance_launch._boot

    def slow(*args: Any) -> Any:
        # The patience of all others ends before Nova is asked.
        finish(me, journal.LAUNCH)
        return boot(*args)

    monkeypatch.setattr(instance_launch, "_boot", slow)
    with pytest.raises(Unavailable):
        _run(me, ami)
    assert len(openstack.creates) == 1
    assert openstack.servers == {}
    assert _items(me) == []


def test_an_instance_without_server_can_be_terminated(
    openstack: OpenStack, me: Caller, ami: str, dying: Any
) -> None:
    dying("_settle")
    with pytest.raises(KeyboardInterrupt):
        _run(me, ami, 2)
    first, second = sorted(item.id for item in _items(me))
    # Nova does not show them yet.
    hidden, openstack.servers = openstack.servers, {}
    [change] = me(terminate_instances, InstanceIds=[first])["TerminatingInstances"]
    assert (change["PreviousState"]["Name"], change["CurrentState"]["Name"]) == (
        "pending",
        "shutting-down",
    )
    assert _states(me) == ["shutting-down", "pending"]
    openstack.servers = hidden
    finish(me, journal.LAUNCH)
    assert [server["name"] for server in openstack.servers.values()] == [second]
    assert _states(me) == ["terminated", "running"]
    [ended] = [each for each in instances_of(me(describe_instances)) if each["InstanceId"] == first]
    assert ended["StateReason"]["Code"] == "Client.UserInitiatedShutdown"


def test_one_that_never_got_its_server_ends_as_terminated(
    openstack: OpenStack, me: Caller, ami: str, dying: Any
) -> None:
    dying("_boot")
    with pytest.raises(KeyboardInterrupt):
        _run(me, ami)
    [item] = _items(me)
    me(terminate_instances, InstanceIds=[item.id])
    finish(me, journal.LAUNCH)
    assert _states(me) == ["terminated"]


def test_a_termination_during_the_launch_is_carried_out_by_it(
    openstack: OpenStack, me: Caller, ami: str
) -> None:
    def meanwhile(body: dict[str, Any]) -> int | None:
        [item] = _items(me)
        me(terminate_instances, InstanceIds=[item.id])
        openstack.project = MINE  # back from the requests within this one
        return None

    openstack.refuse = meanwhile
    [instance] = _run(me, ami)["Instances"]
    assert instance["State"]["Name"] == "shutting-down"
    assert openstack.servers == {}
    assert _states(me) == ["terminated"]
    [job] = jobs_of(me.db, journal.LAUNCH)
    assert job.state == states.CANCELLED


def test_the_journal_of_one_project_touches_no_other(
    openstack: OpenStack, me: Caller, them: Caller, ami: str, dying: Any
) -> None:
    [theirs] = _run(them, ami)["Instances"]
    dying("_boot")
    with pytest.raises(KeyboardInterrupt):
        _run(me, ami)
    # Somebody names a server of his own like an instance of ours.
    [mine] = _items(me)
    openstack.server("p2", name=mine.id, metadata={"ec2_instance_id": mine.id})
    finish(me, journal.LAUNCH)
    assert len(openstack.servers) == 2
    assert theirs["InstanceId"] in {
        each["InstanceId"] for each in instances_of(them(describe_instances))
    }


def test_volumes_that_nova_makes_get_their_tags(openstack: OpenStack, me: Caller, ami: str) -> None:
    tags = [{"ResourceType": "volume", "Tags": [{"Key": "kind", "Value": "data"}]}]
    mapping = {"DeviceName": "/dev/vdb", "Ebs": {"VolumeSize": 1}}
    _run(me, ami, TagSpecifications=tags, BlockDeviceMappings=[mapping])
    [server] = openstack.servers.values()
    openstack.volume(server, "/dev/vdb")
    finish(me, journal.LAUNCH)
    [tag] = me.db.read(lambda s: tag_queries.tags_of(s, MINE))
    assert (tag.key, tag.value, tag.item_id.split("-")[0]) == ("kind", "data", "vol")
