"""The command line and the parts that reach for the system, without reaching."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from trimaran.sandbox import amqp, keys, mariadb, packages, postgresql, rabbitmq, status, venv
from trimaran.sandbox.bringup import check_ports
from trimaran.sandbox.cli import sandbox
from trimaran.sandbox.places import LIB, pins_digest
from trimaran.sandbox.problem import SandboxError
from trimaran.sandbox.processes import Processes, clean_environment
from trimaran.sandbox.progress import Progress
from trimaran.sandbox.settings import Settings


class Recorder(Processes):
    """Notes commands instead of running them."""

    def __init__(self, state: Path, codes: Sequence[int] = ()) -> None:
        super().__init__(state)
        self.commands: list[str] = []
        self.codes = list(codes)

    def run(self, name: str, command: Sequence[str], env: Any, **options: Any) -> int:
        self.commands.append(" ".join(command))
        return self.codes.pop(0) if self.codes else 0


@pytest.fixture
def silent() -> Progress:
    return Progress(lambda line: None)


# -- command line --------------------------------------------------------------
@pytest.mark.parametrize("command", ["up", "down", "status", "env", "reset"])
def test_every_command_explains_itself(command: str) -> None:
    result = CliRunner().invoke(sandbox, [command, "--help"])

    assert result.exit_code == 0
    assert "--state" in result.output
    assert "TRIMARAN_SANDBOX" in result.output


def test_bad_options_are_refused(tmp_path: Path) -> None:
    run = CliRunner().invoke
    assert run(sandbox, ["up", "--with", "magic"]).exit_code == 2
    assert run(sandbox, ["up", "--base-port", "80"]).exit_code == 2
    unknown = run(sandbox, ["env", "nobody", "--state", str(tmp_path)])
    assert unknown.exit_code == 1
    assert unknown.output.startswith("Error: There is no user nobody")


@pytest.mark.parametrize("name", ["with space", "a;b", "100%", "ünder"])
def test_a_path_the_services_cannot_take_is_refused(tmp_path: Path, name: str) -> None:
    result = CliRunner().invoke(sandbox, ["status", "--state", str(tmp_path / name)])

    assert result.exit_code == 1
    assert "The state directory's path" in result.output


def test_a_place_where_we_may_not_write_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    result = CliRunner().invoke(sandbox, ["up", "--state", str(tmp_path / "file" / "state")])

    assert result.exit_code == 1
    assert result.output.startswith("Error: Not a directory (")
    assert result.output.count("\n") == 1


def test_env_needs_no_running_cloud(tmp_path: Path) -> None:
    result = CliRunner().invoke(sandbox, ["env", "demo"], env={"TRIMARAN_SANDBOX": str(tmp_path)})

    assert result.exit_code == 0
    assert "export OS_USERNAME=demo" in result.output


def test_down_and_reset_of_nothing(tmp_path: Path) -> None:
    for command in ("down", "reset"):
        result = CliRunner().invoke(sandbox, [command, "--state", str(tmp_path / "none")])
        assert result.exit_code == 0
    assert not (tmp_path / "none").exists()


def test_progress_has_elapsed_times() -> None:
    times = iter([10.0, 10.0, 12.34])
    lines: list[str] = []
    say = Progress(lines.append, lambda: next(times))
    say("one")
    say("two")

    assert lines == ["[   0.0s] one", "[   2.3s] two"]


# -- packages ------------------------------------------------------------------
def test_missing_packages_without_apt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent: Progress
) -> None:
    monkeypatch.setattr(packages.shutil, "which", lambda name, path=None: None)

    with pytest.raises(SandboxError) as caught:
        packages.install(["mariadb-server"], Recorder(tmp_path), silent)

    assert "mariadb-server" in caught.value.message
    assert "\n" not in caught.value.message


def test_missing_packages_without_root_or_sudo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent: Progress
) -> None:
    monkeypatch.setattr(packages.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(
        packages.shutil, "which", lambda name, path=None: "/x" if name == "apt-get" else None
    )

    with pytest.raises(SandboxError, match=r"mariadb-server qemu-utils.*needs root, or a sudo"):
        packages.install(["mariadb-server", "qemu-utils"], Recorder(tmp_path), silent)


def test_a_failed_installation_is_repaired_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent: Progress
) -> None:
    policy = tmp_path / "policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    monkeypatch.setattr(packages, "POLICY", policy)
    monkeypatch.setattr(packages, "elevated", lambda: ["sudo", "-n"])
    monkeypatch.setattr(packages.shutil, "which", lambda name, path=None: "/x")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    recorder = Recorder(tmp_path, codes=[100])

    packages.install(["qemu-utils"], recorder, silent)

    first, configure, update, second = recorder.commands
    assert first == second
    assert first.startswith("sudo -n env DEBIAN_FRONTEND=noninteractive apt-get")
    assert first.endswith("install --no-install-recommends qemu-utils")
    assert configure == "sudo -n dpkg --configure -a"
    assert update.endswith("update")
    # the machine's own policy stays
    assert policy.read_text() == "#!/bin/sh\nexit 101\n"


def test_our_policy_forbids_while_installing_and_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = tmp_path / "policy-rc.d"
    monkeypatch.setattr(packages, "POLICY", policy)
    for _ in range(2):
        with packages._no_service_start([]):
            assert "exit 101" in policy.read_text()
            assert os.access(policy, os.X_OK)
        assert not policy.exists()
        # what a killed run leaves is taken over and goes as well
        policy.write_text(f"#!/bin/sh\n{packages._MARK}\nexit 101\n")


# -- servers -------------------------------------------------------------------
def test_the_machines_servers_are_used_when_they_let_us_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent: Progress
) -> None:
    settings = Settings.load(tmp_path, base_port=17000)
    monkeypatch.setattr(mariadb, "answers", lambda port: port == 3306)
    monkeypatch.setattr(amqp, "opens", lambda port, vhost: port == 5672)

    mariadb.choose(settings)
    rabbitmq.choose(settings, Recorder(tmp_path), silent)

    assert (settings.mysql_port, settings.mysql_own) == (3306, False)
    assert (settings.amqp_port, settings.amqp_own) == (5672, False)
    assert settings.amqp_vhost == f"sbx17000-{settings.ident}"
    assert mariadb.missing(settings) == rabbitmq.missing(settings) == []


def test_servers_of_our_own_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent: Progress
) -> None:
    settings = Settings.load(tmp_path, base_port=17000)
    monkeypatch.setattr(mariadb, "answers", lambda port: False)
    # a broker that lets us in but lets us make no virtual host is of no use
    monkeypatch.setattr(amqp, "opens", lambda port, vhost: vhost == "/")
    monkeypatch.setattr(rabbitmq, "add_vhost", lambda *words: False)

    mariadb.choose(settings)
    rabbitmq.choose(settings, Recorder(tmp_path), silent)

    assert (settings.mysql_port, settings.mysql_own) == (17306, True)
    assert (settings.amqp_port, settings.amqp_own, settings.amqp_vhost) == (17567, True, "/")


def test_a_choice_once_made_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent: Progress
) -> None:
    settings = Settings.load(tmp_path)
    settings.mysql_port, settings.mysql_own = 15306, True
    monkeypatch.setattr(mariadb, "answers", lambda port: True)

    mariadb.choose(settings)

    assert (settings.mysql_port, settings.mysql_own) == (15306, True)


def test_a_shared_server_that_is_gone_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent: Progress
) -> None:
    settings = Settings.load(tmp_path)
    settings.mysql_port, settings.amqp_port, settings.amqp_vhost = 3306, 5672, "sbx"
    monkeypatch.setattr(mariadb, "answers", lambda port: False)
    monkeypatch.setattr(amqp, "opens", lambda port, vhost: False)

    with pytest.raises(SandboxError, match=r"MariaDB at 127\.0\.0\.1:3306 .* no longer answers"):
        mariadb.ensure(settings, Recorder(tmp_path), silent)
    with pytest.raises(SandboxError, match=r"RabbitMQ at 127\.0\.0\.1:5672 .* no longer answers"):
        rabbitmq.ensure(settings, Recorder(tmp_path), silent)


def test_postgresql_runs_as_we_do_unless_we_are_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings.load(tmp_path, extras=("postgresql",))
    monkeypatch.setattr(postgresql.os, "geteuid", lambda: 1000)

    place = postgresql.place(settings)

    assert place == postgresql.Place(tmp_path / "data" / "postgresql", None, None)


def test_a_stranger_on_a_port_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings.load(tmp_path, base_port=17000)
    processes = Recorder(tmp_path)
    monkeypatch.setattr(processes.proc, "listening", lambda port: {"s"} if port == 17774 else set())
    monkeypatch.setattr(processes.proc, "listener", lambda port: os.getpid())

    with pytest.raises(SandboxError, match=rf"Port 17774 \(for nova\) .* process {os.getpid()}"):
        check_ports(settings, processes, settings.apis)
    monkeypatch.setattr(processes.proc, "listening", lambda port: set())
    check_ports(settings, processes, settings.apis)


def test_amqp_login_frame() -> None:
    assert amqp.start_ok("guest", "pw") == (
        b"\x00\x00\x00\x00\x05PLAIN\x00\x00\x00\x09\x00guest\x00pw\x05en_US"
    )


# -- environment ---------------------------------------------------------------
def test_pins_are_a_complete_and_exact_set() -> None:
    pins = venv.read_pins((LIB / "requirements.txt").read_text())

    assert len(pins) > 150
    assert all(pin.count("==") == 1 for pin in pins)
    names = {pin.split("==")[0].lower() for pin in pins}
    assert len(names) == len(pins)
    assert {"keystone", "glance", "openstack-placement", "neutron", "cinder", "nova"} <= names
    assert len(pins_digest()) == 16


def test_no_python_3_11_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(venv.sys, "version_info", (3, 12, 1))
    monkeypatch.setattr(venv.shutil, "which", lambda name: None)
    with pytest.raises(SandboxError, match=r"Python 3\.11"):
        venv.find_interpreter()

    monkeypatch.setattr(venv.shutil, "which", lambda name: "/usr/bin/python3.11")
    assert venv.find_interpreter() == "/usr/bin/python3.11"


def test_services_get_no_proxy_and_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTPS_PROXY", "OS_PASSWORD", "PYTHONPATH", "RABBITMQ_NODENAME"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("LANG", "C")

    env = clean_environment()

    assert env["LANG"] == "C"
    assert not {"http_proxy", "HTTPS_PROXY", "OS_PASSWORD", "PYTHONPATH"} & env.keys()
    assert "RABBITMQ_NODENAME" not in env


def test_keys_are_made_once_and_private(tmp_path: Path) -> None:
    settings = Settings.load(tmp_path)
    keys.ensure(settings)
    first = {path: path.read_text() for path in tmp_path.rglob("[01]")}
    keys.ensure(settings)

    assert len(first) == 4
    assert len(set(first.values())) == 4
    assert first == {path: path.read_text() for path in tmp_path.rglob("[01]")}
    assert all(path.stat().st_mode & 0o077 == 0 for path in first)


# -- status --------------------------------------------------------------------
def test_status_table() -> None:
    lines = [
        status.Line("keystone-api", True, 7, "2030-01-01 10:00:00", 5 * 2**20, 1, "x answers"),
        status.Line("nova-compute", False, None, None, 0, 0, "does not run"),
    ]
    out = io.StringIO(status.table(lines))

    text = out.getvalue()
    assert "keystone-api" in text
    assert "2030-01-01 10:00:00" in text
    assert text.splitlines()[-1].split() == ["total", "5", "MiB", "not", "up:", "nova-compute"]
    assert "all up" in status.table(lines[:1])


def test_programs_and_libraries_are_told_from_missing_ones() -> None:
    assert packages.there("bash")
    assert packages.there("libc.so.6")
    assert not packages.there("no-such-program")
    assert not packages.there("libnosuch.so.1")
