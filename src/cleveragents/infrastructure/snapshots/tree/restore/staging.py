"""The contents a restore is about to put in place: there and proven before anything changes."""

import os
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager, suppress

from cleveragents.domain.errors import RestoreFailedError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.copy.one_file import copy_one
from cleveragents.infrastructure.files.descriptors import opened
from cleveragents.infrastructure.files.durable_files import remove
from cleveragents.infrastructure.files.rooted_folder import FOLDER_FLAGS
from cleveragents.infrastructure.snapshots.store.content_store import ContentStore

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Staging:
    """A private folder outside of the sandbox with one file per content, named by its hash.

    `held` are contents in memory, for files that are written where they are.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.held: dict[bytes, bytes] = {}
        self._in_memory: Collection[bytes] = frozenset()
        self._made = 0
        self.fd = os.open(path, FOLDER_FLAGS)

    def close(self) -> None:
        os.close(self.fd)

    def hold(self, keys: Collection[bytes]) -> None:
        """These are kept in memory when they come."""
        self._in_memory = keys

    def fill(
        self,
        store: ContentStore,
        wanted: Mapping[bytes, str],
        near: Callable[[bytes], int | None],
    ) -> None:
        """Raises SnapshotDamagedError unless every content is there whole.

        `near` may give a folder of the sandbox that a content will go to.
        """
        for key, pieces in store.read(wanted):
            if key in self._in_memory:
                self.held[key] = b"".join(pieces)
                continue
            fd = self._new(key.hex(), near(key))
            try:
                for piece in pieces:
                    _write(fd, piece)
            finally:
                os.close(fd)

    def add(self, key: bytes, data: bytes) -> None:
        """A content that is in no store yet."""
        if key in self._in_memory:
            self.held[key] = data
        else:
            self._make(key.hex(), data, None)

    def open_held(self, key: bytes, near: int) -> tuple[int, bytes]:
        """A new file of a content in memory, and its name."""
        self._made += 1
        name = f"{key.hex()}-held-{self._made}"
        self._make(name, self.held[key], near)
        return os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self.fd), name.encode()

    def _make(self, name: str, data: bytes, near: int | None) -> None:
        fd = self._new(name, near)
        try:
            _write(fd, data)
        finally:
            os.close(fd)

    def _new(self, name: str, near: int | None) -> int:
        # File systems place a file near the folder that it is made in, and ext4 is slow to make
        # many where as many have just been deleted. So it is made, without a name, where it goes.
        if near is not None:
            with suppress(OSError):
                return self._new_near(name, near)
        return os.open(name, _NEW, 0o600, dir_fd=self.fd)

    def _new_near(self, name: str, near: int) -> int:
        fd = os.open(".", os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=near)
        try:
            os.link(f"/proc/self/fd/{fd}", name, dst_dir_fd=self.fd, follow_symlinks=True)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def open(self, key: bytes, copy: int = 0) -> tuple[int, bytes]:
        """The file of a content, or a private copy of it with this number; and its name."""
        name = key.hex().encode()
        if copy:
            original, name = name, b"%b-%d" % (name, copy)
            copy_one(self.fd, original, self.fd, name, synced=False)
        return os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self.fd), name


@contextmanager
def staging(scratch_dir: str, resource: PlanResource) -> Generator[Staging]:
    """What an earlier, killed restore left behind is cleared away first. No link is followed: in
    place, the folder is where others write too."""
    name = f"restore-{resource.resource_id}"
    try:
        os.makedirs(scratch_dir, mode=0o700, exist_ok=True)
        top = scratch_dir if resource.in_place else os.path.realpath(scratch_dir)
        _clear(top, name)
        with opened(top, FOLDER_FLAGS) as fd:
            os.mkdir(name, 0o700, dir_fd=fd)
        folder = Staging(os.path.join(top, name))
    except OSError as error:
        path = os.path.join(scratch_dir, name)
        raise RestoreFailedError(resource.name, f"{path}: {error.strerror}") from error
    try:
        yield folder
    finally:
        folder.close()
        with suppress(OSError):
            _clear(top, name)


def _write(fd: int, piece: bytes) -> None:
    view = memoryview(piece)
    while view:
        view = view[os.write(fd, view) :]


def _clear(top: str, name: str) -> None:
    """There are only files in it, unless somebody else has been there."""
    with suppress(OSError), opened(top, FOLDER_FLAGS) as above:
        with opened(name, FOLDER_FLAGS, dir_fd=above) as folder:
            for inner in os.listdir(folder):
                os.unlink(inner, dir_fd=folder)
        os.rmdir(name, dir_fd=above)
    if os.path.lexists(os.path.join(top, name)):
        remove(top, name)
