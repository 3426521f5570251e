"""The two policies that Neutron has for a VPN connection, and the secret between the ends.

Both bear the connection's id as their name, by which they are found again.  The
pre-shared key is kept where Neutron keeps those of connections anyway, with the
IKE policy (as its description), and nowhere in our database (F20); ec2-api's
rows that have it are read.  SHA-1, which ec2-api asked for, is no longer there
in Neutron (spec ec2.md 11.7).
"""

from __future__ import annotations

import contextlib
import re
import secrets
import string
from collections.abc import Mapping
from typing import Any

from trimaran.cloud import CloudSession, gather
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.vpn.vpn_sync import no_vpn
from trimaran.ec2.protocol.errors import invalid_value
from trimaran.errors import NotFound

Row = Mapping[str, Any]

HASH = "sha256"
CIPHER = "aes-128"
GROUP = "group2"
IKE_SECONDS = 28800
IPSEC_SECONDS = 3600

_LETTERS = string.ascii_letters + string.digits + "_."
_LENGTH = 32
_KEY = re.compile(r"(?!0)[a-zA-Z0-9._]{8,64}")


def new_secret() -> str:
    """A pre-shared key as AWS makes them (not beginning with 0)."""
    first = secrets.choice(string.ascii_letters)
    return first + "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH - 1))


def check_secret(text: str) -> str:
    """A pre-shared key of a request.

    Raises:
        EC2Error: ``InvalidParameterValue``; it does not repeat the key.
    """
    if not _KEY.fullmatch(text):
        raise invalid_value(
            "PreSharedKey", "***", "It has 8 to 64 letters, digits, periods and underscores."
        )
    return text


def make_policies(ctx: Context, connection_id: str, secret: str) -> tuple[Row, Row]:
    """Make the policies of a connection.

    Returns:
        The IKE and the IPsec policy.

    Raises:
        EC2Error: ``UnsupportedOperation`` without VPN as a service in the cloud.
    """
    neutron = ctx.user.network
    common = {
        "project_id": ctx.project_id,
        "name": connection_id,
        "auth_algorithm": HASH,
        "encryption_algorithm": CIPHER,
        "pfs": GROUP,
    }
    ike = {
        **common,
        "description": secret,
        "ike_version": "v1",
        "phase1_negotiation_mode": "main",
        "lifetime": {"units": "seconds", "value": IKE_SECONDS},
    }
    ipsec = {
        **common,
        "transform_protocol": "esp",
        "encapsulation_mode": "tunnel",
        "lifetime": {"units": "seconds", "value": IPSEC_SECONDS},
    }
    try:
        made = gather(
            ike=lambda: neutron.create_ike_policy(ike),
            ipsec=lambda: neutron.create_ipsec_policy(ipsec),
        )
    except NotFound as error:
        raise no_vpn() from error
    return made["ike"], made["ipsec"]


def delete_policies(ctx: Context, cloud: CloudSession, connection_id: str) -> None:
    """Delete the policies of a connection, as many as there are.

    Raises:
        Conflict: an IPsec connection still needs them.
    """
    neutron = cloud.network
    mine = {"name": connection_id, "project_id": ctx.project_id, "fields": ["id"]}
    try:
        found = gather(
            ike=lambda: neutron.ike_policies(**mine), ipsec=lambda: neutron.ipsec_policies(**mine)
        )
    except NotFound:
        return
    for rows, delete in (
        (found["ike"], neutron.delete_ike_policy),
        (found["ipsec"], neutron.delete_ipsec_policy),
    ):
        for row in rows:
            with contextlib.suppress(NotFound):
                delete(row["id"])
