"""Rows of volumes, snapshots, tags, key pairs and images (spec ec2.md 10, rows 76 to 94, 110)."""

from __future__ import annotations

import uuid
from typing import Any

from tests.support.cloud import ADMIN
from tests.support.ec2_rows import World, held, row, said, until

BAD = "InvalidParameterValue 400"


# -- volumes and snapshots ----------------------------------------------------


@row("76", "create_volume, waiter volume_available", "available, encrypted false")
def _(w: World) -> str:
    [volume] = w.ec2.describe_volumes(VolumeIds=[w.volume])["Volumes"]
    return f"{volume['State']}, encrypted {str(volume['Encrypted']).lower()}"


@row("77", "delete_volume while attached", "VolumeInUse 400")
def _(w: World) -> str:
    attach = {"VolumeId": w.volume, "InstanceId": w.instance, "Device": "/dev/vdh"}
    w.ec2.attach_volume(**attach)
    w.wait("volume_in_use", VolumeIds=[w.volume])

    def attached() -> bool:
        [volume] = w.ec2.describe_volumes(VolumeIds=[w.volume])["Volumes"]
        return [each["State"] for each in volume["Attachments"]] == ["attached"]

    until(attached)
    told = said(w.ec2.delete_volume, VolumeId=w.volume)
    w.ec2.detach_volume(VolumeId=w.volume)
    w.wait("volume_available", VolumeIds=[w.volume])
    return told


@row("78", "detach_volume that is not attached", "IncorrectState 400")
def _(w: World) -> str:
    return said(w.ec2.detach_volume, VolumeId=w.volume)


@row("79", "create_snapshot(Description=123)", "123")
def _(w: World) -> str:
    made = w.ec2.create_snapshot(VolumeId=w.volume, Description="123")["SnapshotId"]
    w.wait("snapshot_completed", SnapshotIds=[made])
    [found] = w.ec2.describe_snapshots(SnapshotIds=[made])["Snapshots"]
    w.ec2.delete_snapshot(SnapshotId=made)
    return str(found["Description"])


@row("80", "create_volume twice with one ClientToken", "one volume")
def _(w: World) -> str:
    request = {"Size": 1, "AvailabilityZone": "nova", "ClientToken": uuid.uuid4().hex}
    made = {w.ec2.create_volume(**request)["VolumeId"] for _ in range(2)}
    w.wait("volume_available", VolumeIds=sorted(made))
    for volume in sorted(made):
        w.ec2.delete_volume(VolumeId=volume)
        w.wait("volume_deleted", VolumeIds=[volume])
    return "one volume" if len(made) == 1 else f"{len(made)} volumes"


# -- tags ---------------------------------------------------------------------


@row("81", "create_tags: values 42 and true", "42, true")
def _(w: World) -> str:
    tags = [{"Key": "number", "Value": "42"}, {"Key": "truth", "Value": "true"}]
    w.ec2.create_tags(Resources=[w.instance], Tags=tags)
    shown = {tag["Key"]: tag["Value"] for tag in w.look(w.instance)["Tags"]}
    return f"{shown['number']}, {shown['truth']}"


@row("82", "create_tags on an address", "ok", "InvalidID 400")
def _(w: World) -> str:
    made = w.ec2.allocate_address(Domain="vpc")["AllocationId"]
    try:
        return said(w.ec2.create_tags, Resources=[made], Tags=[{"Key": "a", "Value": "b"}])
    finally:
        w.ec2.release_address(AllocationId=made)


@row("83", "create_tags: keys aws:x, of 128 characters, empty", f"{BAD}, {BAD}, {BAD}")
def _(w: World) -> str:
    def told(key: str) -> str:
        tags = [{"Key": key, "Value": "x"}]
        return said(w.ec2.create_tags, Resources=[w.instance], Tags=tags)

    return ", ".join(told(key) for key in ("aws:x", "k" * 128, ""))


@row(
    "84",
    "delete_tags: other value, empty value, no value, empty value of an empty one",
    "kept, kept, removed, removed",
)
def _(w: World) -> str:
    def there() -> str:
        only = [{"Name": "key", "Values": ["t84"]}]
        return "kept" if w.ec2.describe_tags(Filters=only)["Tags"] else "removed"

    told = []
    for removal, value in (
        ({"Key": "t84", "Value": "other"}, "x"),
        ({"Key": "t84", "Value": ""}, "x"),
        ({"Key": "t84"}, "x"),
        ({"Key": "t84", "Value": ""}, ""),
    ):
        w.ec2.create_tags(Resources=[w.instance], Tags=[{"Key": "t84", "Value": value}])
        w.ec2.delete_tags(Resources=[w.instance], Tags=[removal])
        told.append(there())
    return ", ".join(told)


@row("85", "filter tag:a:b", "found")
def _(w: World) -> str:
    w.ec2.create_tags(Resources=[w.instance], Tags=[{"Key": "a:b", "Value": "x"}])
    only = [{"Name": "tag:a:b", "Values": ["x"]}]
    return "found" if w.ec2.describe_instances(Filters=only)["Reservations"] else "not found"


@row("86", "12 block devices keep their order")
def _(w: World) -> str:
    names = [f"/dev/vd{letter}" for letter in "abcdefghijkl"]
    devices: list[dict[str, Any]] = [
        {"DeviceName": name, "Ebs": {"VolumeSize": 1}} for name in names
    ]
    devices[0]["Ebs"] = {"SnapshotId": w.snapshot}
    image_id = w.ec2.register_image(
        Name="twelve", RootDeviceName="/dev/vda", BlockDeviceMappings=devices
    )["ImageId"]
    [image] = w.ec2.describe_images(ImageIds=[image_id])["Images"]
    shown = [each["DeviceName"] for each in image["BlockDeviceMappings"]]
    w.ec2.deregister_image(ImageId=image_id)
    return held(order=shown == names, all_twelve=len(shown) == 12)


# -- key pairs ----------------------------------------------------------------


@row("87", "import_key_pair: empty", "MissingParameter 400")
def _(w: World) -> str:
    return said(w.ec2.import_key_pair, KeyName="row", PublicKeyMaterial=b"")


@row("88", "import_key_pair: junk", "InvalidKey.Format 400")
def _(w: World) -> str:
    return said(w.ec2.import_key_pair, KeyName="row", PublicKeyMaterial=b"junk")


@row("89", "create_key_pair twice, delete it twice", "InvalidKeyPair.Duplicate 400, ok, ok")
def _(w: World) -> str:
    w.ec2.create_key_pair(KeyName="row")
    told = [said(w.ec2.create_key_pair, KeyName="row")]
    told += [said(w.ec2.delete_key_pair, KeyName="row") for _ in range(2)]
    return ", ".join(told)


# -- images -------------------------------------------------------------------


@row(
    "90",
    "create_image of a running EBS instance, with reboot",
    also="tests/e2e/test_ec2_conformance_jobs.py",
)
def _(w: World) -> str:
    one = w.ebs_instance
    made = w.ec2.create_image(InstanceId=one, Name="backup", Description="é")["ImageId"]
    [first] = w.ec2.describe_images(ImageIds=[made])["Images"]
    states = {w.look(one)["State"]["Name"]}

    def done() -> bool:
        states.add(w.look(one)["State"]["Name"])
        [image] = w.ec2.describe_images(ImageIds=[made])["Images"]
        return bool(image["State"] not in ("pending",))

    until(done)
    w.wait("instance_running", InstanceIds=[one])
    [image] = w.ec2.describe_images(ImageIds=[made])["Images"]
    devices = image.get("BlockDeviceMappings", [])
    return held(
        pending_at_first=first["State"] == "pending",
        stopped_meanwhile=bool(states & {"stopping", "stopped"}),
        available=image["State"] == "available",
        name=image.get("Name") == "backup",
        description=image.get("Description") == "é",
        snapshot=bool(devices) and "SnapshotId" in devices[0].get("Ebs", {}),
    )


@row("92", "create_image of an instance without EBS root", BAD)
def _(w: World) -> str:
    return said(w.ec2.create_image, InstanceId=w.instance, Name="none")


@row(
    "93",
    "describe_image_attribute of another's image: description, unsupported",
    "AuthFailure 400, InvalidRequest 400",
)
def _(w: World) -> str:
    look = w.ec2.describe_image_attribute
    names = ("description", "unsupported")
    return ", ".join(said(look, ImageId=w.ami, Attribute=name) for name in names)


@row(
    "94", "make an image public, reset it, as administrator", "public, private, NotFound for others"
)
def _(w: World) -> str:
    name = f"row-{uuid.uuid4().hex[:8]}"
    body = {"name": name, "disk_format": "raw", "container_format": "bare"}
    made = w.cloud.call(ADMIN, "image", "POST", "/v2/images", json=body)
    try:
        named = {"Filters": [{"Name": "name", "Values": [name]}]}
        [image] = w.admin.describe_images(**named)["Images"]
        one = {"ImageId": image["ImageId"]}

        def public() -> str:
            [shown] = w.admin.describe_images(ImageIds=[image["ImageId"]])["Images"]
            return "public" if shown["Public"] else "private"

        told = []
        w.admin.modify_image_attribute(**one, LaunchPermission={"Add": [{"Group": "all"}]})
        told.append(public())
        # One id for all projects (row 110).
        shown = w.ec2.describe_images(ImageIds=[image["ImageId"]])["Images"]
        assert [each["Name"] for each in shown] == [name]
        w.admin.reset_image_attribute(**one, Attribute="launchPermission")
        told.append(public())
        seen = said(w.ec2.describe_images, ImageIds=[image["ImageId"]])
        hidden = seen == "InvalidAMIID.NotFound 400"
        return ", ".join([*told, "NotFound for others" if hidden else seen])
    finally:
        path = f"/v2/images/{made['id']}"
        w.cloud.call(ADMIN, "image", "DELETE", path, raise_exc=False)


@row("94 member", "make an image public as a member", "UnauthorizedOperation 403")
def _(w: World) -> str:
    everybody = {"Add": [{"Group": "all"}]}
    return said(w.ec2.modify_image_attribute, ImageId=w.ebs_image, LaunchPermission=everybody)


@row("94 shared", "share an image with a project, reset it", "shown, seen, NotFound")
def _(w: World) -> str:
    one = {"ImageId": w.ebs_image, "Attribute": "launchPermission"}
    theirs = [{"UserId": w.other.id}]
    w.ec2.modify_image_attribute(ImageId=w.ebs_image, LaunchPermission={"Add": theirs})
    shown = w.ec2.describe_image_attribute(**one)["LaunchPermissions"]
    seen = w.alt.describe_images(ExecutableUsers=["self"])["Images"]
    w.ec2.reset_image_attribute(**one)
    after = said(w.alt.describe_images, ImageIds=[w.ebs_image])
    return ", ".join(
        (
            "shown" if shown == theirs else "not shown",
            "seen" if w.ebs_image in [each["ImageId"] for each in seen] else "not seen",
            after.removeprefix("InvalidAMIID.").removesuffix(" 400"),
        )
    )


@row("110", "one public image in two projects", "one id")
def _(w: World) -> str:
    [image] = w.ec2.describe_images(ImageIds=[w.ami])["Images"]
    named = [{"Name": "name", "Values": [image["Name"]]}]
    seen = [each["ImageId"] for each in w.alt.describe_images(Filters=named)["Images"]]
    return "one id" if w.ami in seen else "two ids"
