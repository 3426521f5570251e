"""The names under which an instance's item keeps its options, and how they are shown.

Apart from the actions, because the description of an instance and the metadata
service need them as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimaran.ec2.protocol.errors import invalid_value, unsupported

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
#: What the metadata service has not: claiming it would tell guests' owners a lie.
_LACKING = {
    "HttpTokens": ("required", "Session tokens of the metadata service are not supported."),
    "HttpProtocolIpv6": ("enabled", "Metadata over IPv6 is not supported."),
    "InstanceMetadataTags": ("enabled", "Tags in instance metadata are not supported."),
}
_MOST_HOPS = 64


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
        EC2Error: ``InvalidParameterValue``; ``UnsupportedOperation`` for what
            the metadata service cannot do.
    """
    given = {name: request[name] for name in METADATA_DEFAULTS if request.get(name) is not None}
    for name, value in given.items():
        if name in _WORDS and value not in _WORDS[name]:
            raise invalid_value(name, value)
        if name in _LACKING and value == _LACKING[name][0]:
            raise unsupported(_LACKING[name][1])
    hops = given.get("HttpPutResponseHopLimit", 1)
    if not 1 <= hops <= _MOST_HOPS:
        raise invalid_value("HttpPutResponseHopLimit", hops, f"It must be 1 to {_MOST_HOPS}.")
    kept = {**(data.get(METADATA) or {}), **given}
    kept = {name: value for name, value in kept.items() if value != METADATA_DEFAULTS[name]}
    made = {name: value for name, value in (base or {}).items() if name != METADATA}
    return {**made, METADATA: kept} if kept else made
