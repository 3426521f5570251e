"""magnum.conf as Kolla-Ansible and OpenStack-Helm write it starts the services unchanged."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from trimaran.config import common, magnum

_CLIENTS = "".join(
    f"[{name}_client]\nregion_name = RegionOne\nendpoint_type = internalURL\nca_file = /ca.pem\n"
    for name in ("heat", "octavia", "cinder", "barbican", "glance", "neutron", "nova")
)
_SERVICE_USER = """\
auth_url = http://192.0.2.5:5000
auth_type = password
user_domain_name = Default
project_domain_name = Default
project_name = service
username = magnum
password = p
cafile = /etc/ca.pem
"""
#: the options of Kolla-Ansible's template for magnum, with everything that it can switch on
KOLLA = f"""\
[DEFAULT]
debug = False
state_path = /var/lib/magnum
log_dir = {{logs}}
host = 192.0.2.11
transport_url = rabbit://openstack:p@192.0.2.11:5672,openstack:p@192.0.2.12:5672//
[api]
port = 9511
host = 192.0.2.11
workers = 5
[conductor]
workers = 5
[database]
connection = mysql+pymysql://magnum:p@192.0.2.5:3306/magnum
connection_recycle_time = 10
max_pool_size = 1
max_retries = -1
[cinder]
default_docker_volume_type = ssd
[magnum_client]
region_name = RegionOne
endpoint_type = publicURL
{_CLIENTS}\
[keystone_auth]
{_SERVICE_USER}\
[keystone_authtoken]
{_SERVICE_USER}\
service_type = container-infra
www_authenticate_uri = http://203.0.113.5:5000
region_name = RegionOne
memcache_security_strategy = ENCRYPT
memcache_secret_key = s
memcached_servers = 192.0.2.11:11211,192.0.2.12:11211
[trust]
trustee_domain_admin_password = p
trustee_domain_admin_name = magnum_trustee_domain_admin
trustee_domain_name = magnum
trustee_keystone_region_name = RegionOne
trustee_keystone_interface = public
cluster_user_trust = False
[oslo_concurrency]
lock_path = /var/lib/magnum/tmp
[oslo_middleware]
enable_proxy_headers_parsing = true
[certificates]
cert_manager_type = barbican
[oslo_messaging_notifications]
transport_url = rabbit://openstack:p@192.0.2.11:5672//
driver = messaging
topics = notifications
[oslo_messaging_rabbit]
heartbeat_in_pthread = false
ssl = true
ssl_ca_file = /etc/ca.pem
amqp_durable_queues = true
rabbit_quorum_queue = true
[oslo_policy]
policy_file = policy.yaml
[profiler]
enabled = true
trace_sqlalchemy = true
hmac_keys = s
connection_string = redis://192.0.2.11
[drivers]
disabled_drivers = k8s_cluster_api_flatcar,k8s_cluster_api_ubuntu
"""
#: the values of OpenStack-Helm's chart for magnum
HELM = f"""\
[DEFAULT]
log_config_append = {{logs}}/logging.conf
transport_url = rabbit://magnum:p@rabbitmq.openstack.svc:5672/magnum
[oslo_messaging_notifications]
driver = messagingv2
[oslo_concurrency]
lock_path = /var/lib/magnum/tmp
[oslo_messaging_rabbit]
rabbit_ha_queues = true
[certificates]
cert_manager_type = barbican
[database]
max_retries = -1
connection = mysql+pymysql://magnum:p@mariadb.openstack.svc:3306/magnum
[trust]
trustee_domain_name = magnum
trustee_domain_admin_name = magnum_domain_admin
trustee_domain_admin_password = p
[keystone_authtoken]
{_SERVICE_USER}\
service_token_roles = service
service_token_roles_required = true
auth_version = v3
memcache_security_strategy = ENCRYPT
service_type = container-infra
[keystone_auth]
auth_section = keystone_authtoken
[api]
api_paste_config = /etc/magnum/api-paste.ini
port = 9511
host = 0.0.0.0
workers = 1
[conductor]
workers = 1
[oslo_policy]
policy_file = /etc/magnum/policy.yaml
[barbican_client]
region_name = RegionOne
[cluster_template]
kubernetes_allowed_network_drivers = flannel,calico
"""
_LOGGING = (
    "[loggers]\nkeys=root\n[handlers]\nkeys=\n[formatters]\nkeys=\n[logger_root]\nhandlers=\n"
)


@pytest.mark.parametrize(("text", "pool"), [(KOLLA, 1), (HELM, 40)], ids=["kolla", "helm"])
def test_it_starts_unchanged(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    text: str,
    pool: int,
) -> None:
    (tmp_path / "logging.conf").write_text(_LOGGING)
    path = tmp_path / "magnum.conf"
    path.write_text(text.replace("{logs}", str(tmp_path)))
    with caplog.at_level(logging.WARNING, logger="trimaran.config"):
        conf = magnum.load([str(path)])
    told = [r.getMessage() for r in caplog.records if r.name.startswith("trimaran")]
    assert told == []
    assert common.own(conf).database_pool_size == pool
    assert (conf.api.port, conf.certificates.cert_manager_type) == (9511, "barbican")
