"""Sessions: a signed cookie, and one row when it was logged out before its end.

The cookie is upstream's to the letter (spec/skyline.md 2.2), so that sessions
survive a change from one service to the other and are shared by all replicas
that have the same key.
"""

from __future__ import annotations

import hashlib
import time
import uuid
import warnings
from dataclasses import dataclass, replace
from typing import Any

import jwt
from starlette.requests import HTTPConnection
from starlette.responses import Response

from trimaran.config.console import Default
from trimaran.console.texts import is_whole
from trimaran.errors import Unauthenticated

ALGORITHM = "HS256"
EXPIRY_COOKIE = "time_expired"
# The operator's secret_key may be shorter than PyJWT likes; it must stay equal to upstream's.
warnings.filterwarnings("ignore", category=jwt.InsecureKeyLengthWarning)

CLAIMS: dict[str, type] = {"keystone_token": str, "region": str, "exp": int, "uuid": str}


@dataclass(frozen=True)
class Session:
    """What the cookie says.

    Attributes:
        keystone_token: the caller's project-scoped token.
        region: the region chosen.
        exp: end of the session, Unix seconds.
        uuid: 32 hex digits; what a logout revokes.
    """

    keystone_token: str
    region: str
    exp: int
    uuid: str


class Sessions:
    """Makes, reads and renews sessions.

    Args:
        options: group ``default`` of skyline.yaml.
    """

    def __init__(self, options: Default) -> None:
        self._key = options.secret_key.encode("utf-8")
        self._length = options.access_token_expire
        self._renew = options.access_token_renew
        self.cookie = options.session_name

    def new(self, keystone_token: str, region: str) -> Session:
        """Returns a new session of full length."""
        return Session(keystone_token, region, self._full(), uuid.uuid4().hex)

    def renewed(self, session: Session) -> Session | None:
        """Returns the session with its full length again, None while it is not due.

        Same uuid, token and region (spec/skyline.md 2.3).
        """
        if 0 < session.exp - int(time.time()) < self._renew:
            return replace(session, exp=self._full())
        return None

    def revoked_until(self, session: Session) -> int:
        """Returns until when a revocation of the session must be remembered.

        A copy of the cookie with a later end exists at most when this one was
        used in its last ``access_token_renew`` seconds.
        """
        if session.exp - int(time.time()) < self._renew:
            return max(session.exp, self._full())
        return session.exp

    def encode(self, session: Session) -> str:
        """Returns the cookie's value."""
        claims = {
            "keystone_token": session.keystone_token,
            "region": session.region,
            "exp": session.exp,
            "uuid": session.uuid,
        }
        return jwt.encode(claims, self._key, algorithm=ALGORITHM)

    def decode(self, value: str) -> Session:
        """Reads a cookie.

        Raises:
            Unauthenticated: not ours, changed, ended or incomplete; the
                message is the reason (spec/skyline.md 1.1).
        """
        try:
            claims: dict[str, Any] = jwt.decode(
                value,
                self._key,
                algorithms=[ALGORITHM],
                options={"verify_aud": False, "verify_iat": False, "verify_nbf": False},
            )
        except jwt.ExpiredSignatureError:
            raise Unauthenticated("Token expired - Signature has expired.") from None
        except jwt.InvalidSignatureError:
            raise Unauthenticated("Signature verification failed.") from None
        except jwt.PyJWTError as error:
            raise Unauthenticated(str(error)) from None
        except (ValueError, TypeError, RecursionError):
            # Whatever a hostile header or payload makes the parser stumble over.
            raise Unauthenticated("Not enough segments") from None
        for name, kind in CLAIMS.items():
            found = claims.get(name)
            if not isinstance(found, kind) or isinstance(found, bool):
                raise Unauthenticated(f"'{name}'")
            if isinstance(found, str) and not is_whole(found):
                raise Unauthenticated(f"'{name}'")
        return Session(**{name: claims[name] for name in CLAIMS})

    def set_cookies(self, response: Response, session: Session, connection: HTTPConnection) -> None:
        """Adds the session's two cookies to a response.

        Args:
            response: gets the cookies.
            session: what they say.
            connection: the request; over https the session cookie is for https only.
        """
        # The front end reads time_expired by script and never the session.
        response.set_cookie(
            self.cookie,
            self.encode(session),
            samesite="lax",
            httponly=True,
            secure=over_https(connection),
        )
        response.set_cookie(EXPIRY_COOKIE, str(session.exp), samesite="lax")

    def delete_cookies(self, response: Response) -> None:
        """Makes the browser forget the session."""
        response.delete_cookie(self.cookie, samesite="lax")
        response.delete_cookie(EXPIRY_COOKIE, samesite="lax")

    def _full(self) -> int:
        return int(time.time()) + self._length


def over_https(connection: HTTPConnection) -> bool:
    """Tells whether the browser speaks https, to us or to the proxy before us.

    A client that lies about it only withholds its own cookie from itself.
    """
    forwarded = connection.headers.get("x-forwarded-proto", "").split(",")[0].strip().lower()
    return (forwarded or connection.url.scheme) == "https"


def token_key(keystone_token: str) -> str:
    """Returns the revocation key of a Keystone token, which must not be stored in clear.

    Other cookies and header sessions may carry the same token; with this key
    they are refused as soon as the logout is committed, not when the caches
    of Keystone's answers have ended.
    """
    return f"token-{hashlib.sha256(keystone_token.encode('utf-8')).hexdigest()}"
