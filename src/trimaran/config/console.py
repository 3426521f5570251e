"""``skyline.yaml``: upstream's names, types and defaults (spec/skyline.md section 4).

Types are strict as upstream's are: ``"3600"`` is not an integer and ``1`` is
not a boolean, so that a quoting mistake ends the start instead of changing
a meaning.  A null counts as absent.  Files of newer and older releases carry
keys that this one does not know: those warn, once each, and are ignored.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
)

from trimaran.config.common import GROUP, OWN_OPTIONS
from trimaran.errors import ConfigError

LOG = logging.getLogger("trimaran.config")

DEFAULT_DIRECTORY = "/etc/skyline"
FILE = "skyline.yaml"

# Upstream's published default, in every documentation: anyone can sign with it.
PUBLISHED_SECRET_KEY = "aCtmgbcUqYUy_HNVg5BDXCaeJgJQzHJXwqbXr0Nmb2o"  # noqa: S105

# Values of these are never repeated in an error.
SECRETS = frozenset(
    {"secret_key", "database_url", "prometheus_basic_auth_password", "system_user_password"}
)

# Written by older releases' samples and still merged into files by deployment
# tools; they have no meaning any more and are no reason for a warning.
RETIRED_GROUPS = frozenset({"developer"})
RETIRED = frozenset({"openstack.base_roles"})


def _http_url(value: str) -> str:
    scheme, separator, rest = value.partition("://")
    if scheme.lower() not in {"http", "https"} or not separator or not rest.strip("/"):
        raise ValueError("an http or https URL")
    return value


HttpUrl = Annotated[str, AfterValidator(_http_url)]


class _Group(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class Default(_Group):
    """Group ``default``."""

    debug: bool = Field(default=False, description="Log at DEBUG level.")
    log_dir: str = Field(
        default="/var/log/skyline", description="Directory of the log, and of nginx's logs."
    )
    log_file: str = Field(
        default="skyline.log",
        description="Name of the log; an absolute path such as /dev/stdout works.",
    )
    access_log_file: str = Field(
        default="skyline-nginx-access.log",
        description="Access log in the generated nginx configuration.",
    )
    error_log_file: str = Field(
        default="skyline-nginx-error.log",
        description="Error log in the generated nginx configuration.",
    )
    secret_key: str = Field(
        default=PUBLISHED_SECRET_KEY,
        description="Key that signs the sessions. The default is public: replace it.",
    )
    access_token_expire: int = Field(default=3600, description="Length of a session in seconds.")
    access_token_renew: int = Field(
        default=1800,
        description="A session with fewer seconds left than this is renewed when it is used.",
    )
    cors_allow_origins: list[str] = Field(
        default=[], description="Origins that may use the API from a browser."
    )
    session_name: str = Field(default="session", description="Name of the session cookie.")
    database_url: str = Field(
        default="sqlite:////tmp/skyline.db",
        description="SQLAlchemy URL; all replicas must share one database.",
    )
    prometheus_endpoint: str = Field(
        default="http://localhost:9091", description="Base URL of Prometheus."
    )
    prometheus_enable_basic_auth: bool = Field(
        default=False, description="Send user and password to Prometheus."
    )
    prometheus_basic_auth_user: str = Field(default="", description="User for Prometheus.")
    prometheus_basic_auth_password: str = Field(default="", description="Password for Prometheus.")
    ssl_enabled: bool = Field(
        default=True, description="Scheme of the single sign-on callback is https."
    )
    cafile: str = Field(
        default="",
        description="CA bundle for OpenStack's https endpoints; empty means the system's bundle.",
    )
    secure_proxy_addr_header: str | None = Field(
        default=None,
        description="Header in which a trusted proxy gives the client's address, e.g. X-Real-IP; "
        "null where clients reach the API without a proxy. Default: null.",
    )
    policy_file_suffix: str = Field(
        default="policy.yaml",
        description="Override files are named <service>_<suffix>.",
    )
    policy_file_path: str = Field(
        default="/etc/skyline/policy", description="Directory of the policy override files."
    )


class IdentityProvider(_Group):
    """One entry of ``openstack.sso_identity_providers``."""

    name: str
    protocol: str
    label: str


SERVICE_MAPPING = {
    "baremetal": "ironic",
    "block-storage": "cinder",
    "compute": "nova",
    "container": "zun",
    "container-infra": "magnum",
    "database": "trove",
    "dns": "designate",
    "identity": "keystone",
    "image": "glance",
    "instance-ha": "masakari",
    "key-manager": "barbican",
    "load-balancer": "octavia",
    "network": "neutron",
    "object-store": "swift",
    "orchestration": "heat",
    "placement": "placement",
    "sharev2": "manilav2",
}
EXTENSION_MAPPING = {
    "floating-ip-port-forwarding": "neutron_port_forwarding",
    "fwaas_v2": "neutron_firewall",
    "qos": "neutron_qos",
    "vpnaas": "neutron_vpn",
}


class OpenStack(_Group):
    """Group ``openstack``."""

    keystone_url: HttpUrl = Field(
        default="http://127.0.0.1:5000/v3/",
        description="Keystone, for the system login and as the base of single sign-on.",
    )
    system_project_domain: str = Field(default="Default", description="Domain of system_project.")
    system_project: str = Field(default="service", description="Project of the system account.")
    system_user_domain: str = Field(default="Default", description="Domain of system_user_name.")
    system_user_name: str = Field(
        default="skyline", description="System account; it needs the role admin."
    )
    system_user_password: str = Field(default="", description="Password of the system account.")
    default_region: str = Field(
        default="RegionOne", description="Region in which a session starts."
    )
    user_default_domain: str = Field(
        default="Default", description="Domain of a login that names no domain."
    )
    interface_type: Literal["internal", "admin", "public"] = Field(
        default="public", description="Which of the catalog's endpoints are used."
    )
    nginx_prefix: str = Field(
        default="/api/openstack",
        description="Path under which the proxy serves the OpenStack APIs.",
    )
    base_domains: list[str] = Field(
        default=["heat_user_domain"], description="Domains that the console does not show."
    )
    system_admin_roles: list[str] = Field(
        default=["admin", "system_admin"], description="Roles that see and change everything."
    )
    system_reader_roles: list[str] = Field(
        default=["system_reader"], description="Roles that see everything."
    )
    service_mapping: dict[str, str] = Field(
        default=SERVICE_MAPPING, description="Service type in the catalog to name in the console."
    )
    extension_mapping: dict[str, str] = Field(
        default=EXTENSION_MAPPING, description="Network extension to name in the console."
    )
    reclaim_instance_interval: int = Field(
        default=604800, description="Seconds that a server stays in the recycle bin."
    )
    enforce_new_defaults: bool = Field(
        default=True, description="Value of the policy target of this name."
    )
    sso_enabled: bool = Field(default=False, description="Offer single sign-on.")
    sso_protocols: list[str] = Field(default=["openid"], description="Protocols of single sign-on.")
    sso_region: str = Field(
        default="RegionOne", description="Region of a session after single sign-on."
    )
    sso_identity_providers: list[IdentityProvider] = Field(
        default=[],
        description="Identity providers, each {name, protocol, label}; replaces sso_protocols.",
    )


class Setting(_Group):
    """Group ``setting``."""

    base_settings: list[str] = Field(
        default=["flavor_families", "gpu_models", "usb_models"],
        description="Settings that administrators may change in the console.",
    )
    flavor_families: list[dict[str, Any]] = Field(
        default=[
            {
                "architecture": "x86_architecture",
                "categories": [
                    {"name": "general_purpose", "properties": []},
                    {"name": "compute_optimized", "properties": []},
                    {"name": "memory_optimized", "properties": []},
                    {"name": "high_clock_speed", "properties": []},
                ],
            },
            {
                "architecture": "heterogeneous_computing",
                "categories": [
                    {"name": "compute_optimized_type_with_gpu", "properties": []},
                    {"name": "visualization_compute_optimized_type_with_gpu", "properties": []},
                ],
            },
        ],
        description="Families of flavors.",
    )
    gpu_models: list[str] = Field(default=["nvidia_t4"], description="GPU models.")
    usb_models: list[str] = Field(default=["usb_c"], description="USB models.")


class _OwnBase(_Group):
    insecure: bool = Field(
        default=False, description="Do not verify the certificates of OpenStack's https endpoints."
    )
    anonymous_domains: bool = Field(
        default=False,
        description="Tell the names of the domains to everybody; the login page of the front end "
        "in PyPI's skyline-console 9.0.0 needs them.",
    )
    failed_logins_per_minute: int = Field(
        default=0,
        ge=0,
        description="Failed logins of one user or from one address after which more are refused "
        "(429) for the rest of a minute, counted by each process; 0 = no limit.",
    )
    sso_callback_base: str = Field(
        default="",
        description="Scheme, host and port of the console as browsers see it, for the single "
        "sign-on callback, e.g. http://console.example:9999. Default: from ssl_enabled and the "
        "request's Host.",
    )


def _own_model() -> type[_OwnBase]:
    fields: dict[str, Any] = {}
    for option in OWN_OPTIONS:
        kind: Any = option.kind if option.default is not None else option.kind | None
        fields[option.name] = (
            kind,
            Field(option.default, ge=option.minimum, description=option.help),
        )
    return create_model("OwnSettings", __base__=_OwnBase, **fields)


OwnSettings = _own_model()


class Settings(_Group):
    """The whole file.

    ``trimaran`` carries our own options; ``config.common.own`` turns it into
    what the deck takes.
    """

    default: Default = Default()
    openstack: OpenStack = OpenStack()
    setting: Setting = Setting()
    trimaran: Any = OwnSettings()


GROUPS: dict[str, type[_Group]] = {
    "default": Default,
    "openstack": OpenStack,
    "setting": Setting,
    GROUP: OwnSettings,
}


def load(path: str | None = None) -> Settings:
    """Reads ``skyline.yaml``.

    Args:
        path: the file; None for ``$OS_CONFIG_DIR/skyline.yaml``, by default
            ``/etc/skyline/skyline.yaml``.

    Returns:
        The settings, immutable.

    Raises:
        ConfigError: the file is missing or not YAML, or an option has the
            wrong type; one sentence that names file and option.
    """
    if path is None:
        path = os.path.join(os.environ.get("OS_CONFIG_DIR", DEFAULT_DIRECTORY), FILE)
    settings = parse(_read(path), path)
    if settings.default.secret_key == PUBLISHED_SECRET_KEY:
        LOG.warning(
            "%s: default.secret_key is the published default, so anyone can sign a session; "
            "set one of your own, the same on all replicas.",
            path,
        )
    if settings.trimaran.insecure:
        LOG.warning("%s: trimaran.insecure is on, certificates are not verified.", path)
    return settings


def parse(content: object, path: str) -> Settings:
    """Turns the file's content into settings.

    Args:
        content: the parsed YAML document.
        path: name of the file, for messages.

    Raises:
        ConfigError: see ``load``.
    """
    if not isinstance(content, Mapping):
        raise ConfigError(f"{path}: the file must be a mapping of groups, not {_seen(content)}.")
    groups: dict[str, Any] = {}
    for name, value in content.items():
        model = GROUPS.get(str(name))
        if model is None:
            if name not in RETIRED_GROUPS:
                LOG.warning("%s: unknown group %s is ignored.", path, name)
            continue
        if not isinstance(value, Mapping):
            raise ConfigError(f"{path}: {name} must be a mapping of options, not {_seen(value)}.")
        groups[str(name)] = _group(model, str(name), value, path)
    return Settings(**groups)


def _group(model: type[_Group], group: str, value: Mapping[Any, Any], path: str) -> _Group:
    present = {}
    for key, item in value.items():
        if key not in model.model_fields:
            if f"{group}.{key}" not in RETIRED:
                LOG.warning("%s: unknown option %s.%s is ignored.", path, group, key)
        elif item is not None:
            present[key] = item
    try:
        return model(**present)
    except ValidationError as error:
        raise ConfigError(f"{path}: {group}.{_sentence(error)}") from None


def _read(path: str) -> object:
    try:
        with open(path, encoding="utf-8") as stream:
            return yaml.load(stream, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe loaders
    except OSError as error:
        raise ConfigError(f"{path}: the file cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: the file is not UTF-8 text.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{path}: the file is not valid YAML{where}.") from None


_WANTED = {
    "int_type": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "a string",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "missing": "given",
}


def _sentence(error: ValidationError) -> str:
    """The first fault as "<option> must be <what>, not <what it is>."."""
    fault = error.errors(include_url=False)[0]
    option = ".".join(str(part) for part in fault["loc"])
    context = fault.get("ctx", {})
    match fault["type"]:
        case "literal_error":
            wanted = f"one of {context['expected']}"
        case "greater_than_equal":
            wanted = f"at least {context['ge']}"
        case "value_error":
            wanted = str(context["error"])
        case kind:
            wanted = _WANTED.get(kind, fault["msg"])
    if fault["type"] == "missing":
        return f"{option} must be given."
    if fault["loc"] and fault["loc"][0] in SECRETS:
        return f"{option} must be {wanted}."
    return f"{option} must be {wanted}, not {_seen(fault['input'])}."


def _seen(value: object) -> str:
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
