"""``ec2api.conf``: upstream's names, types and defaults (spec/ec2.md section 8.1)."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from oslo_config import cfg

from trimaran.config import oslo
from trimaran.config.common import GROUP, processors

MAX_LINE = 16384


def my_ip() -> str:
    """Returns the IPv4 address of the interface with the default route.

    Nothing is sent: connecting a datagram socket only asks the kernel for the
    route.  Without one the answer is 127.0.0.1.
    """
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))  # TEST-NET-1, RFC 5737
            return str(probe.getsockname()[0])
    except Exception:  # noqa: BLE001 - whatever the reason (no network, a sandbox), there is none
        return "127.0.0.1"


def options() -> dict[str, list[cfg.Opt]]:
    """Returns section to options, in the order of the sample file."""
    processes = processors()
    common = [
        cfg.StrOpt(
            "keystone_ec2_tokens_url",
            default="http://localhost:5000/v3/ec2tokens",
            help="Where Keystone checks EC2 signatures.",
        ),
        cfg.IntOpt(
            "ec2_timestamp_expiry",
            default=300,
            help="Seconds that a request's time may differ from ours.",
        ),
        cfg.BoolOpt(
            "use_forwarded_for",
            default=False,
            help="Take the client's address from X-Forwarded-For. Only behind a proxy.",
        ),
        cfg.StrOpt(
            "nova_service_type", default="compute", help="Nova's service type in the catalog."
        ),
        cfg.StrOpt(
            "cinder_service_type", default="volumev3", help="Cinder's service type in the catalog."
        ),
        cfg.BoolOpt("disable_ec2_classic", help="VPC only: every project gets a default VPC."),
        cfg.StrOpt(
            "external_network", help="Name of the network that floating IPs are taken from."
        ),
        cfg.IntOpt("network_device_mtu", default=1500, help="MTU told to instances by DHCP."),
        cfg.StrOpt(
            "default_flavor", default="m1.small", help="Flavor when InstanceType is absent."
        ),
        cfg.BoolOpt(
            "ec2_private_dns_show_ip",
            default=False,
            help="Answer the private IP address as privateDnsName.",
        ),
        cfg.StrOpt(
            "internal_service_availability_zone",
            default="internal",
            help="Availability zone that is not shown.",
        ),
        cfg.StrOpt(
            "my_ip",
            default=my_ip(),
            sample_default="<the address of the interface with the default route>",
            help="IP address of this host.",
        ),
        cfg.StrOpt("ec2_host", default="$my_ip", help="Host in the endpoint of a region."),
        cfg.PortOpt("ec2_port", default=8788, help="Port in the endpoint of a region."),
        cfg.StrOpt(
            "ec2_scheme",
            default="http",
            choices=["http", "https"],
            help="Scheme in the endpoint of a region.",
        ),
        cfg.StrOpt("ec2_path", default="/", help="Path in the endpoint of a region."),
        cfg.ListOpt(
            "region_list", default=[], help="Further regions, as name=host separated by commas."
        ),
    ]
    servers = [
        cfg.StrOpt("ec2api_listen", default="0.0.0.0", help="Address of the API."),  # noqa: S104
        cfg.PortOpt("ec2api_listen_port", default=8788, help="Port of the API."),
        cfg.BoolOpt("ec2api_use_ssl", default=False, help="Serve the API with TLS."),
        cfg.IntOpt(
            "ec2api_workers",
            default=processes,
            min=1,
            sample_default="<number of processors>",
            help="Processes of the API.",
        ),
        cfg.StrOpt(
            "metadata_listen",
            default="0.0.0.0",  # noqa: S104
            help="Address of the metadata service.",
        ),
        cfg.PortOpt("metadata_listen_port", default=8789, help="Port of the metadata service."),
        cfg.BoolOpt("metadata_use_ssl", default=False, help="Serve metadata with TLS."),
        cfg.IntOpt(
            "metadata_workers",
            default=processes,
            min=1,
            sample_default="<number of processors>",
            help="Processes of the metadata service.",
        ),
        cfg.StrOpt("s3_listen", default="0.0.0.0", help="Address of the S3 service."),  # noqa: S104
        cfg.PortOpt("s3_listen_port", default=3334, help="Port of the S3 service."),
        cfg.StrOpt(
            "buckets_path", default="$state_path/buckets", help="Directory of the S3 buckets."
        ),
        cfg.StrOpt(
            "s3_url", default="http://$my_ip:3334", help="S3 service that bundles are read from."
        ),
        cfg.StrOpt("s3_region", default="RegionOne", help="Region of the S3 service."),
        cfg.StrOpt(
            "image_decryption_dir",
            default="/tmp",  # noqa: S108
            help="Directory for temporary image files.",
        ),
        cfg.StrOpt("x509_root_private_key", help="PEM key that image bundles are encrypted for."),
        cfg.StrOpt("cert_topic", default="cert", help="Accepted, without a meaning."),
        cfg.StrOpt("state_path", default="/var/lib/ec2api", help="Directory of our own state."),
        cfg.StrOpt(
            "api_paste_config",
            default="api-paste.ini",
            help="Accepted; the order of the stages is fixed.",
        ),
        cfg.StrOpt(
            "wsgi_log_format",
            default='%(client_ip)s "%(request_line)s" status: %(status_code)s '
            "len: %(body_length)s time: %(wall_seconds).7f",
            help="Accepted; the access log has one format.",
        ),
        cfg.StrOpt("ssl_ca_file", help="CA of client certificates, which are then required."),
        cfg.StrOpt("ssl_cert_file", help="Server certificate."),
        cfg.StrOpt("ssl_key_file", help="Key of the server certificate."),
        cfg.IntOpt("tcp_keepidle", default=600, help="Seconds before TCP keep-alive probes."),
        cfg.IntOpt(
            "wsgi_default_pool_size",
            default=1000,
            help="Accepted; see [trimaran] threads.",
        ),
        cfg.IntOpt(
            "max_header_line", default=MAX_LINE, min=1024, help="Largest header line in bytes."
        ),
        cfg.BoolOpt(
            "fatal_exception_format_errors",
            default=False,
            help="Accepted, without a meaning.",
        ),
    ]
    return {
        "DEFAULT": common + servers,
        "metadata": _metadata(),
        "oslo_concurrency": [
            cfg.StrOpt("lock_path", help="Accepted; locks are rows in the database."),
        ],
        GROUP: [
            cfg.IntOpt(
                "terminated_instances_seconds",
                default=3600,
                min=0,
                help="Seconds that a terminated instance stays visible.",
            ),
            cfg.IntOpt(
                "launch_deadline_seconds",
                default=600,
                min=1,
                help="Seconds after which a launch whose server never appeared counts as ended.",
            ),
            cfg.IntOpt(
                "largest_image_gib",
                default=64,
                min=1,
                help="Largest image, in GiB, that a bundle in S3 may unwrap to.",
            ),
        ],
    }


def _metadata() -> list[cfg.Opt]:
    return [
        cfg.StrOpt("nova_metadata_ip", default="127.0.0.1", help="Host of Nova's metadata API."),
        cfg.PortOpt("nova_metadata_port", default=8775, help="Port of Nova's metadata API."),
        cfg.StrOpt(
            "nova_metadata_protocol",
            default="http",
            choices=["http", "https"],
            help="Protocol of Nova's metadata API.",
        ),
        cfg.BoolOpt(
            "nova_metadata_insecure", default=False, help="Do not verify Nova's certificate."
        ),
        cfg.StrOpt("auth_ca_cert", help="CA bundle for Nova's certificate."),
        cfg.StrOpt("nova_client_cert", default="", help="Client certificate for Nova."),
        cfg.StrOpt("nova_client_priv_key", default="", help="Key of nova_client_cert."),
        cfg.StrOpt(
            "metadata_proxy_shared_secret",
            default="",
            secret=True,
            help="Secret shared with Neutron's metadata agent and Nova.",
        ),
        cfg.IntOpt("cache_expiration", default=15, min=0, help="Seconds that metadata is kept."),
    ]


# SQLite below the state directory, when [database] connection is not set.
DEFAULT_CONNECTION = "sqlite:///$state_path/ec2api.sqlite"


def product() -> oslo.Product:
    """Returns the definition of the file."""
    return oslo.Product(
        project="ec2api",
        options=options(),
        connection=DEFAULT_CONNECTION,
        retired=frozenset(
            {
                "DEFAULT.keystone_url",
                "DEFAULT.keystone_sig_url",
                "DEFAULT.admin_user",
                "DEFAULT.admin_password",
                "DEFAULT.admin_tenant_name",
                "DEFAULT.full_vpc_support",
                "DEFAULT.use_tpool",
                "DEFAULT.dbapi_use_tpool",
                "DEFAULT.ssl_insecure",
                "DEFAULT.os_region_name",
                "DEFAULT.wsgi_keep_alive",
                "database.use_tpool",
            }
        ),
    )


def load(
    files: Sequence[str] = (), dirs: Sequence[str] = (), args: Sequence[str] = ()
) -> cfg.ConfigOpts:
    """Reads ``ec2api.conf``.

    Args:
        files: ``--config-file`` values; none means /etc/ec2api/ec2api.conf.
        dirs: ``--config-dir`` values.
        args: further oslo.config arguments.

    Returns:
        The options.

    Raises:
        ConfigError: see ``config.oslo.load``.
    """
    return oslo.load(product(), files, dirs, args)
