"""skyline.yaml: names, types, defaults, and what is said about mistakes."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import yaml

from trimaran.config import common, console
from trimaran.errors import ConfigError

FILE = "/etc/skyline/skyline.yaml"


def test_defaults_are_upstreams() -> None:
    settings = console.parse({}, FILE)
    assert settings.default.database_url == "sqlite:////tmp/skyline.db"
    assert settings.default.access_token_expire == 3600
    assert settings.default.access_token_renew == 1800
    assert settings.default.session_name == "session"
    assert settings.default.ssl_enabled is True
    assert settings.default.secure_proxy_addr_header is None
    assert settings.openstack.keystone_url == "http://127.0.0.1:5000/v3/"
    assert settings.openstack.system_project == "service"
    assert settings.openstack.interface_type == "public"
    assert settings.openstack.base_domains == ["heat_user_domain"]
    assert settings.openstack.service_mapping["sharev2"] == "manilav2"
    assert len(settings.openstack.service_mapping) == 17
    assert settings.openstack.extension_mapping["qos"] == "neutron_qos"
    assert settings.setting.base_settings == ["flavor_families", "gpu_models", "usb_models"]
    assert settings.setting.flavor_families[0]["architecture"] == "x86_architecture"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            {"default": {"access_token_expire": "3600"}},
            "default.access_token_expire must be an integer, not '3600'.",
        ),
        ({"default": {"debug": 1}}, "default.debug must be true or false, not 1."),
        ({"default": {"log_dir": 5}}, "default.log_dir must be a string, not 5."),
        ({"default": {"access_token_renew": True}}, "must be an integer, not true."),
        (
            {"default": {"cors_allow_origins": "http://a"}},
            "default.cors_allow_origins must be a list, not 'http://a'.",
        ),
        (
            {"openstack": {"interface_type": "private"}},
            "openstack.interface_type must be one of 'internal', 'admin' or 'public', "
            "not 'private'.",
        ),
        (
            {"openstack": {"keystone_url": "keystone:5000"}},
            "openstack.keystone_url must be an http or https URL, not 'keystone:5000'.",
        ),
        (
            {"openstack": {"service_mapping": {"compute": ["nova"]}}},
            "openstack.service_mapping.compute must be a string, not a list.",
        ),
        (
            {"openstack": {"sso_identity_providers": [{"name": "a", "protocol": "saml2"}]}},
            "openstack.sso_identity_providers.0.label must be given.",
        ),
        ({"trimaran": {"threads": 0}}, "trimaran.threads must be at least 1, not 0."),
        ({"default": None}, "default must be a mapping of options, not empty."),
        ({"openstack": []}, "openstack must be a mapping of options, not a list."),
        (None, "the file must be a mapping of groups, not empty."),
        ("text", "the file must be a mapping of groups, not 'text'."),
    ],
)
def test_a_mistake_is_one_sentence_with_file_and_option(content: Any, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        console.parse(content, FILE)
    assert str(caught.value).startswith(f"{FILE}: ")
    assert str(caught.value).endswith(sentence)


@pytest.mark.parametrize("name", sorted(console.SECRETS))
def test_secrets_are_not_repeated_in_errors(name: str) -> None:
    group = "openstack" if name == "system_user_password" else "default"
    with pytest.raises(ConfigError) as caught:
        console.parse({group: {name: 271828}}, FILE)
    assert name in str(caught.value)
    assert "271828" not in str(caught.value)


def test_null_counts_as_absent() -> None:
    settings = console.parse({"default": {"access_token_expire": None, "log_dir": None}}, FILE)
    assert settings.default.access_token_expire == 3600
    assert settings.default.log_dir == "/var/log/skyline"


def test_each_unknown_key_warns_once_and_retired_ones_do_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    content = {
        "default": {"colour": "blue", "debug": False},
        "openstack": {"base_roles": ["x"], "shape": 1},
        "developer": {"show_raw_sql": False},
        "weather": {"rain": True},
    }
    with caplog.at_level(logging.WARNING, logger="trimaran.config"):
        console.parse(content, FILE)
    assert [record.getMessage() for record in caplog.records] == [
        f"{FILE}: unknown option default.colour is ignored.",
        f"{FILE}: unknown option openstack.shape is ignored.",
        f"{FILE}: unknown group weather is ignored.",
    ]


def test_the_published_key_and_switched_off_verification_are_shouted_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "skyline.yaml"
    file.write_text("trimaran:\n  insecure: true\n")
    with caplog.at_level(logging.WARNING, logger="trimaran.config"):
        console.load(str(file))
    assert "published default" in caplog.text
    assert "certificates are not verified" in caplog.text


def test_the_directory_comes_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "skyline.yaml").write_text("default:\n  session_name: s\n  secret_key: k\n")
    monkeypatch.setenv("OS_CONFIG_DIR", str(tmp_path))
    assert console.load().default.session_name == "s"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read (No such file or directory)"),
        (b"default: [", "not valid YAML at line"),
        (b"default:\n  log_dir: \xff\n", "not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_sentence(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    file = tmp_path / "skyline.yaml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        console.load(str(file))
    assert str(file) in str(caught.value)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_yaml_that_makes_objects_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "skyline.yaml"
    file.write_text("default: !!python/object/apply:os.getcwd []\n")
    with pytest.raises(ConfigError, match="not valid YAML"):
        console.load(str(file))


def test_our_own_group_becomes_own_with_derived_defaults() -> None:
    own = common.own(console.parse({"trimaran": {"threads": 7, "read_timeout": 3}}, FILE))
    assert (own.threads, own.database_pool_size, own.read_timeout) == (7, 7, 3)
    assert own.workers == common.processors()
    assert own.token_cache_seconds == 60
    assert common.own(console.parse({"trimaran": {"database_pool_size": 1}}, FILE)).threads == 40


def test_the_sample_is_a_valid_file_with_the_defaults() -> None:
    from trimaran.config import sample

    content = yaml.safe_load(sample.skyline())
    # For the nginx that skyline-nginx-generator makes (F40); upstream's default is null.
    assert content["default"].pop("secure_proxy_addr_header") == "X-Real-IP"
    assert console.parse(content, FILE) == console.parse({}, FILE)
