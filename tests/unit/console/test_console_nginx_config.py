"""The text of nginx's configuration, and what changed in it (spec/skyline.md 6.2)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trimaran.console.tools.nginx_catalog import Location
from trimaran.console.tools.nginx_config import Site, changes, difference, proxied, render
from trimaran.errors import ConfigError

SITE = Site(
    listen="0.0.0.0:9999",
    static="/srv/console",
    access_log="/var/log/skyline/access.log",
    error_log="/var/log/skyline/error.log",
    prefix="/api/openstack",
)
NOVA = Location("RegionOne", "compute", "nova", "http://10.0.0.1:8774/")
GLANCE = Location("RegionOne", "image", "glance", "https://glance.example/image/")


def block(text: str, path: str) -> list[str]:
    """The lines of a location."""
    inside = text.split(f"location {path} {{\n")[1].split("}\n")[0]
    return [line.strip() for line in inside.splitlines() if line.strip()]


def test_a_service_gets_a_location() -> None:
    text = render(SITE, [NOVA, GLANCE])
    assert "# RegionOne nova\n" in text
    nova = block(text, "/api/openstack/regionone/nova/")
    assert nova[:3] == [
        "proxy_pass http://10.0.0.1:8774/;",
        "proxy_redirect http://10.0.0.1:8774/ /api/openstack/regionone/nova/;",
        "proxy_buffering off;",
    ]
    assert "proxy_set_header Host 10.0.0.1:8774;" in nova
    glance = block(text, "/api/openstack/regionone/glance/")
    assert "proxy_ssl_protocols TLSv1.2 TLSv1.3;" in glance
    assert "proxy_ssl_server_name on;" in glance
    assert not any("proxy_ssl" in line for line in nova)


def test_the_api_is_under_its_three_paths() -> None:
    text = render(SITE, [])
    assert proxied(text) == {
        "/api/openstack/skyline/": "http://skyline/",
        "/api/v1/": "http://skyline/api/v1/",
    }
    other = render(replace(SITE, prefix="/cloud"), [NOVA])
    assert proxied(other) == {
        "/api/openstack/skyline/": "http://skyline/",
        "/cloud/skyline/": "http://skyline/",
        "/api/v1/": "http://skyline/api/v1/",
        "/cloud/regionone/nova/": "http://10.0.0.1:8774/",
    }


def test_every_proxied_location_says_who_asks() -> None:
    text = render(SITE, [NOVA, GLANCE])
    for path in proxied(text):
        lines = block(text, path)
        for header in (
            "X-Real-IP $remote_addr",
            "X-Forwarded-For $proxy_add_x_forwarded_for",
            "X-Forwarded-Proto $scheme",
            "X-Forwarded-Host $http_host",
        ):
            assert f"proxy_set_header {header};" in lines
    for path in ("/api/openstack/skyline/", "/api/v1/"):
        assert "proxy_set_header Host $http_host;" in block(text, path)
        assert "proxy_redirect off;" in block(text, path)


def test_the_page_is_never_remembered_and_its_files_are() -> None:
    text = render(SITE, [])
    assert block(text, "= /index.html")[-1] == 'add_header Cache-Control "no-cache";'
    assert "expires 1d;" in block(text, "/")
    assert "try_files $uri $uri/ /index.html;" in block(text, "/")


def test_tls_needs_certificate_and_key() -> None:
    plain = render(SITE, [])
    assert "listen 0.0.0.0:9999 default_server;" in plain
    assert "ssl_certificate" not in plain
    assert render(replace(SITE, certfile="/c.pem"), []) == plain
    secure = render(replace(SITE, certfile="/c.pem", keyfile="/k e.pem"), [])
    assert "listen 0.0.0.0:9999 ssl http2 default_server;" in secure
    assert "ssl_certificate /c.pem;" in secure
    assert 'ssl_certificate_key "/k e.pem";' in secure
    assert "ssl_protocols TLSv1.2 TLSv1.3;" in secure


def test_upstream_and_run_directory_can_be_chosen() -> None:
    text = render(SITE, [])
    assert "server unix:/var/lib/skyline/skyline.sock fail_timeout=0;" in text
    assert "pid /run/nginx.pid;" in text
    assert "temp_path" not in text
    other = render(replace(SITE, upstream="127.0.0.1:9998", run_dir="/home/me/run"), [])
    assert "server 127.0.0.1:9998 fail_timeout=0;" in other
    assert "pid /home/me/run/nginx.pid;" in other
    assert "client_body_temp_path /home/me/run/client_body;" in other


@pytest.mark.parametrize(
    "broken",
    [
        {"static": "/srv/$host"},
        {"access_log": "/var/log\n;"},
        {"listen": "0.0.0.0:80; evil"},
        {"prefix": "/api {"},
        {"prefix": "api"},
    ],
)
def test_what_nginx_would_misread_is_refused(broken: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        render(replace(SITE, **broken), [])


def test_changes_of_the_catalog_are_told() -> None:
    old = render(SITE, [NOVA, GLANCE])
    assert changes(old, old) == []
    assert difference(old, old, "nginx.conf") == ""
    moved = replace(NOVA, url="http://10.0.0.2:8774/")
    cinder = Location("RegionOne", "volumev3", "cinder", "http://10.0.0.1:8776/")
    new = render(SITE, [cinder, moved])
    assert changes(old, new) == [
        "added /api/openstack/regionone/cinder/ to http://10.0.0.1:8776/",
        "removed /api/openstack/regionone/glance/ to https://glance.example/image/",
        "changed /api/openstack/regionone/nova/ from http://10.0.0.1:8774/ "
        "to http://10.0.0.2:8774/",
    ]
    diff = difference(old, new, "nginx.conf")
    assert diff.startswith("--- nginx.conf\n+++ nginx.conf (new)\n")
    assert "+            proxy_pass http://10.0.0.2:8774/;\n" in diff


def test_a_language_is_for_browsers_that_have_none() -> None:
    text = render(replace(SITE, language="en"), [])
    assert '"" "lang=en; Path=/; SameSite=Lax";' in text
    assert block(text, "= /index.html")[-1] == "add_header Set-Cookie $language;"
    assert "cookie" not in render(SITE, []).lower()
    with pytest.raises(ConfigError, match="language"):
        render(replace(SITE, language='en";'), [])
