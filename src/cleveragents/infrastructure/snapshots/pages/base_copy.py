"""The private copy of a database file as it was at its first snapshot.

Pages that never changed are read from here, and stored nowhere else.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress

from cleveragents.domain.errors import SnapshotDamagedError, StoreFullError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.copy.clone_bytes import copy_bytes
from cleveragents.infrastructure.files.descriptors import opened
from cleveragents.infrastructure.snapshots.pages.layout import (
    BLOCK,
    PAGE,
    read_block,
    strong_hash,
    strong_hashes,
)
from cleveragents.infrastructure.snapshots.store.disk_limits import bytes_of_others, refused

_NEW = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_MENDED = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_SUFFIX = ".base"


class BaseFile:
    """Pages are proven by the hash that was taken when the copy was made.

    `limit_bytes` is what all files in the folder may take together; 0 for no limit.
    """

    def __init__(self, folder: str, resource: PlanResource, limit_bytes: int) -> None:
        name = f"{resource.store_id}.{resource.resource_id}{_SUFFIX}"
        self.path = os.path.join(folder, name)
        self._folder = folder
        self._resource = resource.name
        self._limit = limit_bytes

    def make(self, source: int, size: int) -> None:
        """Durable when this returns; whatever an interrupted one left behind is replaced."""
        draft = self.path + ".new"
        self._refuse_beyond_limit(size)
        try:
            with opened(draft, _NEW, 0o600) as target:
                copy_bytes(source, target, size)
                os.fsync(target)
            os.rename(draft, self.path)
        except OSError as error:
            with suppress(FileNotFoundError):
                os.unlink(draft)
            what = f"the first snapshot of `{self._resource}` cannot be stored"
            raise refused(what, self.path, error) from error
        with opened(self._folder, os.O_RDONLY | os.O_DIRECTORY, 0o600) as folder:
            os.fsync(folder)

    def put(self, page: int, data: bytes) -> None:
        """One page that is damaged; durable when this returns."""
        try:
            with opened(self.path, _MENDED, 0o600) as base:
                os.pwrite(base, data, page * PAGE)
                os.fsync(base)
        except OSError as error:
            what = f"the first snapshot of `{self._resource}` cannot be mended"
            raise refused(what, self.path, error) from error

    def _refuse_beyond_limit(self, size: int) -> None:
        if not self._limit:
            return
        # The folder is there: the plan's snapshot file is open in it.
        if bytes_of_others(self._folder, os.path.basename(self.path)) + size > self._limit:
            raise StoreFullError(self._limit)

    @contextmanager
    def reading(self) -> Generator["BasePages"]:
        """The file is opened with the first page that is asked for: most restores need none."""
        pages = BasePages(self.path, self._resource)
        try:
            yield pages
        finally:
            pages.close()


class BasePages:
    def __init__(self, path: str, resource: str) -> None:
        self._path = path
        self._resource = resource
        self._fd = -1

    @property
    def fd(self) -> int:
        if self._fd < 0:
            try:
                self._fd = os.open(self._path, _READ)
            except OSError as error:
                raise SnapshotDamagedError(
                    self._resource, f"{self._path}: {error.strerror}"
                ) from error
        return self._fd

    def page(self, number: int, strong: bytes, size: int) -> bytes:
        """One page of a base of this size. Raises SnapshotDamagedError."""
        start = number * PAGE
        data = os.pread(self.fd, max(0, min(PAGE, size - start)), start)
        if strong_hash(data) != strong:
            raise self._damaged(start)
        return data

    def check_block(self, block: int, hashes: list[bytes], size: int) -> None:
        """The same for all pages of a block."""
        if strong_hashes(read_block(self.fd, block, size)) != hashes:
            raise self._damaged(block * BLOCK)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    def _damaged(self, offset: int) -> SnapshotDamagedError:
        return SnapshotDamagedError(
            self._resource, f"{self._path} has other bytes at {offset} than were stored"
        )


def forget_bases(folder: str, plan_id: str) -> None:
    with suppress(FileNotFoundError):
        for name in os.listdir(folder):
            if name.startswith(f"{plan_id}.") and name.endswith((_SUFFIX, _SUFFIX + ".new")):
                os.unlink(os.path.join(folder, name))
