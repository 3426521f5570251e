"""``magnum.conf``: upstream's names, types and defaults (spec/magnum.md section 9)."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from oslo_config import cfg

from trimaran.config import oslo
from trimaran.config.common import GROUP

EXTENSIONS = (
    "keyUsage",
    "extendedKeyUsage",
    "subjectAltName",
    "basicConstraints",
    "subjectKeyIdentifier",
)
MORE_EXTENSIONS = (
    "authorityKeyIdentifier",
    "authorityInfoAccess",
    "cRLDistributionPoints",
    "certificatePolicies",
    "OCSPNoCheck",
    "inhibitAnyPolicy",
    "nameConstraints",
    "issuerAltName",
)
KEY_USAGE = ("Digital Signature", "Key Encipherment", "Non Repudiation")
MORE_KEY_USAGE = (
    "Data Encipherment",
    "Key Agreement",
    "Certificate Sign",
    "CRL Sign",
    "Encipher Only",
    "Decipher Only",
)
CLIENTS = ("barbican", "cinder", "glance", "magnum", "neutron", "nova", "octavia")


def _default() -> list[cfg.Opt]:
    return [
        cfg.BoolOpt(
            "periodic_enable", default=True, help="Run the periodic tasks in this conductor."
        ),
        cfg.IntOpt(
            "periodic_interval_max",
            default=60,
            help="Longest sleep of the periodic timer in seconds.",
        ),
        cfg.StrOpt(
            "host",
            default=socket.gethostname(),
            sample_default="<name of this host>",
            help="Name of this conductor's row in the list of services.",
        ),
        cfg.IntOpt(
            "service_down_time",
            default=180,
            help="Seconds without a sign of life after which a conductor counts as down.",
        ),
        cfg.StrOpt(
            "rootwrap_config",
            default="/etc/magnum/rootwrap.conf",
            help="Accepted, without a meaning.",
        ),
        cfg.StrOpt("tempdir", help="Directory for temporary files."),
        cfg.ListOpt(
            "password_symbols",
            default=[
                "23456789",
                "ABCDEFGHJKLMNPQRSTUVWXYZ",
                "abcdefghijkmnopqrstuvwxyz",
            ],
            help="Groups of characters that generated passwords are made of.",
        ),
        cfg.StrOpt("pybasedir", help="Accepted, without a meaning."),
        cfg.StrOpt("bindir", help="Accepted, without a meaning."),
        cfg.StrOpt("state_path", default="/var/lib/magnum", help="Directory of our own state."),
        cfg.IntOpt("max_manifest_size", default=524288, help="Accepted, without a meaning."),
    ]


def _api() -> list[cfg.Opt]:
    return [
        cfg.HostAddressOpt("host", default="127.0.0.1", help="Address of the API."),
        cfg.PortOpt("port", default=9511, help="Port of the API."),
        cfg.IntOpt("max_limit", default=1000, help="Largest page of a list."),
        cfg.StrOpt(
            "api_paste_config",
            default="api-paste.ini",
            help="Accepted; the order of the stages is fixed.",
        ),
        cfg.BoolOpt(
            "check_status",
            default=False,
            help="Answer 400 at once to an update or a resize that the cluster's status does not "
            "permit. Otherwise such a request is accepted, as upstream "
            "does, and the refusal is found in the cluster's status_reason. An option of ours.",
        ),
        cfg.BoolOpt(
            "upstream_conductor",
            default=False,
            help="The conductors are magnum's own of 23.0 still: what is asked for goes to them "
            "by message and is recorded nowhere else. For a migration that begins with the API. "
            "An option of ours.",
        ),
        cfg.BoolOpt("enabled_ssl", default=False, help="Serve the API with TLS."),
        cfg.StrOpt("ssl_cert_file", help="Server certificate."),
        cfg.StrOpt("ssl_key_file", help="Key of the server certificate."),
        cfg.IntOpt(
            "workers",
            min=1,
            sample_default="<number of processors>",
            help="Processes of the API.",
        ),
    ]


def _x509() -> list[cfg.Opt]:
    return [
        cfg.BoolOpt("allow_ca", default=False, help="Sign certificates of authorities."),
        cfg.ListOpt(
            "allowed_extensions",
            default=list(EXTENSIONS),
            item_type=cfg.types.String(choices=EXTENSIONS + MORE_EXTENSIONS),
            help="Extensions that a certificate request may carry.",
        ),
        cfg.ListOpt(
            "allowed_key_usage",
            default=list(KEY_USAGE),
            item_type=cfg.types.String(choices=KEY_USAGE + MORE_KEY_USAGE),
            help="Key usages that a certificate request may carry.",
        ),
        cfg.IntOpt("term_of_validity", default=1825, help="Days that a certificate is valid."),
        cfg.IntOpt(
            "signed_term_of_validity",
            min=1,
            help="Days that a certificate signed for a user is valid; term_of_validity if not "
            "set. It cannot be revoked, so a short time is the only way to end it. An option of "
            "ours.",
        ),
        cfg.IntOpt("rsa_key_size", default=2048, help="Size of generated keys in bits."),
    ]


def _cluster() -> list[cfg.Opt]:
    return [
        cfg.StrOpt(
            "temp_cache_dir",
            default="/var/lib/magnum/certificate-cache",
            help="Directory in which client certificates of clusters are kept.",
        ),
        cfg.IntOpt(
            "pre_delete_lb_timeout",
            default=60,
            help="Seconds to wait for load balancers before a cluster is deleted.",
        ),
        cfg.StrOpt(
            "nodes_affinity_policy",
            default="soft-anti-affinity",
            help="Server group policy of a cluster's nodes.",
        ),
        cfg.StrOpt(
            "etcd_discovery_service_endpoint_format",
            default="https://discovery.etcd.io/new?size=%(size)d",
            help="URL of etcd's discovery service.",
        ),
    ]


def _clients() -> dict[str, list[cfg.Opt]]:
    groups: dict[str, list[cfg.Opt]] = {}
    for name in CLIENTS:
        groups[f"{name}_client"] = [
            cfg.StrOpt("region_name", help="Region of the endpoint."),
            cfg.StrOpt(
                "endpoint_type",
                default="publicURL",
                help="Interface of the endpoint in the catalog.",
            ),
            cfg.StrOpt("ca_file", help="CA bundle."),
            cfg.StrOpt("cert_file", help="Client certificate."),
            cfg.StrOpt("key_file", help="Key of the client certificate."),
            cfg.BoolOpt("insecure", default=False, help="Do not verify certificates."),
            cfg.StrOpt("api_version", help="Accepted, without a meaning."),
        ]
    return groups


def _docker() -> list[cfg.Opt]:
    return [
        cfg.StrOpt("docker_remote_api_version", default="1.21", help="Accepted."),
        cfg.IntOpt("default_timeout", default=60, help="Accepted."),
        cfg.BoolOpt("api_insecure", default=False, help="Accepted."),
        cfg.StrOpt("ca_file", help="Accepted."),
        cfg.StrOpt("cert_file", help="Accepted."),
        cfg.StrOpt("key_file", help="Accepted."),
    ]


def options() -> dict[str, list[cfg.Opt]]:
    """Returns section to options, in the order of the sample file."""
    return {
        "DEFAULT": _default(),
        "api": _api(),
        "conductor": [
            cfg.StrOpt(
                "topic", default="magnum-conductor", help="Message topic of the conductors."
            ),
            cfg.IntOpt(
                "workers",
                min=1,
                sample_default="<number of processors>",
                help="Threads of a conductor that handle messages.",
            ),
            cfg.PortOpt(
                "metrics_port",
                default=0,
                help="Port of a conductor's /metrics; 0 serves none. Our own option.",
            ),
            cfg.StrOpt(
                "metrics_host",
                default="127.0.0.1",
                help="Address of a conductor's /metrics. Our own option.",
            ),
        ],
        "database": [
            cfg.StrOpt("mysql_engine", default="InnoDB", help="Accepted; always InnoDB."),
        ],
        "quotas": [
            cfg.IntOpt(
                "max_clusters_per_project",
                default=20,
                help="Clusters of a project that has no quota of its own.",
            ),
        ],
        "drivers": [
            cfg.ListOpt("disabled_drivers", default=[], help="Entry points that are not loaded."),
            cfg.ListOpt("enabled_beta_drivers", default=[], help="Beta drivers that may be used."),
            cfg.StrOpt("default_driver", help="Driver of templates whose image names none."),
            cfg.BoolOpt("verify_ca", default=True, help="Told to drivers: verify certificates."),
            cfg.StrOpt("openstack_ca_file", default="", help="Told to drivers: CA bundle."),
        ],
        "cluster_template": [
            cfg.ListOpt(
                "kubernetes_allowed_network_drivers",
                default=["flannel", "calico"],
                help="Network drivers that templates may name; all allows every one.",
            ),
            cfg.StrOpt(
                "kubernetes_default_network_driver",
                default="flannel",
                help="Network driver of templates that name none.",
            ),
        ],
        "cluster": _cluster(),
        "kubernetes": [
            cfg.IntOpt(
                "health_polling_interval",
                default=60,
                help="Seconds between two looks at a cluster's health.",
            ),
            cfg.StrOpt(
                "keystone_auth_default_policy",
                default="/etc/magnum/keystone_auth_default_policy.json",
                help="Policy file for Keystone authentication in clusters.",
            ),
            cfg.StrOpt(
                "post_install_manifest_url",
                default="",
                help="Manifest applied after a cluster is installed.",
            ),
        ],
        "certificates": [
            cfg.StrOpt(
                "cert_manager_type",
                default="barbican",
                help="Where keys are kept: barbican, x509keypair or local.",
            ),
            cfg.StrOpt(
                "storage_path",
                default="/var/lib/magnum/certificates/",
                help="Directory of the local certificate manager.",
            ),
        ],
        "x509": _x509(),
        "cinder": [
            cfg.StrOpt("default_docker_volume_type", default="", help="Volume type."),
            cfg.StrOpt("default_etcd_volume_type", default="", help="Volume type."),
            cfg.StrOpt("default_boot_volume_type", default="", help="Volume type."),
            cfg.IntOpt(
                "default_boot_volume_size", default=0, help="Boot volume in GB; 0 means none."
            ),
        ],
        **_clients(),
        "docker": _docker(),
        "docker_registry": [
            cfg.StrOpt("swift_region", help="Accepted, without a meaning."),
            cfg.StrOpt(
                "swift_registry_container",
                default="docker_registry",
                help="Accepted, without a meaning.",
            ),
        ],
        GROUP: [
            cfg.ListOpt(
                "secret_keys",
                default=[],
                secret=True,
                help="Passphrases that secrets in the database are sealed with: the first seals, "
                "all open. Default: the service user's password; after changing that password, "
                "put the old one here as second.",
            ),
        ],
        "oslo_middleware": [
            cfg.BoolOpt(
                "enable_proxy_headers_parsing",
                default=False,
                help="Take the request's base URL from X-Forwarded-*. Only behind a proxy.",
            ),
        ],
    }


def product() -> oslo.Product:
    """Returns the definition of the file."""
    return oslo.Product(
        project="magnum",
        options=options(),
        credentials=("keystone_authtoken", "keystone_auth"),
        retired_sections=frozenset(
            {
                "trust",
                "bay",
                "baymodel",
                "bay_heat",
                "cluster_heat",
                "heat_client",
                "keystone",
                "watchers",
                "rpc",
            }
        ),
        retired=frozenset({"DEFAULT.config_dir", "certificates.cert_manager_barbican_auth"}),
    )


def load(
    files: Sequence[str] = (), dirs: Sequence[str] = (), args: Sequence[str] = ()
) -> cfg.ConfigOpts:
    """Reads ``magnum.conf``.

    Args:
        files: ``--config-file`` values; none means /etc/magnum/magnum.conf.
        dirs: ``--config-dir`` values.
        args: further oslo.config arguments.

    Returns:
        The options.

    Raises:
        ConfigError: see ``config.oslo.load``.
    """
    return oslo.load(product(), files, dirs, args)
