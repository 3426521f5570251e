"""Rows of transport, authentication, pages and account (spec ec2.md 10, rows 1 to 21 and 101)."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

from botocore.auth import SigV4QueryAuth
from botocore.credentials import Credentials

from tests.support.ec2_rows import World, code, held, row, said

BAD = "InvalidParameterValue 400"


def ago(**past: int) -> str:
    return (datetime.now(UTC) - timedelta(**past)).strftime("%Y-%m-%dT%H:%M:%SZ")


@row("1", "DescribeRegions, unsigned", "AuthFailure 400")
def _(w: World) -> str:
    return code(w.get(w.call("DescribeRegions")))


@row("2", "signed with a wrong secret", "AuthFailure 401")
def _(w: World) -> str:
    return code(w.post(w.call("DescribeRegions"), (w.mine.keys[0], "wrong")))


@row("3", "unknown access key", "AuthFailure 401", "AuthFailure 404")
def _(w: World) -> str:
    return code(w.post(w.call("DescribeRegions"), (uuid.uuid4().hex, "x")))


@row("4", "SigV2 by GET, Version=2010-08-31", "200, namespace ends /2010-08-31/")
def _(w: World) -> str:
    response = w.v2({"Action": "DescribeRegions", "Version": "2010-08-31"}, ago())
    space = ElementTree.fromstring(response.content).tag.split("}")[0]
    return f"{response.status_code}, namespace ends {space[-12:]}"


@row("5", "SigV2 with a Timestamp 10 minutes old", "RequestExpired 400")
def _(w: World) -> str:
    return code(w.v2(w.call("DescribeRegions"), ago(minutes=10)))


@row("6", "presigned SigV4: DescribeVpcs by GET", "ok")
def _(w: World) -> str:
    keys = Credentials(*w.mine.keys)
    return code(w.get(w.call("DescribeVpcs"), SigV4QueryAuth(keys, "ec2", "RegionOne", 300)))


@row("6 header", "SigV4 in the header, parameters in the query", "ok")
def _(w: World) -> str:
    return code(w.v4(w.call("DescribeVpcs")))


@row("7", "Action=FooBar", "InvalidAction 400, AWS's text")
def _(w: World) -> str:
    response = w.post(w.call("FooBar"))
    text = "The action FooBar is not valid for this web service."
    return f"{code(response)}, {'AWS' if text in response.text else 'another'}'s text"


@row("8", "root of a success")
def _(w: World) -> str:
    response = w.post(w.call("DescribeRegions"))
    root = ElementTree.fromstring(response.content)
    return held(
        text_xml=response.headers["Content-Type"].startswith("text/xml"),
        response_element=root.tag.endswith("}DescribeRegionsResponse"),
        request_id_first=root[0].tag.endswith("}requestId"),
        request_id_form=str(root[0].text).startswith("req-"),
    )


@row("9", "DryRun of three describes", "DryRunOperation 412")
def _(w: World) -> str:
    calls = (w.ec2.describe_vpcs, w.ec2.describe_images, w.ec2.describe_volumes)
    return ", ".join(sorted({said(each, DryRun=True) for each in calls}))


@row("10", "unknown wire parameter Foo=1", "UnknownParameter 400")
def _(w: World) -> str:
    return code(w.post(w.call("DescribeInstances", Foo="1")))


@row("11", "describe_instances: i-zzz", BAD, "InvalidInstanceID.Malformed 400")
def _(w: World) -> str:
    return said(w.ec2.describe_instances, InstanceIds=["i-zzz"])


@row("12", "describe_instances: vpc-00000001", BAD)
def _(w: World) -> str:
    return said(w.ec2.describe_instances, InstanceIds=["vpc-00000001"])


@row("13", "describe_instances: i-00000001", "InvalidInstanceID.NotFound 400")
def _(w: World) -> str:
    return said(w.ec2.describe_instances, InstanceIds=["i-00000001"])


@row("14", "unknown filter: where there are rows, where there are none", f"{BAD}, {BAD}")
def _(w: World) -> str:
    fake = [{"Name": "fake", "Values": ["x"]}]
    calls = (w.ec2.describe_images, w.alt.describe_volumes)
    return ", ".join(said(each, Filters=fake) for each in calls)


@row("15", "describe_tags: MaxResults=4", BAD)
def _(w: World) -> str:
    return said(w.ec2.describe_tags, MaxResults=4)


@row("16", "describe_tags: MaxResults=1100", "ok")
def _(w: World) -> str:
    return said(w.ec2.describe_tags, MaxResults=1100)


@row("17", "7 tags in pages of 5", "5, 2, no token")
def _(w: World) -> str:
    one = w.launched["Instances"][0]["InstanceId"]
    tags = [{"Key": f"page{number}", "Value": "x"} for number in range(7)]
    w.ec2.create_tags(Resources=[one], Tags=tags)
    only = [{"Name": "key", "Values": ["page*"]}]
    first = w.ec2.describe_tags(MaxResults=5, Filters=only)
    second = w.ec2.describe_tags(MaxResults=5, Filters=only, NextToken=first["NextToken"])
    w.ec2.delete_tags(Resources=[one], Tags=[{"Key": tag["Key"]} for tag in tags])
    end = "another token" if "NextToken" in second else "no token"
    return f"{len(first['Tags'])}, {len(second['Tags'])}, {end}"


@row("18", "describe_volumes: ids and MaxResults", "InvalidParameterCombination 400")
def _(w: World) -> str:
    return said(w.ec2.describe_volumes, VolumeIds=["vol-00000001"], MaxResults=5)


@row("19", "describe_volumes: NextToken=garbage", "InvalidNextToken 400")
def _(w: World) -> str:
    return said(w.ec2.describe_volumes, NextToken="garbage")


@row("20", "describe_account_attributes", "VPC, vpc-…, Nova's quota")
def _(w: World) -> str:
    rows = w.ec2.describe_account_attributes()["AccountAttributes"]
    told = {
        each["AttributeName"]: ",".join(
            value["AttributeValue"] for value in each["AttributeValues"]
        )
        for each in rows
    }
    limits = w.mine.nova("GET", "/limits")["limits"]["absolute"]
    right = told["max-instances"] == str(limits["maxTotalInstances"])
    quota = "Nova's quota" if right else told["max-instances"]
    return f"{told['supported-platforms']}, {told['default-vpc'][:4]}…, {quota}"


@row("21", "describe_account_attributes: foo", "InvalidParameter 400")
def _(w: World) -> str:
    return said(w.ec2.describe_account_attributes, AttributeNames=["foo"])


@row("101", "sts get_caller_identity", "Account is the project")
def _(w: World) -> str:
    answer = w.client(w.mine.keys, "sts").get_caller_identity()
    mine = answer["Account"] == w.mine.project.id
    return "Account is the project" if mine else str(answer["Account"])
