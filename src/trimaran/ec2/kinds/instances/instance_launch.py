"""RunInstances: the plan, and four steps that another process takes over when this one dies.

1. *reserve*: one transaction stores the client token, the items (with their
   final ids, the stage ``launching`` and no OpenStack id), those of their
   interfaces, their tags and the launch's entry in the journal.
2. *boot*: each server's ports are made (`launch_interfaces`), then the server
   with its final name, the instance id, and with the id in its metadata (a
   rename after the create gets lost under load, spec ec2.md 11.10).  A sign of
   life to the journal every few servers.
3. *conclude* (`launch_settle`): enough servers: their ids are stored and the
   items of those that failed are deleted.  Not enough: what has a server
   becomes ``undone``, which hides it; the rest and the token are deleted.
4. Servers of an undone launch are deleted, then what was plugged into them.

A process that dies in between leaves the journal's entry, upon which any other
one does steps 3 and 4 from what Nova shows (`trimaran.ec2.jobs.launch`).  A
server without item cannot be, since the item comes first: a describe pairs the
two by metadata or name.  The retry of a client whose request died finds the
token and gets the reservation as it stands.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.orm import Session

from trimaran.cloud import CloudError, gather
from trimaran.db.queries import ec2 as queries
from trimaran.db.queries import ec2_tags as tag_queries
from trimaran.db.queries import ec2_tokens as token_queries
from trimaran.db.queries.ec2 import Item, NewItem
from trimaran.ec2 import ids, journal
from trimaran.ec2.context import Context
from trimaran.ec2.kinds.client_token import check_token, fingerprint
from trimaran.ec2.kinds.instances import launch_interfaces
from trimaran.ec2.kinds.instances.instance_kind import FACTS, LAUNCHING, MARK, STAGE, Instances
from trimaran.ec2.kinds.instances.instance_network import Networks, networks_of
from trimaran.ec2.kinds.instances.instance_view import Describer, reservations
from trimaran.ec2.kinds.instances.launch_devices import invalid_devices
from trimaran.ec2.kinds.instances.launch_interfaces import Made, Place
from trimaran.ec2.kinds.instances.launch_plan import Plan, make_plan
from trimaran.ec2.kinds.instances.launch_settle import ACTION, TRIES, Conclusion, Launch, conclude
from trimaran.ec2.kinds.interfaces import network_interface_kind as interface_kind
from trimaran.ec2.kinds.item_store import shown_tags
from trimaran.ec2.protocol.errors import EC2Error
from trimaran.ec2.reconcile import reconcile
from trimaran.ec2.reconcile_kind import Found, Pair, View
from trimaran.errors import (
    BadRequest,
    Conflict,
    NotFound,
    QuotaExceeded,
    TrimaranError,
    Unavailable,
)

LOG = logging.getLogger(__name__)

#: Servers of one launch that are created at the same time.
AT_ONCE = 8


@dataclass(frozen=True)
class Boot:
    """What became of one server.

    Attributes:
        os_id: Nova's id, or "" when there is none or it is not known.
        error: why it failed, or None.
        doubtful: it may exist although Nova did not say so.
    """

    item: Item
    os_id: str = ""
    error: TrimaranError | None = None
    doubtful: bool = False


@dataclass(frozen=True)
class Reserved:
    """A launch that is on record.

    Attributes:
        places: what each instance is plugged into, by instance id.
        made: what Neutron has made for it so far.
    """

    launch: Launch
    items: list[Item]
    job_id: str
    places: Mapping[str, Sequence[Place]] = field(default_factory=dict)
    made: Made = field(default_factory=Made)


def run_instances(ctx: Context, request: Mapping[str, Any]) -> dict[str, Any]:
    """Launch between MinCount and MaxCount instances as one reservation."""
    token = check_token(request)
    if token:
        known = ctx.db.read(lambda s: token_queries.find_token(s, ctx.project_id, ACTION, token))
        if known is not None:
            return _replay(ctx, known, fingerprint(request))
    plan = make_plan(ctx, request)
    ctx.commit_point()
    reserved = _reserve(ctx, plan)
    if isinstance(reserved, token_queries.ClientToken):
        return _replay(ctx, reserved, plan.fingerprint)
    boots = _boot(ctx, plan, reserved)
    items = _settle(ctx, reserved, boots)
    return _answer(ctx, plan, reserved, items)


def _replay(ctx: Context, known: token_queries.ClientToken, asked: str) -> dict[str, Any]:
    """The reservation of an earlier request with the same token, as it is now."""
    if known.fingerprint != asked:
        raise EC2Error(
            "IdempotentParameterMismatch",
            "The client token was used with other parameters before.",
        )
    items = ctx.db.read(lambda s: queries.items_of(s, ctx.project_id, ["i"]))
    kind = Instances()
    mine = [
        item.id
        for item in items
        if item.data.get("reservation_id") == known.result
        and not kind.hidden(item)
        and not (item.dead_for is not None and kind.expired(ctx, item))
    ]
    shown: list[tuple[str, dict[str, Any]]] = []
    if mine:
        view = reconcile(ctx, kind, mine)
        describer = Describer(view, networks_of(ctx, mine))
        shown = [(each.reservation_id, each.shown()) for each in describer.instances()]
    found = reservations(shown, ctx.project_id)
    empty = {"OwnerId": ctx.project_id, "Groups": [], "Instances": []}
    return found[0] if found else {"ReservationId": known.result, **empty}


def _reserve(ctx: Context, plan: Plan) -> Reserved | token_queries.ClientToken:
    """Step 1.  Returns what was reserved, or the token of the request that came first."""
    groups = [NewItem("sg", group["id"], ctx.project_id) for group in plan.groups]
    for _ in range(TRIES):
        reservation_id = ids.mint_reservation()
        new = [_new_item(ctx, plan, reservation_id, index) for index in range(plan.most)]
        places = {item.id: launch_interfaces.places(plan.network) for item in new if plan.network}
        launch = Launch(
            reservation_id,
            [item.id for item in new],
            plan.least,
            token=plan.token,
            volume_tags=plan.volume_tags,
            plugged={i: _made_ids(mine) for i, mine in places.items()},
            borrowed={i: lent for i, mine in places.items() if (lent := _lent_ids(mine))},
        )

        def store(
            session: Session,
            new: list[NewItem] = new,
            launch: Launch = launch,
            places: Mapping[str, Sequence[Place]] = places,
        ) -> Reserved | token_queries.ClientToken:
            if plan.network is not None:
                launch_interfaces.hold(session, ctx, plan.network)
            if plan.token:
                taken = token_queries.take_token(
                    session,
                    ctx.project_id,
                    ACTION,
                    plan.token,
                    plan.fingerprint,
                    launch.reservation_id,
                )
                if taken.result != launch.reservation_id:
                    return taken
            if plan.network is not None:
                launch_interfaces.reserve(session, ctx, plan.network, places)
            known = queries.add_items(session, groups, ids.mint)
            shown = [
                {"GroupName": group["name"], "GroupId": item.id}
                for group, item in zip(plan.groups, known, strict=True)
            ]
            full = [_with_groups(each, shown) for each in new]
            items = queries.add_items(session, full, ids.mint)
            tags = [
                tag_queries.Tag(item.id, key, value)
                for item in items
                for key, value in plan.tags.items()
            ]
            tag_queries.set_tags(session, ctx.project_id, tags)
            job_id = journal.begin(
                session,
                ctx.conf,
                journal.LAUNCH,
                launch.reservation_id,
                launch.payload(ctx.project_id),
            )
            return Reserved(launch, items, job_id, places)

        try:
            return ctx.db.write(store)
        except Conflict:
            continue  # one of the ids is taken: nothing was stored, mint others
    raise TrimaranError("No free id could be found.")


def _new_item(ctx: Context, plan: Plan, reservation_id: str, index: int) -> NewItem:
    data: dict[str, Any] = {
        "reservation_id": reservation_id,
        "launch_index": index,
        STAGE: LAUNCHING,
        FACTS: dict(plan.facts),
    }
    if plan.token:
        data["client_token"] = plan.token
    data.update(plan.options)
    vpc_id = plan.network.vpc_id if plan.network else None
    return NewItem("i", None, ctx.project_id, data, vpc_id, id=ids.mint("i"))


def _made_ids(places: Sequence[Place]) -> list[str]:
    new = [place for place in places if place.interface.existing is None]
    return [each for place in new for each in (place.id, place.address_id) if each]


def _lent_ids(places: Sequence[Place]) -> list[str]:
    return [place.id for place in places if place.interface.existing is not None]


def _with_groups(new: NewItem, groups: list[dict[str, str]]) -> NewItem:
    data = {**new.data, FACTS: {**new.data[FACTS], "groups": groups}}
    return NewItem(new.kind, new.os_id, new.project_id, data, new.vpc_id, id=new.id)


def _boot(ctx: Context, plan: Plan, reserved: Reserved) -> list[Boot]:
    """Step 2, a few servers at a time; never raises for what Nova refuses.

    It ends early when MinCount is out of reach, when Nova says that the quota
    is used up, or when another process has taken the launch over: what has not
    been tried then counts as failed.
    """

    def bound(item: Item) -> Callable[[], Boot]:
        return lambda: _boot_one(ctx, plan, reserved, item)

    items = reserved.items
    boots: list[Boot] = []
    for some in queries.chunks(items, AT_ONCE):
        if boots and not ctx.db.write(lambda s: journal.alive(s, ctx.conf, reserved.job_id)):
            late = Unavailable(service="compute")
            boots += [Boot(item, error=late) for item in items[len(boots) :]]
            break
        made = gather(**{item.id: bound(item) for item in some})
        boots += [made[item.id] for item in some]
        failed = [boot for boot in boots if boot.error is not None]
        full = any(isinstance(boot.error, QuotaExceeded) for boot in failed)
        if full or len(items) - len(failed) < plan.least:
            boots += [Boot(item, error=failed[0].error) for item in items[len(boots) :]]
            break
    return boots


def _boot_one(ctx: Context, plan: Plan, reserved: Reserved, item: Item) -> Boot:
    body = {**plan.server, "name": item.id, "metadata": {MARK: item.id}}
    if plan.network is not None:
        mine = reserved.places[item.id]
        try:
            body["networks"] = launch_interfaces.make(ctx, plan.network, mine, reserved.made)
        except TrimaranError as error:
            LOG.info("Instance %s cannot be plugged in: %s", item.id, _words(error))
            return Boot(item, error=error)
    try:
        return Boot(item, os_id=str(ctx.user.compute.create_server(body)["id"]))
    except Unavailable as error:
        return _look_for(ctx, item, error)
    except TrimaranError as error:
        LOG.info("Nova refused instance %s: %s", item.id, _words(error))
        return Boot(item, error=_refusal(error))


def _look_for(ctx: Context, item: Item, error: TrimaranError) -> Boot:
    """No answer is no refusal: the server may be there."""
    LOG.warning("Nova did not say whether it made instance %s: %s", item.id, _words(error))
    try:
        found = ctx.user.compute.servers(name=f"^{item.id}$")
    except TrimaranError:
        return Boot(item, error=error, doubtful=True)
    return Boot(item, os_id=found[0]["id"]) if found else Boot(item, error=error)


def _words(error: TrimaranError) -> str:
    return error.remote_message if isinstance(error, CloudError) else str(error)


def _refusal(error: TrimaranError) -> TrimaranError:
    """Nova's refusal as EC2 says it; Nova's own words stay in the log (F8)."""
    words = _words(error).lower()
    if isinstance(error, BadRequest | NotFound):
        if "too small" in words:
            return EC2Error(
                "InvalidParameterValue", "The image does not fit into the instance type."
            )
        if "not bootable" in words:
            return invalid_devices("The root device's volume or snapshot is not bootable")
        return EC2Error(
            "InvalidParameterValue", "The instance cannot be launched with these parameters."
        )
    return error


def _settle(ctx: Context, reserved: Reserved, boots: Sequence[Boot]) -> list[Item]:
    """Steps 3 and 4.  Returns the items that stay.

    Raises:
        TrimaranError: fewer than MinCount could be launched; everything is undone.
    """
    servers = {boot.item.id: None if boot.doubtful else boot.os_id for boot in boots}
    launch = reserved.launch

    def also(session: Session, made: Conclusion) -> bool:
        launch_interfaces.settle(session, ctx, launch, made, reserved.made)
        return bool(launch_interfaces.to_release(launch, made))

    made = conclude(ctx, launch, servers, ctx.db.write, reserved.job_id, also)
    gone = all(delete_servers(ctx, made.doomed, ctx.user.compute.delete_server))
    unplugged = launch_interfaces.to_release(launch, made)
    if gone and unplugged:
        gone = _release(ctx, launch, unplugged)
    if gone and (made.doomed or unplugged) and not (made.left or launch.volume_tags):
        ctx.db.write(lambda s: journal.end(s, reserved.job_id))
    elif not gone or (made.success and launch.volume_tags):
        ctx.db.write(lambda s: journal.hasten(s, reserved.job_id))
    if made.success:
        return made.stay
    refused = (boot.error for boot in boots if boot.error is not None)
    raise next(refused, Unavailable(service="compute"))


def _release(ctx: Context, launch: Launch, instance_ids: Sequence[str]) -> bool:
    """Whether everything that was plugged into instances that are none could be deleted."""
    try:
        launch_interfaces.release(ctx, launch, instance_ids)
    except TrimaranError as error:
        LOG.error("Interfaces of a failed launch could not be deleted: %s", _words(error))
        return False
    return True


def delete_servers(
    ctx: Context, os_ids: Sequence[str], delete: Callable[[str], None]
) -> list[bool]:
    """Delete servers of a launch that was undone; whether Nova took each order."""

    def bound(os_id: str) -> Callable[[], bool]:
        return lambda: _delete(os_id, delete)

    return list(gather(**{os_id: bound(os_id) for os_id in os_ids}).values())


def _delete(os_id: str, delete: Callable[[str], None]) -> bool:
    try:
        delete(os_id)
    except NotFound:
        return True
    except TrimaranError as error:
        LOG.error("Server %s of a failed launch could not be deleted: %s", os_id, _words(error))
        return False
    return True


def _answer(ctx: Context, plan: Plan, reserved: Reserved, items: Sequence[Item]) -> dict[str, Any]:
    """The new reservation, from what is known: Nova could not tell more yet."""
    tags = shown_tags(plan.tags)
    view = View(ctx, pairs=[Pair(item, None) for item in items])
    if tags:
        view.tags = {item.id: tags for item in items}
    networks = _networks(ctx, plan, reserved) if plan.network else None
    describer = Describer(view, networks)
    shown = [(reserved.launch.reservation_id, each.shown()) for each in describer.instances()]
    return reservations(shown, ctx.project_id)[0]


def _networks(ctx: Context, plan: Plan, reserved: Reserved) -> Networks:
    """The interfaces of new instances; of those that there were before, as they are now."""
    network = plan.network
    assert network is not None
    if network.existing:
        return networks_of(ctx, list(reserved.places))
    of = interface_kind.Interfaces()
    view = View(ctx, ids={os_id: group_id for group_id, os_id in network.groups.items()})
    view.listed = {
        "groups": interface_kind.group_rows(ctx),
        "floating_ips": list(reserved.made.addresses.values()),
    }
    wanted = list(reserved.made.ports)
    for item in ctx.db.read(lambda s: queries.items_by_ids(s, ctx.project_id, wanted)):
        port = reserved.made.ports[item.id]
        view.pairs.append(Pair(item, Found(interface_kind.PREFIX, port["id"], port)))
    elastic = [row["id"] for row in reserved.made.addresses.values()]
    of.elastic = ctx.db.read(lambda s: queries.by_os_ids(s, elastic)) if elastic else {}
    return Networks(view, of)
