"""What the console remembers: extensions, domains, projects, and the map made of the first."""

from __future__ import annotations

import threading
import time
from typing import Any

from tests.support.keystone import catalog
from trimaran.console import catalog as maps
from trimaran.console.belongings import Belongings, Memory
from trimaran.console.domains import Domains
from trimaran.console.extensions import FRESH, RETRY, Extensions
from trimaran.console.projects import ProjectNames
from trimaran.errors import Unavailable

MAPPING = {"qos": "neutron_qos", "vpnaas": "neutron_vpn"}


class FakeCloud:
    """Neutron's extensions; counts the questions."""

    def __init__(self) -> None:
        self.aliases: list[str] | Exception = ["qos"]
        self.asked: list[str] = []
        self.gate = threading.Event()
        self.gate.set()

    def as_service(self, *, region: str) -> Any:
        cloud = self

        class Session:
            class network:
                @staticmethod
                def extensions() -> list[dict[str, str]]:
                    cloud.asked.append(region)
                    assert cloud.gate.wait(30)
                    if isinstance(cloud.aliases, Exception):
                        raise cloud.aliases
                    return [{"alias": alias} for alias in cloud.aliases]

        return Session


class Clock:
    """Time that tests set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def _settled(extensions: Extensions, region: str, wanted: list[str]) -> bool:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if extensions.names(region) == wanted:
            return True
        time.sleep(0.005)
    return False


def test_extensions_are_asked_once_in_a_while_for_each_region() -> None:
    cloud, clock = FakeCloud(), Clock()
    extensions = Extensions(cloud, MAPPING, clock=clock)  # type: ignore[arg-type]
    assert [extensions.names("One") for _ in range(5)] == [["neutron_qos"]] * 5
    assert extensions.names("Two") == ["neutron_qos"]
    assert cloud.asked == ["One", "Two"]
    cloud.aliases = ["vpnaas", "qos"]
    clock.now += FRESH + 1
    assert _settled(extensions, "One", ["neutron_qos", "neutron_vpn"])
    assert cloud.asked == ["One", "Two", "One"]


def test_a_failing_neutron_costs_nothing_but_the_names() -> None:
    cloud, clock = FakeCloud(), Clock()
    cloud.aliases = Unavailable(service="network")
    extensions = Extensions(cloud, MAPPING, clock=clock)  # type: ignore[arg-type]
    assert [extensions.names("One") for _ in range(3)] == [[]] * 3
    assert cloud.asked == ["One"]
    cloud.aliases = ["qos"]
    clock.now += RETRY + 1
    assert _settled(extensions, "One", ["neutron_qos"])
    # What was known stays known when it fails later.
    cloud.aliases = Unavailable(service="network")
    clock.now += FRESH + 1
    assert extensions.names("One") == ["neutron_qos"]


def test_a_hanging_neutron_is_waited_for_a_moment_and_asked_once() -> None:
    cloud = FakeCloud()
    cloud.gate.clear()
    extensions = Extensions(cloud, MAPPING, patience=0.02)  # type: ignore[arg-type]
    assert [extensions.names("One") for _ in range(3)] == [[]] * 3
    assert cloud.asked == ["One"]
    cloud.gate.set()
    assert _settled(extensions, "One", ["neutron_qos"])
    assert cloud.asked == ["One"]


def test_domains_are_asked_seldom_and_missed_gladly() -> None:
    clock = Clock()
    answers: list[Any] = [Unavailable(service="identity"), [{"id": "d", "name": "D"}]]
    asked = 0

    class Keystone:
        def domains(self) -> list[dict[str, str]]:
            nonlocal asked
            asked += 1
            answer = answers[0]
            if isinstance(answer, Exception):
                raise answer
            return list(answer)

    domains = Domains(Keystone(), clock=clock)  # type: ignore[arg-type]
    assert domains.names() == domains.names() == {}
    assert asked == 1
    del answers[0]
    clock.now += 11
    assert domains.names() == domains.names() == {"d": "D"}
    assert asked == 2
    answers[:] = [Unavailable(service="identity")]
    clock.now += 301
    assert domains.names() == {"d": "D"}


class TestProjectNames:
    def setup_method(self) -> None:
        self.clock = Clock()
        self.projects = ProjectNames(clock=self.clock)
        self.rows: dict[str, str] | Unavailable = {"a": "A"}
        self.asked = 0

    def names(self, *ids: str, keystone: str | None = None) -> dict[str, str]:
        return self.projects.names(keystone, ids, self.ask)

    def ask(self) -> dict[str, str]:
        self.asked += 1
        if isinstance(self.rows, Unavailable):
            raise self.rows
        return dict(self.rows)

    def test_they_are_asked_once_in_a_while_for_each_keystone(self) -> None:
        assert [self.names("a") for _ in range(3)] == [{"a": "A"}] * 3
        assert self.asked == 1
        self.names("a", keystone="Two")
        assert self.asked == 2
        self.rows = {"a": "renamed"}
        self.clock.now += 59
        assert self.names("a") == {"a": "A"}
        self.clock.now += 2
        assert self.names("a") == {"a": "renamed"}

    def test_a_new_project_is_asked_for_and_a_gone_one_only_once(self) -> None:
        self.names()
        assert self.names("gone") == {"a": "A"}
        assert self.asked == 1
        self.clock.now += 2
        self.rows = {"a": "A", "new": "New"}
        assert self.names("gone", "new") == {"a": "A", "new": "New"}
        self.clock.now += 2
        self.names("gone")
        assert self.asked == 2

    def test_what_was_known_holds_while_keystone_does_not_answer(self) -> None:
        self.names()
        self.rows = Unavailable(service="identity")
        self.clock.now += 61
        assert self.names("a") == self.names("new") == {"a": "A"}
        assert self.asked == 2
        self.rows = {"new": "New"}
        self.clock.now += 11
        assert self.names("new") == {"new": "New"}


def _map(entries: list[dict[str, Any]], **changes: Any) -> dict[str, str]:
    values: dict[str, Any] = {
        "region": "RegionOne",
        "interface": "public",
        "prefix": "/api/openstack",
        "mapping": {"compute": "nova", "block-storage": "cinder", "network": "neutron"},
        "extensions": ["neutron_qos"],
    }
    return maps.endpoints(entries, **{**values, **changes})


def test_the_map_knows_mapped_types_of_the_region_and_interface_only() -> None:
    entries = catalog({"compute": "http://n", "mystery": "http://m"})
    assert _map(entries) == {"nova": "/api/openstack/regionone/nova"}
    assert _map(entries, region="Other") == {}
    for entry in entries:
        entry["endpoints"] = [e for e in entry["endpoints"] if e["interface"] == "internal"]
    assert _map(entries) == {}
    assert _map(entries, interface="internal", prefix="/x") == {"nova": "/x/regionone/nova"}


def test_the_map_finds_aliases_and_adds_extensions_to_neutron() -> None:
    assert _map(catalog({"volumev3": "http://c"})) == {"cinder": "/api/openstack/regionone/cinder"}
    assert _map(catalog({"network": "http://q"})) == {
        "neutron": "/api/openstack/regionone/neutron",
        "neutron_qos": "/api/openstack/regionone/neutron",
    }


def belongings(count: int) -> Belongings:
    rows = [{"id": f"p{number}", "name": "x", "tags": ["left out"]} for number in range(count)]
    return Belongings.of({"default_project_id": "p0"}, rows)


def test_belongings_end_with_time_and_logout() -> None:
    clock = Clock()
    memory = Memory(30, clock=clock)
    memory.keep("t1", belongings(2))
    memory.keep("t2", belongings(1))
    found = memory.of("t1")
    assert found is not None
    assert found.default_project_id == "p0"
    assert [dict(row) for row in found.projects] == [
        {"id": "p0", "name": "x"},
        {"id": "p1", "name": "x"},
    ]
    memory.forget("t2")
    memory.forget("never heard of")
    assert memory.of("t2") is None
    clock.now += 30
    assert memory.of("t1") is None


def test_belongings_are_bounded_by_projects() -> None:
    memory = Memory(30, most=10)
    memory.keep("huge", belongings(10))
    assert memory.of("huge") is None
    for number in range(4):
        memory.keep(f"t{number}", belongings(3))
    assert [bool(memory.of(f"t{number}")) for number in range(4)] == [False, False, True, True]
    never = Memory(0)
    never.keep("t", belongings(1))
    assert never.of("t") is None
