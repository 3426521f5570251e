"""The documents that say what this service is; no token is needed (spec 1.2)."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from trimaran.magnum.api import links, microversions
from trimaran.magnum.api.pipeline import PublicRoute

_NAME = "OpenStack Magnum API"
_DESCRIPTION = "Magnum is an OpenStack project which aims to provide container cluster management."
_GUIDE = "http://docs.openstack.org/developer/magnum/dev/api-spec-v1.html"
_MEDIA_TYPE = "application/vnd.openstack.magnum.v1+json"
#: (member of the version document, path below ``/v1``), in upstream's order
_RESOURCES = (
    ("clustertemplates", "clustertemplates"),
    ("clusters", "clusters"),
    ("quotas", "quotas"),
    ("certificates", "certificates"),
    ("mservices", "mservices"),
    ("stats", "stats"),
    ("federations", "federations"),
    ("nodegroups", "clusters/{cluster_id}/nodegroups"),
    ("credentials", "credentials"),
)

#: below no version: no microversion headers
root = APIRouter(tags=["versions"])
router = APIRouter(route_class=PublicRoute, tags=["versions"])


@root.get("/")
def get_root(request: Request) -> dict[str, Any]:
    """Which versions there are."""
    return {
        "name": _NAME,
        "description": _DESCRIPTION,
        "versions": [
            {
                "id": "v1",
                "links": [{"href": f"{links.base(request)}/v1/", "rel": "self"}],
                "status": "CURRENT",
                "max_version": str(microversions.MAX),
                "min_version": str(microversions.MIN),
            }
        ],
    }


@router.get("/v1")
def get_v1(request: Request) -> dict[str, Any]:
    """What version 1 consists of."""
    app_url = links.base(request)
    resources = {
        name: [
            {"href": f"{app_url}/v1/{path}/", "rel": "self"},
            {"href": f"{app_url}/{path}/", "rel": "bookmark"},
        ]
        for name, path in _RESOURCES
    }
    return {
        "media_types": [{"base": "application/json", "type": _MEDIA_TYPE}],
        "links": [
            {"href": f"{app_url}/v1/", "rel": "self"},
            {"href": _GUIDE, "rel": "describedby", "type": "text/html"},
        ],
        **resources,
        "id": "v1",
    }
