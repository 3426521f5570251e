"""Which processes are ours, on a /proc made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from trimaran.sandbox.proc import Proc


class FakeProc:
    """A /proc with what the reader looks at."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()

    def add(
        self,
        pid: int,
        *,
        session: int | None = None,
        started: int = 100,
        state: str = "S",
        out: str | None = None,
        err: str | None = None,
        pss: int = 0,
        command: str = "python",
        environ: str = "",
    ) -> None:
        home = self.root / str(pid)
        (home / "fd").mkdir(parents=True)
        fields = [state, "1", str(session or pid), str(session or pid), *["0"] * 7]
        fields += ["5", "7", *["0"] * 6, str(started), "0"]
        # a name may hold spaces and parentheses
        (home / "stat").write_text(f"{pid} (a b) c) {' '.join(fields)}\n")
        (home / "smaps_rollup").write_text(f"header\nRss: 9999 kB\nPss: {pss} kB\nPss_Anon: 1 kB\n")
        (home / "cmdline").write_bytes(command.replace(" ", "\0").encode() + b"\0")
        (home / "environ").write_bytes(environ.replace(" ", "\0").encode())
        for number, target in ((1, out), (2, err)):
            if target:
                (home / "fd" / str(number)).symlink_to(target)


LOGS = Path("/state/log")


@pytest.fixture
def fake(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path / "proc")


def test_a_service_is_its_session(fake: FakeProc) -> None:
    fake.add(10, out="/state/log/rabbitmq.log", started=50, pss=100)
    fake.add(11, session=10, out="/state/log/rabbitmq.log", started=51, pss=20)
    fake.add(12, session=10, out="/dev/null", started=52, pss=3)
    fake.add(20, out="/elsewhere/log/rabbitmq.log")
    proc = Proc(fake.root)

    groups = proc.groups(LOGS)

    assert groups.keys() == {"rabbitmq"}
    assert groups["rabbitmq"].pids == (10, 11, 12)
    assert (groups["rabbitmq"].leader, groups["rabbitmq"].started) == (10, 50)
    assert proc.memory(groups["rabbitmq"].pids) == 123 * 1024


@pytest.mark.parametrize(
    "target",
    [
        "/state/log/nova-compute.log",
        "/state/log/nova-compute.log (deleted)",
        "/state/log/nova-compute.log.1",
    ],
)
def test_removed_and_rotated_logs_still_tell(fake: FakeProc, target: str) -> None:
    fake.add(10, err=target)

    assert Proc(fake.root).groups(LOGS)["nova-compute"].leader == 10


def test_zombies_do_not_run(fake: FakeProc) -> None:
    fake.add(10, out="/state/log/glance-api.log", state="Z")

    assert Proc(fake.root).groups(LOGS) == {}


def test_a_pid_that_now_belongs_to_somebody_else_is_not_ours(fake: FakeProc) -> None:
    """There are no pid files: a recycled pid has nothing to be mistaken for."""
    fake.add(4711, out="/dev/pts/0", command="somebody elses program")

    assert Proc(fake.root).groups(LOGS) == {}


def test_orphans_of_a_dead_leader_are_found(fake: FakeProc) -> None:
    fake.add(11, session=10, out="/state/log/postgresql.log", started=60)
    fake.add(12, session=10, err="/state/log/postgresql.log", started=55)

    group = Proc(fake.root).groups(LOGS)["postgresql"]

    assert (group.leader, group.pids) == (12, (11, 12))


def test_a_shell_that_has_our_log_as_output_is_not_joined_by_its_session(fake: FakeProc) -> None:
    """Somebody's `command >> .sandbox/log/x.log` in a shell: only that command counts."""
    fake.add(5, out="/dev/pts/0")
    fake.add(6, session=5, out="/state/log/x.log")

    assert Proc(fake.root).groups(LOGS)["x"].pids == (6,)


def test_stat_of_nothing(fake: FakeProc) -> None:
    proc = Proc(fake.root)
    assert proc.stat(1) is None
    assert proc.environ(1) == {}
    assert proc.command(1) == []
    assert proc.memory([1]) == 0


def test_stat_environment_and_command(fake: FakeProc) -> None:
    fake.add(9, command="beam -home /var/lib", environ="HOME=/x A=b=c", started=7)
    proc = Proc(fake.root)

    stat = proc.stat(9)
    assert stat is not None
    assert (stat.session, stat.started, stat.cpu_ticks) == (9, 7, 12)
    assert proc.environ(9) == {"HOME": "/x", "A": "b=c"}
    assert proc.command(9) == ["beam", "-home", "/var/lib"]


def test_listener(fake: FakeProc) -> None:
    fake.add(9)
    (fake.root / "9" / "fd" / "7").symlink_to("socket:[777]")
    (fake.root / "net").mkdir()
    head = "sl local rem st\n"
    (fake.root / "net" / "tcp").write_text(
        f"{head}0: 0100007F:4268 00000000:0000 0A 0:0 0:0 0 0 0 777\n"
        "1: 0100007F:4269 00000000:0000 01 0:0 0:0 0 0 0 778\n"
    )
    proc = Proc(fake.root)

    assert proc.listener(0x4268) == 9
    # established, not listening
    assert proc.listener(0x4269) is None


def test_age(fake: FakeProc) -> None:
    (fake.root / "uptime").write_text("1000.0 5.0\n")
    proc = Proc(fake.root)

    assert proc.age(0) == 1000.0
    assert proc.age(10**9) == 0.0
