"""Spec section 9: the commands that deployment tools call."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.magnum_api import KEYSTONE
from trimaran.magnum import cli


@pytest.fixture
def conf(tmp_path: Path) -> str:
    path = tmp_path / "magnum.conf"
    path.write_text(
        f"[database]\nconnection = sqlite:///{tmp_path}/magnum.sqlite\n"
        f"[keystone_authtoken]\nauth_url = {KEYSTONE}\n"
    )
    return str(path)


def test_database(conf: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--config-file", conf]
    assert cli.db_manage([*arguments, "version"]) == 0
    assert capsys.readouterr().out == "Current DB revision is None\n"
    assert cli.status([*arguments, "upgrade", "check"]) == 2
    capsys.readouterr()
    for more in ([], ["head"]):
        assert cli.db_manage([*arguments, "upgrade", *more]) == 0
    assert cli.db_manage([*arguments, "version"]) == 0
    assert "None" not in capsys.readouterr().out
    assert cli.status([*arguments, "upgrade", "check"]) == 0
    assert "Result: Success" in capsys.readouterr().out


def test_policy_in_json_is_a_failure(
    conf: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = tmp_path / "more.conf"
    more.write_text("[oslo_policy]\npolicy_file = policy.json\n")
    cli.db_manage(["--config-file", conf, "upgrade"])
    assert cli.status(["--config-file", conf, "--config-file", str(more), "upgrade", "check"]) == 2
    assert "oslopolicy-convert-json-to-yaml" in capsys.readouterr().out


def test_drivers(
    conf: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MAGNUM_SANDBOX_DIR", str(tmp_path))
    assert cli.driver_manage(["--config-file", conf, "list-drivers", "-d", "-p"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["Name", "Server_Type", "OS", "COE", "Template", "Path"]
    assert ["sandbox_ubuntu", "vm", "ubuntu", "kubernetes", "n/a"] in lines
    assert not any(line[0] == "sandbox_beta" for line in lines)


@pytest.mark.parametrize("command", [cli.api, cli.conductor])
def test_missing_file_is_one_sentence(
    command: cli.Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "nope.conf"
    assert command(["--config-file", str(missing)]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "nope.conf" in said
