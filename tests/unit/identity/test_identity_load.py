"""Identities out of [keystone_authtoken]."""

from __future__ import annotations

from typing import Any

import pytest
import requests_mock as mocking
from oslo_config import cfg

from tests.support.keystone import Keystone
from trimaran.config.common import defaults
from trimaran.errors import ConfigError
from trimaran.identity import Identity, from_conf

BASE = {
    "auth_type": "password",
    "auth_url": "http://keystone.test:5000",
    "username": "svc",
    "password": "s3cret",
    "project_name": "service",
    "user_domain_name": "Default",
    "project_domain_name": "Default",
}


def load(tmp_path: Any, values: dict[str, str], **options: Any) -> Identity:
    path = tmp_path / "service.conf"
    lines = [f"{name} = {value}" for name, value in values.items()]
    path.write_text("\n".join(["[keystone_authtoken]", *lines, ""]))
    conf = cfg.ConfigOpts()
    conf.register_opts(
        [cfg.StrOpt("region_name"), cfg.StrOpt("interface", default="internal")],
        "keystone_authtoken",
    )
    conf(args=[], default_config_files=[str(path)], default_config_dirs=[])
    return from_conf(conf, own=defaults(), **options)


def _auth(mock: mocking.Mocker) -> dict[str, Any]:
    found: dict[str, Any] = mock.request_history[0].json()["auth"]
    return found


@pytest.mark.parametrize(
    ("auth_type", "url"),
    [
        ("password", "http://keystone.test:5000"),
        ("password", "http://keystone.test:5000/v3/"),
        ("v3password", "http://keystone.test:5000/v3"),
    ],
)
def test_password_without_discovery(
    tmp_path: Any, keystone: Keystone, requests_mock: mocking.Mocker, auth_type: str, url: str
) -> None:
    ours = load(tmp_path, BASE | {"auth_type": auth_type, "auth_url": url})
    assert ours.service_token() == "service-1"
    assert requests_mock.call_count == 1
    assert _auth(requests_mock) == {
        "identity": {
            "methods": ["password"],
            "password": {
                "user": {"name": "svc", "domain": {"name": "Default"}, "password": "s3cret"}
            },
        },
        "scope": {"project": {"name": "service", "domain": {"name": "Default"}}},
    }


def test_default_domain(tmp_path: Any, keystone: Keystone, requests_mock: mocking.Mocker) -> None:
    values = {name: BASE[name] for name in BASE if "domain" not in name}
    load(tmp_path, values | {"default_domain_id": "d1"}).service_token()
    auth = _auth(requests_mock)
    assert auth["identity"]["password"]["user"]["domain"] == {"id": "d1"}
    assert auth["scope"]["project"]["domain"] == {"id": "d1"}


def test_system_scope(tmp_path: Any, keystone: Keystone, requests_mock: mocking.Mocker) -> None:
    values = {name: BASE[name] for name in BASE if "project" not in name}
    load(tmp_path, values | {"system_scope": "all"}).service_token()
    assert _auth(requests_mock)["scope"] == {"system": {"all": True}}


def test_region_and_interface_of_the_group(tmp_path: Any) -> None:
    ours = load(tmp_path, BASE | {"region_name": "Two", "interface": "admin"})
    assert (ours.region, ours.interface) == ("Two", "admin")
    ours = load(tmp_path, BASE)
    assert (ours.region, ours.interface) == (None, "internal")
    ours = load(tmp_path, BASE | {"region_name": "Two"}, region="Three", interface="public")
    assert (ours.region, ours.interface) == ("Three", "public")


@pytest.mark.parametrize(
    ("options", "verify", "cert"),
    [
        ({}, True, None),
        ({"cafile": "/ca.pem"}, "/ca.pem", None),
        ({"cafile": "/ca.pem", "insecure": "true"}, False, None),
        ({"certfile": "/c.pem"}, True, "/c.pem"),
        ({"certfile": "/c.pem", "keyfile": "/k.pem"}, True, ("/c.pem", "/k.pem")),
    ],
)
def test_tls_options(
    tmp_path: Any,
    keystone: Keystone,
    requests_mock: mocking.Mocker,
    options: dict[str, str],
    verify: object,
    cert: object,
) -> None:
    def there(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(there(each) for each in value)
        return f"{tmp_path}{value}" if isinstance(value, str) and value[0] == "/" else value

    for name in ("ca.pem", "c.pem", "k.pem"):
        (tmp_path / name).touch()
    load(tmp_path, BASE | {name: there(value) for name, value in options.items()}).service_token()
    assert requests_mock.last_request.verify == there(verify)
    assert requests_mock.last_request.cert == there(cert)


@pytest.mark.parametrize("name", ["cafile", "certfile", "keyfile"])
def test_a_missing_file_is_named(tmp_path: Any, name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}: there is no file /none.pem"):
        load(tmp_path, BASE | {name: "/none.pem"})


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"auth_type": "none"},
        {"auth_type": "no-such-plugin"},
        {"auth_type": "password", "username": "svc", "password": "s3cret"},
    ],
)
def test_unusable_credentials_end_the_start(tmp_path: Any, values: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="keystone_authtoken") as caught:
        load(tmp_path, values)
    assert "s3cret" not in str(caught.value)


def test_ec2_url_default_and_option(tmp_path: Any) -> None:
    assert load(tmp_path, BASE)._ec2_tokens_url == "http://keystone.test:5000/v3/ec2tokens"
    url = "http://k.test/v3/ec2tokens"
    assert load(tmp_path, BASE, ec2_tokens_url=url)._ec2_tokens_url == url
