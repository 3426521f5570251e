"""Faults of specification section 11 that belong to the conductor and need no processes."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.magnum_api import _driver
from trimaran import errors, work
from trimaran.config import magnum as options
from trimaran.magnum import rpc
from trimaran.magnum.certificates import Certificates, Rules
from trimaran.magnum.conductor.crew import action_of
from trimaran.magnum.conductor.service import Conductor
from trimaran.magnum.drivers import Drivers
from trimaran.magnum.drivers.scale import ScaleManager
from trimaran.magnum.rpc.transport import target


class Vault:
    """A certificate manager that cannot delete for some time."""

    def __init__(self, *stuck: str) -> None:
        self.stuck = set(stuck)
        self.deleted: list[str] = []

    def delete(self, reference: str) -> None:
        if reference in self.stuck:
            raise errors.Unavailable(service="key-manager")
        self.deleted.append(reference)


class Run:
    """A job's run as far as the handler uses it."""

    def __init__(self, references: list[str]) -> None:
        self.payload = {"references": references}

    def checkpoint(self, step: str, **updates: Any) -> None:
        self.payload |= updates


def test_f8_certificates_that_cannot_be_deleted_are_tried_again() -> None:
    vault = Vault("b")
    kept = Certificates(vault, Rules())  # type: ignore[arg-type]
    conductor = SimpleNamespace(crew=SimpleNamespace(certificates=kept))
    run = Run(["a", "b", "c"])
    with pytest.raises(work.Retry):
        Conductor._delete_certificates(conductor, run)  # type: ignore[arg-type]
    assert (vault.deleted, run.payload) == (["a", "c"], {"references": ["b"]})
    vault.stuck.clear()
    Conductor._delete_certificates(conductor, run)  # type: ignore[arg-type]
    assert vault.deleted == ["a", "c", "b"]


@pytest.mark.parametrize(
    ("status", "action"),
    [
        ("CREATE_FAILED", "create"),
        ("DELETE_COMPLETE", "delete"),
        *(
            (f"{word}_COMPLETE", "update")
            for word in ("UPDATE", "ROLLBACK", "RESUME", "RESTORE", "SNAPSHOT", "CHECK", "ADOPT")
        ),
        ("RESUME_FAILED", "update"),
    ],
)
def test_f12_every_end_has_a_name_in_notifications(status: str, action: str) -> None:
    assert action_of(status) == action


def test_f21_the_api_sends_to_the_topic_that_the_conductors_listen_to(tmp_path: Path) -> None:
    file = tmp_path / "magnum.conf"
    file.write_text("[conductor]\ntopic = elsewhere\n")
    conf = options.load([str(file)])
    client = rpc.ConductorClient.from_conf(conf, rpc.open_transport(conf, "fake://"))
    assert client._rpc.target.topic == target(conf).topic == "elsewhere"


def test_f39_drivers_of_one_type_are_told_and_one_is_chosen_by_the_operator(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Two(Drivers):
        def _load(self) -> dict[str, Any]:
            return {"a": _driver("ubuntu"), "b": _driver("ubuntu")}

    section = SimpleNamespace(
        default_driver=None, disabled_drivers=[], enabled_beta_drivers=[], verify_ca=True
    )
    found = Two(SimpleNamespace(drivers=section))
    with caplog.at_level(logging.WARNING):
        first = found.get("vm", "ubuntu", "kubernetes")
        found.get("vm", "ubuntu", "kubernetes")
    assert type(first) is found._installed()["a"]
    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith("Drivers a, b all provide (vm, ubuntu, kubernetes)")
    section.default_driver = "b"
    assert type(found.get("vm", "ubuntu", "kubernetes")) is found._installed()["b"]


class Busy(ScaleManager):
    """Containers run on one host."""

    def _get_hosts_with_container(self, context: Any, cluster: Any) -> set[str]:
        return {"h1"}


@pytest.mark.parametrize(
    ("old", "new", "leaving"), [(3, 2, ["h2"]), (3, 1, ["h2", "h3"]), (2, 3, []), (3, 3, [])]
)
def test_f61_who_leaves_is_chosen_by_the_sizes_before_and_after(
    old: int, new: int, leaving: list[str]
) -> None:
    cluster: Any = SimpleNamespace(uuid="c")
    manager = Busy(None, None, cluster, old_count=old, new_count=new)  # type: ignore[arg-type]
    assert manager.get_removal_nodes(["h1", "h2", "h3"]) == leaving
