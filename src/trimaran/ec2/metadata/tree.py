"""The tree of texts: what it holds for an instance, by version, and how a path is answered.

A directory lists only names that answer, because cloud-init reads every name
it is shown and gives up on the first 404 (spec ec2.md 6.3, 6.5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trimaran.errors import NotFound

Leaf = str | bytes
Node = Leaf | Sequence[str] | Mapping[str, Any]

# Which names of meta-data each version added (spec 6.2).
_ADDED: Mapping[str, frozenset[str]] = {
    "1.0": frozenset(
        {
            "ami-id", "ami-launch-index", "ami-manifest-path", "hostname", "instance-id",
            "local-ipv4", "public-keys", "reservation-id", "security-groups",
        }
    ),
    "2007-01-19": frozenset({"local-hostname", "public-hostname", "public-ipv4"}),
    "2007-03-01": frozenset({"product-codes"}),
    "2007-08-29": frozenset({"instance-type"}),
    "2007-10-10": frozenset({"ancestor-ami-ids", "ramdisk-id"}),
    "2007-12-15": frozenset({"block-device-mapping"}),
    "2008-02-01": frozenset({"kernel-id", "placement"}),
    "2008-09-01": frozenset({"instance-action"}),
    "2009-04-04": frozenset(),
}  # fmt: skip
VERSIONS = tuple(_ADDED)
LATEST = "latest"


@dataclass(frozen=True)
class Facts:
    """What is known about the instance that asks.

    Attributes:
        instance: as DescribeInstances shows it, in boto3's names.
        reservation_id: its reservation.
        address: the address that it asked from.
        user_data: as the guest gave it, None when there is none.
        keys: public keys by name; None for a key that Nova has no more.
    """

    instance: Mapping[str, Any]
    reservation_id: str
    address: str = ""
    user_data: bytes | None = None
    keys: Mapping[str, str | None] = field(default_factory=dict)


class Labelled(dict[str, Any]):
    """A directory whose entries are listed under other texts than their names."""

    def __init__(self, entries: Mapping[str, Any], labels: Mapping[str, str]) -> None:
        super().__init__(entries)
        self.labels = labels


def is_version(name: str) -> bool:
    """Whether a path may begin with this name."""
    return name == LATEST or name in _ADDED


def versions() -> str:
    """The answer to ``/``."""
    return "\n".join((*VERSIONS, LATEST))


def tree(facts: Facts, version: str) -> dict[str, Any]:
    """The directory of one version for one instance."""
    wanted: set[str] = set()
    for name in VERSIONS:
        wanted |= _ADDED[name]
        if name == version:
            break
    known = _meta_data(facts)
    made: dict[str, Any] = {
        "meta-data": {name: node for name, node in known.items() if name in wanted}
    }
    if facts.user_data is not None:
        made["user-data"] = facts.user_data
    return made


def _meta_data(facts: Facts) -> dict[str, Any]:
    shown = facts.instance
    groups = [group["GroupName"] for group in _groups(shown)]
    made: dict[str, Any] = {
        "ami-launch-index": str(shown.get("AmiLaunchIndex", 0)),
        "ami-manifest-path": "FIXME",
        "ancestor-ami-ids": "",
        "block-device-mapping": _devices(shown),
        "hostname": shown.get("PrivateDnsName") or "",
        "instance-action": "none",
        "instance-id": shown["InstanceId"],
        "instance-type": shown.get("InstanceType") or "",
        "local-hostname": shown.get("PrivateDnsName") or "",
        "local-ipv4": shown.get("PrivateIpAddress") or facts.address,
        "placement": {
            "availability-zone": (shown.get("Placement") or {}).get("AvailabilityZone") or ""
        },
        "product-codes": "",
        "public-hostname": shown.get("PublicDnsName") or "",
        "public-ipv4": shown.get("PublicIpAddress") or "",
        "reservation-id": facts.reservation_id,
        "security-groups": groups,
    }
    for name, member in (("ami-id", "ImageId"), ("kernel-id", "KernelId")):
        if shown.get(member):
            made[name] = shown[member]
    if shown.get("RamdiskId"):
        made["ramdisk-id"] = shown["RamdiskId"]
    if facts.keys:
        made["public-keys"] = _keys(facts.keys)
    return made


def _groups(shown: Mapping[str, Any]) -> Sequence[Mapping[str, str]]:
    for interface in shown.get("NetworkInterfaces") or ():
        if (interface.get("Attachment") or {}).get("DeviceIndex") == 0:
            return interface.get("Groups") or ()
    return shown.get("SecurityGroups") or ()


def _devices(shown: Mapping[str, Any]) -> dict[str, str]:
    root = shown.get("RootDeviceName") or ""
    made = {"ami": root.removeprefix("/dev/"), "root": root} if root else {}
    names = sorted(
        mapping["DeviceName"]
        for mapping in shown.get("BlockDeviceMappings") or ()
        if mapping.get("DeviceName") and mapping["DeviceName"] != root
    )
    return made | {f"ebs{index}": name for index, name in enumerate(names)}


def _keys(keys: Mapping[str, str | None]) -> Labelled:
    entries: dict[str, Any] = {}
    labels: dict[str, str] = {}
    for index, (name, text) in enumerate(sorted(keys.items())):
        entries[str(index)] = {} if text is None else {"openssh-key": text}
        labels[str(index)] = f"{index}={name}"
    return Labelled(entries, labels)


def steps_of(path: str) -> list[str]:
    """The names in a path; doubled and trailing slashes vanish, and so does ``/ec2`` in front.

    Raises:
        NotFound: it climbs.
    """
    steps = [step for step in path.split("/") if step]
    if ".." in steps or "." in steps:
        raise NotFound()
    return steps[1:] if steps[:1] == ["ec2"] else steps


def look_up(node: Node, steps: Sequence[str]) -> Leaf:
    """The text at a path below a node.

    Raises:
        NotFound: no such name, or a path below a text.
    """
    for step in steps:
        # Labels are listed as "0=name", and older guests follow them as they are.
        if not isinstance(node, Mapping):
            raise NotFound()
        name = step.split("=", 1)[0] if isinstance(node, Labelled) else step
        if name not in node:
            raise NotFound()
        node = node[name]
    return _text(node)


def _text(node: Node) -> Leaf:
    if isinstance(node, str | bytes):
        return node
    if isinstance(node, Labelled):
        return "\n".join(sorted(node.labels[name] for name in node))
    if isinstance(node, Mapping):
        return "\n".join(
            sorted(f"{name}/" if isinstance(each, Mapping) else name for name, each in node.items())
        )
    return "\n".join(node)
