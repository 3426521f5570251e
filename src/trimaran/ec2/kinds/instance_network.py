"""The network interfaces of an instance, as far as its attributes need them.

An instance outside a VPC has none that EC2 knows of.  What is asked of *the*
interface of an instance needs exactly one (spec ec2.md 3.6).
"""

from __future__ import annotations

from trimaran.db.queries import ec2 as queries
from trimaran.db.queries.ec2 import Item
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.instance_view import Instance
from trimaran.ec2.protocol.errors import EC2Error, invalid_combination


def interfaces_of(ctx: Context, instance: Instance) -> list[Item]:
    """The items of an instance's interfaces."""
    items = ctx.db.read(lambda s: queries.items_of(s, ctx.project_id, ["eni"]))
    return [item for item in items if item.data.get("instance_id") == instance.id]


def the_interface(ctx: Context, instance: Instance, attribute: str) -> Item:
    """The one interface of an instance.

    Raises:
        EC2Error: ``InvalidParameterCombination`` outside a VPC,
            ``InvalidInstanceID`` when there are several.
    """
    found = interfaces_of(ctx, instance)
    if not found:
        raise invalid_combination(
            f"The attribute '{attribute}' is only for instances in a VPC ({instance.id} is not)."
        )
    if len(found) > 1:
        raise EC2Error(
            "InvalidInstanceID",
            f"There are multiple interfaces attached to instance '{instance.id}'. "
            "Please specify an interface ID for the operation instead.",
        )
    return found[0]
