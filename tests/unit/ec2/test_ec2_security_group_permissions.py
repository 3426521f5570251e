"""Authorize, revoke and modify: all or nothing, every range, ids that last."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.ec2_groups import Groups
from tests.support.ec2_jobs import finish, jobs_of
from tests.support.ec2_openstack import MINE, NEUTRON, THEIRS, Caller, code_of
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import NewItem
from trimaran.ec2 import ids, journal
from trimaran.ec2.kinds.security_groups.security_group import describe_security_groups
from trimaran.ec2.kinds.security_groups.security_group_authorize import (
    authorize_security_group_egress,
    authorize_security_group_ingress,
)
from trimaran.ec2.kinds.security_groups.security_group_modify import modify_security_group_rules
from trimaran.ec2.kinds.security_groups.security_group_revoke import (
    revoke_security_group_egress,
    revoke_security_group_ingress,
)
from trimaran.ec2.kinds.security_groups.security_group_rule import (
    describe_security_group_rules,
    update_security_group_rule_descriptions_egress,
    update_security_group_rule_descriptions_ingress,
)
from trimaran.ec2.kinds.tag import create_tags, describe_tags
from trimaran.errors import Unavailable

CLOUD = Groups

VPC = "vpc-0000000a"
WEB, API, CLASSIC = "sg-00000001", "sg-00000002", "sg-00000003"

Row = dict[str, Any]


@pytest.fixture
def web(me: Caller, openstack: Groups) -> Row:
    """Three groups: two of a VPC and one of none; the first one's Neutron group."""

    def put(name: str, group_id: str, vpc_id: str | None) -> Row:
        group = openstack.group(name)
        new = NewItem("sg", group["id"], MINE, vpc_id=vpc_id, id=group_id)
        me.db.write(lambda s: queries.add_items(s, [new], ids.mint))
        return group

    router = NewItem("vpc", "router", MINE, {"cidr_block": "10.0.0.0/16"}, id=VPC)
    me.db.write(lambda s: queries.add_items(s, [router], ids.mint))
    put(VPC, "sg-0000000a", VPC)
    put("api", API, VPC)
    put("classic", CLASSIC, None)
    return put("web", WEB, VPC)


def tcp(first: int, last: int | None = None, *cidrs: str, **more: Any) -> Row:
    ranges = [{"CidrIp": cidr} for cidr in cidrs or ("0.0.0.0/0",)]
    return {
        "IpProtocol": "tcp",
        "FromPort": first,
        "ToPort": first if last is None else last,
        "IpRanges": ranges,
    } | more


def allow(me: Caller, *permissions: Row, group: str = WEB, **request: Any) -> list[Row]:
    answer = me(
        authorize_security_group_ingress,
        GroupId=group,
        IpPermissions=list(permissions),
        **request,
    )
    return list(answer["SecurityGroupRules"])


def ingress(me: Caller, group: str = WEB) -> list[Row]:
    [row] = me(describe_security_groups, GroupIds=[group])["SecurityGroups"]
    return list(row["IpPermissions"])


def rules(me: Caller, **request: Any) -> list[Row]:
    return list(me(describe_security_group_rules, **request)["SecurityGroupRules"])


def ports(group: Row) -> set[tuple[Any, Any]]:
    rows = [row for row in group["security_group_rules"] if row["direction"] == "ingress"]
    return {(row["port_range_min"], row["port_range_max"]) for row in rows}


# -- authorize -----------------------------------------------------------------


def test_every_range_of_every_permission(openstack: Groups, me: Caller, web: Row) -> None:
    """F34: only the first CIDR or group was applied."""
    made = allow(
        me,
        tcp(22, None, "10.0.0.7/8", "192.0.2.0/24", Ipv6Ranges=[{"CidrIpv6": "2001:DB8::/32"}]),
        tcp(
            80,
            None,
            "0.0.0.0/0",
            UserIdGroupPairs=[
                {"GroupId": API, "Description": "from api"},
                {"GroupName": "web", "UserId": MINE},
            ],
        ),
        {"IpProtocol": "-1", "FromPort": 0, "ToPort": 0, "IpRanges": [{"CidrIp": "1.2.3.4/32"}]},
        {"IpProtocol": "icmp", "FromPort": 8, "ToPort": -1, "IpRanges": [{"CidrIp": "1.1.1.1/32"}]},
    )
    assert len(made) == 8
    assert len(openstack.rules(web)) == 8
    posts = [call for call in openstack.calls(NEUTRON) if call[0] == "POST"]
    assert len(posts) == 1, "one call, whatever the number of rules"
    nothing: Row = {"UserIdGroupPairs": [], "IpRanges": [], "Ipv6Ranges": [], "PrefixListIds": []}
    assert ingress(me) == [
        nothing | {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "1.2.3.4/32"}]},
        nothing
        | {
            "IpProtocol": "icmp",
            "FromPort": 8,
            "ToPort": -1,
            "IpRanges": [{"CidrIp": "1.1.1.1/32"}],
        },
        nothing
        | {
            "IpProtocol": "tcp",
            "FromPort": 22,
            "ToPort": 22,
            "IpRanges": [{"CidrIp": "10.0.0.0/8"}, {"CidrIp": "192.0.2.0/24"}],
            "Ipv6Ranges": [{"CidrIpv6": "2001:db8::/32"}],
        },
        nothing
        | {
            "IpProtocol": "tcp",
            "FromPort": 80,
            "ToPort": 80,
            "IpRanges": [{"CidrIp": "0.0.0.0/0"}],
            "UserIdGroupPairs": sorted(
                [
                    {"GroupId": API, "UserId": MINE, "Description": "from api"},
                    {"GroupId": WEB, "UserId": MINE, "GroupName": "web"},
                ],
                key=lambda row: openstack.named("api" if row["GroupId"] == API else "web")["id"],
            ),
        },
    ]


def test_what_an_authorise_answers(openstack: Groups, me: Caller, web: Row) -> None:
    tags = [{"ResourceType": "security-group-rule", "Tags": [{"Key": "a", "Value": "b"}]}]
    [made] = allow(me, tcp(22), TagSpecifications=tags)
    assert ids.is_id(made["SecurityGroupRuleId"], ["sgr"])
    assert len(made["SecurityGroupRuleId"]) == len("sgr-") + 17
    assert made == {
        "SecurityGroupRuleId": made["SecurityGroupRuleId"],
        "SecurityGroupRuleArn": (
            f"arn:aws:ec2:RegionOne:{MINE}:security-group-rule/{made['SecurityGroupRuleId']}"
        ),
        "GroupId": WEB,
        "GroupOwnerId": MINE,
        "IsEgress": False,
        "IpProtocol": "tcp",
        "FromPort": 22,
        "ToPort": 22,
        "CidrIpv4": "0.0.0.0/0",
        "Tags": [{"Key": "a", "Value": "b"}],
    }
    assert rules(me, SecurityGroupRuleIds=[made["SecurityGroupRuleId"]]) == [made]
    pair = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": API}]}
    [other] = allow(me, pair)
    assert other["ReferencedGroupInfo"] == {"GroupId": API, "UserId": MINE, "VpcId": VPC}
    assert (other["FromPort"], other["ToPort"], other["Tags"]) == (-1, -1, [])


def test_ports_are_kept_as_given(openstack: Groups, me: Caller, web: Row) -> None:
    """F36, F37, F71; Neutron has no port 0."""
    wanted = [(1, 255), (0, 65535), (0, 80), (8080, 8080)]
    allow(me, *[tcp(first, last) for first, last in wanted])
    # To Neutron these are there already.
    for first, last in ((1, 65535), (1, 80)):
        request = {"GroupId": WEB, "IpPermissions": [tcp(first, last)]}
        code = code_of(me, authorize_security_group_ingress, **request)
        assert code == "InvalidPermission.Duplicate"
    assert {(row["FromPort"], row["ToPort"]) for row in ingress(me)} == set(wanted)
    assert ports(web) == {(1, 255), (None, None), (1, 80), (8080, 8080)}
    me(
        revoke_security_group_ingress,
        GroupId=WEB,
        IpPermissions=[tcp(first, last) for first, last in wanted],
    )
    assert ingress(me) == []
    assert openstack.rules(web) == []
    assert me.db.read(lambda s: queries.items_of(s, MINE, ["sgr"])) == []


def test_the_flat_parameters(openstack: Groups, me: Caller, web: Row) -> None:
    flat = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "CidrIp": "10.0.0.0/8"}
    me(authorize_security_group_ingress, GroupId=WEB, **flat)
    me(authorize_security_group_ingress, GroupId=WEB, SourceSecurityGroupName="api")
    shown = ingress(me)
    assert [row["IpProtocol"] for row in shown] == ["-1", "tcp"]
    assert shown[0]["UserIdGroupPairs"][0]["GroupId"] == API
    me(revoke_security_group_ingress, GroupId=WEB, **flat)
    me(
        revoke_security_group_ingress,
        GroupId=WEB,
        SourceSecurityGroupName="api",
        SourceSecurityGroupOwnerId=MINE,
    )
    assert ingress(me) == []
    both = {"GroupId": WEB, "IpPermissions": [tcp(1)], "CidrIp": "10.0.0.0/8"}
    assert code_of(me, authorize_security_group_ingress, **both) == "InvalidParameterCombination"


@pytest.mark.parametrize(
    ("permission", "code"),
    [
        ({"IpProtocol": "tcp", "FromPort": 1, "ToPort": 2}, "MissingParameter"),
        ({"IpRanges": [{"CidrIp": "0.0.0.0/0"}]}, "MissingParameter"),
        (tcp(5, 4), "InvalidParameterValue"),
        (tcp(1, 2, "10.0.0.0/33"), "InvalidParameterValue"),
        (tcp(1, 2, IpRanges=[{}]), "InvalidParameterValue"),
        (tcp(1, 2, IpRanges=[], Ipv6Ranges=[{"CidrIpv6": "x"}]), "InvalidParameterValue"),
        (tcp(1, 2, IpRanges=[{"CidrIp": "10.0.0.0/8", "Description": "ü"}]),
         "InvalidParameterValue"),
        (tcp(1, 2, IpProtocol="foo"), "InvalidParameterValue"),
        (tcp(1, 2, UserIdGroupPairs=[{"GroupId": "sg-00000099"}]), "InvalidGroup.NotFound"),
        (tcp(1, 2, UserIdGroupPairs=[{"GroupId": "i-00000099"}]), "InvalidParameterValue"),
        (tcp(1, 2, UserIdGroupPairs=[{"GroupName": "nobody"}]), "InvalidGroup.NotFound"),
        (tcp(1, 2, UserIdGroupPairs=[{"GroupName": "api", "UserId": THEIRS}]),
         "InvalidGroup.NotFound"),
        (tcp(1, 2, UserIdGroupPairs=[{}]), "MissingParameter"),
        (tcp(1, 2, PrefixListIds=[{"PrefixListId": "pl-1"}]), "InvalidPrefixListID.NotFound"),
    ],
)  # fmt: skip
def test_wrong_permissions_make_nothing(
    openstack: Groups, me: Caller, web: Row, permission: Row, code: str
) -> None:
    request = {"GroupId": WEB, "IpPermissions": [tcp(9), permission]}
    assert code_of(me, authorize_security_group_ingress, **request) == code
    assert openstack.rules(web) == []


def test_wrong_requests(openstack: Groups, me: Caller, web: Row) -> None:
    act = authorize_security_group_ingress
    assert code_of(me, act, GroupId=WEB) == "MissingParameter"
    assert code_of(me, act, IpPermissions=[tcp(1)]) == "MissingParameter"
    assert code_of(me, act, GroupId="sg-00000099", IpPermissions=[tcp(1)]) == (
        "InvalidGroup.NotFound"
    )
    wrong = [{"ResourceType": "security-group", "Tags": []}]
    request = {"GroupId": WEB, "IpPermissions": [tcp(1)]}
    assert code_of(me, act, TagSpecifications=wrong, **request) == "InvalidParameterValue"
    assert code_of(me, act, DryRun=True, **request) == "DryRunOperation"
    request["GroupId"] = CLASSIC
    assert code_of(me, authorize_security_group_egress, **request) == "InvalidParameterValue"
    assert code_of(me, revoke_security_group_egress, **request) == "InvalidParameterValue"
    assert openstack.rules(web) == []


def test_duplicates(openstack: Groups, me: Caller, web: Row) -> None:
    allow(me, tcp(22, None, "10.0.0.0/8"))
    for again in (
        [tcp(22, None, "10.0.0.0/8")],
        [tcp(80), tcp(22, None, "10.1.2.3/8")],
        [tcp(81), tcp(81)],
        [{"IpProtocol": "6", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}],
    ):
        request = {"GroupId": WEB, "IpPermissions": again}
        code = code_of(me, authorize_security_group_ingress, **request)
        assert code == "InvalidPermission.Duplicate"
    assert ports(web) == {(22, 22)}
    # The other direction, another group and another port are other rules.
    me(authorize_security_group_egress, GroupId=WEB, IpPermissions=[tcp(22, None, "10.0.0.0/8")])
    allow(me, tcp(22, None, "10.0.0.0/8"), group=API)


def test_neutron_refuses_all_or_none(openstack: Groups, me: Caller, web: Row) -> None:
    """F38: earlier rules of the call were kept."""
    openstack.most_rules = 9
    request = {"GroupId": WEB, "IpPermissions": [tcp(1), tcp(2), tcp(3)]}
    code = code_of(me, authorize_security_group_ingress, **request)
    assert code == "RulesPerSecurityGroupLimitExceeded"
    openstack.most_rules = 1000
    openstack.before = lambda method, path: (
        openstack.groups.remove(openstack.named("api")) if method == "POST" else None
    )
    named = tcp(2, UserIdGroupPairs=[{"GroupId": API}])
    request = {"GroupId": WEB, "IpPermissions": [tcp(1), named]}
    assert code_of(me, authorize_security_group_ingress, **request) == "InvalidGroup.NotFound"
    assert openstack.rules(web) == []


def test_a_duplicate_that_another_process_made(openstack: Groups, me: Caller, web: Row) -> None:
    def before(method: str, path: str) -> None:
        if method == "POST":
            openstack.rule(
                web,
                protocol="tcp",
                port_range_min=22,
                port_range_max=22,
                remote_ip_prefix="0.0.0.0/0",
            )

    openstack.before = before
    request = {"GroupId": WEB, "IpPermissions": [tcp(22), tcp(23)]}
    code = code_of(me, authorize_security_group_ingress, **request)
    assert code == "InvalidPermission.Duplicate"
    assert ports(web) == {(22, 22)}


def test_no_answer_from_neutron(openstack: Groups, me: Caller, web: Row) -> None:
    openstack.quiet = ["POST .*/security-group-rules$"]
    made = allow(me, tcp(22), tcp(0, 80))
    assert [row["FromPort"] for row in made] == [22, 0]
    openstack.quiet = []
    openstack.before = lambda method, path: openstack.fail.update(
        {"security-group-rules$": 503} if method == "POST" else {}
    )
    with pytest.raises(Unavailable):
        allow(me, tcp(23))


def test_250_rules_in_one_call(openstack: Groups, me: Caller, web: Row) -> None:
    wanted = [tcp(1000 + number, None, f"10.0.{number}.0/24") for number in range(250)]
    made = allow(me, *wanted)
    assert [row["FromPort"] for row in made] == list(range(1000, 1250))
    writes = [call for call in openstack.calls(NEUTRON) if call[0] == "POST"]
    assert len(writes) == 1
    assert len(ingress(me)) == 250
    me(revoke_security_group_ingress, GroupId=WEB, IpPermissions=wanted)
    assert openstack.rules(web) == []
    request = {"GroupId": WEB, "IpPermissions": [tcp(port) for port in range(1, 1003)]}
    code = code_of(me, authorize_security_group_ingress, **request)
    assert code == "RulesPerSecurityGroupLimitExceeded"


# -- revoke --------------------------------------------------------------------


def test_revoking_twice(openstack: Groups, me: Caller, web: Row) -> None:
    allow(me, tcp(22, None, "10.0.0.0/8", "192.0.2.0/24"), tcp(80))
    request = {"GroupId": WEB, "IpPermissions": [tcp(22, None, "10.0.0.0/8"), tcp(80)]}
    assert code_of(me, revoke_security_group_ingress, DryRun=True, **request) == "DryRunOperation"
    answer = me(revoke_security_group_ingress, **request)
    assert answer["Return"]
    assert answer["UnknownIpPermissions"] == []
    gone = {(row["FromPort"], row["CidrIpv4"]) for row in answer["RevokedSecurityGroupRules"]}
    assert gone == {(22, "10.0.0.0/8"), (80, "0.0.0.0/0")}
    assert [row["IpRanges"] for row in ingress(me)] == [[{"CidrIp": "192.0.2.0/24"}]]
    code = code_of(me, revoke_security_group_ingress, **request)
    assert code == "InvalidPermission.NotFound"


def test_one_unknown_permission_keeps_all(openstack: Groups, me: Caller, web: Row) -> None:
    allow(me, tcp(22))
    request = {"GroupId": WEB, "IpPermissions": [tcp(22), tcp(23)]}
    assert code_of(me, revoke_security_group_ingress, **request) == "InvalidPermission.NotFound"
    assert ports(web) == {(22, 22)}


def test_without_vpc_unknown_permissions_are_only_told(
    openstack: Groups, me: Caller, web: Row
) -> None:
    allow(me, tcp(22), group=CLASSIC)
    request = {"GroupName": "classic", "IpPermissions": [tcp(22), tcp(23)]}
    answer = me(revoke_security_group_ingress, **request)
    assert [row["FromPort"] for row in answer["UnknownIpPermissions"]] == [23]
    assert ingress(me, CLASSIC) == []
    assert me(revoke_security_group_ingress, **request)["Return"]


def test_terraforms_first_revocation(openstack: Groups, me: Caller, web: Row) -> None:
    """Check 45: everything out, said with ports 0 to 0."""
    everything: Row = {"IpProtocol": "-1", "FromPort": 0, "ToPort": 0}
    v4 = everything | {"IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    v6 = everything | {"Ipv6Ranges": [{"CidrIpv6": "::/0"}]}
    me(revoke_security_group_egress, GroupId=WEB, IpPermissions=[v4])
    me(revoke_security_group_egress, GroupId=WEB, IpPermissions=[v6])
    assert web["security_group_rules"] == []
    for each in (v4, v6):
        code = code_of(me, revoke_security_group_egress, GroupId=WEB, IpPermissions=[each])
        assert code == "InvalidPermission.NotFound"
    me(authorize_security_group_egress, GroupId=WEB, IpPermissions=[v4])
    [row] = me(describe_security_groups, GroupIds=[WEB])["SecurityGroups"]
    [shown] = row["IpPermissionsEgress"]
    assert "FromPort" not in shown
    assert shown["IpProtocol"] == "-1"


def test_what_others_made_can_be_revoked(openstack: Groups, me: Caller, web: Row) -> None:
    api = openstack.named("api")["id"]
    openstack.rule(web, protocol="tcp")
    for ethertype in ("IPv4", "IPv6"):
        openstack.rule(web, remote_group_id=api, ethertype=ethertype)
    openstack.rule(web, protocol="esp", remote_ip_prefix="10.1.1.1/8")
    openstack.rule(web, remote_address_group_id="address-group")
    shown = ingress(me)
    assert [(row["IpProtocol"], row.get("FromPort")) for row in shown] == [
        ("-1", None),
        ("50", None),
        ("tcp", 1),
    ]
    assert [row["GroupId"] for row in shown[0]["UserIdGroupPairs"]] == [API]
    me(
        revoke_security_group_ingress,
        GroupId=WEB,
        IpPermissions=[
            tcp(1, 65535),
            {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": API}]},
            {"IpProtocol": "50", "IpRanges": [{"CidrIp": "10.0.0.0/8"}]},
        ],
    )
    assert [row["remote_address_group_id"] for row in openstack.rules(web)] == ["address-group"]


def test_revoking_by_rule_id(openstack: Groups, me: Caller, web: Row) -> None:
    tags = [{"ResourceType": "security-group-rule", "Tags": [{"Key": "a", "Value": "b"}]}]
    made = allow(me, tcp(22), tcp(23), TagSpecifications=tags)
    first = made[0]["SecurityGroupRuleId"]
    act = revoke_security_group_ingress
    unknown = "InvalidSecurityGroupRuleId.NotFound"
    request = {"GroupId": WEB, "SecurityGroupRuleIds": [first, "sgr-00000000000000099"]}
    assert code_of(me, act, **request) == unknown
    request["SecurityGroupRuleIds"] = [first]
    assert code_of(me, revoke_security_group_egress, **request) == unknown
    assert code_of(me, act, IpPermissions=[tcp(1)], **request) == "InvalidParameterCombination"
    assert len(me(describe_tags)["Tags"]) == 2
    answer = me(act, **request)
    [gone] = answer["RevokedSecurityGroupRules"]
    assert gone["SecurityGroupRuleId"] == first
    assert ports(web) == {(23, 23)}
    assert [row["ResourceId"] for row in me(describe_tags)["Tags"]] == [
        made[1]["SecurityGroupRuleId"]
    ]


def test_a_revocation_that_is_cut_short_goes_on(openstack: Groups, me: Caller, web: Row) -> None:
    allow(me, *[tcp(port) for port in range(1, 9)])
    left = [3]

    def before(method: str, path: str) -> None:
        left[0] -= method == "DELETE"
        openstack.fail = {"security-group-rules/": 503} if left[0] < 0 else {}

    openstack.before = before
    with pytest.raises(Unavailable):
        me(
            revoke_security_group_ingress,
            GroupId=WEB,
            IpPermissions=[tcp(port) for port in range(1, 9)],
        )
    openstack.before, openstack.fail = (lambda method, path: None), {}
    assert openstack.rules(web)
    finish(me, journal.REVOKE)
    assert openstack.rules(web) == []


# -- rules by id ---------------------------------------------------------------


def test_rules_are_described(openstack: Groups, me: Caller, them: Caller, web: Row) -> None:
    [made] = allow(me, tcp(22))
    assert made in rules(me)
    assert made in rules(me, Filters=[{"Name": "group-id", "Values": [WEB]}])
    by_group = rules(me, Filters=[{"Name": "group-id", "Values": [WEB]}])
    assert {row["GroupId"] for row in by_group} == {WEB}
    assert len(by_group) == 3
    assert {row["IsEgress"] for row in by_group} == {True, False}
    rule_id = made["SecurityGroupRuleId"]
    wanted = [{"Name": "security-group-rule-id", "Values": [rule_id]}]
    assert rules(me, Filters=wanted) == [made]
    unknown = "InvalidSecurityGroupRuleId.NotFound"
    for wrong in ([rule_id], ["sgr-00000000000000001"]):
        assert code_of(them, describe_security_group_rules, SecurityGroupRuleIds=wrong) == unknown
    wrong_filter = [{"Name": "fake", "Values": ["x"]}]
    code = code_of(me, describe_security_group_rules, Filters=wrong_filter)
    assert code == "InvalidParameterValue"
    first = me(describe_security_group_rules, MaxResults=5)
    assert len(first["SecurityGroupRules"]) == 5
    assert first["NextToken"]


def test_tags_of_rules(openstack: Groups, me: Caller, them: Caller, web: Row) -> None:
    made = allow(me, tcp(22), tcp(23))
    first, second = (row["SecurityGroupRuleId"] for row in made)
    tags = [{"Key": "a", "Value": "b"}]
    me(create_tags, Resources=[first, second], Tags=tags)
    assert rules(me, Filters=[{"Name": "tag:a", "Values": ["b"]}]) == sorted(
        [{**row, "Tags": tags} for row in made], key=lambda row: str(row["SecurityGroupRuleId"])
    )
    wrong = {"Resources": [first], "Tags": tags}
    assert code_of(them, create_tags, **wrong) == "InvalidSecurityGroupRuleId.NotFound"
    # Tags go with a rule that somebody deletes in Neutron.
    doomed = next(row for row in openstack.rules(web) if row["port_range_min"] == 22)
    web["security_group_rules"].remove(doomed)
    assert first not in {row["SecurityGroupRuleId"] for row in rules(me)}
    assert [row["ResourceId"] for row in me(describe_tags)["Tags"]] == [second]


def test_descriptions(openstack: Groups, me: Caller, web: Row) -> None:
    [made] = allow(me, tcp(22, IpRanges=[{"CidrIp": "10.0.0.0/8", "Description": "one"}]))
    assert made["Description"] == "one"
    assert openstack.rules(web)[0]["description"] == "one"
    act = update_security_group_rule_descriptions_ingress
    permission = tcp(22, IpRanges=[{"CidrIp": "10.0.0.0/8", "Description": "two"}])
    assert code_of(me, act, GroupId=WEB, IpPermissions=[permission], DryRun=True) == (
        "DryRunOperation"
    )
    me(act, GroupId=WEB, IpPermissions=[permission])
    assert ingress(me)[0]["IpRanges"] == [{"CidrIp": "10.0.0.0/8", "Description": "two"}]
    rule_id = made["SecurityGroupRuleId"]
    by_id = [{"SecurityGroupRuleId": rule_id, "Description": "three"}]
    me(act, GroupId=WEB, SecurityGroupRuleDescriptions=by_id)
    [shown] = rules(me, SecurityGroupRuleIds=[rule_id])
    assert shown == {**made, "Description": "three"}
    me(act, GroupId=WEB, SecurityGroupRuleDescriptions=[{"SecurityGroupRuleId": rule_id}])
    assert "Description" not in rules(me, SecurityGroupRuleIds=[rule_id])[0]
    # It is the same rule still.
    me(revoke_security_group_ingress, GroupId=WEB, IpPermissions=[permission])
    assert me.db.read(lambda s: queries.items_of(s, MINE, ["sgr"])) == []
    unknown = code_of(me, act, GroupId=WEB, IpPermissions=[permission])
    assert unknown == "InvalidPermission.NotFound"
    code = code_of(me, act, GroupId=WEB, SecurityGroupRuleDescriptions=by_id)
    assert code == "InvalidSecurityGroupRuleId.NotFound"
    other = update_security_group_rule_descriptions_egress
    everything = {
        "IpProtocol": "-1",
        "IpRanges": [{"CidrIp": "0.0.0.0/0", "Description": "all"}],
    }
    me(other, GroupId=WEB, IpPermissions=[everything])
    [row] = me(describe_security_groups, GroupIds=[WEB])["SecurityGroups"]
    assert row["IpPermissionsEgress"][0]["IpRanges"][0]["Description"] == "all"
    assert code_of(me, act, GroupId=WEB) == "MissingParameter"


# -- modify --------------------------------------------------------------------


def modify(me: Caller, rule_id: str, **rule: Any) -> None:
    wanted = {"IpProtocol": "tcp", "CidrIpv4": "0.0.0.0/0"} | rule
    wanted = {name: value for name, value in wanted.items() if value is not None}
    updates = [{"SecurityGroupRuleId": rule_id, "SecurityGroupRule": wanted}]
    me(modify_security_group_rules, GroupId=WEB, SecurityGroupRules=updates)


def test_a_modified_rule_keeps_its_id(openstack: Groups, me: Caller, web: Row) -> None:
    [made] = allow(me, tcp(22))
    rule_id = made["SecurityGroupRuleId"]
    me(create_tags, Resources=[rule_id], Tags=[{"Key": "a", "Value": "b"}])
    modify(me, rule_id, FromPort=80, ToPort=90, Description="web")
    assert ports(web) == {(80, 90)}
    [shown] = rules(me, SecurityGroupRuleIds=[rule_id])
    tags = {"Tags": [{"Key": "a", "Value": "b"}]}
    assert shown == made | {"FromPort": 80, "ToPort": 90, "Description": "web"} | tags
    modify(me, rule_id, FromPort=0, ToPort=90, CidrIpv4=None, CidrIpv6="::/0")
    [shown] = rules(me, SecurityGroupRuleIds=[rule_id])
    assert (shown["FromPort"], shown["CidrIpv6"]) == (0, "::/0")
    assert "Description" not in shown
    modify(me, rule_id, FromPort=5, ToPort=5, CidrIpv4=None, ReferencedGroupId=API)
    [shown] = rules(me, SecurityGroupRuleIds=[rule_id])
    assert shown["ReferencedGroupInfo"]["GroupId"] == API
    before = openstack.rules(web)[0]["id"]
    modify(me, rule_id, FromPort=5, ToPort=5, CidrIpv4=None, ReferencedGroupId=API,
           Description="said")  # fmt: skip
    assert rules(me, SecurityGroupRuleIds=[rule_id])[0]["Description"] == "said"
    assert openstack.rules(web)[0]["id"] == before, "nothing but the text has changed"
    me(revoke_security_group_ingress, GroupId=WEB, SecurityGroupRuleIds=[rule_id])
    assert openstack.rules(web) == []
    assert me(describe_tags)["Tags"] == []


def test_wrong_modifications(openstack: Groups, me: Caller, web: Row) -> None:
    made = allow(me, tcp(22), tcp(23))
    rule_id = made[0]["SecurityGroupRuleId"]

    def code(updates: list[Row], **request: Any) -> str:
        request = {"GroupId": WEB, "SecurityGroupRules": updates} | request
        return code_of(me, modify_security_group_rules, **request)

    def update(rule_id: str = rule_id, **rule: Any) -> Row:
        wanted = {"IpProtocol": "tcp", "FromPort": 1, "ToPort": 1, "CidrIpv4": "0.0.0.0/0"} | rule
        return {"SecurityGroupRuleId": rule_id, "SecurityGroupRule": wanted}

    assert code([update("sgr-00000000000000009")]) == "InvalidSecurityGroupRuleId.NotFound"
    assert code([update("sg-00000009")]) == "InvalidParameterValue"
    assert code([update(CidrIpv4="")]) == "MissingParameter"
    assert code([update(CidrIpv6="::/0")]) == "InvalidParameterCombination"
    assert code([update(), update(FromPort=0)]) == "InvalidParameterCombination"
    assert code([update(FromPort=23, ToPort=23)]) == "InvalidPermission.Duplicate"
    assert code([update(CidrIpv4="", PrefixListId="pl-1")]) == "InvalidPrefixListID.NotFound"
    unknown = update(CidrIpv4="", ReferencedGroupId="sg-00000099")
    assert code([unknown]) == "InvalidGroup.NotFound"
    assert code([update()], GroupId=API) == "InvalidSecurityGroupRuleId.NotFound"
    assert code([update()], DryRun=True) == "DryRunOperation"
    assert ports(web) == {(22, 22), (23, 23)}


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_a_modification_that_is_cut_short(
    openstack: Groups, me: Caller, web: Row, method: str
) -> None:
    """After the new rule is there it is finished, before that it has not been."""

    class Died(BaseException):
        pass

    [made] = allow(me, tcp(22))
    rule_id = made["SecurityGroupRuleId"]

    def before(called: str, path: str) -> None:
        if called == method:
            raise Died

    openstack.before = before
    with pytest.raises(Died):
        modify(me, rule_id, FromPort=80, ToPort=80)
    openstack.before = lambda method, path: None
    finish(me, journal.MODIFY_RULES)
    [shown] = rules(me, SecurityGroupRuleIds=[rule_id])
    expected = 22 if method == "POST" else 80
    assert shown["FromPort"] == expected
    assert ports(web) == {(expected, expected)}
    assert [job.state for job in jobs_of(me.db, journal.MODIFY_RULES)] == ["done"]
