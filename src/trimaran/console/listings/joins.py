"""Names for ids, from whoever knows them.

Many ids are asked for in one call (in hundreds, for the length of a URL), and
all calls of a page at the same time.  A service that fails here, or takes longer
than ``PATIENCE``, leaves its names out: it must not take the page with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

import requests

from trimaran.cloud import NoEndpoint, Row, gather
from trimaran.console.keystones import of_region
from trimaran.console.listings.view import VOLUME_VERSION, View
from trimaran.errors import NotFound, TrimaranError
from trimaran.identity import Identity, budget, remote, rest

LOG = logging.getLogger(__name__)

T = TypeVar("T")

CHUNK = 100
# So few servers are asked for one by one; more are looked up in a list of all.
FEW = 2
# Parts of that list, of Nova's size (1000), before it is better to ask one by one after all.
MOST_PAGES = 5
# Seconds that a page waits for names.
PATIENCE = 10.0


def chunks(ids: Iterable[str | None]) -> list[list[str]]:
    """Returns the distinct ids in hundreds, in the order in which they came."""
    distinct = [each for each in dict.fromkeys(ids) if each]
    return [distinct[start : start + CHUNK] for start in range(0, len(distinct), CHUNK)]


def optional(ask: Callable[[], T], what: str) -> Callable[[], T | None]:
    """Returns a function that answers None when the service cannot be asked."""

    def asking() -> T | None:
        try:
            with budget.within(PATIENCE):
                return ask()
        except NoEndpoint:
            return None
        except TrimaranError as error:
            LOG.warning("a listing goes without %s: %s", what, error)
            return None

    return asking


def merged(asked: Sequence[Callable[[], dict[str, T] | None]]) -> dict[str, T]:
    """Asks at the same time and puts the answers together."""
    if not asked:
        return {}
    answers = gather(**{str(number): ask for number, ask in enumerate(asked)})
    return {key: value for answer in answers.values() for key, value in (answer or {}).items()}


def literal(ids: list[str]) -> str:
    """Returns a list as Cinder reads it in a filter, ``['a', 'b']``."""
    return str(ids)


def images(view: View, ids: Iterable[str | None]) -> dict[str, Row]:
    """Returns images by id."""

    def ask(some: list[str]) -> dict[str, Row]:
        return _by_id(view.system.image.images(id=f"in:{','.join(some)}"))

    return merged([optional(partial(ask, some), "images") for some in chunks(ids)])


def volumes(view: View, ids: Iterable[str | None]) -> dict[str, Row]:
    """Returns volumes of any project by id."""

    def ask(some: list[str]) -> dict[str, Row]:
        return _by_id(
            view.system.volume.volumes(
                microversion=VOLUME_VERSION, all_tenants=True, id=literal(some)
            )
        )

    return merged([optional(partial(ask, some), "volumes") for some in chunks(ids)])


def children(view: View, snapshot_ids: Iterable[str | None]) -> dict[str, list[Row]]:
    """Returns the volumes that were made from snapshots, by the snapshot's id."""

    def ask(some: list[str]) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {}
        for row in view.system.volume.volumes(
            microversion=VOLUME_VERSION, all_tenants=True, snapshot_id=literal(some)
        ):
            found.setdefault(str(row.get("snapshot_id")), []).append(row)
        return found

    return merged([optional(partial(ask, some), "volumes") for some in chunks(snapshot_ids)])


def network_names(view: View, ids: Iterable[str | None]) -> dict[str, str]:
    """Returns names of networks by id, of whatever project (F34): Neutron knows who may see."""

    def ask(some: list[str]) -> dict[str, str]:
        return _names(view.user.network.networks(id=some, fields=["id", "name"]))

    return merged([optional(partial(ask, some), "networks") for some in chunks(ids)])


def server_names(view: View, ids: Iterable[str | None]) -> dict[str, str]:
    """Returns names of servers by id, those in the recycle bin too.

    Nova cannot be asked for several ids, and ignores the filter for members
    (second section 10, row 1).  A list of all names is one call for as many
    rows as a page may have; upstream made two calls for each server (F32).
    """
    wanted = {each for each in ids if each}
    if not wanted:
        return {}
    with budget.within(PATIENCE):
        return _server_names(view, wanted)


def _server_names(view: View, wanted: set[str]) -> dict[str, str]:
    known: dict[str, str] = {}
    if len(wanted) > FEW:
        listed = optional(partial(_listed, view, wanted), "names of servers")()
        if listed is None:
            return {}
        known, complete = listed
        if complete:
            return known | _deleted(view, wanted - known.keys())
    return known | merged(
        [
            optional(partial(_one_server, view, each), "the name of a server")
            for each in sorted(wanted - known.keys())
        ]
    )


def _listed(view: View, wanted: set[str]) -> tuple[dict[str, str], bool]:
    """The names, and whether there is no use in looking further."""
    query = {"all_tenants": True} if view.all_projects else {}
    known: dict[str, str] = {}
    for number, part in enumerate(view.user.compute.pages("servers", "servers", query)):
        known |= {key: name for key, name in _names(part).items() if key in wanted}
        if wanted <= known.keys():
            break
        if number + 1 >= MOST_PAGES:
            return known, False
    return known, True


def _deleted(view: View, wanted: set[str]) -> dict[str, str]:
    if not wanted:
        return {}
    return optional(partial(_recycled, view, wanted), "names of deleted servers")() or {}


def _recycled(view: View, wanted: set[str]) -> dict[str, str]:
    """Only administrators may ask for these, so the system account does, for this project."""
    query = {"status": "soft_deleted", "deleted": True, "all_tenants": True}
    if not view.all_projects:
        query["project_id"] = view.project_id
    rows = view.system.compute.all("servers", "servers", query)
    return {key: name for key, name in _names(rows).items() if key in wanted}


def _one_server(view: View, server_id: str) -> dict[str, str]:
    try:
        return _names([view.user.compute.server(server_id)])
    except NotFound:
        return {}


def project_names(view: View, ids: Iterable[str | None] = ()) -> dict[str, str]:
    """Returns names of projects by id; nothing unless all projects are looked at.

    Args:
        view: whose eyes.
        ids: of projects that must be among them, if Keystone has them; without
            any, the names can be fetched while the rows are.
    """
    if not view.all_projects:
        return {}
    identity, region = view.parts.identity, view.caller.region

    def names() -> dict[str, str]:
        return view.parts.projects.names(
            of_region(identity, region),
            (each for each in ids if each),
            lambda: _names(_projects(identity, region)),
        )

    return optional(names, "names of projects")() or {}


def project_ids(view: View, name: str) -> list[str]:
    """Returns the projects of a name; in several domains there may be several.

    Raises:
        errors.Unavailable: Keystone does not answer.
    """
    found = _projects(view.parts.identity, view.caller.region, name=name)
    return [str(row["id"]) for row in found]


def _projects(identity: Identity, region: str, **query: Any) -> list[Row]:
    url = f"{identity.endpoint(of_region(identity, region))}/projects"
    rows: list[Row] = []
    following: dict[str, Any] | None = query
    while following is not None:
        address = f"{url}?{urlencode(following, doseq=True)}" if following else url
        response = identity.with_service_token(partial(_get, identity, address))
        if response.status_code != 200:
            raise rest.our_fault(remote.error_from(response, service="identity"))
        body = response.json()
        rows += body.get("projects") or []
        following = _following(body, following)
    return rows


def _get(identity: Identity, address: str, token: str) -> requests.Response:
    return identity.call("GET", address, token=token)


def _following(body: Row, asked: dict[str, Any]) -> dict[str, Any] | None:
    link = (body.get("links") or {}).get("next")
    found = dict(parse_qsl(urlsplit(link).query)) if isinstance(link, str) else {}
    return found if found and found != asked else None


def _by_id(rows: list[Row]) -> dict[str, Row]:
    return {str(row["id"]): row for row in rows}


def _names(rows: list[Row]) -> dict[str, str]:
    return {str(row["id"]): row.get("name") or "" for row in rows}
