"""Typed result → XML, read back by botocore's own parser."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from xml.etree import ElementTree

import pytest
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.parsers import EC2QueryParser
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trimaran.ec2.protocol import model
from trimaran.ec2.protocol.render import render, timestamp

BOTO = ServiceModel(Loader().load_service_model("ec2", "service-2"))
NAMES = sorted(model.load().names)
# What XML 1.0 can say at all; the rest is replaced, which has a test of its own.
TEXT = st.text(
    st.one_of(
        st.sampled_from("\t\n\r&<>\"'é\U0001f600\x7f\x85"),
        st.characters(min_codepoint=32, exclude_categories=["Cs", "Cn"]),
    )
)


def xml(action: str, result: dict[str, Any] | None, version: str = "2016-11-15") -> bytes:
    operation = model.load().operation(action)
    assert operation is not None
    return render(operation, result, version=version, request_id="req-1")


def read_back(action: str, document: bytes) -> dict[str, Any]:
    answer = {"body": document, "headers": {}, "status_code": 200}
    parsed = EC2QueryParser().parse(answer, BOTO.operation_model(action).output_shape)
    assert parsed.pop("ResponseMetadata")["RequestId"] == "req-1"
    return parsed


def output_of(shape: Any, depth: int = 0) -> st.SearchStrategy[Any]:
    if shape.type_name == "structure":
        return st.fixed_dictionaries(
            {},
            optional={
                name: output_of(member, depth + 1)
                for name, member in shape.members.items()
                if depth < 5 or member.type_name not in ("structure", "list")
            },
        )
    if shape.type_name == "list":
        return st.lists(output_of(shape.member, depth + 1), max_size=3)
    return {
        "string": TEXT,
        "boolean": st.booleans(),
        "integer": st.integers(),
        "long": st.integers(),
        "float": st.floats(allow_nan=False),
        "double": st.floats(allow_nan=False),
        "blob": st.binary(),
        "timestamp": st.datetimes(
            datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)
        ).map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)),
    }[shape.type_name]


@given(st.data())
@settings(
    max_examples=200, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
def test_boto3_reads_back_what_an_action_returned(data: st.DataObject) -> None:
    with_output = [name for name in NAMES if BOTO.operation_model(name).output_shape]
    name = data.draw(st.sampled_from(with_output))
    shape = BOTO.operation_model(name).output_shape
    result = data.draw(output_of(shape))
    expected = {"Return": True, **result} if "Return" in shape.members else result
    assert read_back(name, xml(name, result)) == expected


def test_the_envelope_names_action_version_and_request() -> None:
    root = ElementTree.fromstring(xml("DescribeVpcs", {"Vpcs": []}, version="2010-08-31"))
    namespace = "{http://ec2.amazonaws.com/doc/2010-08-31/}"
    assert root.tag == namespace + "DescribeVpcsResponse"
    assert [child.tag for child in root] == [namespace + "requestId", namespace + "vpcSet"]
    assert root[0].text == "req-1"


def test_a_hostile_version_stays_inside_its_attribute() -> None:
    version = "x\"><evil a='&\n\x00"
    root = ElementTree.fromstring(xml("DescribeVpcs", {}, version=version))
    assert root.tag.startswith("{http://ec2.amazonaws.com/doc/x\"><evil a='&\n\ufffd/}")


def test_actions_without_output_say_return_true() -> None:
    for action, result in (("DeleteVpc", {}), ("DeleteVpc", None), ("DeleteTags", None)):
        assert b"<return>true</return></" in xml(action, result)
    assert b"<return>false</return>" in xml("AuthorizeSecurityGroupIngress", {"Return": False})


def test_some_actions_say_return_beside_what_they_made() -> None:
    for action, result in (
        ("AssociateAddress", {"AssociationId": "eipassoc-1"}),
        ("AssociateAddress", {}),  # in EC2-Classic
        ("AssignPrivateIpAddresses", {"NetworkInterfaceId": "eni-1"}),
        ("CreateSecurityGroup", {"GroupId": "sg-1"}),
    ):
        assert b"<return>true</return></" in xml(action, result)
        assert read_back(action, xml(action, result)) == result


def test_none_is_left_out_and_empty_lists_are_empty_elements() -> None:
    document = xml(
        "DescribeVpcs",
        {"NextToken": None, "Vpcs": [{"VpcId": "v", "Tags": [], "State": None}, None]},
    )
    assert document.endswith(
        b"<vpcSet><item><vpcId>v</vpcId><tagSet/></item></vpcSet></DescribeVpcsResponse>"
    )


def test_characters_that_xml_forbids_are_replaced() -> None:
    bad = "a\x00\x08\x0b\x1f\ud800\ufffe\uffffz"
    parsed = read_back("DescribeVpcs", xml("DescribeVpcs", {"Vpcs": [{"VpcId": bad}]}))
    assert parsed["Vpcs"][0]["VpcId"] == "a" + "\ufffd" * 7 + "z"


def test_the_document_is_ascii() -> None:
    assert "é😀".encode("ascii", "xmlcharrefreplace") in xml(
        "DescribeVpcs", {"Vpcs": [{"VpcId": "é😀"}]}
    )


@pytest.mark.parametrize(
    "given_time",
    [
        datetime(2024, 2, 3, 4, 5, 6, 789_999, tzinfo=UTC),
        datetime(2024, 2, 3, 4, 5, 6, 789_000),
        datetime(2024, 2, 3, 6, 5, 6, 789_000, tzinfo=timezone(timedelta(hours=2))),
        "2024-02-03T04:05:06.789000",
        "2024-02-03T04:05:06.789Z",
        "2024-02-03T04:05:06.789+00:00",
    ],
)
def test_times_have_milliseconds_and_z(given_time: datetime | str) -> None:
    assert timestamp(given_time) == "2024-02-03T04:05:06.789Z"


def test_a_member_that_the_model_lacks_is_logged_and_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert read_back("DescribeVpcs", xml("DescribeVpcs", {"Vpcs": [], "Nonsense": 1})) == {
        "Vpcs": []
    }
    assert "Nonsense" in caplog.text


def test_loose_python_types_do_not_break_a_listing() -> None:
    vpc = {"VpcId": 7, "IsDefault": 1, "CidrBlock": b"10.0.0.0/8", "State": True}
    assert read_back("DescribeVpcs", xml("DescribeVpcs", {"Vpcs": [vpc]}))["Vpcs"] == [
        {"VpcId": "7", "IsDefault": True, "CidrBlock": "10.0.0.0/8", "State": "true"}
    ]
