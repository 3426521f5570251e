"""Which driver a cluster gets, and the texts when it gets none."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trimaran import errors
from trimaran.magnum.drivers import Drivers
from trimaran.magnum.drivers.sandbox import FedoraCoreOSDriver, UbuntuDriver
from trimaran.magnum.drivers.sandbox.labels import Labels


@pytest.fixture(autouse=True)
def _sandbox(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MAGNUM_SANDBOX_DIR", str(tmp_path))


def drivers(**options: Any) -> Drivers:
    values = {
        "disabled_drivers": ["sandbox_disabled"],
        "enabled_beta_drivers": [],
        "default_driver": None,
    } | options
    return Drivers(SimpleNamespace(drivers=SimpleNamespace(**values)))


def refused(*args: Any, **options: Any) -> str:
    with pytest.raises(errors.BadRequest) as problem:
        drivers(**options).get(*args)
    return problem.value.message


def test_a_driver_is_found_by_name_or_by_type() -> None:
    found = drivers()
    assert isinstance(found.get("vm", "x", "kubernetes", "sandbox_fcos"), FedoraCoreOSDriver)
    assert isinstance(found.get("vm", "ubuntu", "kubernetes"), UbuntuDriver)
    template = SimpleNamespace(
        server_type="vm", cluster_distro="ubuntu", coe="kubernetes", driver=None
    )
    assert isinstance(found.for_template(template), UbuntuDriver)


def test_the_default_provides_the_type() -> None:
    # F-37: not simply the first of all by name.
    assert drivers().default_for("vm", "ubuntu", "kubernetes") == "sandbox_ubuntu"
    assert drivers().default_for("vm", "fedora", "kubernetes") is None
    assert drivers(default_driver="sandbox_fcos").default_for("vm", "x", "y") == "sandbox_fcos"
    with pytest.raises(errors.BadRequest, match=r"Cluster driver \(x\) not supported\."):
        drivers(default_driver="x").default_for("vm", "ubuntu", "kubernetes")


def test_texts_are_upstreams() -> None:
    assert refused("vm", "ubuntu", "kubernetes", "x") == "Cluster driver (x) not supported."
    assert refused("vm", "fedora", "kubernetes") == (
        "Cluster type (vm, fedora, kubernetes) is not supported by any loaded cluster driver. "
        "Loaded drivers support: (vm, debian, kubernetes), (vm, fedora-coreos, kubernetes), "
        "(vm, ubuntu, kubernetes)."
    )
    beta = (
        "Cluster type (vm, debian, kubernetes) is provided by the 'sandbox_beta' driver, which "
        "is a beta driver and is not enabled. Add 'sandbox_beta' to the "
        "[drivers]/enabled_beta_drivers configuration option to use it."
    )
    assert refused("vm", "debian", "kubernetes") == beta


def test_beta_and_disabled_cannot_be_reached_by_name_either() -> None:
    # F-40
    assert "beta driver" in refused("vm", "debian", "kubernetes", "sandbox_beta")
    assert refused("vm", "rocky", "kubernetes", "sandbox_disabled") == (
        "Cluster driver (sandbox_disabled) not supported."
    )
    enabled = drivers(enabled_beta_drivers=["sandbox_beta"], disabled_drivers=[])
    assert enabled.get("vm", "debian", "kubernetes").beta
    assert "sandbox_disabled" in enabled.names()


def test_without_its_directory_the_sandbox_driver_does_not_exist(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("MAGNUM_SANDBOX_DIR")
    assert drivers().names() == []
    assert refused("vm", "ubuntu", "kubernetes") == (
        "Cluster type (vm, ubuntu, kubernetes) is not supported by any loaded cluster driver. "
        "Loaded drivers support: none (no cluster drivers are loaded)."
    )


def test_masters_and_capabilities() -> None:
    ubuntu, fcos = UbuntuDriver(), FedoraCoreOSDriver()
    with pytest.raises(errors.BadRequest) as even:
        ubuntu.validate_master_size(2)
    assert even.value.message == (
        "master nodegroup size of 2 is invalid, size cannot be an even number."
    )
    ubuntu.validate_master_size(3)
    with pytest.raises(errors.BadRequest, match="Resizing the master nodegroup"):
        ubuntu.validate_master_resize(3)
    fcos.validate_master_resize(3)
    assert (ubuntu.can("rotate_ca_certificate"), fcos.can("rotate_ca_certificate")) == (
        False,
        True,
    )


def test_labels_steer_only_with_their_prefix() -> None:
    assert not Labels({"boot_volume_size": "1"})
    labels = Labels({"sandbox_fail": "create, update-late", "sandbox_polls": "x"})
    assert labels.words("fail") == ["create", "update-late"]
    assert labels.number("polls", 1) == 1
    with pytest.raises(RuntimeError, match="sandbox: create refused"):
        labels.obey("create")
    labels.obey("update")
