"""The command line tools: arguments, files and exit codes (spec/skyline.md section 6)."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
import requests
import requests_mock
import yaml
from click.testing import CliRunner, Result

from tests.support.keystone import URL, catalog, error, token_body
from trimaran.config import console as options
from trimaran.console.tools import common, static_files
from trimaran.console.tools.nginx_generator import main, nginx_generator
from trimaran.console.tools.sample_config_generator import sample_config_generator
from trimaran.console.tools.swagger_generator import swagger_generator
from trimaran.errors import ConfigError

Generate = Callable[..., Result]


class Keystone:
    """Plays Keystone's lists of services and endpoints."""

    def __init__(self, mock: requests_mock.Mocker) -> None:
        self.services = {"s1": "compute", "s2": "image", "s3": "ec2-api"}
        self.endpoints = [
            self.endpoint("e1", "s1", "http://nova:8774/v2.1"),
            self.endpoint("e2", "s2", "http://glance:9292"),
            self.endpoint("e3", "s3", "http://ec2:8788"),
        ]
        self.status = 200
        self.interfaces: list[str] = []
        mock.post(
            f"{URL}/auth/tokens",
            json=token_body(catalog=catalog()),
            headers={"X-Subject-Token": "service"},
            status_code=201,
        )
        mock.get(re.compile(f"^{URL}/(services|endpoints)"), json=self._list)
        mock.get(f"{URL}/auth/tokens", json=token_body())

    @staticmethod
    def endpoint(key: str, service: str, url: str, **more: Any) -> dict[str, Any]:
        return {"id": key, "service_id": service, "region_id": "RegionOne", "url": url, **more}

    def _list(self, request: Any, context: Any) -> Any:
        context.status_code = self.status
        if self.status != 200:
            return error(self.status)
        if request.path.endswith("services"):
            return {"services": [{"id": key, "type": kind} for key, kind in self.services.items()]}
        self.interfaces += request.qs["interface"]
        return {"endpoints": self.endpoints}


@pytest.fixture
def mock() -> Iterator[requests_mock.Mocker]:
    with requests_mock.Mocker() as mocker:
        yield mocker


@pytest.fixture
def keystone(mock: requests_mock.Mocker) -> Keystone:
    return Keystone(mock)


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """skyline.yaml where the tools look for it."""
    file = tmp_path / "skyline.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "default": {
                    "secret_key": "s" * 40,
                    "log_dir": "/var/log/here",
                    "secure_proxy_addr_header": "X-Real-IP",
                },
                "openstack": {"keystone_url": URL, "system_user_password": "x"},
            }
        )
    )
    monkeypatch.setenv("OS_CONFIG_DIR", str(tmp_path))
    return file


@pytest.fixture
def generate(configured: Path, keystone: Keystone, tmp_path: Path) -> Generate:
    """Runs the generator."""
    static = tmp_path / "static"
    static.mkdir()

    def run(*arguments: str) -> Result:
        return invoke(nginx_generator, "--static-path", str(static), *arguments)

    return run


def invoke(tool: click.Command, *arguments: str) -> Result:
    """Runs a tool as its entry point does."""

    @click.command(context_settings={"ignore_unknown_options": True}, add_help_option=False)
    @click.argument("given", nargs=-1, type=click.UNPROCESSED)
    def entry(given: tuple[str, ...]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["tool", *given])
            common.run(tool, "skyline-tool")

    return CliRunner().invoke(entry, arguments)


# -- skyline-nginx-generator ---------------------------------------------


def test_without_a_file_the_configuration_is_printed(
    generate: Generate, keystone: Keystone
) -> None:
    result = generate()
    assert result.exit_code == 0, result.output
    assert "location /api/openstack/regionone/nova/ {" in result.stdout
    assert "location /api/openstack/regionone/glance/ {" in result.stdout
    assert "ec2" not in result.stdout
    assert "listen 0.0.0.0:9999 default_server;" in result.stdout
    assert "access_log /var/log/here/skyline-nginx-access.log timed;" in result.stdout
    assert keystone.interfaces == ["public"]


def test_options_are_upstream_s(generate: Generate, tmp_path: Path) -> None:
    output = tmp_path / "nginx.conf"
    result = generate(
        *("-o", str(output)),
        *("--listen-address", "127.0.0.1:80"),
        *("--ssl-certfile", "/c.pem", "--ssl-keyfile", "/k.pem"),
        *("--log-dir", "/logs", "--access-log-file", "a.log", "--error-log-file", "/else/e.log"),
    )
    assert (result.exit_code, result.stdout) == (0, "")
    text = output.read_text()
    assert "listen 127.0.0.1:80 ssl http2 default_server;" in text
    assert "access_log /logs/a.log timed;" in text
    assert "error_log /else/e.log;" in text


def test_half_of_tls_is_no_tls_and_said(generate: Generate) -> None:
    result = generate("--ssl-certfile", "/c.pem")
    assert result.exit_code == 0
    assert "TLS is off" in result.stderr
    assert "ssl_certificate" not in result.stdout


def test_two_endpoints_of_a_type_are_a_warning(generate: Generate, keystone: Keystone) -> None:
    keystone.endpoints.append(keystone.endpoint("e9", "s1", "http://other:8774/v2.1"))
    result = generate()
    assert result.exit_code == 0
    assert "WARNING: region regionone has more than one endpoint of nova" in result.stderr
    assert "proxy_pass http://nova:8774/;" in result.stdout


def test_running_again_says_what_changed(
    generate: Generate, keystone: Keystone, tmp_path: Path
) -> None:
    output = tmp_path / "nginx.conf"
    assert generate("-o", str(output)).exit_code == 0
    output.chmod(0o640)
    first = output.read_text()
    unchanged = generate("-o", str(output), "--diff")
    assert (unchanged.exit_code, unchanged.stdout) == (0, "")
    again = generate("-o", str(output))
    assert f"{output} is up to date" in again.stderr

    keystone.endpoints[0]["url"] = "http://nova2:8774/v2.1"
    keystone.endpoints[1]["enabled"] = False
    preview = generate("-o", str(output), "--diff")
    assert preview.exit_code == 1
    assert "+            proxy_pass http://nova2:8774/;\n" in preview.stdout
    assert output.read_text() == first
    written = generate("-o", str(output))
    assert written.exit_code == 0
    assert "INFO: removed /api/openstack/regionone/glance/ to http://glance:9292/" in written.stderr
    assert (
        "INFO: changed /api/openstack/regionone/nova/ from http://nova:8774/ to http://nova2:8774/"
        in written.stderr
    )
    assert "http://nova2:8774/" in output.read_text()
    assert output.stat().st_mode & 0o777 == 0o640
    assert not list(tmp_path.glob(".nginx.conf.*"))


def test_a_diff_against_nothing_is_the_whole_file(generate: Generate, tmp_path: Path) -> None:
    output = tmp_path / "nginx.conf"
    result = generate("-o", str(output), "--diff")
    assert result.exit_code == 1
    assert not output.exists()


def test_a_diff_needs_a_file(generate: Generate) -> None:
    assert generate("--diff").exit_code == 2


@pytest.mark.parametrize(("arguments", "code"), [((), 1), (("--diff",), 2)])
def test_a_keystone_that_fails_leaves_the_file_alone(
    generate: Generate, mock: requests_mock.Mocker, tmp_path: Path, arguments: Any, code: int
) -> None:
    output = tmp_path / "nginx.conf"
    output.write_text("old")
    mock.get(re.compile(f"^{URL}/endpoints"), exc=requests.ConnectionError("refused"))
    result = generate("-o", str(output), *arguments)
    assert result.exit_code == code
    assert re.search("^skyline-(tool|nginx-generator): ", result.stderr, re.MULTILINE)
    assert "Traceback" not in result.output
    assert output.read_text() == "old"


def test_a_service_user_without_rights_is_a_sentence(
    generate: Generate, keystone: Keystone
) -> None:
    keystone.status = 403
    result = generate()
    assert result.exit_code == 1
    assert "the service user may not list Keystone's services" in result.stderr


def test_a_missing_configuration_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OS_CONFIG_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setattr(sys, "argv", ["skyline-nginx-generator", "--static-path", "/x"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 1
    assert "skyline.yaml: the file cannot be read" in capsys.readouterr().err


def test_wrong_usage_is_2_and_help_needs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS_CONFIG_DIR", "/nowhere")
    assert CliRunner().invoke(nginx_generator, ["--no-such"]).exit_code == 2
    result = CliRunner().invoke(nginx_generator, ["--help"])
    assert result.exit_code == 0
    for option in (
        "--output-file",
        "--ssl-certfile",
        "--ssl-keyfile",
        "--listen-address",
        "--log-dir",
        "--access-log-file",
        "--error-log-file",
    ):
        assert option in result.output


def test_the_address_of_users_is_spoken_of(generate: Generate, configured: Path) -> None:
    assert "X-Real-IP, which" not in generate().stderr
    content = yaml.safe_load(configured.read_text())
    del content["default"]["secure_proxy_addr_header"]
    configured.write_text(yaml.safe_dump(content))
    assert "set default.secure_proxy_addr_header to X-Real-IP" in generate().stderr


def test_the_front_end_is_the_package_s(monkeypatch: pytest.MonkeyPatch) -> None:
    package = ModuleType("skyline_console")
    package.static_path = "/site/skyline_console/static"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "skyline_console", package)
    assert static_files.find() == Path("/site/skyline_console/static")


def test_the_front_end_is_looked_for_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "skyline_console", None)
    monkeypatch.setattr(static_files, "ELSEWHERE", (f"{tmp_path}/python3*/dist-packages",))
    with pytest.raises(ConfigError, match="--static-path"):
        static_files.find()
    static = tmp_path / "python3.99" / "dist-packages" / "skyline_console" / "static"
    static.mkdir(parents=True)
    with pytest.raises(ConfigError):
        static_files.find()
    (static / "index.html").touch()
    assert static_files.find() == static


# -- the others ----------------------------------------------------------


def test_the_openapi_document_needs_no_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_CONFIG_DIR", "/nowhere")
    output = tmp_path / "swagger.json"
    result = CliRunner().invoke(swagger_generator, ["-o", str(output)])
    assert result.exit_code == 0, result.output
    text = output.read_text()
    document = json.loads(text)
    assert document["openapi"] == "3.1.0"
    assert document["info"] == {"title": "Skyline API", "version": "0.1.0"}
    assert "/api/v1/policies/check" in document["paths"]
    assert text.startswith('{\n    "openapi"')


def test_the_sample_is_a_valid_file(tmp_path: Path) -> None:
    output = tmp_path / "skyline.yaml.sample"
    result = CliRunner().invoke(sample_config_generator, ["-o", str(output)])
    assert result.exit_code == 0, result.output
    # What the generated nginx sends; the rest is as without a file.
    header = {"default": {"secure_proxy_addr_header": "X-Real-IP"}}
    assert options.load(str(output)) == options.Settings.model_validate(header)


@pytest.mark.parametrize("tool", [swagger_generator, sample_config_generator])
def test_a_place_that_cannot_be_written_is_a_sentence(
    tool: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["tool", "-o", str(tmp_path / "no" / "file")])
    with pytest.raises(SystemExit) as stopped:
        common.run(tool, "tool")
    assert stopped.value.code == 1
    assert "No such file or directory" in capsys.readouterr().err


def test_a_file_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = tmp_path / "real"
    real.write_text("old")
    link = tmp_path / "link"
    link.symlink_to(real)

    def fail(*_: Any) -> None:
        raise OSError("disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", fail)
        with pytest.raises(OSError, match="disk is gone"):
            common.write(link, "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]
    assert real.read_text() == "old"
    common.write(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"


@pytest.fixture(autouse=True)
def _our_log() -> Iterator[None]:
    """The tools take the log over; the next test must have it back."""
    ours = logging.getLogger("trimaran")
    kept = ours.handlers, ours.propagate, ours.level
    yield
    ours.handlers, ours.propagate = kept[0], kept[1]
    ours.setLevel(kept[2])
