"""The errors of the cloud clients, under the names a hull uses.

They are made in ``trimaran.identity.remote``, where Keystone's answers need
them too.  Catch the class of ``trimaran.errors`` for the meaning (``NotFound``)
and ``CloudError`` where the service's own words matter.
"""

from __future__ import annotations

from trimaran.identity.remote import NoEndpoint
from trimaran.identity.remote import RemoteError as CloudError

__all__ = ["CloudError", "NoEndpoint"]
