"""Rotation of authorities and credentials (spec/magnum.md 6.7).

The driver is asked first whether it can: without that, new authorities would
replace those that the cluster knows (F-6).  New certificates stand beside the
old ones until the driver has taken them.
"""

from __future__ import annotations

from sqlalchemy.orm import Session

from trimaran import errors, work
from trimaran.db.queries import magnum as queries
from trimaran.magnum.certificates import REFERENCES
from trimaran.magnum.conductor.handlers.cluster import IN_PROGRESS
from trimaran.magnum.conductor.operation import CHANGEABLE, COMPLETE, Operation, refusal

DELETE_CERTIFICATES = "magnum.delete_certificates"


def rotate_ca(op: Operation) -> None:
    """Makes new certificates and has the driver roll them out."""
    cluster = op.cluster
    if op.step == "":
        try:
            if cluster.cluster_template.tls_disabled:
                raise refusal("Rotating the CA certificate on a non-TLS cluster is not supported")
            op.allow(COMPLETE, "Updating")
            if not op.driver().can("rotate_ca_certificate"):
                raise refusal("'rotate_ca_certificate' is not supported by this driver.")
        except errors.BadRequest as problem:
            op.refused(problem)
        op.note("begun", old={column: cluster.value(column) for column in REFERENCES})
    old = dict(op.noted["old"])
    new = dict(op.noted.get("new") or {})

    def noted(column: str, reference: str) -> None:
        new[column] = reference
        op.note("certificates", new=new)

    try:
        made = op.crew.certificates.generate(cluster, generation=op.job.id, have=new, noted=noted)
        op.note(
            "replaced",
            lambda session: queries.update_cluster(session, cluster.uuid, made | IN_PROGRESS),
        )
        cluster.refresh()
        op.driver().rotate_ca_certificate(op.context, cluster)
        cluster.save()
    except Exception as problem:  # noqa: BLE001 - whatever a driver raises is for the user

        def undo(session: Session) -> None:
            queries.update_cluster(session, cluster.uuid, old)
            forget(session, list(new.values()))

        op.failed("UPDATE", problem, nodegroups={}, undo=undo)
    op.done(lambda session: forget(session, list(old.values())))


def forget(session: Session, references: list[str | None]) -> None:
    """Has certificates deleted, however often it takes (F-8)."""
    wanted = [reference for reference in references if reference]
    if wanted:
        work.enqueue(session, DELETE_CERTIFICATES, {"references": wanted})


def rotate_credential(op: Operation) -> None:
    """Has the driver give the cluster another credential of the cloud."""
    cluster = op.cluster
    try:
        if cluster.status not in CHANGEABLE:
            raise refusal(
                f'Rotating credentials when cluster status is "{cluster.status}" is not supported.'
            )
        driver = op.driver()
        if not driver.can("rotate_credential"):
            raise refusal("Credential rotation is not supported by driver.")
    except errors.BadRequest as problem:
        op.refused(problem)
    try:
        driver.rotate_credential(op.context, cluster)
    except NotImplementedError:
        op.refused(refusal("Credential rotation is not supported by driver."))
    except errors.TrimaranError as problem:
        op.refused(problem)
    op.done()
