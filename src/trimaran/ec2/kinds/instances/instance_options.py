"""What EC2 lets one set on an instance and OpenStack has no field for.

It is kept in the item's blob: protection from termination and from stopping,
the monitoring flag, and the metadata options.  What is kept is honoured here or
in the metadata service; what neither can honour is refused (spec ec2.md 9.2,
9.3).  The names in the blob are upstream's where upstream has one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2 as queries
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.instances.instance_kind import Instances
from trimaran.ec2.kinds.instances.instance_view import Describer, Instance
from trimaran.ec2.kinds.instances.metadata_defaults import metadata_defaults
from trimaran.ec2.kinds.item_options import (
    MONITORING,
    NO_STOP,
    NO_TERMINATION,
    check_metadata_options,
    check_shown_tags,
    metadata_options,
)
from trimaran.ec2.kinds.tag_rules import tag_specifications
from trimaran.ec2.protocol import filters, paging
from trimaran.ec2.protocol.errors import invalid_value, missing, unsupported
from trimaran.ec2.reconcile import reconcile

Request = Mapping[str, Any]


def launch_options(ctx: Context, request: Request) -> dict[str, Any]:
    """What a RunInstances request sets, as the blobs of its items keep it.

    Metadata options that it does not set are those that the project prefers.

    Raises:
        EC2Error: ``UnsupportedOperation`` for what cannot be honoured.
    """
    kept: dict[str, Any] = {}
    if request.get("DisableApiTermination"):
        kept[NO_TERMINATION] = True
    if request.get("DisableApiStop"):
        kept[NO_STOP] = True
    if (request.get("Monitoring") or {}).get("Enabled"):
        kept[MONITORING] = True
    given = request.get("MetadataOptions") or {}
    given = {name: value for name, value in given.items() if value is not None}
    kept |= check_metadata_options({**metadata_defaults(ctx), **given}, {})
    tags = tag_specifications(request.get("TagSpecifications"), ids.RESOURCE_TYPES)
    check_shown_tags(metadata_options(kept), tags.get("instance", ()))
    return kept


def one_instance(
    ctx: Context, instance_id: str | None, *, groups: bool = False, volumes: bool = False
) -> Instance:
    """The instance that a request names; with groups and volumes if they are to be shown.

    Raises:
        EC2Error: ``MissingParameter``, ``InvalidParameterValue``,
            ``InvalidInstanceID.NotFound`` (also for a terminated one).
    """
    if not instance_id:
        raise missing("InstanceId")
    ids.check_id(instance_id, "instanceId", "i")
    view = reconcile(ctx, Instances(groups=groups, volumes=volumes), [instance_id])
    [instance] = Describer(view).instances()
    if instance.is_dead:
        raise ids.missing_ids([instance_id])
    return instance


def change_item(
    ctx: Context, item_ids: Sequence[str], change: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Change the blobs of items from what they are in the transaction.

    Args:
        ctx: the request, behind its commit point.
        item_ids: the project's items.
        change: the new blob from the old one.

    Returns:
        The new blobs by item id.
    """

    def write(session: Session) -> dict[str, dict[str, Any]]:
        made = {}
        for item in queries.items_by_ids(session, ctx.project_id, item_ids):
            made[item.id] = change(dict(item.data))
            if made[item.id] != item.data:
                queries.update_item(session, ctx.project_id, item.id, data=made[item.id])
        return made

    return ctx.db.write(write)


def set_flag(ctx: Context, item_ids: Sequence[str], name: str, on: bool) -> None:
    """Set or clear a flag in items' blobs."""

    def change(data: dict[str, Any]) -> dict[str, Any]:
        data.pop(name, None)
        return {**data, name: True} if on else data

    change_item(ctx, item_ids, change)


def monitor_instances(ctx: Context, request: Request) -> dict[str, Any]:
    """Note that detailed monitoring is wanted."""
    return _monitor(ctx, request, True)


def unmonitor_instances(ctx: Context, request: Request) -> dict[str, Any]:
    """Note that detailed monitoring is not wanted any more."""
    return _monitor(ctx, request, False)


def _monitor(ctx: Context, request: Request, on: bool) -> dict[str, Any]:
    wanted = ids.check_ids(request.get("InstanceIds"), "instanceId", "i")
    if not wanted:
        raise missing("InstanceId")
    reconcile(ctx, Instances(groups=False, volumes=False), wanted)
    ctx.commit_point()
    set_flag(ctx, wanted, MONITORING, on)
    state = {"State": "enabled" if on else "disabled"}
    return {"InstanceMonitorings": [{"InstanceId": i, "Monitoring": state} for i in wanted]}


def modify_instance_metadata_options(ctx: Context, request: Request) -> dict[str, Any]:
    """Whether, and how far, the guest may ask the metadata service."""
    instance = one_instance(ctx, request.get("InstanceId"))
    wanted = check_metadata_options(request, instance.item.data)
    tags = instance.of.view.tags.get(instance.id, ())
    check_shown_tags(metadata_options(wanted), (tag["Key"] for tag in tags))
    ctx.commit_point()
    made = change_item(ctx, [instance.id], lambda data: check_metadata_options(request, data, data))
    return {
        "InstanceId": instance.id,
        "InstanceMetadataOptions": metadata_options(made.get(instance.id, {})),
    }


def modify_instance_maintenance_options(ctx: Context, request: Request) -> dict[str, Any]:
    """There is neither automatic recovery nor migration on reboot to switch on."""
    instance = one_instance(ctx, request.get("InstanceId"))
    recovery = request.get("AutoRecovery") or "disabled"
    reboot = request.get("RebootMigration") or "disabled"
    for name, value in (("AutoRecovery", recovery), ("RebootMigration", reboot)):
        if value == "default":
            raise unsupported(f"{name} cannot be switched on.")
        if value != "disabled":
            raise invalid_value(name, value)
    return {"InstanceId": instance.id, "AutoRecovery": recovery, "RebootMigration": reboot}


def modify_private_dns_name_options(ctx: Context, request: Request) -> dict[str, Any]:
    """Host names follow the configuration (``ec2_private_dns_show_ip``), not the instance."""
    one_instance(ctx, request.get("InstanceId"))
    kind = request.get("PrivateDnsHostnameType") or "ip-name"
    if kind not in ("ip-name", "resource-name"):
        raise invalid_value("PrivateDnsHostnameType", kind)
    records = ("EnableResourceNameDnsARecord", "EnableResourceNameDnsAAAARecord")
    if kind != "ip-name" or any(request.get(name) for name in records):
        raise unsupported("Resource based host names are not supported.")
    return {"Return": True}


def describe_instance_credit_specifications(ctx: Context, request: Request) -> dict[str, Any]:
    """No instance type is burstable, so no instance has a credit option."""
    paging.Page(ctx.action, request, ids="InstanceIds")
    table: filters.Table = {"instance-id": "InstanceId"}
    filters.compile_filters(request.get("Filters"), table, taggable=False)
    wanted = ids.check_ids(request.get("InstanceIds"), "instanceId", "i")
    if wanted:
        reconcile(ctx, Instances(groups=False, volumes=False), wanted)
    return {"InstanceCreditSpecifications": []}


def modify_instance_credit_specification(ctx: Context, request: Request) -> dict[str, Any]:
    """Each instance is told apart that its type is not burstable, as AWS does it."""
    entries = request.get("InstanceCreditSpecifications") or ()
    wanted = ids.check_ids([row.get("InstanceId") or "" for row in entries], "instanceId", "i")
    reconcile(ctx, Instances(groups=False, volumes=False), wanted)
    code = "InstanceCreditSpecification.NotSupported"
    text = "The instance type is not a burstable performance type."
    return {
        "SuccessfulInstanceCreditSpecifications": [],
        "UnsuccessfulInstanceCreditSpecifications": [
            {"InstanceId": each, "Error": {"Code": code, "Message": text}} for each in wanted
        ],
    }
