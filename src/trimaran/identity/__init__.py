"""Keystone: system session, token validation, EC2 signatures, logins.

See ``keystone`` for the object that a service holds, ``rest`` for how it asks,
``auth`` for how a caller's token is used without asking.
"""

from trimaran.identity import budget, calls, outgoing
from trimaran.identity.auth import ServiceAuth, TokenAuth
from trimaran.identity.calls import Calls, count_calls
from trimaran.identity.keystone import Identity
from trimaran.identity.load import from_conf, from_password
from trimaran.identity.login import MoreMethodsRequired
from trimaran.identity.outgoing import outgoing_headers, sending
from trimaran.identity.remote import NoEndpoint, RemoteError
from trimaran.identity.token import Token
from trimaran.identity.transport import Session

__all__ = [
    "Calls",
    "Identity",
    "MoreMethodsRequired",
    "NoEndpoint",
    "RemoteError",
    "ServiceAuth",
    "Session",
    "Token",
    "TokenAuth",
    "budget",
    "calls",
    "count_calls",
    "from_conf",
    "from_password",
    "outgoing",
    "outgoing_headers",
    "sending",
]
