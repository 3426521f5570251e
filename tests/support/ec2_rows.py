"""Conformance rows of the EC2 wire (spec ec2.md 10), to be asked of any EC2 service.

A row asks and says in a word or two what it was told; its target is the text
that it should say.  So the same rows are a test of our service and a table of
two services beside each other.  Rows are registered by the ``ec2_rows_*``
modules; `World` has what several of them look at, made when first asked for,
all in a project of its own.
"""

from __future__ import annotations

import contextlib
import importlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from xml.etree import ElementTree

import boto3
import requests
from botocore.auth import SigV2Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError, WaiterError

from tests.support.cloud import ADMIN, CloudEnv
from tests.support.ec2 import keys_of
from tests.support.ec2_project import Project
from tests.support.ec2_tenant import Tenant

WAIT = {"Delay": 0.4, "MaxAttempts": 800}
TYPE = "cirros256"
OTHER_TYPE = "ds512M"
#: What a row says when each of its conditions holds.
KEPT = "as wanted"


class World:
    """One EC2 service, its clients, and what the rows look at.

    Args:
        url: the service.
        mine: the project that the rows work in, fresh.
        other: another project, with nothing in it.
    """

    def __init__(self, url: str, mine: Tenant, other: Project) -> None:
        self.url, self.mine, self.other = url, mine, other
        self.cloud: CloudEnv = mine.env
        #: what row 59 leaves to its second half
        self.token = ""
        #: what row 71 leaves to row 72: the interfaces by device index
        self.interfaces: dict[int, dict[str, Any]] = {}

    def client(self, keys: tuple[str, str], service: str = "ec2") -> Any:
        """A boto3 client that never retries, so that a row sees each answer."""
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name="RegionOne",
            aws_access_key_id=keys[0],
            aws_secret_access_key=keys[1],
            config=Config(retries={"max_attempts": 0}, read_timeout=180, proxies={}),
        )

    @cached_property
    def ec2(self) -> Any:
        return self.client(self.mine.keys)

    @cached_property
    def alt(self) -> Any:
        return self.client(self.other.keys)

    @cached_property
    def admin(self) -> Any:
        return self.client(keys_of(self.cloud, ADMIN))

    # -- what rows look at ----------------------------------------------------

    def begin(self) -> None:
        """Starts what takes its time, so that the first rows are asked meanwhile."""
        _ = self.bootable, self.launched
        with ThreadPoolExecutor() as pool:
            for each in ("two_interfaces", "protected", "direct"):
                pool.submit(getattr, self, each)

    @cached_property
    def ami(self) -> str:
        """A public image of another project that is no snapshot."""
        images = self.ec2.describe_images(Filters=[{"Name": "is-public", "Values": ["true"]}])
        stored = [row for row in images["Images"] if row["RootDeviceType"] == "instance-store"]
        return str(min(stored, key=lambda row: str(row["Name"]))["ImageId"])

    def launch(self, **arguments: Any) -> dict[str, Any]:
        request = {"ImageId": self.ami, "InstanceType": TYPE, "MinCount": 1, "MaxCount": 1}
        return dict(self.ec2.run_instances(**{**request, **arguments}))

    @cached_property
    def launched(self) -> dict[str, Any]:
        """What the launch of the first instance was answered."""
        return self.launch()

    def look(self, instance_id: str) -> dict[str, Any]:
        [row] = self.ec2.describe_instances(InstanceIds=[instance_id])["Reservations"]
        [instance] = row["Instances"]
        return dict(instance)

    def wait(self, waiter: str, **arguments: Any) -> None:
        self.ec2.get_waiter(waiter).wait(WaiterConfig=WAIT, **arguments)

    @cached_property
    def instance(self) -> str:
        """A running instance; rows leave it running."""
        made = str(self.launched["Instances"][0]["InstanceId"])
        self.wait("instance_running", InstanceIds=[made])
        return made

    @cached_property
    def protected(self) -> str:
        """An instance that one row protects against termination."""
        return str(self.launch()["Instances"][0]["InstanceId"])

    @cached_property
    def two_interfaces(self) -> str:
        """An instance with two interfaces, of which the second stays; one row terminates it."""
        interfaces = [
            {"DeviceIndex": 0, "SubnetId": self.subnet},
            {"DeviceIndex": 1, "SubnetId": self.subnet, "DeleteOnTermination": False},
        ]
        made = self.launch(NetworkInterfaces=interfaces)["Instances"]
        return str(made[0]["InstanceId"])

    @cached_property
    def volume(self) -> str:
        """A free volume; rows leave it so."""
        made = str(self.ec2.create_volume(Size=1, AvailabilityZone="nova")["VolumeId"])
        self.wait("volume_available", VolumeIds=[made])
        return made

    @cached_property
    def bootable(self) -> str:
        """Cinder's id of a volume with a system, the first of the project."""
        image = self.mine.glance("GET", "images?visibility=public")["images"][0]
        body = {"volume": {"size": 1, "imageRef": image["id"]}}
        return str(self.mine.cinder("POST", "/volumes", json=body)["volume"]["id"])

    @cached_property
    def snapshot(self) -> str:
        """A snapshot that an instance can boot from."""
        path = f"/volumes/{self.bootable}"
        until(lambda: self.mine.cinder("GET", path)["volume"]["status"] == "available")
        rows = self.ec2.describe_volumes()["Volumes"]
        for volume_id in [row["VolumeId"] for row in rows if row["State"] == "available"]:
            made = str(self.ec2.create_snapshot(VolumeId=volume_id)["SnapshotId"])
            if self.bootable in {row["volume_id"] for row in self.mine.stored("snapshots")}:
                self.wait("snapshot_completed", SnapshotIds=[made])
                return made
        raise AssertionError("the volume is not shown")

    @cached_property
    def ebs_image(self) -> str:
        root = {"DeviceName": "/dev/vda", "Ebs": {"SnapshotId": self.snapshot}}
        made = self.ec2.register_image(
            Name="conformance", RootDeviceName="/dev/vda", BlockDeviceMappings=[root]
        )
        self.wait("image_available", ImageIds=[made["ImageId"]])
        return str(made["ImageId"])

    @cached_property
    def ebs_instance(self) -> str:
        """A running instance whose root device is a volume."""
        made = str(self.launch(ImageId=self.ebs_image)["Instances"][0]["InstanceId"])
        self.wait("instance_running", InstanceIds=[made])
        return made

    @cached_property
    def subnet(self) -> str:
        """The default VPC's."""
        [row] = self.ec2.describe_subnets()["Subnets"]
        return str(row["SubnetId"])

    @cached_property
    def direct(self) -> str:
        """Nova's id of a server that Nova made without the EC2 service."""
        flavors = self.mine.nova("GET", "/flavors")["flavors"]
        images = self.mine.glance("GET", "images?visibility=public")["images"]
        [network] = [row for row in self.mine.rows("networks") if not row["router:external"]]
        body = {
            "name": "made by Nova",
            "flavorRef": next(each["id"] for each in flavors if each["name"] == TYPE),
            "imageRef": next(each["id"] for each in images if each["disk_format"] == "qcow2"),
            "networks": [{"uuid": network["id"]}],
        }
        return str(self.mine.nova("POST", "/servers", json={"server": body})["server"]["id"])

    @cached_property
    def direct_reservation(self) -> str:
        """Its reservation, once it is active."""
        path = f"/servers/{self.direct}"
        until(lambda: self.mine.nova("GET", path)["server"]["status"] == "ACTIVE")
        version = {"OpenStack-API-Version": "compute 2.3"}
        shown = self.cloud.call(ADMIN, "compute", "GET", path, headers=version)["server"]
        return str(shown["OS-EXT-SRV-ATTR:reservation_id"])

    # -- raw requests ---------------------------------------------------------

    def call(self, action: str, **parameters: str) -> dict[str, str]:
        return {"Action": action, "Version": "2016-11-15", **parameters}

    def get(self, call: dict[str, str], auth: Any = None) -> requests.Response:
        request = AWSRequest("GET", self.url + "/", params=dict(call))
        if auth is not None:
            auth.add_auth(request)
        ready = request.prepare()
        return requests.get(ready.url, headers=dict(ready.headers), timeout=120)

    def v2(self, call: dict[str, str], at: str) -> requests.Response:
        """Signed with SigV2, as of a time."""
        keys = Credentials(*self.mine.keys)
        call = call | {"AWSAccessKeyId": keys.access_key, "Timestamp": at}
        call |= {"SignatureVersion": "2", "SignatureMethod": "HmacSHA256"}
        request = AWSRequest("GET", self.url + "/")
        _, signature = SigV2Auth(keys).calc_signature(request, call)
        return self.get(call | {"Signature": signature})

    def v4(self, call: dict[str, str], keys: tuple[str, str] | None = None) -> requests.Response:
        """Signed in the header, parameters in the query."""
        auth = SigV4Auth(Credentials(*(keys or self.mine.keys)), "ec2", "RegionOne")
        return self.get(call, auth)

    def post(self, call: dict[str, str], keys: tuple[str, str] | None = None) -> requests.Response:
        """Signed in the header, parameters in the body, as SDKs do it."""
        auth = SigV4Auth(Credentials(*(keys or self.mine.keys)), "ec2", "RegionOne")
        form = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
        request = AWSRequest("POST", self.url + "/", data=dict(call), headers=form)
        auth.add_auth(request)
        ready = request.prepare()
        return requests.post(ready.url, ready.body, headers=dict(ready.headers), timeout=120)


# -- how an answer is written down --------------------------------------------


def of_error(error: ClientError) -> str:
    response = error.response
    told = response.get("Error", {}).get("Code", "no code")
    return f"{told} {response['ResponseMetadata']['HTTPStatusCode']}"


def said(call: Callable[..., Any], **arguments: Any) -> str:
    """What a call is told: ``ok``, or code and status."""
    try:
        call(**arguments)
    except ClientError as error:
        return of_error(error)
    return "ok"


def code(response: requests.Response) -> str:
    """What a raw request is told."""
    if response.status_code == 200:
        return "ok"
    told = None
    with contextlib.suppress(ElementTree.ParseError):
        told = ElementTree.fromstring(response.content).findtext("Errors/Error/Code")
    return f"{told or 'a page'} {response.status_code}"


def held(**conditions: bool) -> str:
    """``as wanted``, or which conditions do not hold."""
    missing = [name.replace("_", " ") for name, holds in conditions.items() if not holds]
    return f"not so: {', '.join(missing)}" if missing else KEPT


def until(question: Callable[[], Any], seconds: float = 300) -> Any:
    """The first answer that is not nothing."""
    deadline = time.monotonic() + seconds
    while not (answer := question()):
        assert time.monotonic() < deadline, "it does not come to pass"
        time.sleep(0.3)
    return answer


# -- rows ---------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One row.

    Attributes:
        number: the spec's, with a word where the spec's row has several parts.
        call: what is asked.
        targets: what may be said.
        also: a test that walks the same way, where the row takes its time.
    """

    number: str
    call: str
    targets: tuple[str, ...]
    ask: Callable[[World], str]
    also: str = ""

    def answer(self, world: World) -> str:
        """What the service said, refusals in the middle of the row included."""
        try:
            return self.ask(world)
        except ClientError as error:
            return f"{error.operation_name}: {of_error(error)}"
        except WaiterError as error:
            told = error.last_response.get("Error", {}).get("Code", "")
            return f"waiter {error.kwargs['name']}: {told or error.kwargs['reason']}"


ROWS: dict[str, Row] = {}

Ask = Callable[[World], str]


def row(number: str, call: str, *targets: str, also: str = "") -> Callable[[Ask], Ask]:
    """Registers a row; without a target it is ``as wanted``."""

    def keep(ask: Ask) -> Ask:
        assert number not in ROWS
        ROWS[number] = Row(number, call, targets or (KEPT,), ask, also)
        return ask

    return keep


def every_row() -> dict[str, Row]:
    """The rows of all modules by number, in the order in which they are asked."""
    for name in ("wire", "instances", "things"):
        importlib.import_module(f"tests.support.ec2_rows_{name}")
    return ROWS
