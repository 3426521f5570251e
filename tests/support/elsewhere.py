"""Has our code find a service of the cloud at another address than the catalog's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from trimaran.identity import catalog


@contextlib.contextmanager
def led(places: Mapping[str, str]) -> Iterator[None]:
    """Leads the calls of this process to other places for as long as a block runs.

    Args:
        places: host and port by service type.
    """
    real = catalog.find_url

    def find_url(*args: Any, **kwargs: Any) -> str | None:
        url = real(*args, **kwargs)
        place = places.get(args[1])
        return urlunsplit(urlsplit(url)._replace(netloc=place)) if url and place else url

    catalog.find_url = find_url
    try:
        yield
    finally:
        catalog.find_url = real
