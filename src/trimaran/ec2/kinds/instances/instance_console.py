"""What a guest says: console output and the administrator's password (spec ec2.md 3.6)."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.instances.instance_options import one_instance
from trimaran.ec2.kinds.instances.instance_view import Instance
from trimaran.ec2.protocol.errors import unsupported
from trimaran.errors import BadRequest, Conflict, NotFound

Request = Mapping[str, Any]


def get_console_output(ctx: Context, request: Request) -> dict[str, Any]:
    """The console's text as it is now; a server that has no console yet has no output."""
    instance = one_instance(ctx, request.get("InstanceId"))
    answer: dict[str, Any] = {"InstanceId": instance.id, "Timestamp": ctx.now}
    if instance.pair.found is None:
        return answer
    try:
        text = ctx.user.compute.console_output(instance.server["id"])
    except (BadRequest, Conflict):
        return answer
    except NotFound:
        return _still_there(ctx, instance, answer)
    return {**answer, "Output": base64.b64encode(text.encode()).decode()}


def get_password_data(ctx: Context, request: Request) -> dict[str, Any]:
    """The password as the guest encrypted it with the key pair's key: already base64 (F52)."""
    instance = one_instance(ctx, request.get("InstanceId"))
    answer: dict[str, Any] = {"InstanceId": instance.id, "Timestamp": ctx.now, "PasswordData": ""}
    if instance.pair.found is None:
        return answer
    try:
        answer["PasswordData"] = ctx.user.compute.server_password(instance.server["id"])
    except NotFound as error:
        raise ids.missing_ids([instance.id]) from error
    return answer


def get_console_screenshot(ctx: Context, request: Request) -> dict[str, Any]:
    """Nova shows consoles to browsers, not as pictures."""
    one_instance(ctx, request.get("InstanceId"))
    raise unsupported("Screenshots of consoles are not supported.")


def get_serial_console_access_status(ctx: Context, request: Request) -> dict[str, Any]:
    """There is no serial console by SSH."""
    return {"SerialConsoleAccessEnabled": False}


def _still_there(ctx: Context, instance: Instance, answer: dict[str, Any]) -> dict[str, Any]:
    """Nova's 404 is for the server, or for a driver that keeps no output."""
    try:
        ctx.user.compute.server(instance.server["id"])
    except NotFound as error:
        raise ids.missing_ids([instance.id]) from error
    return answer
