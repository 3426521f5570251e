"""Rows of instances (spec ec2.md 10, rows 58 to 75)."""

from __future__ import annotations

import base64
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from xml.etree import ElementTree

from tests.support.cloud import ADMIN
from tests.support.ec2_rows import OTHER_TYPE, World, held, row, said, until

NAMES = {"pending", "running", "stopping", "stopped", "shutting-down", "terminated"}


@row("58", "run_instances(ami, 1, 1)")
def _(w: World) -> str:
    [first] = w.launched["Instances"]
    shown = w.look(w.instance)
    [interface] = shown["NetworkInterfaces"]
    return held(
        reservation=w.launched["ReservationId"].startswith("r-"),
        state=first["State"]["Name"] in ("pending", "running"),
        network={"VpcId", "SubnetId", "PrivateIpAddress"} <= shown.keys(),
        default_group=[each["GroupName"] for each in shown["SecurityGroups"]] == ["default"],
        device_index=interface["Attachment"]["DeviceIndex"] == 0,
        interface_goes_with_it=interface["Attachment"]["DeleteOnTermination"] is True,
    )


@row("58 status", "waiter instance_status_ok", "ok")
def _(w: World) -> str:
    w.wait("instance_status_ok", InstanceIds=[w.instance])
    return "ok"


@row("59", "run_instances twice with one ClientToken", "one instance, one server")
def _(w: World) -> str:
    w.token = uuid.uuid4().hex
    before = {each["id"] for each in w.mine.servers().values()}
    first, again = w.launch(ClientToken=w.token), w.launch(ClientToken=w.token)
    ids = {each["InstanceId"] for answer in (first, again) for each in answer["Instances"]}
    servers = {each["id"] for each in w.mine.servers().values()} - before
    return " ".join(
        (
            "one instance," if len(ids) == 1 else f"{len(ids)} instances,",
            "one server" if len(servers) == 1 else f"{len(servers)} servers",
        )
    )


@row("59 other", "the same token, another type", "IdempotentParameterMismatch 400")
def _(w: World) -> str:
    return said(w.launch, ClientToken=w.token, InstanceType=OTHER_TYPE)


@row("60", "run_instances(1, 3), Nova refuses the third", "2 instances")
def _(w: World) -> str:
    w.mine.nova_quota(instances=len(w.mine.servers()) + 2)
    try:
        return f"{len(w.launch(MaxCount=3)['Instances'])} instances"
    finally:
        w.mine.nova_quota(instances=-1)


@row(
    "61", "run_instances(2, 2), Nova refuses the second", "ResourceLimitExceeded 400, nothing left"
)
def _(w: World) -> str:
    def there() -> tuple[set[str], set[str], int]:
        ports = {each["id"] for each in w.mine.rows("ports")}
        return set(w.mine.servers()), ports, len(w.ec2.describe_instances()["Reservations"])

    # Nova plugs its own servers in while it builds them.
    assert w.direct_reservation
    before = there()
    w.mine.nova_quota(instances=len(before[0]) + 1)
    try:
        told = said(w.launch, MinCount=2, MaxCount=2)
    finally:
        w.mine.nova_quota(instances=-1)
    try:
        until(lambda: there() == before, 120)
    except AssertionError:
        kinds = ("servers", "ports", "items")
        pairs = zip(kinds, before, there(), strict=True)
        return f"{told}, left: {', '.join(name for name, a, b in pairs if a != b)}"
    return f"{told}, nothing left"


@row("62", "unknown InstanceType", "InvalidParameterValue 400")
def _(w: World) -> str:
    return said(w.launch, InstanceType="x99.huge")


@row(
    "63",
    "interfaces without DeviceIndex, with one twice, without 0",
    "InvalidParameterValue 400, InvalidParameterValue 400, UnsupportedOperation 400",
)
def _(w: World) -> str:
    wrong: tuple[list[dict[str, Any]], ...] = (
        [{"SubnetId": w.subnet}],
        [{"DeviceIndex": 0}, {"DeviceIndex": 0}],
        [{"DeviceIndex": 1, "SubnetId": w.subnet}],
    )
    return ", ".join(said(w.launch, NetworkInterfaces=each) for each in wrong)


@row("65", "run_instances with tags: in the answer, in describe")
def _(w: World) -> str:
    tags = [{"Key": "Name", "Value": "<é> & '007'"}, {"Key": "n", "Value": "42"}]
    answer = w.launch(TagSpecifications=[{"ResourceType": "instance", "Tags": tags}])
    [instance] = answer["Instances"]
    return held(
        in_the_answer=instance.get("Tags") == tags,
        in_describe=w.look(instance["InstanceId"])["Tags"] == tags,
    )


@row("65 volume", "run_instances with tags of its volumes")
def _(w: World) -> str:
    tags = [{"Key": "volume of", "Value": "<row>"}]
    w.launch(ImageId=w.ebs_image, TagSpecifications=[{"ResourceType": "volume", "Tags": tags}])
    only = [{"Name": "tag:volume of", "Values": ["<row>"]}]
    [volume] = until(lambda: w.ec2.describe_volumes(Filters=only)["Volumes"])
    return held(tags=volume["Tags"] == tags)


@row("66", "stop, stop again, start", "stopping, stopped, pending")
def _(w: World) -> str:
    one = {"InstanceIds": [w.instance]}

    def change(answer: dict[str, Any], name: str) -> str:
        return str(answer[name][0]["CurrentState"]["Name"]) if name in answer else "true only"

    told = [change(w.ec2.stop_instances(**one), "StoppingInstances")]
    w.wait("instance_stopped", **one)
    try:
        told.append(change(w.ec2.stop_instances(**one), "StoppingInstances"))
    except w.ec2.exceptions.ClientError as error:
        told.append(str(error.response["Error"]["Code"]))
    told.append(change(w.ec2.start_instances(**one), "StartingInstances"))
    w.wait("instance_running", **one)
    return ", ".join(told)


@row("67", "DisableApiTermination, then terminate", "true, OperationNotPermitted 400")
def _(w: World) -> str:
    one = w.protected
    w.wait("instance_running", InstanceIds=[one])
    w.ec2.modify_instance_attribute(InstanceId=one, DisableApiTermination={"Value": True})
    shown = w.ec2.describe_instance_attribute(InstanceId=one, Attribute="disableApiTermination")
    told = said(w.ec2.terminate_instances, InstanceIds=[one])
    if told != "ok":
        w.ec2.modify_instance_attribute(InstanceId=one, DisableApiTermination={"Value": False})
    return f"{str(shown['DisableApiTermination'].get('Value')).lower()}, {told}"


@row(
    "68",
    "modify_instance_attribute: fake, without value, nothing",
    "InvalidParameterValue 400, MissingParameter 400, InvalidParameterCombination 400",
)
def _(w: World) -> str:
    requests: tuple[dict[str, str], ...] = (
        {"Attribute": "fake"},
        {"Attribute": "disableApiTermination"},
        {},
    )
    modify = w.ec2.modify_instance_attribute
    return ", ".join(said(modify, InstanceId=w.instance, **each) for each in requests)


@row("69", "another InstanceType while it runs", "IncorrectInstanceState 400")
def _(w: World) -> str:
    request = {"InstanceId": w.instance, "InstanceType": {"Value": OTHER_TYPE}}
    return said(w.ec2.modify_instance_attribute, **request)


@row(
    "69 stopped",
    "another InstanceType while it is stopped",
    f"stopped, {OTHER_TYPE}",
    also="tests/e2e/test_ec2_script.py",
)
def _(w: World) -> str:
    one = str(w.launch()["Instances"][0]["InstanceId"])
    w.wait("instance_running", InstanceIds=[one])
    w.ec2.stop_instances(InstanceIds=[one])
    w.wait("instance_stopped", InstanceIds=[one])
    w.ec2.modify_instance_attribute(InstanceId=one, InstanceType={"Value": OTHER_TYPE})
    shown = w.look(one)
    return f"{shown['State']['Name']}, {shown['InstanceType']}"


@row("70", "groupSet of an instance with two interfaces", "InvalidInstanceID 400")
def _(w: World) -> str:
    request = {"InstanceId": w.two_interfaces, "Attribute": "groupSet"}
    return said(w.ec2.describe_instance_attribute, **request)


@row("71", "terminate, waiter instance_terminated, terminate again", "shutting-down, terminated")
def _(w: World) -> str:
    one = {"InstanceIds": [w.two_interfaces]}
    w.wait("instance_running", **one)
    shown = w.look(w.two_interfaces)["NetworkInterfaces"]
    w.interfaces = {each["Attachment"]["DeviceIndex"]: each for each in shown}
    [first] = w.ec2.terminate_instances(**one)["TerminatingInstances"]
    w.wait("instance_terminated", **one)
    [again] = w.ec2.terminate_instances(**one)["TerminatingInstances"]
    return f"{first['CurrentState']['Name']}, {again['CurrentState']['Name']}"


@row("72", "its interfaces: with DeleteOnTermination, without", "gone, available")
def _(w: World) -> str:
    ids = [w.interfaces[index]["NetworkInterfaceId"] for index in (0, 1)]

    def left() -> dict[str, str]:
        w.ec2.describe_instances()
        mine = [{"Name": "network-interface-id", "Values": ids}]
        rows = w.ec2.describe_network_interfaces(Filters=mine)["NetworkInterfaces"]
        return {each["NetworkInterfaceId"]: each["Status"] for each in rows}

    until(lambda: set(left().values()) <= {"available"})
    after = left()
    return ", ".join(after.get(each, "gone") for each in ids)


@row("73", "server of Nova's, ten first describes at once", "one id")
def _(w: World) -> str:
    only = [{"Name": "reservation-id", "Values": [w.direct_reservation]}]

    def ask(_: int) -> str:
        [found] = w.ec2.describe_instances(Filters=only)["Reservations"]
        return str(found["Instances"][0]["InstanceId"])

    with ThreadPoolExecutor(10) as pool:
        seen = set(pool.map(ask, range(10)))
    return "one id" if len(seen) == 1 else f"{len(seen)} ids"


@row("74", "server in error, then shelved", "EC2's states only")
def _(w: World) -> str:
    only = [{"Name": "reservation-id", "Values": [w.direct_reservation]}]
    path = f"/servers/{w.direct}"

    def seen() -> str:
        [found] = w.ec2.describe_instances(Filters=only)["Reservations"]
        return str(found["Instances"][0]["State"]["Name"])

    def put(action: str, body: Any, who: Any) -> None:
        w.cloud.call(who, "compute", "POST", f"{path}/action", json={action: body})

    put("os-resetState", {"state": "error"}, ADMIN)
    states = {seen()}
    put("os-resetState", {"state": "active"}, ADMIN)
    put("shelve", None, w.mine.project.person)

    def shelved() -> bool:
        states.add(seen())
        return str(w.mine.nova("GET", path)["server"]["status"]).startswith("SHELVED")

    until(shelved)
    states.add(seen())
    leaked = sorted(states - NAMES)
    return f"leaks {', '.join(leaked)}" if leaked else "EC2's states only"


@row("75", "get_console_output by InstanceId and InstanceId.1, get_password_data")
def _(w: World) -> str:
    answer = w.ec2.get_console_output(InstanceId=w.instance)
    wire = w.post(w.call("GetConsoleOutput", **{"InstanceId.1": w.instance}))
    root = ElementTree.fromstring(wire.content)
    text = base64.b64decode(root.findtext(f"{root.tag.split('}')[0]}}}output") or "").decode()
    password = w.ec2.get_password_data(InstanceId=w.instance)
    return held(
        output=bool(answer["Output"]),
        the_same_text=text == answer["Output"],
        no_password=password["PasswordData"] == "",
    )
