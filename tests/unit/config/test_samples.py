"""The samples under etc/ are what the options say they are."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from trimaran.config import ec2, magnum, sample

ETC = Path(__file__).parents[3] / "etc"


@pytest.mark.parametrize("name", sorted(sample.files()))
def test_checked_in_samples_are_the_generated_ones(name: str) -> None:
    assert (ETC / name).read_text(encoding="utf-8") == sample.files()[name], (
        "run: python -m trimaran.config.sample etc"
    )


@pytest.mark.parametrize(
    ("name", "load"),
    [("ec2api/ec2api.conf.sample", ec2.load), ("magnum/magnum.conf.sample", magnum.load)],
)
def test_every_option_of_an_ini_sample_is_known(
    name: str, load: object, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = (ETC / name).read_text().splitlines()
    live = [
        line.removeprefix("#")
        for line in lines
        if line.startswith(("[", "#")) and not line.startswith("# ") and "<" not in line
    ]
    file = tmp_path / "all.conf"
    file.write_text("\n".join(live))
    with caplog.at_level(logging.WARNING, logger="trimaran.config"):
        load([str(file)])  # type: ignore[operator]
    assert len(live) > 60
    assert not [record.getMessage() for record in caplog.records]


def test_samples_carry_no_secret_that_could_be_used() -> None:
    assert "aCtmgbcUqYUy" not in sample.skyline()


def test_main_writes_the_files(tmp_path: Path) -> None:
    sample.main(str(tmp_path))
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.sample")}
    assert written == set(sample.files())
