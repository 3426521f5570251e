"""Acting for whoever asked, after the request is over.

A token made from EC2 credentials ends, and may call no Keystone API, so it can
make no trust (spec ec2.md 11.1).  What lasts is the EC2 credential that signed
the request: the service user reads it in Keystone, signs with it, and Keystone
mints a fresh token with the rights that its owner has *now*.  Nothing secret is
stored; a credential that was deleted, or an owner who was disabled, ends it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from trimaran import errors
from trimaran.ec2 import auth
from trimaran.ec2.auth import Signed
from trimaran.ec2.protocol.parameters import Parameters

if TYPE_CHECKING:
    from trimaran.cloud import Cloud
    from trimaran.ec2.context import Context
    from trimaran.identity import Identity, Token


@dataclass(frozen=True)
class Person:
    """Who asked, as a job's payload keeps it.

    Attributes:
        user: Keystone's user id.
        project: the credential's project.
        access: the access key, which is no secret.
    """

    user: str
    project: str
    access: str

    def noted(self) -> dict[str, str]:
        """For a payload."""
        return asdict(self)


def person_of(payload: Mapping[str, Any]) -> Person:
    """The person in a payload."""
    return Person(payload["user"], payload["project"], payload["access"])


class Deputies:
    """Acts for people.

    Args:
        identity: Keystone.
        cloud: the OpenStack services.
        region: the region's name on the wire.
    """

    def __init__(self, identity: Identity, cloud: Cloud, region: str) -> None:
        self._identity = identity
        self._cloud = cloud
        self._region = region

    def keys(self, person: Person) -> tuple[str, str]:
        """The (access, secret) keys of a person, as Keystone has them now.

        Raises:
            errors.Unauthenticated: the credential is gone, or is another's.
            errors.Unavailable: Keystone fails, or does not let us read it.
        """
        row = self._identity.ec2_credential(person.user, person.access)
        if row.get("tenant_id") != person.project or not row.get("secret"):
            raise errors.Unauthenticated()
        return person.access, str(row["secret"])

    def token(self, person: Person) -> Token:
        """A fresh token of a person.

        Raises:
            errors.Unauthenticated: its owner may not have one any more.
            errors.Unavailable: see `keys`.
        """
        host = urlsplit(self._identity.auth_url).netloc
        request = AWSRequest("GET", f"http://{host}/", headers={"Host": host})
        SigV4Auth(Credentials(*self.keys(person)), "ec2", self._region).add_auth(request)
        headers = {name.lower(): value for name, value in request.headers.items()}
        signed = Signed("GET", "/", headers, Parameters({}, {}, {}), b"")
        token = self._identity.ec2(auth.credentials(signed))
        if token.project_id != person.project or token.user_id != person.user:
            raise errors.Unauthenticated()
        return token

    def as_person(self, ctx: Context, person: Person) -> Context:
        """A context in which the user's session is the person's, with a fresh token.

        Raises:
            errors.Unauthenticated, errors.Unavailable: see `token`.
        """
        token = self.token(person)
        return replace(ctx, token=token, user=self._cloud.as_user(token), access_key=person.access)


def fingerprint(data: bytes) -> str:
    """What a job remembers of a document, to notice that it was changed meanwhile."""
    return hashlib.sha256(data).hexdigest()


def caller(ctx: Context) -> Person:
    """The caller of a request, for a job that goes on in its name.

    Raises:
        errors.Unavailable: the credential cannot be read: better told now than
            found out by the job.
    """
    person = Person(ctx.user_id, ctx.project_id, ctx.access_key)
    if ctx.deputies is None:
        raise errors.Unavailable(service="identity")
    ctx.deputies.keys(person)
    return person
