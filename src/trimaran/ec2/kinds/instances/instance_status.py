"""Instance status: what the waiters ``instance_status_ok`` and ``system_status_ok`` ask.

OpenStack runs no checks inside a guest, so an instance is as well as Nova says
its server and its host are (spec ec2.md 9.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.instances import instance_states as states
from trimaran.ec2.kinds.instances.instance_filters import STATUS
from trimaran.ec2.kinds.instances.instance_kind import Instances
from trimaran.ec2.kinds.instances.instance_view import Describer, Instance
from trimaran.ec2.protocol import filters, paging
from trimaran.ec2.reconcile import reconcile


def describe_instance_status(ctx: Context, request: Mapping[str, Any]) -> dict[str, Any]:
    """Status of running instances, or of all with ``IncludeAllInstances``."""
    page = paging.Page(ctx.action, request, ids="InstanceIds")
    matches = filters.compile_filters(request.get("Filters"), STATUS, taggable=False)
    wanted = ids.check_ids(request.get("InstanceIds"), "instanceId", "i")
    view = reconcile(ctx, Instances(groups=False, volumes=False), wanted or None)
    shown = [
        _status(instance)
        for instance in Describer(view).instances()
        if request.get("IncludeAllInstances") or instance.state is states.RUNNING
    ]
    rows, token = page.slice(matches.apply(shown), key=lambda row: row["InstanceId"])
    return {"InstanceStatuses": rows, "NextToken": token}


def _status(instance: Instance) -> dict[str, Any]:
    running = instance.state is states.RUNNING
    host_is_up = instance.server.get("host_status") in (None, "", "UP", "MAINTENANCE")
    return {
        "InstanceId": instance.id,
        "AvailabilityZone": instance.zone,
        "InstanceState": instance.state.shown(),
        "InstanceStatus": _summary(running, host_is_up),
        "SystemStatus": _summary(running, host_is_up),
    }


def _summary(running: bool, well: bool) -> dict[str, Any]:
    if not running:
        return {"Status": "not-applicable"}
    return {
        "Status": "ok" if well else "impaired",
        "Details": [{"Name": "reachability", "Status": "passed" if well else "failed"}],
    }
