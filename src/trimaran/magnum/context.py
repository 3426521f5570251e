"""Who asks: the context that handlers, objects and drivers are given.

Its attribute names are upstream's, because drivers read them and because an
upstream API or conductor may be at the other end of the queue.  Two things
differ on purpose: the token's body never travels (fault F-55), and the
database is part of the context instead of a global of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from trimaran.errors import Unauthenticated

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from trimaran.cloud import Cloud, CloudSession
    from trimaran.db import Database
    from trimaran.magnum.certificates import Certificates
    from trimaran.policy import Context


#: members that never travel
_LOCAL = frozenset({"db", "cloud", "certificates", "settled"})


@dataclass
class RequestContext:
    """The caller of an operation, in the conductor and in drivers.

    Attributes:
        auth_token: the user's token, where one is at hand.
        all_tenants: whether object listings cross projects.
        operation_id: the recorded operation that this message is about.
        db: the database that objects of this context read and write.
        cloud: the OpenStack services, for drivers that need them.
        certificates: the clusters' certificates, for drivers that need them.
        settled: called with session, UUID and status in the transaction in
            which an object of this context saves that a cluster's operation ended.
    """

    auth_token: str | None = field(default=None, repr=False)
    auth_url: str | None = None
    user_id: str | None = None
    user_name: str | None = None
    user_domain_id: str | None = None
    user_domain_name: str | None = None
    project_id: str | None = None
    project_name: str | None = None
    domain_id: str | None = None
    roles: list[str] = field(default_factory=list)
    is_admin: bool = False
    all_tenants: bool = False
    read_only: bool = False
    show_deleted: bool = False
    request_id: str | None = None
    operation_id: str | None = None
    db: Database | None = field(default=None, repr=False, compare=False)
    cloud: Cloud | None = field(default=None, repr=False, compare=False)
    certificates: Certificates | None = field(default=None, repr=False, compare=False)
    settled: Callable[[Session, str, str], None] | None = field(
        default=None, repr=False, compare=False
    )

    @classmethod
    def from_policy(cls, context: Context, *, auth_url: str | None = None) -> RequestContext:
        """Takes over what the API knows of its caller.

        Args:
            context: of the HTTP request.
            auth_url: Keystone's URL, for drivers that ask for it.
        """
        token = context.token
        return cls(
            auth_token=token.id,
            auth_url=auth_url,
            user_id=token.user_id,
            user_name=token.user_name,
            user_domain_id=token.user_domain_id,
            user_domain_name=token.user_domain_name,
            project_id=token.project_id,
            project_name=token.project_name,
            domain_id=token.domain_id,
            roles=list(token.roles),
            is_admin=bool(context.is_admin),
            request_id=context.request_id or None,
        )

    @classmethod
    def admin(cls, db: Database | None = None, cloud: Cloud | None = None) -> RequestContext:
        """Returns the context of periodic work: every project, no token."""
        return cls(is_admin=True, all_tenants=True, db=db, cloud=cloud)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RequestContext:
        """Reads a context off the wire; members that we do not know are left out."""
        known = {item.name for item in fields(cls)} - _LOCAL
        chosen = {name: value for name, value in values.items() if name in known}
        for name in ("is_admin", "all_tenants", "read_only", "show_deleted"):
            chosen[name] = bool(chosen.get(name))
        chosen["roles"] = list(chosen.get("roles") or [])
        return cls(**chosen)

    def to_dict(self) -> dict[str, Any]:
        """Returns the context as it travels: upstream's members (spec/magnum.md section 3)."""
        values = {
            item.name: getattr(self, item.name) for item in fields(self) if item.name not in _LOCAL
        }
        if self.operation_id is None:
            del values["operation_id"]
        values.update(
            user=self.user_name,
            project=self.project_id,
            domain=self.domain_id,
            user_domain=self.user_domain_id,
            project_domain=None,
            system_scope=None,
            auth_token_info=None,
            is_admin_project=True,
            global_request_id=None,
            resource_uuid=None,
            user_identity=" ".join(
                item or "-"
                for item in (
                    self.user_name,
                    self.project_id,
                    self.domain_id,
                    self.user_domain_id,
                    None,
                )
            ),
        )
        return values

    def elevated(self) -> RequestContext:
        """Returns a copy that crosses projects and keeps the token."""
        return replace(self, is_admin=True, all_tenants=True)

    def at(self, db: Database, cloud: Cloud | None = None) -> RequestContext:
        """Returns a copy whose objects use this database, and whose drivers this cloud."""
        return replace(self, db=db, cloud=cloud)

    def user_session(self) -> CloudSession:
        """Returns the OpenStack services as the user of this request.

        Our own token goes along: services then accept the user's token beyond
        its end, for as long as Keystone's ``allow_expired_window``, because
        the operation began while it was valid.

        Raises:
            Unauthenticated: there is no token, or it cannot be used any more.
        """
        if self.cloud is None or not self.auth_token:
            raise Unauthenticated("The operation has no token of its user.")
        token = self.cloud.identity.validate(self.auth_token)
        return self.cloud.as_user(token, service_token=True)

    def service_session(self) -> CloudSession:
        """Returns the OpenStack services as our service user."""
        if self.cloud is None:
            raise Unauthenticated("This context has no cloud.")
        return self.cloud.as_service()

    def redacted_copy(self) -> RequestContext:
        """Returns a copy without secrets; oslo.messaging asks for it before it notifies."""
        return replace(self, auth_token=None, operation_id=None)
