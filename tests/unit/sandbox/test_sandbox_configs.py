"""The services' configuration files, as text and as oslo.config reads them."""

from __future__ import annotations

import configparser
import stat
from pathlib import Path

import pytest

from trimaran.sandbox import configs
from trimaran.sandbox.configs.parts import render
from trimaran.sandbox.settings import Settings
from trimaran.sandbox.venv import Environment


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = Settings.load(tmp_path / "state", base_port=17000)
    made.mysql_port, made.amqp_port, made.amqp_vhost = 3306, 5672, "sbx17000-abc"
    return made


@pytest.fixture
def venv(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "cache")


def read(path: Path) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(default_section="no default section")
    parser.read_string(path.read_text())
    return parser


def test_render_is_what_a_parser_reads(tmp_path: Path) -> None:
    path = tmp_path / "x.conf"
    path.write_text(render({"DEFAULT": {"a": 1, "b": "x = y"}, "other": {}}))

    parsed = read(path)

    assert dict(parsed["DEFAULT"]) == {"a": "1", "b": "x = y"}
    assert parsed.has_section("other")


def test_every_service_has_its_own_database_and_virtual_host(
    settings: Settings, venv: Environment
) -> None:
    configs.write(settings, venv)
    seen = set()
    for service in ("keystone", "glance", "placement", "barbican", "neutron", "cinder", "nova"):
        parsed = read(settings.config_file(service))
        section = "placement_database" if service == "placement" else "database"
        seen.add(parsed[section]["connection"])
        assert parsed["DEFAULT"]["transport_url"].endswith(":5672/sbx17000-abc")
        assert stat.S_IMODE(settings.config_file(service).stat().st_mode) == 0o600

    assert len(seen) == 7
    assert all("/sbx17000_" in url for url in seen)


def test_nova_compute_knows_no_database(settings: Settings, venv: Environment) -> None:
    built = configs.build(settings, venv)

    assert {"database", "api_database"} <= built["nova"].keys()
    assert not {"database", "api_database"} & built["nova-compute"].keys()
    assert built["nova-compute"]["DEFAULT"] == built["nova"]["DEFAULT"]


def test_a_thousand_instances_fit(settings: Settings, venv: Environment) -> None:
    built = configs.build(settings, venv)

    assert int(str(built["nova"]["quota"]["instances"])) >= 1000
    assert int(str(built["nova"]["quota"]["cores"])) >= 1000
    assert int(str(built["neutron"]["quotas"]["quota_port"])) >= 1000


def test_all_paths_are_inside_the_state_or_the_environment(
    settings: Settings, venv: Environment
) -> None:
    configs.write(settings, venv)
    for service in configs.build(settings, venv):
        parsed = read(settings.config_file(service))
        for section in parsed.sections():
            for key, value in parsed[section].items():
                if value.startswith("/"):
                    assert value.startswith((str(settings.state), str(venv.path))), (section, key)


def test_the_mechanism_driver_is_announced(settings: Settings, venv: Environment) -> None:
    configs.write(settings, venv)
    text = settings.path("pylib", "sandbox_drivers-1.0.dist-info", "entry_points.txt").read_text()

    assert "[neutron.ml2.mechanism_drivers]" in text
    assert "sandbox_drivers.neutron_sandbox:SandboxMechanismDriver" in text
