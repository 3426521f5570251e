"""The names under which an instance's item keeps its options, and how they are shown.

Apart from the actions, because the description of an instance and the metadata
service need them as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from trimaran.ec2.protocol.errors import EC2Error, invalid_value

NO_TERMINATION = "disable_api_termination"
NO_STOP = "disable_api_stop"
MONITORING = "monitoring"
METADATA = "metadata_options"

#: Of what can be set: what holds when nothing is.
METADATA_DEFAULTS: Mapping[str, Any] = {
    "HttpTokens": "optional",
    "HttpPutResponseHopLimit": 1,
    "HttpEndpoint": "enabled",
    "HttpProtocolIpv6": "disabled",
    "InstanceMetadataTags": "disabled",
}
_WORDS = {
    "HttpTokens": ("optional", "required"),
    "HttpEndpoint": ("enabled", "disabled"),
    "HttpProtocolIpv6": ("enabled", "disabled"),
    "InstanceMetadataTags": ("enabled", "disabled"),
}
_MOST_HOPS = 64

#: Keys of tags that can be names in the metadata tree (AWS's rule).
TAG_KEY = r"(?!(?:\.|\.\.|_index)\Z)[0-9a-zA-Z\-_+=,.@:]{1,255}"


def metadata_options(data: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata options of an item's blob as boto3 shows them."""
    return {"State": "applied", **METADATA_DEFAULTS, **(data.get(METADATA) or {})}


def check_metadata_options(
    request: Mapping[str, Any], data: Mapping[str, Any], base: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Metadata options that a request sets.

    Args:
        request: with the options' names among its own.
        data: the blob so far, whose other options stay.
        base: what to add the options to; by default nothing.

    Returns:
        ``base`` with the options under their name.

    Raises:
        EC2Error: ``InvalidParameterValue``.
    """
    given = {name: request[name] for name in METADATA_DEFAULTS if request.get(name) is not None}
    for name, value in given.items():
        if name in _WORDS and value not in _WORDS[name]:
            raise invalid_value(name, value)
    hops = given.get("HttpPutResponseHopLimit", 1)
    if not 1 <= hops <= _MOST_HOPS:
        raise invalid_value("HttpPutResponseHopLimit", hops, f"It must be 1 to {_MOST_HOPS}.")
    kept = {**(data.get(METADATA) or {}), **given}
    kept = {name: value for name, value in kept.items() if value != METADATA_DEFAULTS[name]}
    made = {name: value for name, value in (base or {}).items() if name != METADATA}
    return {**made, METADATA: kept} if kept else made


def check_shown_tags(options: Mapping[str, Any], keys: Iterable[str]) -> None:
    """Tags that an instance's metadata shows must have keys that can be names in a path.

    Args:
        options: the instance's metadata options.
        keys: the keys that it would have.

    Raises:
        EC2Error: ``InvalidParameterValue``, in AWS's words.
    """
    if options.get("InstanceMetadataTags") != "enabled":
        return
    for key in keys:
        if not re.fullmatch(TAG_KEY, key):
            raise EC2Error(
                "InvalidParameterValue",
                f"'{key[:255]}' is not a valid tag key. Tag keys must match pattern "
                "([0-9a-zA-Z\\-_+=,.@:]{1,255}), and must not be a reserved name "
                "('.', '..', '_index')",
            )
