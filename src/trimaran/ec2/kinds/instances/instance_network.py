"""The network interfaces of instances: how they are shown, and *the* one of an instance.

An instance outside a VPC has none that EC2 knows of.  What is asked of *the*
interface of an instance needs exactly one (spec ec2.md 3.6).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Any

from trimaran.ec2.context import Context
from trimaran.ec2.kinds.interfaces.network_interface_attachments import settle_attachments
from trimaran.ec2.kinds.interfaces.network_interface_kind import Interfaces
from trimaran.ec2.kinds.interfaces.network_interface_view import InterfaceDescriber, by_index
from trimaran.ec2.protocol.errors import EC2Error, invalid_combination
from trimaran.ec2.reconcile import reconcile
from trimaran.ec2.reconcile_kind import Pair, View


class Networks:
    """The interfaces of one view by their instances.

    Args:
        view: of `Interfaces`.
        of: the kind that the view is of.
    """

    def __init__(self, view: View, of: Interfaces) -> None:
        self._describer = InterfaceDescriber(view, of)
        self._pairs: dict[str, list[Pair]] = defaultdict(list)
        for pair in view.pairs:
            if instance_id := self._describer.instance_of(pair):
                self._pairs[instance_id].append(pair)

    def pairs(self, instance_id: str) -> list[Pair]:
        """The interfaces of an instance."""
        return self._pairs.get(instance_id, [])

    def shown(self, instance_id: str) -> list[dict[str, Any]]:
        """The interfaces of an instance as boto3 shows them inside it, the first one first."""
        rows = [self._describer.shown_in_instance(pair) for pair in self.pairs(instance_id)]
        return by_index(rows)

    def vpc_of(self, instance_id: str) -> str | None:
        """The VPC of an instance."""
        return next((pair.item.vpc_id for pair in self.pairs(instance_id)), None)


def networks_of(ctx: Context, instance_ids: Collection[str] | None) -> Networks:
    """The interfaces of instances, or all."""
    of = Interfaces(of=None if instance_ids is None else set(instance_ids))
    return Networks(settle_attachments(ctx, reconcile(ctx, of)), of)


def the_interface(ctx: Context, instance_id: str, attribute: str) -> tuple[Pair, Networks]:
    """The one interface of an instance.

    Raises:
        EC2Error: ``InvalidParameterCombination`` outside a VPC,
            ``InvalidInstanceID`` when there are several.
    """
    networks = networks_of(ctx, [instance_id])
    found = networks.pairs(instance_id)
    if not found:
        raise invalid_combination(
            f"The attribute '{attribute}' is only for instances in a VPC ({instance_id} is not)."
        )
    if len(found) > 1:
        raise EC2Error(
            "InvalidInstanceID",
            f"There are multiple interfaces attached to instance '{instance_id}'. "
            "Please specify an interface ID for the operation instead.",
        )
    return found[0], networks
