"""Options of the libraries below us, known by name.

Deployment tools write one file for the service and all libraries under it.
The values either are read by the library itself (oslo.messaging registers its
own options on the transport) or have no meaning here (oslo.cache).  Listing
the names costs nothing at start, where importing oslo.db, oslo.messaging and
the rest only to learn them would cost a second.
"""

from __future__ import annotations

from oslo_config import cfg

# Sections that belong to libraries, current or retired: accepted as they are.
SECTION_PREFIXES = ("oslo_", "healthcheck")
SECTIONS = frozenset(
    {
        "cache",
        "cors",
        "profiler",
        "service_user",
        "ssl",
        "wsgi",
        "matchmaker_redis",
        "amqp1",
        "keystone_policy",
    }
)

# [DEFAULT] keys of oslo.messaging, oslo.service, oslo.db, oslo.concurrency and
# oslo.middleware; the first three libraries' are passed through.
DEFAULT_NAMES = frozenset(
    {
        "transport_url",
        "control_exchange",
        "rpc_response_timeout",
        "rpc_conn_pool_size",
        "rpc_ping_enabled",
        "rpc_backend",
        "conn_pool_min_size",
        "conn_pool_ttl",
        "executor_thread_pool_size",
        "rpc_thread_pool_size",
        "notification_driver",
        "notification_topics",
        "notification_transport_url",
        "rabbit_host",
        "rabbit_hosts",
        "rabbit_port",
        "rabbit_userid",
        "rabbit_password",
        "rabbit_virtual_host",
        "rabbit_use_ssl",
        "amqp_durable_queues",
        "backdoor_port",
        "backdoor_socket",
        "log_options",
        "graceful_shutdown_timeout",
        "run_external_periodic_tasks",
        "client_socket_timeout",
        "wsgi_keep_alive",
        "wsgi_server_debug",
        "max_request_body_size",
        "lock_path",
        "disable_process_locking",
        "enable_proxy_headers_parsing",
        "verbose",
        "use_syslog_rfc_format",
        "log_format",
        "sql_connection",
        "sql_idle_timeout",
        "policy_file",
        "policy_dirs",
        "policy_default_rule",
    }
)

# Options of keystoneauth's plugins and of keystonemiddleware in the sections
# that hold service credentials.
CREDENTIAL_NAMES = frozenset(
    {
        # keystoneauth plugins
        "access_token", "access_token_endpoint", "access_token_type", "app_cred_id",
        "application_credential_id", "application_credential_name",
        "application_credential_secret", "auth_methods", "auth_url", "client_id",
        "client_secret", "code", "default_domain_id", "default_domain_name", "discovery_endpoint",
        "domain_id", "domain_name", "endpoint", "identity_provider", "identity_provider_url",
        "mutual_auth", "openid_scope", "passcode", "password", "project_domain_id",
        "project_domain_name", "project_id", "project_name", "protocol", "redirect_uri",
        "service_provider_endpoint", "service_provider_entity_id", "system_scope", "tenant_id",
        "tenant_name", "token", "trust_id", "user_domain_id", "user_domain_name", "user_id",
        "user_name", "username",
        # keystonemiddleware
        "admin_password", "admin_tenant_name", "admin_token", "admin_user", "auth_admin_prefix",
        "auth_host", "auth_plugin", "auth_port", "auth_protocol", "auth_uri", "auth_version",
        "cache", "check_revocations_for_cached", "delay_auth_decision", "enforce_token_bind",
        "hash_algorithms", "http_connect_timeout", "http_request_max_retries", "identity_uri",
        "include_service_catalog", "memcache_password", "memcache_pool_conn_get_timeout",
        "memcache_pool_dead_retry", "memcache_pool_maxsize", "memcache_pool_socket_timeout",
        "memcache_pool_unused_timeout", "memcache_sasl_enabled", "memcache_secret_key",
        "memcache_security_strategy", "memcache_tls_allowed_ciphers", "memcache_tls_cafile",
        "memcache_tls_certfile", "memcache_tls_enabled", "memcache_tls_keyfile",
        "memcache_use_advanced_pool", "memcache_username", "memcached_servers",
        "revocation_cache_time", "service_type", "signing_dir", "token_cache_time",
        "valid_interfaces", "service_name", "endpoint_override", "connect_retries",
        "connect_retry_delay", "status_code_retries", "status_code_retry_delay", "min_version",
        "max_version", "retriable_status_codes",
    }
)  # fmt: skip


def database_options(connection: str | None = None) -> list[cfg.Opt]:
    """Returns oslo.db's ``[database]`` options, under their names and with their defaults.

    Args:
        connection: the service's default database.
    """
    return [
        cfg.StrOpt(
            "connection", default=connection, secret=True, help="SQLAlchemy URL of the database.",
            deprecated_opts=[
                cfg.DeprecatedOpt("sql_connection", group="DEFAULT"),
                cfg.DeprecatedOpt("sql_connection", group="DATABASE"),
            ],
        ),
        cfg.StrOpt("slave_connection", secret=True, help="Accepted; reads go to connection."),
        cfg.StrOpt("backend", default="sqlalchemy", help="Accepted."),
        cfg.IntOpt(
            "max_pool_size", min=0,
            help="Connections of one process. [trimaran] database_pool_size goes first.",
        ),
        cfg.IntOpt("max_overflow", default=50, help="Accepted; the pool has a fixed size."),
        cfg.IntOpt("pool_timeout", help="Accepted; see [trimaran] database_pool_timeout."),
        cfg.IntOpt("connection_recycle_time", default=3600, help="Accepted."),
        cfg.IntOpt("max_retries", default=10, help="Accepted."),
        cfg.IntOpt("retry_interval", default=10, help="Accepted."),
        cfg.IntOpt("connection_debug", default=0, min=0, max=100, help="Accepted."),
        cfg.BoolOpt("connection_trace", default=False, help="Accepted."),
        cfg.BoolOpt("use_db_reconnect", default=False, help="Accepted; always done."),
        cfg.IntOpt("db_retry_interval", default=1, help="Accepted."),
        cfg.BoolOpt("db_inc_retry_interval", default=True, help="Accepted."),
        cfg.IntOpt("db_max_retry_interval", default=10, help="Accepted."),
        cfg.IntOpt("db_max_retries", default=20, help="Accepted."),
        cfg.StrOpt("connection_parameters", default="", help="Accepted."),
        cfg.BoolOpt("sqlite_synchronous", default=True, help="Accepted."),
        cfg.BoolOpt("synchronous_reader", default=True, help="Accepted."),
        cfg.StrOpt("mysql_sql_mode", default="TRADITIONAL", help="Accepted."),
        cfg.IntOpt("mysql_wsrep_sync_wait", help="Accepted."),
        cfg.BoolOpt("mysql_enable_ndb", default=False, help="Accepted."),
    ]  # fmt: skip


def credential_options() -> list[cfg.Opt]:
    """Returns keystonemiddleware's options that we read, beside keystoneauth's own."""
    return [
        cfg.StrOpt("region_name", help="Region whose endpoints are used."),
        cfg.StrOpt(
            "interface",
            help="Interface of Keystone's endpoint: public, internal or admin.",
        ),
        cfg.StrOpt(
            "www_authenticate_uri",
            deprecated_name="auth_uri",
            help="Keystone's public URL, told to clients without a token.",
        ),
        cfg.ListOpt(
            "service_token_roles", default=["service"], help="Roles that mark a service token."
        ),
        cfg.BoolOpt(
            "service_token_roles_required",
            default=False,
            help="Refuse service tokens without one of service_token_roles.",
        ),
    ]


def policy_options() -> list[cfg.Opt]:
    """Returns oslo.policy's own options, so that its registration finds equal ones."""
    from oslo_policy import opts

    options: list[cfg.Opt] = [option for _, group in opts.list_opts() for option in group]
    if all(option.name != "enforce_scope" for option in options):
        # Gone from oslo.policy 5, still in files: true is the only behaviour left.
        options.append(
            cfg.BoolOpt("enforce_scope", default=True, help="Refuse tokens of the wrong scope.")
        )
    return options


def known_section(name: str) -> bool:
    """Tells whether a section belongs to a library that we do not read ourselves."""
    return name.lower() in SECTIONS or name.lower().startswith(SECTION_PREFIXES)
