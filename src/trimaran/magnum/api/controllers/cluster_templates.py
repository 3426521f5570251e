"""Cluster templates (spec sections 1.7 and 2.4)."""

from __future__ import annotations

import uuid
from typing import Any

from fastapi import APIRouter, Response, status

from trimaran.db.models.magnum import ClusterTemplate as Row
from trimaran.db.queries import magnum as queries
from trimaran.db.queries.magnum import Page
from trimaran.errors import Forbidden
from trimaran.magnum.api import listing, names
from trimaran.magnum.api import patch as patching
from trimaran.magnum.api.answers import Json
from trimaran.magnum.api.call import Authenticated, Call
from trimaran.magnum.api.controllers.common import ERRORS, found
from trimaran.magnum.api.fields import Ident
from trimaran.magnum.api.listing import Paged
from trimaran.magnum.api.patch import Patch, Rules
from trimaran.magnum.api.pipeline import TokenRoute
from trimaran.magnum.api.schemas.cluster_template import (
    ClusterTemplate,
    ClusterTemplateCreate,
    ClusterTemplates,
    view,
)
from trimaran.magnum.validation import templates
from trimaran.magnum.validation.resources import Resources

router = APIRouter(
    route_class=TokenRoute,
    prefix="/v1/clustertemplates",
    tags=["cluster templates"],
    responses=ERRORS,
)

#: what a template has when the client does not say
_DEFAULTS = {
    "registry_enabled": False,
    "tls_disabled": False,
    "public": False,
    "hidden": False,
    "master_lb_enabled": False,
    "floating_ip_enabled": True,
    "server_type": "vm",
}
_RULES = Rules(
    mandatory=frozenset(
        {
            "network_driver",
            "external_network_id",
            "tls_disabled",
            "public",
            "server_type",
            "coe",
            "registry_enabled",
            "cluster_distro",
            "hidden",
            "image_id",
        }
    )
)
_READ_ONLY = {"links", "project_id", "user_id", "created_at", "updated_at"}
_PATCHABLE = tuple(
    name for name in ClusterTemplateCreate.model_fields if name not in _READ_ONLY | {"uuid"}
)


def _page(call: Call, page: Page, action: str, resource: str) -> Response:
    call.authorize(f"clustertemplate:{action}")
    scope = call.authorize_all_projects(f"clustertemplate:{action}_all_projects")
    rows = call.parts.db.read(lambda session: queries.list_templates(session, scope, page))
    shown = [view(row, call.app_url) for row in rows]
    return Json(listing.body(call, "clustertemplates", resource, shown, page))


@router.get("", response_model=ClusterTemplates)
def get_all(call: Authenticated, page: Paged) -> Response:
    """List cluster templates."""
    return _page(call, page, "get_all", "clustertemplates")


@router.get("/detail", response_model=ClusterTemplates)
def detail(call: Authenticated, page: Paged) -> Response:
    """List cluster templates; they are always shown in full."""
    return _page(call, page, "detail", "clustertemplates/detail")


@router.get("/{cluster_template_ident}", response_model=ClusterTemplate)
def get_one(call: Authenticated, cluster_template_ident: Ident) -> Response:
    """Show a cluster template."""
    scope = call.authorize_all_projects("clustertemplate:get_one_all_projects")
    row = found(call, queries.get_template, scope, cluster_template_ident)
    if not row.public:
        call.authorize("clustertemplate:get", row.as_dict())
    return Json(view(row, call.app_url))


@router.post("", response_model=ClusterTemplate, status_code=status.HTTP_201_CREATED)
def post(call: Authenticated, cluster_template: ClusterTemplateCreate) -> Response:
    """Create a cluster template."""
    conf, resources = call.parts.conf, Resources(call.cloud)
    values: dict[str, Any] = {"labels": {}, **_DEFAULTS, **cluster_template.given()}
    templates.check_coe(values.get("coe"))
    values["network_driver"] = templates.network_driver(conf, values.get("network_driver"))
    _check_volumes(values)
    values["driver"] = templates.driver(call.parts.drivers, resources, values)
    call.authorize("clustertemplate:create")
    resources.check(values)
    values["cluster_distro"] = resources.distro(values["image_id"])
    if values["public"] or values["hidden"]:
        _check_publish(call)
    _check_root_volumes(call, resources, values)
    values |= {
        "uuid": values.get("uuid") or str(uuid.uuid4()),
        "name": values.get("name") or names.generate("template"),
        "project_id": call.context.project_id,
        "user_id": call.context.user_id,
    }
    row = call.parts.db.write(lambda session: queries.insert_template(session, values))
    return Json(
        view(row, call.app_url),
        status_code=status.HTTP_201_CREATED,
        headers={"Location": f"{call.app_url}/v1/clustertemplates/{row.uuid}"},
    )


@router.patch("/{cluster_template_ident}", response_model=ClusterTemplate)
def patch_one(call: Authenticated, cluster_template_ident: Ident, patch: Patch) -> Response:
    """Change a cluster template."""
    _RULES.check(patch)
    # Before the look-up, so that administrators reach every template (F-34).
    scope = call.authorize_all_projects("clustertemplate:update_all_projects")
    row = found(call, queries.get_template, scope, cluster_template_ident)
    call.authorize("clustertemplate:update", row.as_dict())
    changes = _changes(call, row, _patched(row, patch))
    changed = call.parts.db.write(
        lambda session: queries.update_template(session, row.uuid, changes)
    )
    return Json(view(changed, call.app_url))


def _patched(row: Row, steps: Patch) -> dict[str, Any]:
    document = patching.apply(row.as_dict(), steps)
    body = patching.validated(ClusterTemplateCreate, document, *_PATCHABLE)
    absent = {**dict.fromkeys(_PATCHABLE), "labels": {}, **_DEFAULTS}
    return {name: absent[name] for name in _PATCHABLE} | body.given(*_PATCHABLE)


def _changes(call: Call, row: Row, values: dict[str, Any]) -> dict[str, Any]:
    """The columns to write, after the checks of the patched template."""
    conf, resources = call.parts.conf, Resources(call.cloud)
    templates.check_coe(values["coe"])
    values["network_driver"] = templates.network_driver(conf, values["network_driver"])
    _check_volumes(values)
    resources.check(values)
    if values["image_id"] != row.image_id:
        values["cluster_distro"] = resources.distro(values["image_id"])
    kind = ("server_type", "cluster_distro", "coe", "driver")
    if any(values[name] != getattr(row, name) for name in kind):
        server_type, distro, coe, driver = (values[name] for name in kind)
        call.parts.drivers.get(server_type, distro, coe, name=driver)
    if values["public"] != row.public or values["hidden"] != row.hidden:
        _check_publish(call)
    _check_root_volumes(call, resources, values)
    return {name: value for name, value in values.items() if value != getattr(row, name)}


@router.delete("/{cluster_template_ident}", status_code=status.HTTP_204_NO_CONTENT)
def delete(call: Authenticated, cluster_template_ident: Ident) -> Response:
    """Delete a cluster template that no cluster uses."""
    scope = call.authorize_all_projects("clustertemplate:delete_all_projects")
    row = found(call, queries.get_template, scope, cluster_template_ident)
    call.authorize("clustertemplate:delete", row.as_dict())
    call.parts.db.write(lambda session: queries.delete_template(session, row.uuid))
    return Response(status_code=status.HTTP_204_NO_CONTENT)


def _check_volumes(values: dict[str, Any]) -> None:
    templates.check_volume_driver(values.get("volume_driver"))
    templates.check_volume_size(
        values.get("docker_storage_driver"), values.get("docker_volume_size")
    )


def _check_publish(call: Call) -> None:
    if not call.allows("clustertemplate:publish"):
        raise Forbidden("Not authorized to set public or hidden flag for cluster template.")


def _check_root_volumes(call: Call, resources: Resources, values: dict[str, Any]) -> None:
    default = call.parts.conf.cinder.default_boot_volume_size
    for name in ("flavor_id", "master_flavor_id"):
        resources.check_root_volume(values.get(name), values["labels"], default)
