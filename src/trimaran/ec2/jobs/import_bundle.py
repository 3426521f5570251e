"""RegisterImage of a bundle: download, decrypt, untar and upload (spec ec2.md 5.2).

The parts come to a directory of the job, each checked as it comes, and are
there for the next run on the same host.  They are then unwrapped twice: once
to see that all is well, once into Glance, so that nothing is ever uploaded
that was not checked, and no unwrapped image needs room on a disk.  Where the
job is stands in the image's property ``image_state``, in upstream's words.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trimaran import work
from trimaran.cloud import CloudError
from trimaran.cloud.image import Image
from trimaran.db import Database
from trimaran.db.queries import work_jobs
from trimaran.ec2 import on_behalf
from trimaran.ec2.bundle import BundleError, place
from trimaran.ec2.bundle.manifest import LARGEST, Manifest, Part, parse
from trimaran.ec2.bundle.place import InUse, Place
from trimaran.ec2.bundle.source import S3Refusal, Source
from trimaran.ec2.bundle.unwrap import decrypted, image_of, keys_of
from trimaran.ec2.context import Context
from trimaran.ec2.jobs.trouble import as_person, passing
from trimaran.ec2.jobs.upload import alive, mark_failed, mark_made, upload
from trimaran.errors import NotFound, TrimaranError

LOG = logging.getLogger(__name__)

PAUSE = 2.0
_GIB = 1 << 30

# Steps, and what is shown when one fails.
DOWNLOAD, DECRYPT, UNTAR, UPLOAD = "downloading", "decrypting", "untarring", "uploading"
AVAILABLE = "available"
_FAILURES = {
    "": "failed_download",
    DOWNLOAD: "failed_download",
    DECRYPT: "failed_decrypt",
    UNTAR: "failed_untar",
    UPLOAD: "failed_upload",
}


def run(ctx: Context, job: work.JobRun) -> None:
    """One run of the job ``ec2.import_bundle``."""
    try:
        with passing(), Place(ctx.conf.image_decryption_dir, job.id) as mine:
            try:
                _Import(as_person(ctx, job), job, mine).go_on()
            except BundleError as error:
                raise work.Fail(error.message) from error
            mine.remove()
    except InUse:
        raise work.Retry(PAUSE, "an earlier run to let go of its files") from None


def failed(ctx: Context, job: work.JobRun, reason: str) -> None:
    """Show the failure, in the item too since Glance may be what failed, and clear up."""

    mark_failed(ctx, job)
    try:
        if ctx.admin.image.image(job.payload["image"]).get("owner") == ctx.project_id:
            show(ctx.admin.image, job.payload["image"], _FAILURES.get(job.step, "failed_upload"))
    except TrimaranError as error:
        told = error.remote_message if isinstance(error, CloudError) else str(error)
        LOG.warning("Glance could not be told that image %s failed: %s", job.payload["item"], told)
    try:
        with Place(ctx.conf.image_decryption_dir, job.id) as mine:
            mine.remove()
    except (InUse, OSError):
        LOG.info("The files of job %s are left to the next sweep", job.id)


def sweep(directory: str, db: Database) -> None:
    """Remove the files of dead processes of this host."""
    removed = place.sweep(
        directory, lambda ids: db.read(lambda session: work_jobs.finished_among(session, ids))
    )
    if removed:
        LOG.info("Removed the files of %d imports that had ended", removed)


def show(glance: Image, image: str, state: str) -> None:
    """Set ``image_state``, which the image has from the start."""
    glance.update_image(image, [{"op": "replace", "path": "/image_state", "value": state}])


class _Import:
    def __init__(self, ctx: Context, job: work.JobRun, mine: Place) -> None:
        self.ctx = ctx
        self.job = job
        self.mine = mine
        self.glance = ctx.user.image
        self.image: str = job.payload["image"]
        self.limit = ctx.conf.trimaran.largest_image_gib * _GIB

    def go_on(self) -> None:
        """All that is left to do."""
        try:
            if not self._is_needed():
                return
            self._step(DOWNLOAD)
            with self._source() as source:
                manifest = self._manifest(source)
                self._download(source, manifest)
            self._step(DECRYPT)
            keys = self._decrypt(manifest)
            if not self.job.payload.get("checked"):
                self._step(UNTAR)
                for _ in self._unwrapped(manifest, keys):
                    pass
                self.job.checkpoint(UNTAR, checked=True)
            self._step(UPLOAD)
            upload(self.ctx, self.job, self.image, lambda: self._unwrapped(manifest, keys))
            mark_made(self.ctx, self.job)
            show(self.glance, self.image, AVAILABLE)
        except NotFound:
            return  # the image was deleted meanwhile, so nobody waits for it

    def _is_needed(self) -> bool:
        image = self.glance.image(self.image)
        if image.get("owner") != self.ctx.project_id:
            raise work.Fail("the image is another project's")
        status = image.get("status")
        if status == "active":
            mark_made(self.ctx, self.job)
            show(self.glance, self.image, AVAILABLE)
        return status in ("queued", "saving")

    def _step(self, step: str) -> None:
        if self.job.step != step:
            self.job.checkpoint(step)
        show(self.glance, self.image, step)

    def _source(self) -> Source:
        assert self.ctx.deputies is not None  # as_person has used it
        return Source(self.ctx.conf, self.ctx.deputies.keys(on_behalf.person_of(self.job.payload)))

    def _manifest(self, source: Source) -> Manifest:
        payload = self.job.payload
        with _s3():
            data = source.read(payload["bucket"], payload["key"], LARGEST)
        if on_behalf.fingerprint(data) != payload["manifest"]:
            raise BundleError("The manifest was changed after the image was registered.")
        return parse(data)

    def _download(self, source: Source, manifest: Manifest) -> None:
        left = self.limit
        for number, part in enumerate(manifest.parts):
            if not self.mine.has(number, part):
                self._fetch(source, number, part, left)
            left -= self.mine.part(number).stat().st_size

    def _fetch(self, source: Source, number: int, part: Part, limit: int) -> None:
        bucket = self.job.payload["bucket"]
        try:
            self._save(source, bucket, part.name, number, part, limit)
        except S3Refusal as refusal:
            # Bundling tools put the parts beside the manifest, upstream looks at the top.
            folder, slash, _ = self.job.payload["key"].rpartition("/")
            if refusal.status != 404 or not slash:
                raise BundleError(f"The part {number} cannot be read.") from refusal
            with _s3():
                self._save(source, bucket, f"{folder}/{part.name}", number, part, limit)

    def _save(
        self, source: Source, bucket: str, key: str, number: int, part: Part, limit: int
    ) -> None:
        target = self.mine.part(number)
        coming = target.with_suffix(".coming")
        with source.stream(bucket, key) as pieces, coming.open("wb") as file:
            _copy(alive(self.job, pieces), file.write, limit)
        coming.rename(target)
        if not self.mine.has(number, part):
            target.unlink()
            raise BundleError(f"The part {number} is not what the manifest says.")

    def _decrypt(self, manifest: Manifest) -> tuple[bytes, bytes]:
        pem = Path(self.ctx.conf.x509_root_private_key).read_bytes()
        keys = keys_of(manifest, pem)
        # The first piece tells whether they are the right ones.
        next(decrypted(self.mine.pieces(len(manifest.parts)), *keys))
        return keys

    def _unwrapped(self, manifest: Manifest, keys: tuple[bytes, bytes]) -> Iterator[bytes]:
        pieces = alive(self.job, self.mine.pieces(len(manifest.parts)))
        return image_of(pieces, manifest, keys, self.limit)


@contextmanager
def _s3() -> Iterator[None]:
    try:
        yield
    except S3Refusal as refusal:
        raise BundleError(f"S3 says {refusal.code}.") from refusal


def _copy(pieces: Iterator[bytes], write: Callable[[bytes], Any], limit: int) -> None:
    for piece in pieces:
        limit -= len(piece)
        if limit < 0:
            raise BundleError("The bundle is larger than is allowed.")
        write(piece)
