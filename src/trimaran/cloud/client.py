"""What the five thin clients have in common.

A client is a base URL, a token and a way to read a listing to its end.  Rows
stay the service's own JSON: a Describe moves thousands of them, and an object
per row would be the cost of the request.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlencode, urlsplit

import requests

from trimaran import errors
from trimaran.cloud.wire import Page, Query, Row, next_query, parameters, segment, wrap
from trimaran.identity import Session, remote
from trimaran.identity.auth import ServiceAuth, TokenAuth
from trimaran.identity.exchange import exchange

_VERSION = re.compile(r"/v\d+(\.\d+)?(/|\Z)")
_MAXIMUM = re.compile(r"maximum is (\d+)\.(\d+)", re.IGNORECASE)
# A listing that has not ended by then is going round in circles.
_MOST_PAGES = 100_000
# A marker that was deleted between two pages makes the next page fail; the
# listing is then read again from its start this many times.
_RESTARTS = 3


@dataclass(frozen=True)
class Caller:
    """Who calls, and where the services are.

    Attributes:
        session: sends with the shared transport.
        auth: the caller's token.
        region: region of the endpoints; None takes the first.
        interface: public, internal or admin.
        service_types: catalog types by client name ("volume": "volumev3").
    """

    session: Session
    auth: TokenAuth | ServiceAuth
    region: str | None
    interface: str
    service_types: Mapping[str, str]


class Client:
    """Base of the clients.

    Class attributes:
        name: the client's name, also the key in ``service_types``.
        version: path added to a catalog URL that names no version.
        microversion: sent when a method is given none; None sends no header.
        microversion_type: service type in the microversion header; default: ``name``.
        page_size: ``limit`` sent when the caller names none; None lets the service choose.
    """

    name: ClassVar[str]
    version: ClassVar[str]
    microversion: ClassVar[str | None] = None
    microversion_type: ClassVar[str] = ""
    page_size: ClassVar[int | None] = None

    _ceilings: ClassVar[dict[str, str]] = {}
    _ceilings_lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._service = caller.service_types.get(self.name, self.name)
        self._base = ""

    @property
    def base_url(self) -> str:
        """The versioned URL of the service.

        Raises:
            NoEndpoint: the catalog does not have it.
        """
        if not self._base:
            caller = self._caller
            url = caller.auth.get_endpoint(
                caller.session,
                service_type=self._service,
                interface=caller.interface,
                region_name=caller.region,
            )
            if not url:
                raise remote.NoEndpoint(service=self._service)
            url = url.rstrip("/")
            self._base = url if _VERSION.search(urlsplit(url).path) else url + self.version
        return self._base

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        json: object = None,
        microversion: str | None = None,
        headers: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> requests.Response:
        """Sends one request and returns the answer if it is a success.

        Args:
            method: HTTP method.
            path: below the versioned URL, without leading slash.
            query: None values are left out, lists repeat the parameter.
            json: body.
            microversion: wins over the client's; an older service gets the
                newest one that it has.
            headers: more headers.
            kwargs: for ``Session.request`` (data, stream…).

        Raises:
            CloudError: any answer of 300 and above, or none.
        """
        wanted = microversion or self.microversion
        response = self._send(method, path, wanted, query, json, headers, kwargs)
        if response.status_code == 406 and wanted is not None:
            ceiling = self._learn_ceiling(response)
            if ceiling is not None and ceiling != wanted:
                response = self._send(method, path, wanted, query, json, headers, kwargs)
        if response.status_code < 300:
            return response
        error = remote.error_from(response, service=self._service)
        response.close()
        if response.status_code == 401 and isinstance(self._caller.auth, ServiceAuth):
            # keystoneauth has tried a fresh token already; the caller can do nothing about it.
            ours = remote.unreachable(self._service, error.remote_message)
            ours.remote_status = 401
            raise ours
        raise error

    def json(self, method: str, path: str, **kwargs: Any) -> Row:
        """Sends one request and returns the JSON object of the answer, {} when it has none."""
        response = self.request(method, path, **kwargs)
        if not response.content:
            return {}
        try:
            body = response.json()
        except ValueError as failure:
            raise remote.unreachable(self._service, "the answer is not JSON") from failure
        if not isinstance(body, dict):
            raise remote.unreachable(self._service, "the answer is no JSON object")
        return body

    def page(
        self, path: str, collection: str, query: Query, *, microversion: str | None = None
    ) -> Page:
        """Reads one part of a listing.

        Args:
            path: of the listing.
            collection: member of the answer that has the rows.
            query: filters, ``limit``, ``marker``…
            microversion: see ``request``.
        """
        body = self.json("GET", path, query=query, microversion=microversion)
        rows = body.get(collection)
        if not isinstance(rows, list):
            raise remote.unreachable(self._service, f"the answer has no {collection}")
        return Page(rows, next_query(body, collection, query))

    def pages(
        self, path: str, collection: str, query: Query, *, microversion: str | None = None
    ) -> Iterator[list[Row]]:
        """Reads a listing part by part; an error in any part is raised.

        Raises:
            CloudError: a part could not be read, or the parts go round in circles.
        """
        following: dict[str, Any] | None = dict(query)
        if self.page_size is not None:
            following = {"limit": self.page_size} | dict(query)
        seen: set[str] = set()
        while following is not None:
            page = self.page(path, collection, following, microversion=microversion)
            yield page.rows
            following = page.next
            mark = urlencode(sorted((following or {}).items()), doseq=True)
            if following is not None and (mark in seen or len(seen) >= _MOST_PAGES):
                raise remote.unreachable(self._service, f"the pages of {collection} do not end")
            seen.add(mark)

    def all(
        self, path: str, collection: str, query: Query, *, microversion: str | None = None
    ) -> list[Row]:
        """Reads a whole listing.

        ``limit`` in the query is the size of a part, not of the result.

        Raises:
            CloudError: any part failed; there are no half listings.
        """
        for _ in range(_RESTARTS):
            rows: list[Row] = []
            try:
                for part in self.pages(path, collection, query, microversion=microversion):
                    rows.extend(part)
            except (errors.BadRequest, errors.NotFound):
                if not rows:
                    raise
                continue
            return rows
        raise remote.unreachable(self._service, f"{collection} change faster than they are read")

    # -- what most methods are made of --------------------------------------

    def _one(self, path: str, key: str, thing_id: str, **kwargs: Any) -> Row:
        return self._inner(self.json("GET", f"{path}/{segment(thing_id)}", **kwargs), key)

    def _create(self, path: str, key: str, body: Query, **kwargs: Any) -> Row:
        return self._inner(self.json("POST", path, json=wrap(key, body), **kwargs), key)

    def _update(self, path: str, key: str, thing_id: str, body: Query, **kwargs: Any) -> Row:
        document = wrap(key, body)
        return self._inner(
            self.json("PUT", f"{path}/{segment(thing_id)}", json=document, **kwargs), key
        )

    def _delete(self, path: str, thing_id: str, **kwargs: Any) -> None:
        self.request("DELETE", f"{path}/{segment(thing_id)}", **kwargs)

    def _inner(self, body: Row, key: str) -> Row:
        value = body.get(key)
        if not isinstance(value, dict):
            raise remote.unreachable(self._service, f"the answer has no {key}")
        return value

    def _send(
        self,
        method: str,
        path: str,
        microversion: str | None,
        query: Query | None,
        json: object,
        headers: Mapping[str, str] | None,
        kwargs: Mapping[str, Any],
    ) -> requests.Response:
        return exchange(
            self._caller.session,
            method,
            f"{self.base_url}/{path}",
            service=self._service,
            auth=self._caller.auth,
            headers={"Accept": "application/json", **(headers or {})},
            params=parameters(query or {}),
            json=json,
            microversion=self._capped(microversion),
            microversion_service_type=self.microversion_type or self.name,
            **kwargs,
        )

    @property
    def _place(self) -> str:
        """The server behind the URL, without a project id that the path may have."""
        return f"{self.name} {urlsplit(self.base_url).netloc}"

    def _capped(self, wanted: str | None) -> str | None:
        ceiling = self._ceilings.get(self._place)
        if wanted is None or ceiling is None or _number(wanted) <= _number(ceiling):
            return wanted
        return ceiling

    def _learn_ceiling(self, response: requests.Response) -> str | None:
        """Remembers the newest microversion that a 406 names, for all clients of that server."""
        found = _MAXIMUM.search(remote.describe(response)[1])
        if found is None:
            return None
        ceiling = f"{found[1]}.{found[2]}"
        with self._ceilings_lock:
            self._ceilings[self._place] = ceiling
        return ceiling


def _number(microversion: str) -> tuple[int, ...]:
    return tuple(int(part) for part in microversion.split("."))
