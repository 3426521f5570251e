"""The tree of texts: its nodes, how a path is answered, and what each version holds.

A directory lists only names that answer, because cloud-init reads every name
it is shown and gives up on the first 404 (spec ec2.md 6.3, 6.5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trimaran.ec2.metadata.later import Later
from trimaran.errors import NotFound

Leaf = str | bytes
LATEST = "latest"

#: The versions, oldest first.  The last three are those that cloud-init looks for.
VERSIONS = (
    "1.0",
    "2007-01-19",
    "2007-03-01",
    "2007-08-29",
    "2007-10-10",
    "2007-12-15",
    "2008-02-01",
    "2008-09-01",
    "2009-04-04",
    "2016-09-02",
    "2018-09-24",
    "2021-03-23",
)
_INDEX = {version: index for index, version in enumerate(VERSIONS)} | {LATEST: len(VERSIONS) - 1}

# What each version added (spec 6.2, 6.5); what is not named here came with its directory.
_ADDED: Mapping[str, tuple[str, ...]] = {
    "1.0": (
        "meta-data", "user-data", "meta-data/ami-id", "meta-data/ami-launch-index",
        "meta-data/ami-manifest-path", "meta-data/hostname", "meta-data/instance-id",
        "meta-data/local-ipv4", "meta-data/public-keys", "meta-data/reservation-id",
        "meta-data/security-groups",
    ),
    "2007-01-19": (
        "meta-data/local-hostname", "meta-data/public-hostname", "meta-data/public-ipv4",
    ),
    "2007-03-01": ("meta-data/product-codes",),
    "2007-08-29": ("meta-data/instance-type",),
    "2007-10-10": ("meta-data/ancestor-ami-ids", "meta-data/ramdisk-id"),
    "2007-12-15": ("meta-data/block-device-mapping",),
    "2008-02-01": ("meta-data/kernel-id", "meta-data/placement"),
    "2008-09-01": ("meta-data/instance-action",),
    "2016-09-02": ("dynamic", "meta-data/mac", "meta-data/network", "meta-data/services"),
    "2021-03-23": (
        "meta-data/instance-life-cycle", "meta-data/placement/availability-zone-id",
        "meta-data/placement/region", "meta-data/tags",
    ),
}  # fmt: skip
_SINCE = {path: _INDEX[version] for version, paths in _ADDED.items() for path in paths}


class NotAtHand(Exception):
    """The answer has to be asked for, and the caller cannot wait."""


@dataclass(frozen=True)
class Deferred:
    """A node that is made of something asked for later.

    Attributes:
        later: what it is made of.
        make: makes it.
        is_directory: how it is listed; known without asking.
    """

    later: Later[Any]
    make: Callable[[Any], Node]
    is_directory: bool


Node = Leaf | Sequence[str] | Mapping[str, Any] | Deferred


class Labelled(dict[str, Any]):
    """A directory whose entries are listed under other texts than their names."""

    def __init__(self, entries: Mapping[str, Any], labels: Mapping[str, str]) -> None:
        super().__init__(entries)
        self.labels = labels


def is_version(name: str) -> bool:
    """Whether a path may begin with this name."""
    return name in _INDEX


def versions() -> str:
    """The answer to ``/``."""
    return "\n".join((*VERSIONS, LATEST))


def cut(node: Mapping[str, Any], version: str, path: str = "") -> Mapping[str, Any]:
    """A directory as an older version had it.

    Args:
        node: the newest one.
        version: a known version.
        path: the directory's own path, with a slash behind it unless it is the root.
    """
    kept = {}
    for name, each in node.items():
        place = path + name
        if _SINCE.get(place, 0) > _INDEX[version]:
            continue
        nested = isinstance(each, Mapping) and not isinstance(each, Labelled)
        kept[name] = cut(each, version, f"{place}/") if nested else each
    return kept


def steps_of(path: str) -> list[str]:
    """The names in a path; doubled and trailing slashes vanish, and so does ``/ec2`` in front.

    Raises:
        NotFound: it climbs.
    """
    steps = [step for step in path.split("/") if step]
    if ".." in steps or "." in steps:
        raise NotFound()
    return steps[1:] if steps[:1] == ["ec2"] else steps


def look_up(node: Node, steps: Sequence[str], *, wait: bool = True) -> Leaf:
    """The text at a path below a node.

    Args:
        node: where to begin.
        steps: the names on the way.
        wait: whether what is not known yet may be asked for.

    Raises:
        NotFound: no such name, or a path below a text.
        NotAtHand: something has to be asked for.
    """
    for step in steps:
        node = _made(node, wait)
        if not isinstance(node, Mapping):
            raise NotFound()
        # Labels are listed as "0=name", and older guests follow them as they are.
        name = step.split("=", 1)[0] if isinstance(node, Labelled) else step
        if name not in node:
            raise NotFound()
        node = node[name]
    return _text(_made(node, wait))


def _made(node: Node, wait: bool) -> Leaf | Sequence[str] | Mapping[str, Any]:
    while isinstance(node, Deferred):
        if not (wait or node.later.known):
            raise NotAtHand()
        node = node.make(node.later.get())
    return node


def _text(node: Leaf | Sequence[str] | Mapping[str, Any]) -> Leaf:
    if isinstance(node, str | bytes):
        return node
    if isinstance(node, Labelled):
        return "\n".join(sorted(node.labels[name] for name in node))
    if isinstance(node, Mapping):
        return "\n".join(sorted(_listed(name, each) for name, each in node.items()))
    return "\n".join(node)


def _listed(name: str, node: Node) -> str:
    directory = isinstance(node, Mapping) or (isinstance(node, Deferred) and node.is_directory)
    return f"{name}/" if directory else name
