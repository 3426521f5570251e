"""Bodies of cluster templates (spec section 1.7)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from trimaran.magnum.api import links
from trimaran.magnum.api.fields import (
    AtLeastOne,
    Boolean,
    Labels,
    Nameservers,
    ReadOnly,
    Text,
    Uuid,
    Words,
)
from trimaran.magnum.api.schemas.common import Body, Link, columns, ordered

Port = Annotated[int, Field(ge=1024, le=65535)]


class ClusterTemplateCreate(Body):
    """What a new cluster template is made of."""

    uuid: Uuid | None = None
    name: Text | None = None
    coe: Literal["kubernetes"] | None = None
    image_id: Text
    flavor_id: Text | None = None
    master_flavor_id: Text | None = None
    dns_nameserver: Nameservers | None = None
    keypair_id: Text | None = None
    external_network_id: Text | None = None
    fixed_network: Text | None = None
    fixed_subnet: Text | None = None
    network_driver: Text | None = None
    apiserver_port: Port | None = None
    docker_volume_size: AtLeastOne | None = None
    cluster_distro: Text | None = None
    links: ReadOnly = None
    http_proxy: Text | None = None
    https_proxy: Text | None = None
    no_proxy: Text | None = None
    volume_driver: Text | None = None
    registry_enabled: Boolean | None = None
    labels: Labels | None = None
    tls_disabled: Boolean | None = None
    public: Boolean | None = None
    server_type: Literal["vm", "bm"] | None = None
    insecure_registry: Text | None = None
    docker_storage_driver: Text | None = None
    master_lb_enabled: Boolean | None = None
    floating_ip_enabled: Boolean | None = None
    project_id: ReadOnly = None
    user_id: ReadOnly = None
    hidden: Boolean | None = None
    tags: Words | None = None
    driver: Text | None = None
    created_at: ReadOnly = None
    updated_at: ReadOnly = None


class ClusterTemplate(BaseModel):
    """A cluster template as it is shown."""

    uuid: str
    name: str | None
    coe: str | None
    image_id: str | None
    flavor_id: str | None
    master_flavor_id: str | None
    dns_nameserver: str | None
    keypair_id: str | None
    external_network_id: str | None
    fixed_network: str | None
    fixed_subnet: str | None
    network_driver: str | None
    apiserver_port: int | None
    docker_volume_size: int | None
    cluster_distro: str | None
    links: list[Link]
    http_proxy: str | None
    https_proxy: str | None
    no_proxy: str | None
    volume_driver: str | None
    registry_enabled: bool | None
    labels: dict[str, str]
    tls_disabled: bool | None
    public: bool | None
    server_type: str | None
    insecure_registry: str | None
    docker_storage_driver: str | None
    master_lb_enabled: bool | None
    floating_ip_enabled: bool | None
    project_id: str | None
    user_id: str | None
    hidden: bool | None
    tags: str | None
    driver: str | None
    created_at: str | None
    updated_at: str | None


class ClusterTemplates(BaseModel):
    """A page of cluster templates."""

    clustertemplates: list[ClusterTemplate]
    next: str | None = Field(default=None, description="Absent on the last page.")


_FIELDS = tuple(name for name in ClusterTemplate.model_fields if name != "links")


def view(row: Any, app_url: str) -> dict[str, Any]:
    """One cluster template for an answer.

    Args:
        row: of table ``cluster_template``.
        app_url: base of links.
    """
    shown = {
        **columns(row, _FIELDS),
        "links": links.of(app_url, "clustertemplates", row.uuid),
    }
    return ordered(ClusterTemplate, shown)
