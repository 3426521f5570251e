"""What a client token of a request is, and what makes two requests the same one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from trimaran.ec2.protocol.errors import check_length

LONGEST_TOKEN = 64


def fingerprint(request: Mapping[str, Any]) -> str:
    """A digest that two requests share exactly when they ask for the same."""
    asked = {name: value for name, value in request.items() if name != "ClientToken"}
    text = json.dumps(asked, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def check_token(request: Mapping[str, Any]) -> str:
    """The request's client token, or "".

    Raises:
        EC2Error: ``ValidationError`` for one that is too long.
    """
    token = str(request.get("ClientToken") or "")
    check_length("ClientToken", token, LONGEST_TOKEN)
    return token
