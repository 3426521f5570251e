"""Settings of a sandbox: ports, names, what is remembered."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from trimaran.sandbox.places import cache_root, write_file
from trimaran.sandbox.problem import SandboxError
from trimaran.sandbox.settings import (
    AMQP_DISTRIBUTION_OFFSET,
    APIS,
    OPTIONAL_APIS,
    SERVER_OFFSETS,
    Settings,
)


def test_options_are_remembered(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    Settings.load(state, base_port=17000, extras=("postgresql",), ec2_port=1788).save()

    again = Settings.load(state)

    assert (again.base_port, again.ec2_port, again.extras) == (17000, 1788, ("postgresql",))
    assert again.auth_url == "http://127.0.0.1:17000/v3"


def test_extras_add_up_and_options_that_are_not_given_change_nothing(tmp_path: Path) -> None:
    Settings.load(tmp_path, extras=("postgresql",), console_port=7000).save()

    again = Settings.load(
        tmp_path, extras=("nova-metadata", "postgresql"), base_port=None, console_port=None
    )

    assert again.extras == ("postgresql", "nova-metadata")
    assert again.console_port == 7000
    assert "nova-metadata" in again.apis
    assert "nova-metadata-api" in again.process_names()


def test_another_base_port_for_the_same_state_is_refused(tmp_path: Path) -> None:
    Settings.load(tmp_path, base_port=17000).save()

    with pytest.raises(SandboxError, match="made with base port 17000, not 18000"):
        Settings.load(tmp_path, base_port=18000)


@pytest.mark.parametrize("base", [80, 65000])
def test_base_port_must_leave_room(tmp_path: Path, base: int) -> None:
    with pytest.raises(SandboxError, match="base port"):
        Settings.load(tmp_path, base_port=base)


def test_no_two_parts_share_a_port() -> None:
    offsets = [api.offset for api in (APIS | OPTIONAL_APIS).values()]
    offsets += [*SERVER_OFFSETS.values(), AMQP_DISTRIBUTION_OFFSET]

    assert len(set(offsets)) == len(offsets)
    # what Settings.load leaves room for
    assert max(offsets) < 800


def test_two_states_with_one_base_port_use_other_databases(tmp_path: Path) -> None:
    one, two = Settings.load(tmp_path / "one"), Settings.load(tmp_path / "two")

    assert one.database("nova") != two.database("nova")
    assert one.database("nova").startswith("sbx15000_")
    assert Settings.load(tmp_path / "one").ident == one.ident


@pytest.mark.parametrize("content", ["", "{", "[]", '{"unknown": 1}'])
def test_broken_settings_file_is_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "settings.json").write_text(content)

    assert Settings.load(tmp_path).base_port == 15000


def test_saved_settings_do_not_name_the_place(tmp_path: Path) -> None:
    """A state directory may be moved: its names stay, its paths follow."""
    settings = Settings.load(tmp_path)
    settings.save()
    saved = json.loads((tmp_path / "settings.json").read_text())

    assert saved["ident"] == settings.ident
    assert str(tmp_path) not in (tmp_path / "settings.json").read_text()


def test_urls(tmp_path: Path) -> None:
    settings = Settings.load(tmp_path, base_port=17000)
    settings.mysql_port, settings.amqp_port, settings.amqp_vhost = 3306, 5672, "sbx17000-abc"

    assert settings.amqp_url == "rabbit://guest:guest@127.0.0.1:5672/sbx17000-abc"
    assert settings.database_url("nova").startswith("mysql+pymysql://root@127.0.0.1:3306/sbx17000_")
    assert settings.url("nova", "/v2.1") == "http://127.0.0.1:17774/v2.1"
    settings.amqp_vhost = "/"
    assert settings.amqp_url == "rabbit://guest:guest@127.0.0.1:5672/"


def test_only_servers_of_ours_are_processes(tmp_path: Path) -> None:
    settings = Settings.load(tmp_path)
    assert not {"mariadb", "rabbitmq", "epmd"} & set(settings.process_names())

    settings.mysql_own = settings.amqp_own = True
    assert {"mariadb", "rabbitmq", "epmd"} <= set(settings.process_names())


def test_secret_files_are_never_readable_by_others(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "file"
    write_file(path, "one", 0o600)
    write_file(path, "two", 0o600)

    assert path.read_text() == "two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_cache_follows_xdg_and_ignores_relative_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_root() == tmp_path / "trimaran" / "sandbox"
    # "all paths must be absolute; a relative one is to be ignored" (XDG)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert cache_root() == Path("/home/somebody/.cache/trimaran/sandbox")
