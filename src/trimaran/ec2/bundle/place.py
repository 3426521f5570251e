"""Where the parts of a bundle lie while they are being unwrapped, and who clears it up.

One directory a job below ``image_decryption_dir``, for our user alone.  Whoever
works in it holds a lock on it, which ends with the process; so a directory that
nobody holds, and whose job is over, is a dead process's and is removed by any
other one of the host.  A job that is only waiting keeps its parts.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from types import TracebackType

from trimaran.ec2.bundle import PIECE
from trimaran.ec2.bundle.manifest import Part

PREFIX = "trimaran-bundle-"
#: Seconds without a change after which a directory of an unknown job is removed as well.
ABANDONED = 2 * 86400.0


class InUse(Exception):
    """Another thread or process works in the directory."""


class Place:
    """A job's directory, held while in use.

    Args:
        directory: ``image_decryption_dir``; made when it is not there.
        job_id: whose.

    Raises:
        InUse: somebody else holds it.
        OSError: the directory cannot be made, or is not ours alone.
    """

    def __init__(self, directory: str, job_id: str) -> None:
        self.path = Path(directory) / f"{PREFIX}{job_id}"
        # Those above it as usual: an operator may have named a directory that is still to come.
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.mkdir(mode=0o700, exist_ok=True)
        self._descriptor = _opened(self.path)

    def __enter__(self) -> Place:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Lets go; the files stay for the next run."""
        os.close(self._descriptor)

    def part(self, number: int) -> Path:
        """The file of a part that has come completely."""
        return self.path / f"part-{number}"

    def has(self, number: int, part: Part) -> bool:
        """Whether a part is here from an earlier run, as it has to be."""
        file = self.part(number)
        if not file.is_file():
            return False
        if part.digest is None:
            return True
        found = hashlib.new(part.digest.algorithm)
        with file.open("rb") as source:
            while piece := source.read(PIECE):
                found.update(piece)
        return found.hexdigest() == part.digest.value

    def pieces(self, count: int) -> Iterator[bytes]:
        """The bytes of all parts in their order."""
        for number in range(count):
            with self.part(number).open("rb") as source:
                while piece := source.read(PIECE):
                    yield piece

    def remove(self) -> None:
        """Removes the directory with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)


def _opened(path: Path) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise PermissionError(f"{path} is not ours alone")
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor
    except BlockingIOError:
        os.close(descriptor)
        raise InUse(str(path)) from None
    except BaseException:
        os.close(descriptor)
        raise


def sweep(directory: str, finished: Callable[[Collection[str]], Collection[str]]) -> int:
    """Removes what dead processes left on this host.

    Args:
        directory: ``image_decryption_dir``.
        finished: which of these jobs are over.

    Returns:
        How many directories went.
    """
    found = {path.name.removeprefix(PREFIX): path for path in Path(directory).glob(f"{PREFIX}*")}
    if not found:
        return 0
    over = set(finished(list(found)))
    removed = 0
    for job_id, path in found.items():
        try:
            old = time.time() - path.stat().st_mtime > ABANDONED
            if job_id in over or old:
                with Place(directory, job_id) as place:
                    place.remove()
                removed += 1
        except (InUse, OSError):
            continue
    return removed
