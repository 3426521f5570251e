"""Network ACLs: one a VPC, read-only, computed."""

from __future__ import annotations

import pytest

from tests.support.ec2_openstack import MINE, NEUTRON, Caller, OpenStack, code_of
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import NewItem
from trimaran.ec2 import ids
from trimaran.ec2.kinds.tag import create_tags
from trimaran.ec2.kinds.vpcs.network_acl import (
    create_network_acl,
    create_network_acl_entry,
    delete_network_acl,
    delete_network_acl_entry,
    describe_network_acls,
    replace_network_acl_association,
    replace_network_acl_entry,
)

VPC, ACL = "vpc-0000000a", "acl-0000000a"
SUBNET, ASSOCIATION = "subnet-00000001", "aclassoc-00000001"


@pytest.fixture(autouse=True)
def _vpcs(me: Caller) -> None:
    wanted = [
        NewItem("vpc", "r1", MINE, {"cidr_block": "10.0.0.0/16"}, id=VPC),
        NewItem("vpc", None, MINE, {"stage": "making"}, id="vpc-0000000b"),
        NewItem("subnet", "s1", MINE, vpc_id=VPC, id=SUBNET),
        NewItem("subnet", None, MINE, {"stage": "making"}, vpc_id=VPC, id="subnet-00000002"),
    ]
    me.db.write(lambda s: queries.add_items(s, wanted, ids.mint))


def test_one_for_each_vpc(openstack: OpenStack, me: Caller, them: Caller) -> None:
    [row] = me(describe_network_acls)["NetworkAcls"]
    entries = row.pop("Entries")
    assert row == {
        "NetworkAclId": ACL,
        "VpcId": VPC,
        "OwnerId": MINE,
        "IsDefault": True,
        "Associations": [
            {"NetworkAclAssociationId": ASSOCIATION, "NetworkAclId": ACL, "SubnetId": SUBNET}
        ],
        "Tags": [],
    }
    assert {(e["Egress"], e["RuleNumber"], e["RuleAction"]) for e in entries} == {
        (egress, number, action)
        for egress in (True, False)
        for number, action in ((100, "allow"), (32767, "deny"))
    }
    assert {(e["CidrBlock"], e["Protocol"]) for e in entries} == {("0.0.0.0/0", "-1")}
    assert them(describe_network_acls)["NetworkAcls"] == []
    assert openstack.calls(NEUTRON) == []


def test_filters_ids_and_tags(me: Caller) -> None:
    def found(name: str, value: str) -> int:
        asked = [{"Name": name, "Values": [value]}]
        return len(me(describe_network_acls, Filters=asked)["NetworkAcls"])

    me(create_tags, Resources=[ACL], Tags=[{"Key": "a", "Value": "b"}])
    assert found("vpc-id", VPC) == found("default", "true") == found("tag:a", "b") == 1
    assert found("association.subnet-id", SUBNET) == found("entry.rule-number", "100") == 1
    assert found("association.subnet-id", "subnet-00000002") == found("default", "false") == 0
    wrong = [{"Name": "fake", "Values": ["x"]}]
    assert code_of(me, describe_network_acls, Filters=wrong) == "InvalidParameterValue"
    assert len(me(describe_network_acls, NetworkAclIds=[ACL])["NetworkAcls"]) == 1
    for gone in ("acl-0000000b", "acl-00000099"):
        unknown = code_of(me, describe_network_acls, NetworkAclIds=[gone])
        assert unknown == "InvalidNetworkAclID.NotFound"
        unknown = code_of(me, create_tags, Resources=[gone], Tags=[{"Key": "a", "Value": "b"}])
        assert unknown == "InvalidNetworkAclID.NotFound"


def test_nothing_can_be_changed(me: Caller) -> None:
    assert code_of(me, create_network_acl, VpcId=VPC) == "UnsupportedOperation"
    assert code_of(me, create_network_acl, VpcId="vpc-00000099") == "InvalidVpcID.NotFound"
    assert code_of(me, delete_network_acl, NetworkAclId=ACL) == "InvalidParameterValue"
    for action in (create_network_acl_entry, replace_network_acl_entry, delete_network_acl_entry):
        assert code_of(me, action, NetworkAclId=ACL) == "UnsupportedOperation"
        assert code_of(me, action, NetworkAclId="acl-00000099") == "InvalidNetworkAclID.NotFound"
        assert code_of(me, action) == "MissingParameter"


def test_the_association_that_is_there_may_be_asked_for(me: Caller) -> None:
    request = {"AssociationId": ASSOCIATION, "NetworkAclId": ACL}
    answer = me(replace_network_acl_association, **request)
    assert answer == {"NewAssociationId": ASSOCIATION}
    assert code_of(me, replace_network_acl_association, DryRun=True, **request) == "DryRunOperation"
    request["AssociationId"] = "aclassoc-00000099"
    assert (
        code_of(me, replace_network_acl_association, **request) == "InvalidAssociationID.NotFound"
    )
