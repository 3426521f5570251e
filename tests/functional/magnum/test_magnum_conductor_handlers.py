"""What handlers leave behind: states, reasons, node groups, certificates, in order."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.magnum_conductor import Deployment
from tests.support.processes import PATIENCE
from trimaran import errors
from trimaran.db.models.magnum import X509KeyPair
from trimaran.db.queries import magnum as queries
from trimaran.db.queries import work_jobs
from trimaran.magnum import objects, rpc
from trimaran.magnum.conductor import service
from trimaran.magnum.operations import KINDS


@pytest.fixture(scope="module")
def magnum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """One conductor in this process, on SQLite, with its messages in process too."""
    folder: Path = tmp_path_factory.mktemp("magnum")
    # Nobody dies here, so no lease has to end soon.
    made = Deployment(folder, f"sqlite:///{folder}/magnum.sqlite", lease=30)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAGNUM_SANDBOX_DIR", str(made.sandbox))
        transport = rpc.open_transport(made.conf, "fake://")
        conductor = service.build(made.conf, transport, sync_interval=0.4)
        conductor.start()
        assert conductor.rpc.wait_started(PATIENCE)
        made.client = rpc.ConductorClient.from_conf(made.conf, transport)
        made.admin = conductor.crew.admin()
        yield made
        made.client.close()
        conductor.stop(5)
    made.db.dispose()


def complete(magnum: Deployment, labels: dict[str, str] | None = None, **values: Any) -> str:
    cluster = magnum.create(labels or {"sandbox_polls": "1"}, **values)
    magnum.until_status(cluster, "CREATE_COMPLETE")
    return cluster


def as_object(magnum: Deployment, cluster: str) -> objects.Cluster:
    return objects.Cluster.get_by_uuid(magnum.admin, cluster)


def fcos(magnum: Deployment) -> Any:
    return magnum.template(driver="sandbox_fcos", cluster_distro="fedora-coreos")


def new_group(magnum: Deployment, cluster: str, **values: Any) -> str:
    row = {
        "uuid": str(uuid.uuid4()),
        "name": "extra",
        "cluster_id": cluster,
        "project_id": "p1",
        "role": "worker",
        "node_count": 2,
        "min_node_count": 0,
        "status": "CREATE_IN_PROGRESS",
    } | values
    magnum.db.write(lambda s: queries.insert_nodegroup(s, row))
    return str(row["uuid"])


def test_f3_a_refused_create_fails_cluster_and_nodegroups_with_the_reason(
    magnum: Deployment,
) -> None:
    cluster = magnum.create({"sandbox_fail": "create"})
    row = magnum.until_status(cluster, "CREATE_FAILED")
    assert row.status_reason == "sandbox: create refused"
    assert {(g.status, g.status_reason) for g in magnum.groups(cluster).values()} == {
        ("CREATE_FAILED", "sandbox: create refused")
    }


def test_a_create_that_fails_late_fails_the_nodegroups_too(magnum: Deployment) -> None:
    cluster = magnum.create({"sandbox_fail": "create-late"})
    row = magnum.until_status(cluster, "CREATE_FAILED")
    assert row.status_reason == "sandbox: create failed late"
    assert {g.status for g in magnum.groups(cluster).values()} == {"CREATE_FAILED"}


def test_a_template_whose_driver_is_gone_fails_the_create(magnum: Deployment) -> None:
    cluster = magnum.create({}, template=magnum.template(driver="none-such"))
    row = magnum.until_status(cluster, "CREATE_FAILED")
    assert row.status_reason == "Cluster driver (none-such) not supported."


def test_f64_a_creation_that_takes_too_long_fails(magnum: Deployment) -> None:
    cluster = magnum.create({"sandbox_hang": "create"}, timeout=1)
    past = sa.text(
        "UPDATE cluster SET created_at = '2020-01-01 00:00:00.000000' WHERE uuid = :uuid"
    )
    magnum.db.write(lambda s: s.execute(past, {"uuid": cluster}))
    row = magnum.until_status(cluster, "CREATE_FAILED")
    assert row.status_reason == "The cluster was not created within 1 minutes."


def test_the_number_of_polls_is_obeyed(magnum: Deployment) -> None:
    cluster = complete(magnum, {"sandbox_polls": "3"})
    assert len(magnum.log("polls.log", cluster)) == 3


def test_f7_delete_removes_rows_groups_and_the_four_certificates(magnum: Deployment) -> None:
    cluster = complete(magnum)
    refs = [getattr(magnum.cluster(cluster), name) for name in objects_references()]
    magnum.delete(cluster)
    magnum.delete(cluster)
    magnum.until_status(cluster, None)
    assert magnum.groups(cluster) == {}
    left = magnum.db.read(
        lambda s: s.scalars(sa.select(X509KeyPair.uuid).where(X509KeyPair.uuid.in_(refs))).all()
    )
    assert left == []
    assert len(magnum.events(cluster, "delete")) == 1


def objects_references() -> tuple[str, ...]:
    return ("ca_cert_ref", "etcd_ca_cert_ref", "front_proxy_ca_cert_ref", "magnum_cert_ref")


def test_a_failed_delete_can_be_repeated(magnum: Deployment) -> None:
    cluster = complete(magnum, {"sandbox_fail": "delete"})
    magnum.delete(cluster)
    row = magnum.until_status(cluster, "DELETE_FAILED")
    assert row.status_reason == "sandbox: delete refused"
    magnum.db.write(
        lambda s: queries.update_cluster(s, cluster, {"labels": {"sandbox_polls": "1"}})
    )
    magnum.delete(cluster)
    magnum.until_status(cluster, None)


def test_f18_a_delete_during_the_create_wins(magnum: Deployment) -> None:
    # Were the call over before the deletion is asked for, no poll would end the creation.
    cluster = magnum.create({"sandbox_sleep": "create:1", "sandbox_hang": "create"})
    magnum.until(lambda: magnum.events(cluster, "create"))
    magnum.delete(cluster)
    magnum.until_status(cluster, None)
    names = [e["event"] for e in magnum.events(cluster)]
    assert names == ["create", "create-done", "delete", "finish"]


def test_an_update_resizes_the_default_workers(magnum: Deployment) -> None:
    cluster = complete(magnum)
    magnum.ask("cluster_update", cluster, node_count=4)
    magnum.until_status(cluster, "UPDATE_COMPLETE")
    assert magnum.groups(cluster)["default-worker"].node_count == 4
    assert [e["node_count"] for e in magnum.events(cluster, "update")] == [4]
    assert len(magnum.groups(cluster)["default-worker"].node_addresses) == 4


def test_a_refused_update_restores_the_size(magnum: Deployment) -> None:
    cluster = complete(magnum, {"sandbox_fail": "update"})
    magnum.ask("cluster_update", cluster, node_count=4)
    row = magnum.until_status(cluster, "UPDATE_FAILED")
    assert row.status_reason == "sandbox: update refused"
    assert magnum.groups(cluster)["default-worker"].node_count == 1


def test_an_update_in_a_wrong_state_leaves_its_reason(magnum: Deployment) -> None:
    cluster = magnum.create({"sandbox_fail": "create"})
    magnum.until_status(cluster, "CREATE_FAILED")
    magnum.ask("cluster_update", cluster, node_count=4)
    text = 'Updating a cluster when status is "CREATE_FAILED" is not supported.'
    magnum.until(lambda: magnum.cluster(cluster).status_reason == text)
    assert magnum.cluster(cluster).status == "CREATE_FAILED"
    assert magnum.groups(cluster)["default-worker"].node_count == 1


def test_a_health_status_is_kept_in_any_state_and_needs_no_driver(magnum: Deployment) -> None:
    cluster = complete(magnum)
    magnum.ask(
        "cluster_update",
        cluster,
        node_count=None,
        health_status="UNHEALTHY",
        health_status_reason={"api": "bad"},
    )
    magnum.until(lambda: magnum.cluster(cluster).health_status == "UNHEALTHY")
    row = magnum.cluster(cluster)
    assert (row.status, row.health_status_reason) == ("CREATE_COMPLETE", {"api": "bad"})
    assert magnum.events(cluster, "update") == []


def test_f11_twenty_resizes_run_in_the_order_of_their_asking(magnum: Deployment) -> None:
    cluster = complete(magnum)
    group = magnum.groups(cluster)["default-worker"].uuid
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(
                lambda n: magnum.ask(
                    "cluster_resize", cluster, node_count=n, nodes_to_remove=[], nodegroup=group
                ),
                range(2, 21),
            )
        )
    last = magnum.ask(
        "cluster_resize", cluster, node_count=21, nodes_to_remove=["0"], nodegroup=group
    )
    assert last
    magnum.until(lambda: len(magnum.events(cluster, "resize")) == 20, 2 * PATIENCE)
    magnum.until_status(cluster, "UPDATE_COMPLETE")
    calls = magnum.events(cluster, "resize")
    assert (calls[-1]["node_count"], calls[-1]["nodes_to_remove"]) == (21, ["0"])
    assert sorted(c["node_count"] for c in calls) == list(range(2, 22))
    assert magnum.groups(cluster)["default-worker"].node_count == 21


def test_a_refused_resize_marks_the_nodegroup_too(magnum: Deployment) -> None:
    cluster = complete(magnum, {"sandbox_fail": "resize"})
    group = magnum.groups(cluster)["default-worker"].uuid
    magnum.ask("cluster_resize", cluster, node_count=3, nodes_to_remove=[], nodegroup=group)
    magnum.until_status(cluster, "UPDATE_FAILED")
    row = magnum.groups(cluster)["default-worker"]
    assert (row.status, row.status_reason, row.node_count) == (
        "UPDATE_FAILED",
        "sandbox: resize refused",
        1,
    )


def test_a_nodegroup_comes_and_goes(magnum: Deployment) -> None:
    cluster = complete(magnum)
    group = new_group(magnum, cluster)
    magnum.ask("nodegroup_create", cluster, nodegroup=group)
    magnum.until_status(cluster, "UPDATE_COMPLETE")
    row = magnum.groups(cluster)["extra"]
    assert (row.status, row.stack_id) == ("CREATE_COMPLETE", f"sandbox-{group}")

    magnum.ask("nodegroup_update", cluster, nodegroup=group, changes={"max_node_count": 5})
    magnum.until(lambda: magnum.groups(cluster)["extra"].status == "UPDATE_COMPLETE")
    assert magnum.groups(cluster)["extra"].max_node_count == 5

    magnum.ask("nodegroup_delete", cluster, nodegroup=group)
    magnum.until(lambda: "extra" not in magnum.groups(cluster))
    # The node group goes first, the cluster is saved after it.
    magnum.until_status(cluster, "UPDATE_COMPLETE")


def test_f16_a_nodegroup_is_shown_as_going_before_its_driver_is_asked(magnum: Deployment) -> None:
    labels = {"sandbox_hang": "update", "sandbox_sleep": "nodegroup-delete:20"}
    cluster = complete(magnum, labels)
    group = new_group(magnum, cluster, status="CREATE_COMPLETE")
    operation = magnum.ask("nodegroup_delete", cluster, nodegroup=group)
    magnum.until(lambda: magnum.events(cluster, "nodegroup-delete"))
    # The driver's call sleeps still, so nothing was noted after it.
    assert magnum.db.read(lambda s: work_jobs.show(s, operation)).state == "running"
    assert magnum.groups(cluster)["extra"].status == "DELETE_IN_PROGRESS"


def test_a_refused_nodegroup_fails_with_the_reason(magnum: Deployment) -> None:
    cluster = complete(magnum, {"sandbox_fail": "nodegroup-create"})
    group = new_group(magnum, cluster)
    magnum.ask("nodegroup_create", cluster, nodegroup=group)
    magnum.until_status(cluster, "UPDATE_FAILED")
    row = magnum.groups(cluster)["extra"]
    assert (row.status, row.status_reason) == (
        "CREATE_FAILED",
        "sandbox: nodegroup-create refused",
    )


def test_a_nodegroup_of_a_cluster_in_deletion_is_refused(magnum: Deployment) -> None:
    cluster = complete(magnum, {"sandbox_hang": "delete"})
    magnum.delete(cluster)
    magnum.until(lambda: magnum.events(cluster, "delete"))
    group = new_group(magnum, cluster)
    magnum.ask("nodegroup_create", cluster, nodegroup=group)
    magnum.until(lambda: magnum.groups(cluster)["extra"].status == "CREATE_FAILED")
    assert magnum.cluster(cluster).status == "DELETE_IN_PROGRESS"
    assert magnum.groups(cluster)["extra"].status_reason == (
        'nodegroup_create when cluster status is "DELETE_IN_PROGRESS" is not supported.'
    )


def test_f66_a_nodegroup_in_progress_under_a_settled_cluster_is_polled(magnum: Deployment) -> None:
    cluster = complete(magnum)
    new_group(magnum, cluster, status="DELETE_IN_PROGRESS")
    magnum.until(lambda: "extra" not in magnum.groups(cluster))
    assert magnum.cluster(cluster).status == "CREATE_COMPLETE"


def test_f19_upgrade_sets_the_template_and_a_wrong_state_is_answered(magnum: Deployment) -> None:
    cluster, other = complete(magnum), magnum.template(name="newer")
    item = as_object(magnum, cluster)
    template = objects.ClusterTemplate.from_row(other)
    group = item.default_ng_worker
    magnum.client.cluster_upgrade(magnum.context, item, template, 1, group)
    magnum.until_status(cluster, "UPDATE_COMPLETE")
    assert magnum.cluster(cluster).cluster_template_id == other.uuid
    assert [
        (e["max_batch_size"], e["rollback"], e["scale_manager"])
        for e in magnum.events(cluster, "upgrade")
    ] == [(1, False, "None")]

    failed = magnum.create({"sandbox_fail": "create"})
    magnum.until_status(failed, "CREATE_FAILED")
    wrong = as_object(magnum, failed)
    with pytest.raises(errors.BadRequest) as refused:
        magnum.client.cluster_upgrade(magnum.context, wrong, template, 1, wrong.default_ng_worker)
    assert refused.value.message == (
        'Upgrading a cluster when status is "CREATE_FAILED" is not supported.'
    )
    assert refused.value.code == "NotSupported"
    with pytest.raises(errors.NotFound, match="Nodegroup"):
        magnum.client.cluster_upgrade(
            magnum.context, item, template, 1, objects.NodeGroup(None, uuid=str(uuid.uuid4()))
        )


def test_f5_rotation_replaces_the_certificates_and_removes_the_old(magnum: Deployment) -> None:
    cluster = complete(magnum, template=fcos(magnum))
    before = magnum.cluster(cluster)
    pem = magnum.client.get_ca_certificate(magnum.context, as_object(magnum, cluster))
    magnum.client.rotate_ca_certificate(magnum.context, as_object(magnum, cluster))
    magnum.until_status(cluster, "UPDATE_COMPLETE")
    after = magnum.cluster(cluster)
    assert all(getattr(before, n) != getattr(after, n) for n in objects_references())
    assert pem != magnum.client.get_ca_certificate(magnum.context, as_object(magnum, cluster))
    magnum.until(
        lambda: magnum.db.read(lambda s: queries.find_keypair(s, before.ca_cert_ref)) is None
    )
    assert [e["ca"] for e in magnum.events(cluster, "rotate-ca")] == [after.ca_cert_ref]


def test_f6_a_driver_without_rotation_leaves_everything_as_it_was(magnum: Deployment) -> None:
    cluster = complete(magnum)
    before = magnum.cluster(cluster).as_dict()
    with pytest.raises(errors.BadRequest) as refused:
        magnum.client.rotate_ca_certificate(magnum.context, as_object(magnum, cluster))
    assert refused.value.message == ("'rotate_ca_certificate' is not supported by this driver.")
    assert magnum.cluster(cluster).as_dict() == before


def test_f6_a_failed_rotation_restores_the_certificates(magnum: Deployment) -> None:
    cluster = complete(magnum, {"sandbox_fail": "rotate-ca"}, template=fcos(magnum))
    before = magnum.cluster(cluster)
    with pytest.raises(errors.TrimaranError, match="sandbox: rotate-ca refused"):
        magnum.client.rotate_ca_certificate(magnum.context, as_object(magnum, cluster))
    after = magnum.cluster(cluster)
    assert after.status == "UPDATE_FAILED"
    assert [getattr(before, n) for n in objects_references()] == [
        getattr(after, n) for n in objects_references()
    ]
    magnum.client.get_ca_certificate(magnum.context, as_object(magnum, cluster))


def test_f15_credential_rotation(magnum: Deployment) -> None:
    cluster = complete(magnum, template=fcos(magnum))
    magnum.client.credential_rotate(magnum.context, as_object(magnum, cluster))
    assert len(magnum.events(cluster, "rotate-credential")) == 1
    other = complete(magnum)
    with pytest.raises(errors.BadRequest, match="Credential rotation is not supported by driver"):
        magnum.client.credential_rotate(magnum.context, as_object(magnum, other))
    failed = magnum.create({"sandbox_fail": "create"}, template=fcos(magnum))
    magnum.until_status(failed, "CREATE_FAILED")
    with pytest.raises(errors.BadRequest) as refused:
        magnum.client.credential_rotate(magnum.context, as_object(magnum, failed))
    assert refused.value.message == (
        'Rotating credentials when cluster status is "CREATE_FAILED" is not supported.'
    )


def test_certificates_are_signed_by_the_cluster(magnum: Deployment) -> None:
    cluster = complete(magnum)
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "admin")])
    csr = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(subject)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
        .decode()
    )
    item = as_object(magnum, cluster)
    asked = objects.Certificate(None, cluster_uuid=cluster, csr=csr)
    signed = x509.load_pem_x509_certificate(
        magnum.client.sign_certificate(magnum.context, item, asked).encode()
    )
    authority = x509.load_pem_x509_certificate(
        magnum.client.get_ca_certificate(magnum.context, item).encode()
    )
    signed.verify_directly_issued_by(authority)
    assert signed.subject == subject
    with pytest.raises(errors.BadRequest) as refused:
        magnum.client.sign_certificate(magnum.context, item, objects.Certificate(None, csr="bad"))
    assert refused.value.message == "Received invalid csr b'bad'."


@pytest.mark.parametrize("kind", ["kubernetes", "etcd", "front-proxy"])
def test_openssl_verifies_what_was_signed(magnum: Deployment, tmp_path: Path, kind: str) -> None:
    cluster = complete(magnum)

    def openssl(*arguments: str) -> str:
        done = subprocess.run(
            ["openssl", *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    subject = "/O=system:masters/CN=admin"
    request = ("-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "csr.pem")
    openssl("req", "-new", *request, "-subj", subject, "-addext", "keyUsage=digitalSignature")
    item = as_object(magnum, cluster)
    authority = magnum.client.get_ca_certificate(magnum.context, item, kind)
    (tmp_path / "ca.pem").write_text(authority)
    asked = objects.Certificate(
        None,
        cluster_uuid=cluster,
        csr=(tmp_path / "csr.pem").read_text(),
        ca_cert_type=kind,
    )
    (tmp_path / "signed.pem").write_text(
        magnum.client.sign_certificate(magnum.context, item, asked)
    )
    assert (
        openssl("verify", "-x509_strict", "-CAfile", "ca.pem", "signed.pem") == "signed.pem: OK\n"
    )
    told = openssl("x509", "-in", "signed.pem", "-noout", "-subject", "-nameopt", "RFC2253")
    assert told == "subject=CN=admin,O=system:masters\n"
    # The key is the one that asked.
    signed = openssl("x509", "-in", "signed.pem", "-noout", "-pubkey")
    assert signed == openssl("pkey", "-in", "key.pem", "-pubout")
    # And none of another cluster's authority.
    other = magnum.client.get_ca_certificate(magnum.context, as_object(magnum, complete(magnum)))
    (tmp_path / "other.pem").write_text(other)
    refused = subprocess.run(
        ["openssl", "verify", "-CAfile", "other.pem", "signed.pem"],
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
    )
    assert refused.returncode != 0


def test_a_message_of_an_upstream_api_is_recorded_once(magnum: Deployment) -> None:
    values = magnum.new_cluster({"sandbox_polls": "1"})
    values.pop("_template"), values.pop("_sizes")
    cluster = objects.Cluster(None, **values)
    for _ in range(3):
        magnum.client.cluster_create(magnum.context, cluster, 1, 2, 60)
    magnum.until_status(values["uuid"], "CREATE_COMPLETE")
    assert len(magnum.events(values["uuid"], "create")) == 1
    assert magnum.groups(values["uuid"])["default-worker"].node_count == 2

    magnum.client.cluster_delete(magnum.context, values["uuid"])
    magnum.until_status(values["uuid"], None)


def test_hints_in_any_order_and_number_change_nothing(magnum: Deployment) -> None:
    cluster = complete(magnum)
    group = magnum.groups(cluster)["default-worker"]
    item, worker = as_object(magnum, cluster), objects.NodeGroup.from_row(group)
    asked = {
        magnum.ask(
            "cluster_resize",
            cluster,
            node_count=count,
            nodes_to_remove=[],
            nodegroup=group.uuid,
        ): count
        for count in (2, 3, 4)
    }
    for operation, count in [*reversed(asked.items()), *asked.items(), ("no-such-operation", 9)]:
        magnum.client.cluster_resize(magnum.context, item, count, [], worker, operation=operation)
    magnum.until(lambda: len(magnum.events(cluster, "resize")) == 3)
    magnum.until_status(cluster, "UPDATE_COMPLETE")
    assert [e["node_count"] for e in magnum.events(cluster, "resize")] == [2, 3, 4]
    assert magnum.groups(cluster)["default-worker"].node_count == 4


def test_a_replayed_message_of_an_upstream_api_finds_its_end(magnum: Deployment) -> None:
    """A deletion that comes again, at once and when the cluster is gone."""
    values = magnum.new_cluster({"sandbox_polls": "1"})
    values.pop("_template"), values.pop("_sizes")
    uuid_ = values["uuid"]
    magnum.client.cluster_create(magnum.context, objects.Cluster(None, **values), 1, 1, 60)
    magnum.until_status(uuid_, "CREATE_COMPLETE")
    for _ in range(2):
        magnum.client.cluster_delete(magnum.context, uuid_)
    magnum.until_status(uuid_, None)
    magnum.client.cluster_delete(magnum.context, uuid_)
    magnum.until(
        lambda: (
            [
                operation.state
                for operation in magnum.db.read(
                    lambda s: queries.list_operations(s, KINDS, cluster_uuid=uuid_)
                )
            ]
            == ["done"] * 3
        )
    )
    assert len(magnum.events(uuid_, "delete")) == 1


def test_garbage_and_unknown_clusters_are_answered(magnum: Deployment) -> None:
    nobody = objects.Cluster(None, uuid=str(uuid.uuid4()))
    with pytest.raises(errors.NotFound):
        magnum.client.get_ca_certificate(magnum.context, nobody)
    with pytest.raises(errors.BadRequest, match="Federations"):
        magnum.client._call(magnum.context, None, "federation_delete", uuid="x")
