"""Certificates of clusters, and their cloud credentials (spec section 1.12).

A conductor holds the keys, so each request is a call that waits for its
answer.  Administrators do not cross projects here (F-35).
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response, status
from pydantic import BaseModel

from trimaran.db.models.magnum import Cluster
from trimaran.db.queries import magnum as queries
from trimaran.errors import BadRequest, NotFound
from trimaran.magnum import objects
from trimaran.magnum.api import links
from trimaran.magnum.api.answers import Json
from trimaran.magnum.api.call import Authenticated, Call
from trimaran.magnum.api.controllers.common import ERRORS, found
from trimaran.magnum.api.fields import Ident, NonEmpty, ReadOnly, Storable
from trimaran.magnum.api.pipeline import TokenRoute, since
from trimaran.magnum.api.schemas.common import Accepted, Body, Link, ordered

router = APIRouter(route_class=TokenRoute, tags=["certificates"], responses=ERRORS)


class CertificateCreate(Body):
    """A certificate request to be signed."""

    cluster_uuid: Storable
    links: ReadOnly = None
    csr: NonEmpty
    pem: Storable | None = None
    ca_cert_type: Storable | None = None
    created_at: ReadOnly = None
    updated_at: ReadOnly = None


class Certificate(BaseModel):
    """A certificate as it is shown."""

    cluster_uuid: str
    links: list[Link]
    csr: str | None = None
    pem: str
    ca_cert_type: str | None = None


def _view(call: Call, cluster: Cluster, pem: str, **more: Any) -> dict[str, Any]:
    shown = {
        "cluster_uuid": cluster.uuid,
        "links": links.of(call.app_url, "certificates", cluster.uuid),
        "pem": pem.strip(),
        **more,
    }
    return ordered(Certificate, shown)


@router.get("/v1/certificates/{cluster_ident}", response_model=Certificate)
def get_one(
    call: Authenticated,
    cluster_ident: Ident,
    ca_cert_type: Annotated[Storable | None, Query()] = None,
) -> Response:
    """Show a CA of a cluster: Kubernetes', or by type etcd's or the front proxy's."""
    row = found(call, queries.get_cluster, call.scope(), cluster_ident)
    call.authorize("certificate:get", row.as_dict())
    pem = call.parts.conductor.get_ca_certificate(
        call.context, objects.Cluster.from_row(row), ca_cert_type
    )
    return Json(_view(call, row, pem))


@router.post("/v1/certificates", response_model=Certificate, status_code=201)
def post(call: Authenticated, certificate: CertificateCreate) -> Response:
    """Have a certificate request signed by a CA of the cluster."""
    try:
        row = found(call, queries.get_cluster, call.scope(), certificate.cluster_uuid)
    except NotFound as error:
        # A POST does not find its own URL missing: 400, as upstream.
        raise BadRequest(error.message) from None
    call.authorize("certificate:create", row.as_dict())
    asked = certificate.given("csr", "ca_cert_type")
    request = objects.Certificate(
        project_id=call.context.project_id,
        user_id=call.context.user_id,
        cluster_uuid=row.uuid,
        **asked,
    )
    cluster = objects.Cluster.from_row(row)
    pem = call.parts.conductor.sign_certificate(call.context, cluster, request)
    return Json(_view(call, row, pem, **asked), status_code=status.HTTP_201_CREATED)


@router.patch("/v1/certificates/{cluster_ident}", response_model=Accepted, status_code=202)
def patch(call: Authenticated, cluster_ident: Ident) -> Response:
    """Rotate the cluster's CAs."""
    row = found(call, queries.get_cluster, call.scope(), cluster_ident)
    call.authorize("certificate:rotate_ca", row.as_dict())
    template = call.parts.db.read(
        lambda session: queries.find_template(session, row.cluster_template_id or "")
    )
    if template is not None and template.tls_disabled:
        raise BadRequest("Rotating the CA certificate on a non-TLS cluster is not supported")
    call.parts.conductor.rotate_ca_certificate(call.context, objects.Cluster.from_row(row))
    return Json({"uuid": row.uuid}, status_code=status.HTTP_202_ACCEPTED)


@router.patch("/v1/credentials/{cluster_ident}", response_model=Accepted, status_code=202)
@since("1.12", "patch")
def patch_credential(call: Authenticated, cluster_ident: Ident) -> Response:
    """Rotate the credential that the cluster uses for the cloud."""
    call.authorize("credential:rotate")
    row = found(call, queries.get_cluster, call.scope(), cluster_ident)
    call.parts.conductor.credential_rotate(call.context, objects.Cluster.from_row(row))
    return Json({"uuid": row.uuid}, status_code=status.HTTP_202_ACCEPTED)
