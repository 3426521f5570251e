"""Instances: describe, terminate, stop, start, reboot (spec ec2.md 3.6).

An action on instances first looks at all of them and acts on none when one is
missing or in a wrong state.  What Nova was told is what the answer says: a
deleted server is ``shutting-down``, without a second look at each.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from trimaran.cloud import gather
from trimaran.db.queries import ec2 as queries
from trimaran.ec2 import ids, journal
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.instances import instance_states as states
from trimaran.ec2.kinds.instances.instance_end import record_end
from trimaran.ec2.kinds.instances.instance_filters import INSTANCE
from trimaran.ec2.kinds.instances.instance_kind import ENDING, FACTS, STAGE, Instances
from trimaran.ec2.kinds.instances.instance_network import networks_of
from trimaran.ec2.kinds.instances.instance_view import (
    TERMINATED_BY_USER,
    Describer,
    Instance,
    reservations,
)
from trimaran.ec2.kinds.instances.launch_settle import Launch
from trimaran.ec2.kinds.item_options import NO_STOP, NO_TERMINATION
from trimaran.ec2.protocol import filters, paging
from trimaran.ec2.protocol.errors import EC2Error, missing, unsupported
from trimaran.ec2.reconcile import reconcile
from trimaran.errors import Conflict, NotFound

LOG = logging.getLogger(__name__)

Request = Mapping[str, Any]


def describe_instances(ctx: Context, request: Request) -> dict[str, Any]:
    """The project's instances, by reservation; pages count instances."""
    page = paging.Page(ctx.action, request, ids="InstanceIds")
    matches = filters.compile_filters(request.get("Filters"), INSTANCE)
    wanted = ids.check_ids(request.get("InstanceIds"), "instanceId", "i")
    seen: dict[str, Any] = gather(
        instances=lambda: reconcile(ctx, Instances(), wanted or None),
        networks=lambda: networks_of(ctx, wanted or None),
    )
    rows = []
    for instance in Describer(seen["instances"], seen["networks"]).instances():
        shown = instance.shown()
        beside = {"ReservationId": instance.reservation_id, "OwnerId": ctx.project_id}
        if not matches or matches({**shown, **beside}):
            rows.append((instance.reservation_id, shown))
    rows, token = page.slice(rows, key=lambda row: row[1]["InstanceId"])
    return {"Reservations": reservations(rows, ctx.project_id), "NextToken": token}


def terminate_instances(ctx: Context, request: Request) -> dict[str, Any]:
    """Delete servers; all ids must exist, and none may be protected.

    A terminated instance stays visible for an hour, and terminating it again
    is a success (F22).  One that has no server yet is noted as ending: whoever
    finishes its launch deletes the server.
    """
    instances = _selected(ctx, request, Instances(groups=False))
    for instance in instances:
        if instance.item.data.get(NO_TERMINATION) and not instance.is_dead:
            raise _protected(instance, "terminated", "disableApiTermination")
    ctx.commit_point()
    there = [instance for instance in instances if not instance.is_dead]
    servers = [instance for instance in there if instance.pair.found is not None]
    ended = _each(servers, lambda instance: _delete(ctx, instance))
    _remember(ctx, there)
    ended |= {each.id: states.SHUTTING_DOWN for each in there if each.id not in ended}
    return {
        "TerminatingInstances": [
            _change(instance, ended.get(instance.id, states.TERMINATED)) for instance in instances
        ]
    }


def stop_instances(ctx: Context, request: Request) -> dict[str, Any]:
    """Power servers off; stopping a stopped instance is a success (F51)."""
    if request.get("Hibernate"):
        raise unsupported("Hibernation is not supported.")
    instances = _selected(ctx, request, Instances(groups=False, volumes=False))
    allowed = (states.RUNNING, states.STOPPING, states.STOPPED)
    _require_states(instances, allowed, "stopped")
    for instance in instances:
        if instance.item.data.get(NO_STOP):
            raise _protected(instance, "stopped", "disableApiStop")
    ctx.commit_point()
    now = _each(instances, lambda instance: _stop(ctx, instance))
    return {"StoppingInstances": [_change(each, now[each.id]) for each in instances]}


def start_instances(ctx: Context, request: Request) -> dict[str, Any]:
    """Power servers on; starting a running instance is a success (F51)."""
    instances = _selected(ctx, request, Instances(groups=False, volumes=False))
    allowed = (states.RUNNING, states.PENDING, states.STOPPED)
    _require_states(instances, allowed, "started")
    ctx.commit_point()
    now = _each(instances, lambda instance: _start(ctx, instance))
    return {"StartingInstances": [_change(each, now[each.id]) for each in instances]}


def reboot_instances(ctx: Context, request: Request) -> dict[str, Any]:
    """Reboot servers, softly where they run."""
    instances = _selected(ctx, request, Instances(groups=False, volumes=False))
    for instance in instances:
        rebootable = ("active", "stopped", "paused", "suspended", "error")
        if states.vm_state(instance.server) not in rebootable:
            raise _wrong_state(instance, "rebooted")
    ctx.commit_point()

    def reboot(instance: Instance) -> states.State:
        # Nova softly reboots what runs and refuses it for all else.
        kind = "SOFT" if states.vm_state(instance.server) == "active" else "HARD"
        return _act(ctx, instance, {"reboot": {"type": kind}}, states.RUNNING, "rebooted")

    _each(instances, reboot)
    return {}


def _selected(ctx: Context, request: Request, kind: Instances) -> list[Instance]:
    wanted = ids.check_ids(request.get("InstanceIds"), "instanceId", "i")
    if not wanted:
        raise missing("InstanceId")
    found = {each.id: each for each in Describer(reconcile(ctx, kind, wanted)).instances()}
    return [found[item_id] for item_id in wanted]


def _change(instance: Instance, now: states.State) -> dict[str, Any]:
    return {
        "InstanceId": instance.id,
        "PreviousState": instance.state.shown(),
        "CurrentState": now.shown(),
    }


def _wrong_state(instance: Instance, done: str) -> EC2Error:
    return EC2Error(
        "IncorrectInstanceState",
        f"The instance '{instance.id}' is not in a state from which it can be {done}.",
    )


def _protected(instance: Instance, done: str, attribute: str) -> EC2Error:
    return EC2Error(
        "OperationNotPermitted",
        f"The instance '{instance.id}' may not be {done}. Modify its '{attribute}' instance "
        "attribute and try again.",
    )


def _require_states(
    instances: Sequence[Instance], allowed: Sequence[states.State], done: str
) -> None:
    for instance in instances:
        if instance.state not in allowed or instance.pair.found is None:
            raise _wrong_state(instance, done)


def _each(
    instances: Sequence[Instance], action: Callable[[Instance], states.State]
) -> dict[str, states.State]:
    """The action on all, in parallel; by instance id, the state it left."""

    def bound(instance: Instance) -> Callable[[], states.State]:
        return lambda: action(instance)

    return gather(**{instance.id: bound(instance) for instance in instances})


def _act(
    ctx: Context, instance: Instance, body: dict[str, Any], now: states.State, done: str
) -> states.State:
    try:
        ctx.user.compute.action(instance.server["id"], body)
    except NotFound as error:
        raise ids.missing_ids([instance.id]) from error
    except Conflict as error:
        raise _wrong_state(instance, done) from error
    return now


def _delete(ctx: Context, instance: Instance) -> states.State:
    if instance.state is states.SHUTTING_DOWN:
        return states.SHUTTING_DOWN
    try:
        ctx.user.compute.delete_server(instance.server["id"])
    except NotFound:
        return states.TERMINATED
    except Conflict as error:
        raise _wrong_state(instance, "terminated") from error
    return states.SHUTTING_DOWN


def _remember(ctx: Context, instances: Sequence[Instance]) -> None:
    """Notes what the instances were, for the hour in which they are shown as terminated.

    The stage of a launch is read in the transaction: its own process may just
    be finishing it, with or without a server.
    """
    if not instances:
        return

    def note(session: Session) -> None:
        known = {instance.id: instance for instance in instances}
        for item in queries.items_by_ids(session, ctx.project_id, list(known)):
            instance = known[item.id]
            data = {**item.data, FACTS: instance.facts_now(), TERMINATED_BY_USER: True}
            if instance.pair.found is None:
                data[STAGE] = ENDING
                _journal(session, ctx, instance)
            queries.update_item(session, ctx.project_id, item.id, data=data)
        record_end(session, ctx, list(known))

    ctx.db.write(note)


def _journal(session: Session, ctx: Context, instance: Instance) -> None:
    """The launch's own entry does the rest; it gets one if it has none any more."""
    launch = Launch(instance.reservation_id, [instance.id], 0)
    payload = launch.payload(ctx.project_id)
    journal.begin(session, ctx.conf, journal.LAUNCH, instance.reservation_id, payload)


def _stop(ctx: Context, instance: Instance) -> states.State:
    if instance.state is not states.RUNNING and not states.has_failed(instance.server):
        return instance.state
    return _act(ctx, instance, {"os-stop": None}, states.STOPPING, "stopped")


#: What brings a server back from each of Nova's ways of being stopped.
_STARTS: dict[str, dict[str, Any]] = {
    "stopped": {"os-start": None},
    "paused": {"unpause": None},
    "suspended": {"resume": None},
    "shelved": {"unshelve": None},
    "shelved_offloaded": {"unshelve": None},
    "error": {"os-start": None},
}


def _start(ctx: Context, instance: Instance) -> states.State:
    if instance.state is not states.STOPPED:
        return instance.state
    body = _STARTS.get(states.vm_state(instance.server), {"os-start": None})
    return _act(ctx, instance, body, states.PENDING, "started")
