"""Security groups: made, shown, named and deleted as EC2 does it, whatever Neutron does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.ec2_deaths import Death, Deaths, dying, run_all
from tests.support.ec2_groups import Groups
from tests.support.ec2_jobs import finish, jobs_of
from tests.support.ec2_openstack import MINE, NEUTRON, THEIRS, Caller, code_of
from trimaran.cloud.network import Network
from trimaran.db import Database
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids, journal
from trimaran.ec2.kinds.security_groups import security_group_create
from trimaran.ec2.kinds.security_groups.security_group import (
    delete_security_group,
    describe_security_groups,
    get_security_groups_for_vpc,
)
from trimaran.ec2.kinds.security_groups.security_group_authorize import (
    authorize_security_group_ingress,
)
from trimaran.ec2.kinds.security_groups.security_group_create import create_security_group
from trimaran.ec2.kinds.security_groups.security_group_default import DESCRIPTION
from trimaran.ec2.kinds.security_groups.security_group_lookup import groups_by
from trimaran.ec2.kinds.security_groups.security_group_revoke import revoke_security_group_ingress
from trimaran.ec2.kinds.tag import describe_tags
from trimaran.ec2.protocol.errors import EC2Error
from trimaran.errors import Unavailable
from trimaran.identity import count_calls

CLOUD = Groups

VPC, OTHER = "vpc-0000000a", "vpc-0000000b"
DEFAULT = "sg-0000000a"


@pytest.fixture
def vpcs(me: Caller, openstack: Groups) -> None:
    """Two VPCs, as the database knows them, with their default groups."""
    for vpc_id in (VPC, OTHER):
        put_vpc(me, vpc_id)
        group = openstack.group(vpc_id, description=DESCRIPTION)
        new = NewItem("sg", group["id"], MINE, vpc_id=vpc_id, id=ids.derive(vpc_id, "sg"))
        _store(me, new)


def _store(me: Caller, new: NewItem) -> None:
    me.db.write(lambda s: queries.add_items(s, [new], ids.mint))


def put_vpc(me: Caller, vpc_id: str, **data: Any) -> None:
    data = {"cidr_block": "10.0.0.0/16", "is_default": False} | data
    _store(me, NewItem("vpc", f"router-{vpc_id}", MINE, data, id=vpc_id))


def shown(me: Caller, **request: Any) -> list[dict[str, Any]]:
    return list(me(describe_security_groups, **request)["SecurityGroups"])


def items(me: Caller) -> list[Item]:
    return me.db.read(lambda s: queries.items_of(s, MINE, ["sg"]))


def create(me: Caller, name: str = "web", **request: Any) -> str:
    request = {"GroupName": name, "Description": "of a test", "VpcId": VPC} | request
    return str(me(create_security_group, **request)["GroupId"])


# -- create --------------------------------------------------------------------


def test_a_group_is_made(openstack: Groups, me: Caller, vpcs: None) -> None:
    tags = [{"ResourceType": "security-group", "Tags": [{"Key": "a", "Value": "007"}]}]
    answer = me(
        create_security_group,
        GroupName="web",
        Description="of a test",
        VpcId=VPC,
        TagSpecifications=tags,
    )
    group_id = answer["GroupId"]
    assert ids.is_id(group_id, ["sg"])
    assert answer["Tags"] == [{"Key": "a", "Value": "007"}]
    assert answer["SecurityGroupArn"] == f"arn:aws:ec2:RegionOne:{MINE}:security-group/{group_id}"
    made = openstack.named("web")
    assert (made["description"], made["project_id"]) == ("of a test", MINE)
    [group] = shown(me, GroupIds=[group_id])
    everywhere = {"IpProtocol": "-1", "UserIdGroupPairs": [], "PrefixListIds": []}
    assert group == {
        "GroupId": group_id,
        "GroupName": "web",
        "Description": "of a test",
        "OwnerId": MINE,
        "VpcId": VPC,
        "SecurityGroupArn": answer["SecurityGroupArn"],
        "IpPermissions": [],
        "IpPermissionsEgress": [
            {
                **everywhere,
                "IpRanges": [{"CidrIp": "0.0.0.0/0"}],
                "Ipv6Ranges": [{"CidrIpv6": "::/0"}],
            }
        ],
        "Tags": [{"Key": "a", "Value": "007"}],
    }
    assert not [job for job in jobs_of(me.db, journal.GROUP) if job.state in ("ready", "running")]


def test_a_dry_run_makes_nothing(openstack: Groups, me: Caller, vpcs: None) -> None:
    before = len(openstack.groups)
    assert (
        code_of(me, create_security_group, GroupName="web", Description="x", VpcId=VPC, DryRun=True)
        == "DryRunOperation"
    )
    assert len(openstack.groups) == before
    assert jobs_of(me.db, journal.GROUP) == []


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"GroupName": "default"}, "InvalidParameterValue"),
        ({"GroupName": "sg-0000beef"}, "InvalidParameterValue"),
        ({"GroupName": VPC}, "InvalidParameterValue"),
        ({"GroupName": 'name%"'}, "ValidationError"),
        ({"Description": "ü"}, "ValidationError"),
        ({"GroupName": "  "}, "ValidationError"),
        ({"GroupName": "x" * 256}, "ValidationError"),
        ({"GroupName": "a\nb"}, "ValidationError"),
        ({"VpcId": "vpc-0000ffff"}, "InvalidVpcID.NotFound"),
        ({"VpcId": "subnet-0000ffff"}, "InvalidParameterValue"),
        ({"TagSpecifications": [{"ResourceType": "vpc"}]}, "InvalidParameterValue"),
    ],
)
def test_wrong_groups(
    openstack: Groups, me: Caller, vpcs: None, request_: dict[str, Any], code: str
) -> None:
    before = len(openstack.groups)
    request = {"GroupName": "web", "Description": "x", "VpcId": VPC} | request_
    assert code_of(me, create_security_group, **request) == code
    assert len(openstack.groups) == before


def test_names_are_unique_in_a_vpc(openstack: Groups, me: Caller, vpcs: None) -> None:
    create(me)
    wrong = {"GroupName": "web", "Description": "x", "VpcId": VPC}
    assert code_of(me, create_security_group, **wrong) == "InvalidGroup.Duplicate"
    create(me, VpcId=OTHER)
    create(me, "Web")
    # A group renamed in Neutron has its new name, and its old one is free.
    openstack.named("Web")["name"] = "other"
    create(me, "Web")
    assert (
        code_of(me, create_security_group, GroupName="other", Description="x", VpcId=VPC)
        == "InvalidGroup.Duplicate"
    )


def test_of_two_equal_groups_at_once_one_is_made(
    openstack: Groups, me: Caller, vpcs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one comes while the first is made, and after the first has looked."""
    codes: list[str] = []

    def during(method: str, path: str) -> None:
        if method == "POST":
            openstack.before = lambda method, path: None
            codes.append(
                code_of(me, create_security_group, GroupName="web", Description="x", VpcId=VPC)
            )

    openstack.before = during
    create(me)
    reserve = security_group_create._reserve

    def late(*args: Any) -> Any:
        monkeypatch.setattr(security_group_create, "_reserve", reserve)
        create(me, "api")
        return reserve(*args)

    monkeypatch.setattr(security_group_create, "_reserve", late)
    codes.append(code_of(me, create_security_group, GroupName="api", Description="x", VpcId=VPC))
    assert codes == ["InvalidGroup.Duplicate"] * 2
    assert sorted(row["name"] for row in openstack.groups) == ["api", VPC, OTHER, "web"]


def test_a_full_quota(openstack: Groups, me: Caller, vpcs: None) -> None:
    openstack.most_groups = 2
    answer = code_of(me, create_security_group, GroupName="web", Description="x", VpcId=VPC)
    assert answer == "ResourceLimitExceeded"
    assert len(items(me)) == 2
    openstack.most_groups = 3
    create(me)


def test_no_vpc_named(openstack: Groups, me: Caller, vpcs: None) -> None:
    """EC2-Classic: a group of no VPC.  Otherwise: of the default VPC."""
    group_id = create(me, VpcId=None)
    assert "VpcId" not in shown(me, GroupIds=[group_id])[0]
    assert [row["GroupId"] for row in shown(me, GroupNames=["web"])] == [group_id]
    assert code_of(me, create_security_group, GroupName="default", Description="x") == (
        "InvalidGroup.Reserved"
    )
    assert create(me, 'name%"', VpcId=None)


def test_in_vpc_only_mode_names_are_those_of_the_default_vpc(
    openstack: Groups, me: Caller, vpcs: None
) -> None:
    me.conf.set_override("disable_ec2_classic", True)
    put_vpc(me, "vpc-0000000c", is_default=True)
    group_id = create(me, VpcId=None)
    assert shown(me, GroupIds=[group_id])[0]["VpcId"] == "vpc-0000000c"
    create(me, VpcId=VPC)
    assert [row["GroupId"] for row in shown(me, GroupNames=["web"])] == [group_id]
    found = shown(me, GroupNames=["default", "web"])
    assert {row["GroupId"] for row in found} == {"sg-0000000c", group_id}
    assert code_of(me, describe_security_groups, GroupNames=["api"]) == "InvalidGroup.NotFound"
    assert me(delete_security_group, GroupName="web")["GroupId"] == group_id


# -- what a crash or a lost answer leaves --------------------------------------


def test_no_answer_but_made(openstack: Groups, me: Caller, vpcs: None) -> None:
    openstack.quiet = ["POST .*/security-groups$"]
    group_id = create(me)
    assert shown(me, GroupIds=[group_id])[0]["GroupName"] == "web"
    assert openstack.named("web")


def test_no_answer_and_not_made(openstack: Groups, me: Caller, vpcs: None) -> None:
    def before(method: str, path: str) -> None:
        openstack.fail = {"/security-groups$": 503} if method == "POST" else {}

    openstack.before = before
    with pytest.raises(Unavailable):
        create(me)
    assert len(items(me)) == 2
    openstack.before, openstack.fail = (lambda method, path: None), {}
    # It comes when nobody waits for it any more.
    [job] = jobs_of(me.db, journal.GROUP)
    openstack.group(job.payload["group"])
    group_id = create(me)
    assert {row["GroupId"] for row in shown(me)} == {DEFAULT, "sg-0000000b", group_id}
    finish(me, journal.GROUP)
    assert {row["name"] for row in openstack.groups} == {VPC, OTHER, "web"}
    assert shown(me, GroupIds=[group_id])[0]["GroupName"] == "web"


@pytest.mark.parametrize("at", range(10))
def test_a_group_whose_process_died_is_there_or_not(
    openstack: Groups, me: Caller, vpcs: None, at: int
) -> None:
    calls = [(Network, "create_security_group"), (Network, "update_security_group")]
    deaths = Deaths(at)
    with dying(deaths, *calls, (Database, "write")), pytest.raises(Death):
        create(me)
    # Nobody was told of it, so nobody sees it until it is decided.
    if at < 9:
        assert {row["GroupName"] for row in shown(me)} == {"default"}, deaths.moment
    run_all(me)
    made = [row["GroupName"] for row in shown(me) if row["GroupName"] != "default"]
    assert sorted(row["name"] for row in openstack.groups) == sorted([VPC, OTHER, *made])
    assert len(items(me)) == 2 + len(made)
    assert made == (["web"] if at == 9 else [])
    create(me, "api" if made else "web")


def test_a_group_whose_name_could_not_be_set_is_undone(
    openstack: Groups, me: Caller, vpcs: None
) -> None:
    def before(method: str, path: str) -> None:
        openstack.fail = {"/security-groups/": 503} if method == "PUT" else {}

    openstack.before = before
    with pytest.raises(Unavailable):
        create(me)
    openstack.before, openstack.fail = (lambda method, path: None), {}
    # The client may try again at once.
    group_id = create(me)
    finish(me, journal.GROUP)
    assert {row["name"] for row in openstack.groups} == {VPC, OTHER, "web"}
    assert {item.id for item in items(me)} == {DEFAULT, "sg-0000000b", group_id}


def test_a_group_in_the_making_of_another_process_gets_no_second_item(
    openstack: Groups, me: Caller, vpcs: None
) -> None:
    seen: list[set[str]] = []

    def before(method: str, path: str) -> None:
        if method == "PUT":
            openstack.before = lambda method, path: None
            seen.append({row["GroupId"] for row in shown(me)})

    openstack.before = before
    group_id = create(me)
    assert seen == [{DEFAULT, "sg-0000000b"}]
    assert len(items(me)) == 3
    assert shown(me, GroupIds=[group_id])[0]["VpcId"] == VPC


def test_a_default_group_in_the_making_gets_no_item_of_a_describe(
    openstack: Groups, me: Caller, vpcs: None
) -> None:
    put_vpc(me, "vpc-0000000d", stage="making")
    openstack.group("vpc-0000000d")
    openstack.group("vpc-0000000e")
    assert {row["GroupId"] for row in shown(me)} == {DEFAULT, "sg-0000000b"}
    assert len(items(me)) == 2


# -- describe ------------------------------------------------------------------


def test_groups_made_in_neutron_are_shown(openstack: Groups, me: Caller, vpcs: None) -> None:
    mine = openstack.group("made by hand", description="ü <&>")
    openstack.group("not mine", THEIRS)
    [row] = [row for row in shown(me) if row["GroupName"] == "made by hand"]
    assert "VpcId" not in row
    assert row["Description"] == "ü <&>"
    assert shown(me) == shown(me)
    openstack.groups.remove(mine)
    assert row["GroupId"] not in {each["GroupId"] for each in shown(me)}
    gone = code_of(me, describe_security_groups, GroupIds=[row["GroupId"]])
    assert gone == "InvalidGroup.NotFound"


def test_default_groups_are_called_default_and_repaired(
    openstack: Groups, me: Caller, vpcs: None
) -> None:
    by_id = {row["GroupId"]: row for row in shown(me)}
    assert by_id[DEFAULT]["GroupName"] == "default"
    assert by_id[DEFAULT]["VpcId"] == VPC
    openstack.groups.remove(openstack.named(VPC))
    again = {row["GroupId"]: row for row in shown(me)}
    assert again == by_id
    made = openstack.named(VPC)
    assert (made["description"], made["project_id"]) == (DESCRIPTION, MINE)
    assert shown(me) == shown(me)


def test_a_default_group_that_is_there_is_taken(openstack: Groups, me: Caller) -> None:
    put_vpc(me, VPC)
    made = openstack.group(VPC, description=DESCRIPTION)
    assert [row["GroupId"] for row in shown(me)] == [DEFAULT]
    assert [item.os_id for item in items(me)] == [made["id"]]


def test_many_repairs_at_once_make_one_group(openstack: Groups, me: Caller) -> None:
    put_vpc(me, VPC)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: shown(me), range(4)))
    assert {row["GroupId"] for answer in answers for row in answer} == {DEFAULT}
    assert len(openstack.groups) == 1


def test_a_full_quota_does_not_hide_the_other_groups(
    openstack: Groups, me: Caller, vpcs: None
) -> None:
    openstack.groups.remove(openstack.named(VPC))
    openstack.most_groups = 1
    assert [row["GroupId"] for row in shown(me)] == ["sg-0000000b"]


def test_who_only_looks_repairs_nothing(openstack: Groups, me: Caller, vpcs: None) -> None:
    openstack.groups.remove(openstack.named(VPC))
    with pytest.raises(EC2Error):
        me(describe_security_groups, DryRun=True)

    def before(method: str, path: str) -> None:
        openstack.fail = {"/security-groups$": 403} if method == "POST" else {}

    openstack.before = before
    assert [row["GroupId"] for row in shown(me)] == ["sg-0000000b"]
    assert len(openstack.groups) == 1


def test_a_listing_that_fails_changes_nothing(openstack: Groups, me: Caller, vpcs: None) -> None:
    openstack.fail = {"security-groups": 500}
    with pytest.raises(Unavailable):
        shown(me)
    assert len(items(me)) == 2


def test_filters(openstack: Groups, me: Caller, vpcs: None) -> None:
    group_id = create(me)
    group = openstack.named("web")
    openstack.rule(
        group, protocol="tcp", port_range_min=22, port_range_max=22, remote_ip_prefix="10.0.0.0/8"
    )
    openstack.rule(group, remote_group_id=openstack.named(VPC)["id"])
    openstack.rule(group, ethertype="IPv6", protocol="udp", remote_ip_prefix="2001:db8::/32")

    def found(**filters: str) -> set[str]:
        wanted = [
            {"Name": name.replace("__", ".").replace("_", "-"), "Values": [value]}
            for name, value in filters.items()
        ]
        return {row["GroupId"] for row in shown(me, Filters=wanted)}

    everything = {group_id, DEFAULT, "sg-0000000b"}
    assert found(vpc_id=VPC) == {group_id, DEFAULT}
    assert found(group_name="default") == {DEFAULT, "sg-0000000b"}
    assert found(group_name="default", vpc_id=VPC) == {DEFAULT}
    assert found(group_id="sg-*") == everything
    assert found(description="of a te?t") == {group_id}
    assert found(owner_id=MINE) == everything
    assert found(ip_permission__cidr="10.0.0.0/8") == {group_id}
    assert found(ip_permission__from_port="22") == {group_id}
    assert found(ip_permission__to_port="23") == set()
    assert found(ip_permission__protocol="udp") == {group_id}
    assert found(ip_permission__ipv6_cidr="2001:db8::/32") == {group_id}
    assert found(ip_permission__group_id=DEFAULT) == {group_id}
    assert found(ip_permission__group_name="default") == {group_id}
    assert found(ip_permission__user_id=MINE) == {group_id}
    assert found(egress__ip_permission__cidr="0.0.0.0/0") == everything
    assert found(egress__ip_permission__protocol="tcp") == set()
    assert found(tag_key="x") == set()
    wrong = [{"Name": "fake", "Values": ["x"]}]
    assert code_of(me, describe_security_groups, Filters=wrong) == "InvalidParameterValue"


def test_pages(openstack: Groups, me: Caller, vpcs: None) -> None:
    for number in range(5):
        openstack.group(f"g{number}")
    first = me(describe_security_groups, MaxResults=5)
    rest = me(describe_security_groups, MaxResults=5, NextToken=first["NextToken"])
    assert (len(first["SecurityGroups"]), len(rest["SecurityGroups"])) == (5, 2)
    assert rest["NextToken"] is None
    wrong = {"GroupIds": [DEFAULT], "MaxResults": 5}
    assert code_of(me, describe_security_groups, **wrong) == "InvalidParameterCombination"


def test_calls_do_not_grow_with_the_groups(openstack: Groups, me: Caller, vpcs: None) -> None:
    def cost() -> tuple[int, int]:
        with count_calls() as calls:
            shown(me)
        return calls.total, len(openstack.calls(NEUTRON))

    shown(me)
    first, before = cost()
    for number in range(200):
        group = openstack.group(f"g{number}")
        openstack.rule(group, remote_group_id=openstack.named(VPC)["id"])
    shown(me)
    again, after = cost()
    assert first == again == 1
    assert after - before == 2, "one listing a describe"
    assert len(shown(me)) == 202


def test_groups_for_a_vpc(openstack: Groups, me: Caller, vpcs: None) -> None:
    group_id = create(me)
    rows = me(get_security_groups_for_vpc, VpcId=VPC)["SecurityGroupForVpcs"]
    assert {row["GroupId"] for row in rows} == {DEFAULT, group_id}
    assert {row["PrimaryVpcId"] for row in rows} == {VPC}
    assert code_of(me, get_security_groups_for_vpc, VpcId="vpc-00000099") == (
        "InvalidVpcID.NotFound"
    )


def test_groups_of_a_launch(openstack: Groups, me: Caller, vpcs: None) -> None:
    group_id = create(me)
    context = me.context()
    assert [pair.item.id for pair in groups_by(context, [], [], VPC)] == [DEFAULT]
    assert [pair.item.id for pair in groups_by(context, [group_id], [], VPC)] == [group_id]
    assert [pair.item.id for pair in groups_by(context, [], ["web"], VPC)] == [group_id]
    both = groups_by(context, [group_id], ["web", "default"], VPC)
    assert [pair.item.id for pair in both] == [group_id, DEFAULT]
    wrong: list[tuple[list[str], list[str]]] = [
        (["sg-00000099"], []),
        ([], ["api"]),
        (["sg-0000000b"], []),
    ]
    for group_ids, names in wrong:
        with pytest.raises(EC2Error) as caught:
            groups_by(context, group_ids, names, VPC)
        assert caught.value.code == "InvalidGroup.NotFound"


# -- delete --------------------------------------------------------------------


def test_a_group_is_deleted_with_its_tags(openstack: Groups, me: Caller, vpcs: None) -> None:
    tags = [{"ResourceType": "security-group", "Tags": [{"Key": "a", "Value": "b"}]}]
    group_id = create(me, TagSpecifications=tags)
    assert code_of(me, delete_security_group, GroupId=group_id, DryRun=True) == "DryRunOperation"
    assert me(delete_security_group, GroupId=group_id) == {"Return": True, "GroupId": group_id}
    assert {row["name"] for row in openstack.groups} == {VPC, OTHER}
    assert me(describe_tags)["Tags"] == []
    assert code_of(me, delete_security_group, GroupId=group_id) == "InvalidGroup.NotFound"


def test_what_is_in_use_stays(openstack: Groups, me: Caller, vpcs: None) -> None:
    group_id = create(me)
    group = openstack.named("web")
    openstack.in_use.add(group["id"])
    assert code_of(me, delete_security_group, GroupId=group_id) == "DependencyViolation"
    openstack.in_use.clear()
    naming = openstack.rule(openstack.named(OTHER), remote_group_id=group["id"])
    assert code_of(me, delete_security_group, GroupId=group_id) == "DependencyViolation"
    assert [row["GroupId"] for row in shown(me, GroupIds=[group_id])] == [group_id]
    assert naming in openstack.named(OTHER)["security_group_rules"]
    openstack.named(OTHER)["security_group_rules"].remove(naming)
    openstack.rule(group, remote_group_id=group["id"])
    me(delete_security_group, GroupId=group_id)


def test_groups_that_name_each_other_are_parted_by_their_rules(
    openstack: Groups, me: Caller, vpcs: None
) -> None:
    names = ("a", "b", "c")
    made = [create(me, name) for name in names]
    for group, source in zip(names, (*names[1:], names[0]), strict=True):
        pair = {"GroupId": made[names.index(source)]}
        rule = {"IpProtocol": "-1", "UserIdGroupPairs": [pair]}
        me(
            authorize_security_group_ingress,
            GroupId=made[names.index(group)],
            IpPermissions=[rule],
        )
    for group_id in made:
        assert code_of(me, delete_security_group, GroupId=group_id) == "DependencyViolation"
    assert len(shown(me, GroupIds=made)) == 3
    rule = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": made[1]}]}
    me(revoke_security_group_ingress, GroupId=made[0], IpPermissions=[rule])
    # The chain b, c, a is left: each goes once nobody names it.
    assert code_of(me, delete_security_group, GroupId=made[0]) == "DependencyViolation"
    for group_id in (made[1], made[2], made[0]):
        me(delete_security_group, GroupId=group_id)
    assert {row["name"] for row in openstack.groups} == {VPC, OTHER}


def test_the_default_group_of_a_vanished_vpc_can_be_deleted(
    openstack: Groups, me: Caller, vpcs: None
) -> None:
    assert code_of(me, delete_security_group, GroupId=DEFAULT) == "CannotDelete"
    me.db.write(lambda s: queries.delete_items(s, MINE, [VPC]))
    assert DEFAULT in [row["GroupId"] for row in shown(me)]
    me(delete_security_group, GroupId=DEFAULT)
    assert DEFAULT not in [row["GroupId"] for row in shown(me)]
    assert VPC not in [group["name"] for group in openstack.groups]


def test_the_projects_own_default_group_cannot_be_deleted(
    openstack: Groups, me: Caller, vpcs: None
) -> None:
    own = openstack.group("default")
    [group_id] = {row["GroupId"] for row in shown(me)} - {DEFAULT, "sg-0000000b"}
    assert code_of(me, delete_security_group, GroupId=group_id) == "CannotDelete"
    assert code_of(me, delete_security_group, GroupName="default") == "CannotDelete"
    assert own in openstack.groups
    # Renamed in Neutron it is a group like any other.
    own["name"] = "plain"
    me(delete_security_group, GroupId=group_id)
    assert own not in openstack.groups


def test_what_cannot_be_deleted(openstack: Groups, me: Caller, them: Caller, vpcs: None) -> None:
    assert code_of(me, delete_security_group, GroupId=DEFAULT) == "CannotDelete"
    assert code_of(me, delete_security_group) == "MissingParameter"
    assert code_of(me, delete_security_group, GroupName="nobody") == "InvalidGroup.NotFound"
    assert code_of(me, delete_security_group, GroupId="i-00000001") == "InvalidParameterValue"
    group_id = create(me)
    assert code_of(them, delete_security_group, GroupId=group_id) == "InvalidGroup.NotFound"
    openstack.fail = {"DELETE": 1}
    openstack.before = lambda method, path: openstack.fail.update(
        {"security-groups/": 500} if method == "DELETE" else {}
    )
    with pytest.raises(Unavailable):
        me(delete_security_group, GroupId=group_id)
    openstack.fail, openstack.before = {}, lambda method, path: None
    assert shown(me, GroupIds=[group_id])
