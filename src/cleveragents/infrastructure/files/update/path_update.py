"""Changing a set of paths in a folder of the user's: each is old or new at any moment, never torn.

What: files that lie ready in a stage take their places, others go, folders come and go with them.
In which order: what goes goes first and deepest first, as it may be in the way of what comes; then
folders from the top, then files, each by one rename; folder modes last, as a mode may close it.
Why the caller comes first: it stages all that is new, keeps all that is old and notes both, and
makes that durable, so that whoever finds the update cut off can finish it or take it back; taking
back is an update too, with the old files as the staged ones.
What is not guaranteed: a path that changes between file and folder is absent for a moment, and who
writes to a file between our look at it and the rename is not seen (that is some microseconds).
"""

import errno
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from typing import NamedTuple

from cleveragents.infrastructure.files.copy.one_file import give
from cleveragents.infrastructure.files.descriptors import opened
from cleveragents.infrastructure.files.rooted_folder import FOLDER_FLAGS, RootedFolder
from cleveragents.infrastructure.files.update.rooted_writer import RootedWriter, Sync, depth

OWNER_ALL = 0o700
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW_FOLDER = b"folder"
# A file is where a folder has to be, or the other way round: somebody else made it.
_OCCUPIED = (NotADirectoryError, IsADirectoryError, FileExistsError)

Signature = tuple[int, ...]


class MovedOnError(Exception):
    """Somebody changed these paths after they were looked at."""

    def __init__(self, paths: Sequence[bytes]) -> None:
        super().__init__(paths)
        self.paths = tuple(paths)


class Becomes(Enum):
    ABSENT = "absent"
    FOLDER = "folder"
    FILE = "file or link"
    CHMODDED = "the same file with another mode"


class PathChange(NamedTuple):
    """`expected` is the signature of the file that is there now; None for no file.

    A file is `staged` under this name. With a `mode` it gets that, and the owner of what it
    replaces; without, it has all of its own already. A folder without one is made as the system
    makes folders.
    """

    path: bytes
    becomes: Becomes
    expected: Signature | None = None
    staged: bytes = b""
    mode: int | None = None


class PathUpdate:
    """`may_stay` says of a path, and whether it is a folder, that the folder around it need not go.

    With `patient`, a path that cannot be changed is noted and the rest goes on: in `theirs` if
    somebody else has put something there, else in `failed`.
    """

    def __init__(
        self,
        root: RootedFolder,
        stage: int,
        may_stay: Callable[[tuple[bytes, bool]], bool],
        *,
        patient: bool = False,
    ) -> None:
        self._root = root
        self._stage = stage
        self._writer = RootedWriter(root, stage)
        self._may_stay = may_stay
        self._patient = patient
        self._staying: set[bytes] = set()
        self.failed: dict[bytes, OSError] = {}
        self.theirs: list[bytes] = []
        self._given_up: set[bytes] = set()

    def run(self, changes: Sequence[PathChange], sync: Sync) -> None:
        """Raises MovedOnError or OSError, with the change half made, unless it is patient."""
        self._root.close_chain()
        changes = sorted(changes, key=lambda change: depth(change.path))
        folders = [change for change in changes if change.becomes is Becomes.FOLDER]
        for change in reversed(changes):
            self._step(self._clear, change)
        for change in folders:
            self._step(self._make_folder, change)
        for change in changes:
            if change.becomes is Becomes.FILE:
                self._step(self._place, change)
            elif change.becomes is Becomes.CHMODDED:
                self._step(self._chmod, change)
        modes = {change.path: change.mode for change in folders if change.mode is not None}
        self._writer.finish(modes, sync)

    def _step(self, do: Callable[[PathChange], None], change: PathChange) -> None:
        if change.path in self._given_up:
            return
        try:
            do(change)
        except (MovedOnError, *_OCCUPIED) as error:
            if not self._patient:
                raise
            self._given_up.add(change.path)
            self.theirs.extend(error.paths if isinstance(error, MovedOnError) else [change.path])
        except OSError as error:
            if not self._patient:
                raise
            self._given_up.add(change.path)
            self.failed[change.path] = error

    # --- making room ----------------------------------------------------------------------------

    def _clear(self, change: PathChange) -> None:
        found = status_at(self._root, change.path)
        if found is None:
            return
        if stat.S_ISDIR(found.st_mode):
            if change.becomes is not Becomes.FOLDER:
                self._remove_folder(change)
        elif change.becomes in (Becomes.ABSENT, Becomes.FOLDER):
            self._expect(change, found)
            folder, name = self._root.place(change.path)
            os.unlink(name, dir_fd=folder)
            self._writer.touch(change.path)

    def _remove_folder(self, change: PathChange) -> None:
        """Only if it is empty, or else it stays if all in it may."""
        goes = change.becomes is Becomes.ABSENT
        inside = children(self._root, change.path)
        stays = [item[0] in self._staying or self._may_stay(item) for item in inside]
        if goes and stays and all(stays):
            self._staying.add(change.path)
            return
        folder, name = self._root.place(change.path)
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            others = [path for path, _ in inside] if goes else []
            raise MovedOnError(others or [change.path]) from error
        self._root.opened_modes.pop(change.path, None)
        self._writer.touch(change.path)

    # --- putting in place -----------------------------------------------------------------------

    def _make_folder(self, change: PathChange) -> None:
        found = status_at(self._root, change.path)
        if found is None:
            self._new_folder(change)
            self._writer.touch(change.path)
        elif not stat.S_ISDIR(found.st_mode):
            raise MovedOnError([change.path])
        elif change.mode is not None:
            # Open for what will be put in it; its own mode comes last.
            os.fchmod(self._root.folder(change.path), change.mode | OWNER_ALL)

    def _new_folder(self, change: PathChange) -> None:
        """With its mode from the first moment on, so that a kill leaves it open to nobody else."""
        folder, name = self._root.place(change.path)
        if change.mode is None:
            os.mkdir(name, dir_fd=folder)
            return
        with suppress(FileExistsError):
            os.mkdir(_NEW_FOLDER, OWNER_ALL, dir_fd=self._stage)
        with opened(_NEW_FOLDER, FOLDER_FLAGS, dir_fd=self._stage) as fd:
            _inherit_group(fd, folder)
            os.fchmod(fd, change.mode | OWNER_ALL)
        try:
            os.rename(_NEW_FOLDER, name, src_dir_fd=self._stage, dst_dir_fd=folder)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            os.mkdir(name, OWNER_ALL, dir_fd=folder)
            os.fchmod(self._root.folder(change.path), change.mode | OWNER_ALL)

    def _place(self, change: PathChange) -> None:
        found = status_at(self._root, change.path)
        self._expect(change, found)
        if change.mode is not None:
            self._dress(change, found)
        self._writer.move_in(change.staged, change.path)

    def _dress(self, change: PathChange, replaced: os.stat_result | None) -> None:
        """Owner and group of what it replaces, where we may; then the mode, as that can undo it."""
        with opened(change.staged, _OPEN, dir_fd=self._stage) as fd:
            if replaced is None:
                _inherit_group(fd, self._root.place(change.path)[0])
            else:
                give(fd, replaced.st_uid, replaced.st_gid)
            os.fchmod(fd, change.mode or 0)

    def _chmod(self, change: PathChange) -> None:
        fd = self._root.open(change.path)
        try:
            self._expect(change, os.fstat(fd))
            os.fchmod(fd, change.mode or 0)
            os.fsync(fd)
        finally:
            os.close(fd)

    def _expect(self, change: PathChange, found: os.stat_result | None) -> None:
        if signature(found) != change.expected:
            raise MovedOnError([change.path])


def signature(found: os.stat_result | None) -> Signature | None:
    """Enough to see that a file was written by somebody else; folders may change freely."""
    if found is None or stat.S_ISDIR(found.st_mode):
        return None
    return found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns


def status_at(root: RootedFolder, path: bytes) -> os.stat_result | None:
    """None where nothing is, also if a file or a link is in the place of one of its folders."""
    try:
        return root.status(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None
        raise


def is_folder(root: RootedFolder, path: bytes) -> bool:
    found = status_at(root, path)
    return found is not None and stat.S_ISDIR(found.st_mode)


def children(root: RootedFolder, folder: bytes) -> list[tuple[bytes, bool]]:
    """The paths directly in it, each with whether it is a folder."""
    with os.scandir(root.folder(folder)) as found:
        return [
            (folder + b"/" + os.fsencode(e.name), e.is_dir(follow_symlinks=False)) for e in found
        ]


def _inherit_group(fd: int, folder: int) -> None:
    """What the system does for files that are made in their place."""
    parent = os.fstat(folder)
    if parent.st_mode & stat.S_ISGID:
        give(fd, -1, parent.st_gid)
