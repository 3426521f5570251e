"""The driver author's guide: its example runs, found by its entry point in a real conductor."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.magnum_conductor import NO_BROKER, Deployment, conductor
from tests.support.processes import Fleet
from trimaran.db.queries import magnum as queries

REPOSITORY = Path(__file__).parents[3]
GUIDE = REPOSITORY / "docs" / "magnum-drivers.md"
EXAMPLE = REPOSITORY / "tests" / "support" / "magnum_example_driver.py"


def install(folder: Path) -> Path:
    """Installs the example as a package of its own, as pip would."""
    site = folder / "site"
    info = site / "example_driver-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "example_driver.py").write_text(EXAMPLE.read_text())
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: example-driver\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[magnum.drivers]\nexample_directory = example_driver:DirectoryDriver\n"
    )
    return site


def with_example(link: Any, conf: str, folder: str, site: str) -> None:
    """A conductor on a host where the example is installed."""
    sys.path.insert(0, site)
    os.environ["EXAMPLE_CLUSTERS"] = folder
    conductor(link, conf, folder, 0.5)


@pytest.fixture
def magnum(tmp_path: Path) -> Iterator[Deployment]:
    made = Deployment(tmp_path, f"sqlite:///{tmp_path}/magnum.sqlite")
    yield made
    made.db.dispose()


@pytest.fixture
def clusters(magnum: Deployment, tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "clusters"
    folder.mkdir()
    with Fleet() as fleet:
        conf = magnum.write_conf("no-broker", NO_BROKER)
        fleet.start(with_example, conf, str(folder), str(install(tmp_path)))
        yield folder


def test_the_example_makes_resizes_upgrades_and_removes_clusters(
    magnum: Deployment, clusters: Path
) -> None:
    template = magnum.template(cluster_distro="example", driver=None)
    cluster = magnum.create(template=template, masters=1, workers=3)
    row = magnum.until_status(cluster, "CREATE_COMPLETE")
    assert row.api_address == f"https://192.0.2.1/example-{cluster}"
    workers = magnum.groups(cluster)["default-worker"]
    assert workers.node_addresses == [f"default-worker-{number}" for number in range(3)]

    magnum.ask(
        "cluster_resize",
        cluster,
        node_count=2,
        nodes_to_remove=["default-worker-0"],
        nodegroup=workers.uuid,
    )
    magnum.until_status(cluster, "UPDATE_COMPLETE")
    left = magnum.groups(cluster)["default-worker"].node_addresses
    assert left == ["default-worker-1", "default-worker-2"]

    newer = magnum.template(cluster_distro="example", driver="example_directory")
    magnum.ask("cluster_upgrade", cluster, cluster_template=newer.uuid, nodegroup=workers.uuid)
    magnum.until(lambda: magnum.cluster(cluster).cluster_template_id == newer.uuid)
    magnum.until_status(cluster, "UPDATE_COMPLETE")

    more = {**queries_of(magnum, cluster), "name": "more", "node_count": 2}
    group = magnum.db.write(lambda s: queries.insert_nodegroup(s, more))
    magnum.ask("nodegroup_create", cluster, nodegroup=group.uuid)
    magnum.until(lambda: magnum.groups(cluster)["more"].status == "CREATE_COMPLETE")
    magnum.until_status(cluster, "UPDATE_COMPLETE")
    assert len(list((clusters / cluster / group.uuid).iterdir())) == 2
    magnum.ask("nodegroup_delete", cluster, nodegroup=group.uuid)
    magnum.until(lambda: "more" not in magnum.groups(cluster))
    magnum.until_status(cluster, "UPDATE_COMPLETE")

    magnum.delete(cluster)
    magnum.until_status(cluster, None)
    assert list(clusters.iterdir()) == []


def queries_of(magnum: Deployment, cluster: str) -> dict[str, Any]:
    """The values of a further node group."""
    return {
        "uuid": "0d0d0d0d-0000-4000-8000-000000000001",
        "cluster_id": cluster,
        "project_id": magnum.context.project_id,
        "role": "worker",
        "status": "CREATE_IN_PROGRESS",
        "is_default": False,
    }


def test_a_cluster_that_vanished_fails_with_the_drivers_words(
    magnum: Deployment, clusters: Path
) -> None:
    template = magnum.template(cluster_distro="example", driver="example_directory")
    cluster = magnum.create(template=template)
    magnum.until_status(cluster, "CREATE_COMPLETE")
    (clusters / cluster).rename(clusters / "elsewhere")
    workers = magnum.groups(cluster)["default-worker"]
    magnum.ask("cluster_resize", cluster, node_count=4, nodegroup=workers.uuid)
    row = magnum.until_status(cluster, "UPDATE_FAILED")
    assert row.status_reason == "The cluster c has no directory any more."
    assert magnum.groups(cluster)["default-worker"].node_count == 1


def test_the_guide_shows_the_example_as_it_runs() -> None:
    shown = GUIDE.read_text().split("```python\n")[1].split("```")[0]
    assert shown == EXAMPLE.read_text()
