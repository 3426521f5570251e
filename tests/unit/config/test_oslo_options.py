"""ec2api.conf and magnum.conf: names, types, defaults, and what is said about mistakes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from trimaran.config import common, ec2, magnum
from trimaran.errors import ConfigError

Load = Callable[..., Any]


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], str]:
    """Writes a configuration file and returns its path."""

    def writer(text: str, name: str = "service.conf") -> str:
        file = tmp_path / name
        file.write_bytes(text.encode("latin-1"))
        return str(file)

    return writer


def test_ec2_defaults_are_upstreams(write: Callable[[str], str]) -> None:
    conf = ec2.load([write("[DEFAULT]\nmy_ip = 10.1.1.1\n")])
    assert conf.keystone_ec2_tokens_url == "http://localhost:5000/v3/ec2tokens"
    assert (conf.ec2api_listen, conf.ec2api_listen_port) == ("0.0.0.0", 8788)
    assert (conf.metadata_listen_port, conf.s3_listen_port) == (8789, 3334)
    assert conf.ec2_host == "10.1.1.1"
    assert conf.s3_url == "http://10.1.1.1:3334"
    assert conf.cinder_service_type == "volumev3"
    assert conf.disable_ec2_classic is None
    assert conf.buckets_path == "/var/lib/ec2api/buckets"
    assert conf.database.connection == "sqlite:////var/lib/ec2api/ec2api.sqlite"
    assert conf.metadata.nova_metadata_protocol == "http"
    assert conf.metadata.cache_expiration == 15
    assert conf.max_header_line == 16384
    assert conf.ec2api_workers == common.processors()


def test_magnum_defaults_are_upstreams(write: Callable[[str], str]) -> None:
    conf = magnum.load([write("")])
    assert (str(conf.api.host), conf.api.port, conf.api.max_limit) == ("127.0.0.1", 9511, 1000)
    assert conf.conductor.topic == "magnum-conductor"
    assert conf.quotas.max_clusters_per_project == 20
    assert conf.x509.allowed_key_usage == [
        "Digital Signature",
        "Key Encipherment",
        "Non Repudiation",
    ]
    assert conf.cluster_template.kubernetes_allowed_network_drivers == ["flannel", "calico"]
    assert conf.nova_client.endpoint_type == "publicURL"
    assert conf.service_down_time == 180
    assert conf.host  # spec/magnum.md F-22: upstream has none, all conductors share one row
    assert conf.certificates.cert_manager_type == "barbican"
    assert conf.oslo_policy.enforce_new_defaults is True


def test_later_files_win_and_directories_are_read_last(tmp_path: Path) -> None:
    (tmp_path / "a.conf").write_text("[api]\nport = 1\nmax_limit = 1\n")
    (tmp_path / "b.conf").write_text("[api]\nport = 2\nmax_limit = 2\n")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "z.conf").write_text("[api]\nport = 3\n")
    conf = magnum.load([str(tmp_path / "a.conf"), str(tmp_path / "b.conf")], [str(tmp_path / "d")])
    assert (conf.api.port, conf.api.max_limit) == (3, 2)


@pytest.mark.parametrize(
    ("module", "text", "sentence"),
    [
        (ec2, "[DEFAULT]\nec2_port = x", "[DEFAULT] ec2_port must be a port number, not 'x'."),
        (ec2, "[DEFAULT]\ndebug = maybe", "[DEFAULT] debug must be true or false, not 'maybe'."),
        (
            ec2,
            "[DEFAULT]\nec2_scheme = ftp",
            "[DEFAULT] ec2_scheme must be one of http, https, not 'ftp'.",
        ),
        (
            ec2,
            "[metadata]\ncache_expiration = -1",
            "[metadata] cache_expiration must be an integer of at least 0, not '-1'.",
        ),
        (
            magnum,
            "[x509]\nallowed_key_usage = Digital Signature,Ringing",
            "[x509] allowed_key_usage must be a comma separated list of Digital Signature, "
            "Key Encipherment, Non Repudiation, Data Encipherment, Key Agreement, "
            "Certificate Sign, CRL Sign, Encipher Only, Decipher Only, "
            "not 'Digital Signature,Ringing'.",
        ),
        (
            magnum,
            "[trimaran]\nthreads = 0",
            "[trimaran] threads must be an integer of at least 1, not '0'.",
        ),
        (
            magnum,
            "[trimaran]\nread_timeout = soon",
            "[trimaran] read_timeout must be a number of at least 0.1, not 'soon'.",
        ),
        (
            magnum,
            "[keystone_authtoken]\ntimeout = x",
            "[keystone_authtoken] timeout has a value of the wrong type, not 'x'.",
        ),
        (
            magnum,
            "[database]\nmax_pool_size = many",
            "[database] max_pool_size must be an integer of at least 0, not 'many'.",
        ),
        (
            ec2,
            "[database]\nconnection = mysql://u:pa$word@h/d",
            "[database] connection refers to an option that does not exist; "
            "write $$ for a dollar sign.",
        ),
    ],
)
def test_a_mistake_is_one_sentence_with_file_and_option(
    write: Callable[[str], str], module: ModuleType, text: str, sentence: str
) -> None:
    file = write(text + "\n")
    with pytest.raises(ConfigError) as caught:
        module.load([file])
    assert str(caught.value) == f"{file}: {sentence}"


def test_the_file_named_is_the_one_with_the_mistake(write: Any) -> None:
    good = write("[api]\nport = 9511\n", "good.conf")
    bad = write("[api]\nport = nine\n", "bad.conf")
    with pytest.raises(ConfigError, match=r"bad\.conf: \[api\] port"):
        magnum.load([good, bad])
    # A later good value hides the bad one, for oslo.config as for us.
    assert magnum.load([bad, good]).api.port == 9511


def test_secrets_are_not_repeated_in_errors(write: Callable[[str], str]) -> None:
    with pytest.raises(ConfigError) as caught:
        ec2.load([write("[database]\nconnection = mysql://root:hunter2$x@h/d\n")])
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no section\n", "not an ini file (at"),
        ("[DEFAULT\n", "not an ini file (at"),
        ("[DEFAULT]\nx = \xff\n", "not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_parsed_is_one_sentence(
    write: Callable[[str], str], text: str, words: str
) -> None:
    file = write(text)
    with pytest.raises(ConfigError) as caught:
        ec2.load([file])
    assert str(caught.value).startswith(f"{file}: ")
    assert words in str(caught.value)


def test_missing_files_and_directories_are_named(
    tmp_path: Path, write: Callable[[str], str]
) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.conf: the file does not exist\."):
        ec2.load([str(tmp_path / "nowhere.conf")])
    with pytest.raises(ConfigError, match="nodir: the directory does not exist"):
        magnum.load([write("")], [str(tmp_path / "nodir")])


def test_without_any_file_the_default_one_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oslo_config.cfg.find_config_files", lambda **_: [])
    with pytest.raises(ConfigError, match=r"^/etc/magnum/magnum\.conf: the file does not exist;"):
        magnum.load()


def test_unknown_keys_warn_once_and_libraries_do_not(
    write: Any, caplog: pytest.LogCaptureFixture
) -> None:
    text = """
[DEFAULT]
transport_url = rabbit://
rpc_response_timeout = 60
log-dir = /var/log/magnum
use_stderr = true
lunch = noon
[keystone_authtoken]
auth_type = password
auth_url = http://k/v3
username = magnum
password = p
project_domain_name = Default
memcached_servers = m:11211
service_token_roles_required = true
bogus = 1
[keystone_auth]
auth_section = shared_auth
[shared_auth]
auth_type = password
username = x
[oslo_messaging_rabbit]
rabbit_quorum_queue = true
[oslo_middleware]
enable_proxy_headers_parsing = true
[oslo_reports]
file_event_handler = x
[cors]
allowed_origin = x
[cache]
enabled = true
[trust]
trustee_domain_name = magnum
[heat_client]
region_name = x
[wind]
speed = 3
direction = n
"""
    first = write(text, "a.conf")
    second = write("[DEFAULT]\nlunch = one\n[wind]\nspeed = 4\n", "b.conf")
    with caplog.at_level(logging.WARNING, logger="trimaran.config"):
        conf = magnum.load([first, second])
    assert [record.getMessage() for record in caplog.records] == [
        f"{first}: unknown option [DEFAULT] lunch is ignored.",
        f"{first}: unknown option [keystone_authtoken] bogus is ignored.",
        f"{first}: unknown section [wind] is ignored.",
    ]
    assert conf.oslo_middleware.enable_proxy_headers_parsing is True


def test_old_names_of_options_are_known(write: Any, caplog: pytest.LogCaptureFixture) -> None:
    text = "[DEFAULT]\nsql_connection = sqlite://\n[keystone_authtoken]\nauth_uri = http://k\n"
    with caplog.at_level(logging.WARNING, logger="trimaran.config"):
        conf = ec2.load([write(text)])
    assert conf.database.connection == "sqlite://"
    assert conf.keystone_authtoken.www_authenticate_uri == "http://k"
    assert not [record for record in caplog.records if record.name == "trimaran.config"]


def test_two_loads_do_not_share_anything(write: Any) -> None:
    one = magnum.load([write("[api]\nport = 1\n", "one.conf")])
    two = magnum.load([write("[api]\nport = 2\n", "two.conf")])
    assert (one.api.port, two.api.port) == (1, 2)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("", 40),
        ("[trimaran]\nthreads = 9\n", 9),
        ("[database]\nmax_pool_size = 1\n", 1),
        ("[database]\nmax_pool_size = 3\n[trimaran]\ndatabase_pool_size = 2\n", 2),
        # 0 is oslo.db's "no limit", which a fixed pool cannot be.
        ("[database]\nmax_pool_size = 0\n", 40),
    ],
)
def test_the_pool_size_is_ours_then_oslo_dbs_then_the_threads(
    write: Callable[[str], str], text: str, size: int
) -> None:
    assert common.own(magnum.load([write(text)])).database_pool_size == size


def test_command_line_arguments_go_on_top(write: Callable[[str], str]) -> None:
    assert ec2.load([write("[DEFAULT]\ndebug = false\n")], args=["--debug"]).debug is True
    with pytest.raises(ConfigError, match="unrecognized arguments: --zork"):
        ec2.load([write("")], args=["--zork"])
