"""Parameters → typed request, by botocore's own serializer where it can say the same."""

from __future__ import annotations

import base64
import contextlib
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.serialize import EC2Serializer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trimaran.ec2.protocol import model
from trimaran.ec2.protocol.errors import EC2Error
from trimaran.ec2.protocol.parse import parse

BOTO = ServiceModel(Loader().load_service_model("ec2", "service-2"))
NAMES = sorted(model.load().names)
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)


def typed(action: str, **arguments: str) -> dict[str, Any]:
    operation = model.load().operation(action)
    assert operation is not None
    return parse(operation, {name.replace("__", "."): text for name, text in arguments.items()})


def wire(action: str, arguments: dict[str, str]) -> dict[str, Any]:
    operation = model.load().operation(action)
    assert operation is not None
    return parse(operation, arguments)


def code_of(action: str, arguments: dict[str, str]) -> str:
    with pytest.raises(EC2Error) as caught:
        wire(action, arguments)
    assert caught.value.status == 400
    return caught.value.code


def input_of(shape: Any, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values that boto3 could be given for a shape."""
    if shape.type_name == "structure":
        members = {
            name: input_of(member, depth + 1)
            for name, member in shape.members.items()
            if depth < 4 or member.type_name not in ("structure", "list")
        }
        required = [name for name in shape.required_members if name in members]
        return st.fixed_dictionaries(
            {name: members[name] for name in required},
            optional={name: made for name, made in members.items() if name not in required},
        ).filter(bool)
    if shape.type_name == "list":
        return st.lists(input_of(shape.member, depth + 1), min_size=1, max_size=3)
    return {
        "string": TEXT,
        "boolean": st.booleans(),
        "integer": st.integers(-(2**31), 2**31 - 1),
        "long": st.integers(-(2**63), 2**63 - 1),
        "float": st.floats(-1e30, 1e30),
        "double": st.floats(-1e30, 1e30),
        "blob": st.binary(min_size=1),
        "timestamp": st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1)).map(
            lambda moment: moment.replace(tzinfo=UTC)
        ),
    }[shape.type_name]


@given(st.data())
@settings(
    max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
def test_every_action_reads_back_what_boto3_would_send(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMES))
    boto = BOTO.operation_model(name)
    request = data.draw(input_of(boto.input_shape)) if boto.input_shape.members else {}
    body = EC2Serializer().serialize_to_request(request, boto)["body"]
    arguments = {
        key: text if isinstance(text, str) else str(text)
        for key, text in body.items()
        if key not in ("Action", "Version")
    }
    assert wire(name, arguments) == request


def test_lists_keep_numeric_order_with_gaps_and_leading_zeros() -> None:
    sent = {f"InstanceId.{n}": f"i-{n}" for n in (10, 2, 11, 1, 30)} | {"InstanceId.03": "i-3"}
    assert wire("DescribeInstances", sent)["InstanceIds"] == [
        "i-1", "i-2", "i-3", "i-10", "i-11", "i-30",
    ]  # fmt: skip


def test_text_is_never_typed_by_its_looks() -> None:
    for text in ("007", "true", "1e5", "0x10", "None", " x "):
        sent = {"ResourceId.1": "i-1", "Tag.1.Key": text, "Tag.1.Value": text}
        assert wire("CreateTags", sent)["Tags"] == [{"Key": text, "Value": text}]


@pytest.mark.parametrize("text", ["true", "TRUE", "True"])
def test_booleans_take_any_case(text: str) -> None:
    assert typed("DescribeVpcs", DryRun=text) == {"DryRun": True}


@pytest.mark.parametrize(
    ("action", "arguments"),
    [
        ("DescribeVpcs", {"DryRun": "yes"}),
        ("DescribeVpcs", {"DryRun": ""}),
        ("DescribeVpcs", {"MaxResults": "ten"}),
        ("DescribeVpcs", {"MaxResults": "1_0"}),
        ("DescribeVpcs", {"MaxResults": "٣"}),
        ("DescribeVpcs", {"MaxResults": "2147483648"}),
        ("DescribeVpcs", {"MaxResults": "9" * 100_000}),
        ("CreateVolume", {"Size": "1.5"}),
    ],
)
def test_what_is_no_number_or_boolean_is_a_validation_error(
    action: str, arguments: dict[str, str]
) -> None:
    assert code_of(action, arguments) == "ValidationError"


def test_value_collapses_both_ways_at_the_top_and_in_list_elements() -> None:
    structure = typed("ModifyInstanceAttribute", InstanceId="i-1", DisableApiTermination="true")
    same = typed("ModifyInstanceAttribute", InstanceId="i-1", DisableApiTermination__Value="true")
    assert structure == same == {"InstanceId": "i-1", "DisableApiTermination": {"Value": True}}
    assert typed("CreateSnapshot", VolumeId="vol-1", Description__Value="d")["Description"] == "d"
    assert wire("DescribeInstances", {"InstanceId.1.Value": "i-1"})["InstanceIds"] == ["i-1"]


def test_value_does_not_collapse_inside_structures() -> None:
    sent = {"ImageId": "a", "MinCount": "1", "MaxCount": "1", "Placement.Tenancy.Value": "x"}
    assert code_of("RunInstances", sent) == "UnknownParameter"


def test_a_scalar_where_a_list_is_declared_is_refused() -> None:
    with pytest.raises(EC2Error, match="Expected a list here") as caught:
        typed("DescribeInstances", InstanceId="i-1")
    assert caught.value.code == "InvalidParameterValue"


def test_an_empty_list_is_the_same_as_none() -> None:
    assert typed("DescribeInstances", InstanceId="") == {}


def test_console_output_takes_a_list_of_one() -> None:
    assert wire("GetConsoleOutput", {"InstanceId.1": "i-1"}) == {"InstanceId": "i-1"}
    assert wire("GetPasswordData", {"InstanceId": "i-1"}) == {"InstanceId": "i-1"}
    two = {"InstanceId.1": "i-1", "InstanceId.2": "i-2"}
    assert code_of("GetConsoleOutput", two) == "InvalidParameterCombination"


@pytest.mark.parametrize(
    "name",
    [
        "Foo",
        "Filter.1.Foo",
        "Filter.x.Name",
        "Filter.-1.Name",
        "Filter.²",
        "Filter." + "9" * 5000,
        "MaxResults.1",
        "MaxResults.Value.Value",
        "DryRun.1.2.3",
        "InstanceIds.1",
        ".",
        "",
        "." * 40,
        "A" * 100_000,
        ".".join(["1"] * 10_000),
    ],
)
def test_unknown_names_are_named(name: str) -> None:
    assert code_of("DescribeInstances", {name: "x"}) == "UnknownParameter"


def test_the_unknown_name_is_in_the_text() -> None:
    with pytest.raises(EC2Error, match=r"Filter\.1\.Foo is not recognized"):
        wire("DescribeVpcs", {"Filter.1.Foo": "x"})


def test_missing_parameters_are_told_by_their_wire_name() -> None:
    with pytest.raises(EC2Error, match="the parameter InstanceId") as caught:
        typed("TerminateInstances")
    assert caught.value.code == "MissingParameter"
    assert code_of("CreateSecurityGroup", {"GroupName": "", "GroupDescription": "d"}) == (
        "MissingParameter"
    )
    assert code_of("ImportKeyPair", {"KeyName": "k", "PublicKeyMaterial": ""}) == (
        "MissingParameter"
    )


def test_a_value_and_a_structure_of_one_name_clash() -> None:
    for names in (["Filter", "Filter.1.Name"], ["Filter.1.Name", "Filter"]):
        assert code_of("DescribeVpcs", dict.fromkeys(names, "x")) == "InvalidParameterValue"


def test_blobs_are_base64() -> None:
    key = base64.b64encode(b"\x00ssh-rsa").decode()
    assert typed("ImportKeyPair", KeyName="k", PublicKeyMaterial=key[:4] + "\n" + key[4:]) == {
        "KeyName": "k",
        "PublicKeyMaterial": b"\x00ssh-rsa",
    }
    for bad in ("===", "é", "abc"):
        sent = {"KeyName": "k", "PublicKeyMaterial": bad}
        assert code_of("ImportKeyPair", sent) == "InvalidParameterValue"


def test_nul_and_impossible_times_are_refused() -> None:
    assert code_of("DescribeVpcs", {"NextToken": "a\0b"}) == "InvalidParameterValue"
    needed = {"InstanceId.1": "i-1", "Status": "ok", "ReasonCode.1": "other"}
    for time in ("yesterday", "9999-12-31T23:59:59-23:59", ""):
        sent = {**needed, "StartTime": time}
        assert code_of("ReportInstanceStatus", sent) == "InvalidParameterValue"


def test_older_clients_spelling_is_understood() -> None:
    assert typed("DescribeVpcs", dryrun="false", MAXRESULTS="5") == {
        "DryRun": False,
        "MaxResults": 5,
    }


def test_sensitive_values_stay_out_of_errors() -> None:
    sent = {"ImageId": "a", "MinCount": "1", "MaxCount": "1", "UserData": "s3cret\0"}
    with pytest.raises(EC2Error) as caught:
        wire("RunInstances", sent)
    assert "s3cret" not in caught.value.message


@given(st.dictionaries(st.text(max_size=40), st.text(max_size=20), max_size=12), st.data())
@settings(max_examples=300, deadline=None, derandomize=True)
def test_no_input_does_anything_but_parse_or_raise_400(
    arguments: dict[str, str], data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(["RunInstances", "DescribeInstances", "CreateTags"]))
    prefixes = ["Filter.1.", "BlockDeviceMapping.1.Ebs.", "Tag.", "NetworkInterface.", ""]
    sent = {data.draw(st.sampled_from(prefixes)) + key: text for key, text in arguments.items()}
    with contextlib.suppress(EC2Error):
        wire(name, sent)


def test_a_parameter_that_upstream_takes_beside_the_model() -> None:
    reset = {"NetworkInterfaceId": "eni-1", "Attribute": "sourceDestCheck"}
    assert wire("ResetNetworkInterfaceAttribute", reset) == reset
    assert code_of("DeleteNetworkInterface", reset) == "UnknownParameter"
    structure = {"NetworkInterfaceId": "eni-1", "Attribute.Value": "x"}
    assert wire("ResetNetworkInterfaceAttribute", structure) == {"NetworkInterfaceId": "eni-1"}


def test_older_clients_make_images_without_a_name() -> None:
    assert typed("CreateImage", InstanceId="i-1") == {"InstanceId": "i-1"}
    location = "bucket/image.manifest.xml"
    assert typed("RegisterImage", ImageLocation=location) == {"ImageLocation": location}
    assert code_of("CreateImage", {"Name": "x"}) == "MissingParameter"
