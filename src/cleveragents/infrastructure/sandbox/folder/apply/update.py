"""Changing some paths of the user's folder from one state to another, step by step.

Each file is replaced by one rename, so that a kill leaves every path old, new or absent for a
moment, never torn; doing it again from there ends in the same state.
"""

import errno
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from cleveragents.infrastructure.files.entry import Entry, Kind, parent_of
from cleveragents.infrastructure.files.excludes import Excludes
from cleveragents.infrastructure.files.rooted_folder import FOLDER_FLAGS, RootedFolder
from cleveragents.infrastructure.sandbox.folder.apply.project_state import (
    OWNER_ALL,
    children,
    status_at,
)
from cleveragents.infrastructure.sandbox.folder.apply.staging import FolderStage

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FolderMovedOnError(Exception):
    """Somebody changed these paths after they were looked at."""

    def __init__(self, paths: Sequence[bytes]) -> None:
        super().__init__(paths)
        self.paths = tuple(paths)


class PathMove(NamedTuple):
    """One path from `old` to `new`; `name` is what the new file is called in the stage."""

    path: bytes
    old: Entry | None
    new: Entry | None
    name: str

    @property
    def only_mode(self) -> bool:
        one, two = self.old, self.new
        if one is None or two is None:
            return False
        return one.kind is two.kind is Kind.FILE and one.hash == two.hash


class FolderUpdate:
    """`marks` are the signatures by which a path is known to be as it was looked at.

    With `patient`, a path that cannot be changed is noted and the rest goes on: in `theirs` if
    somebody else has put something there, else in `failed`.
    """

    def __init__(
        self, anchor: RootedFolder, stage: FolderStage, exclude: Excludes, *, patient: bool = False
    ) -> None:
        self._anchor = anchor
        self._stage = stage
        self._exclude = exclude
        self._patient = patient
        self._marks: Mapping[bytes, tuple[int, ...] | None] = {}
        self._staying: set[bytes] = set()
        self._touched: set[bytes] = set()
        self.failed: list[bytes] = []
        self.theirs: list[bytes] = []

    def run(self, moves: Sequence[PathMove], marks: Mapping[bytes, tuple[int, ...] | None]) -> None:
        """What goes goes first and deepest first, then folders from the top, files, modes."""
        self._marks = marks
        self._anchor.close_chain()
        folders = [move for move in moves if move.new and move.new.kind is Kind.DIR]
        others = [move for move in moves if move.new and move.new.kind is not Kind.DIR]
        for move in sorted(moves, key=_depth, reverse=True):
            self._step(self._clear, move)
        for move in sorted(folders, key=_depth):
            self._step(self._make_folder, move)
        for move in others:
            self._step(self._chmod if move.only_mode else self._place, move)
        self._sync()
        self._set_modes(folders)

    def _step(self, do: Callable[[PathMove], None], move: PathMove) -> None:
        try:
            do(move)
        except FolderMovedOnError as error:
            if not self._patient:
                raise
            self.theirs.extend(error.paths)
        except OSError:
            if not self._patient:
                raise
            self.failed.append(move.path)

    # --- making room ----------------------------------------------------------------------------

    def _clear(self, move: PathMove) -> None:
        found = status_at(self._anchor, move.path)
        becomes_folder = move.new is not None and move.new.kind is Kind.DIR
        if found is None:
            return
        if stat.S_ISDIR(found.st_mode):
            if not becomes_folder:
                self._remove_folder(move)
        elif move.new is None or becomes_folder:
            self._expect(move, found)
            folder, name = self._anchor.place(move.path)
            os.unlink(name, dir_fd=folder)
            self._touched.add(parent_of(move.path))

    def _remove_folder(self, move: PathMove) -> None:
        """Only if it is empty; one that holds excluded paths, which are the user's, stays."""
        inside = children(self._anchor, move.path)
        staying = [
            path in self._staying or (path, is_dir) in self._exclude for path, is_dir in inside
        ]
        if staying and all(staying) and move.new is None:
            self._staying.add(move.path)
            return
        folder, name = self._anchor.place(move.path)
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            raise FolderMovedOnError([path for path, _ in inside] or [move.path]) from error
        self._anchor.opened_modes.pop(move.path, None)
        self._touched.add(parent_of(move.path))

    # --- putting in place -----------------------------------------------------------------------

    def _make_folder(self, move: PathMove) -> None:
        entry = _wanted(move)
        found = status_at(self._anchor, move.path)
        if found is None:
            self._new_folder(move.path, entry.mode | OWNER_ALL, "folder-" + move.name)
            return
        if not stat.S_ISDIR(found.st_mode):
            raise FolderMovedOnError([move.path])
        # Open for what will be put in it; its own mode comes last.
        os.fchmod(self._anchor.folder(move.path), entry.mode | OWNER_ALL)

    def _new_folder(self, path: bytes, mode: int, staged: str) -> None:
        folder, name = self._anchor.place(path)
        with suppress(FileExistsError):
            os.mkdir(staged, OWNER_ALL, dir_fd=self._stage.fd)
        fd = os.open(staged, FOLDER_FLAGS, dir_fd=self._stage.fd)
        try:
            _inherit_group(fd, folder)
            os.fchmod(fd, mode)
        finally:
            os.close(fd)
        try:
            os.rename(staged, name, src_dir_fd=self._stage.fd, dst_dir_fd=folder)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            os.mkdir(name, OWNER_ALL, dir_fd=folder)
            os.fchmod(self._anchor.folder(path), mode)
        self._touched.add(parent_of(path))

    def _place(self, move: PathMove) -> None:
        entry = _wanted(move)
        found = status_at(self._anchor, move.path)
        self._expect(move, found)
        folder, name = self._anchor.place(move.path)
        if move.name in self._stage.fresh:
            self._dress(move.name, entry, found, folder)
        try:
            os.rename(move.name, name, src_dir_fd=self._stage.fd, dst_dir_fd=folder)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            self._place_from_elsewhere(move.name, entry, folder, name)
        self._touched.add(parent_of(move.path))

    def _dress(self, name: str, entry: Entry, replaced: os.stat_result | None, folder: int) -> None:
        """Owner and group of what it replaces, where we may; then the mode, as that can undo it."""
        if entry.kind is Kind.LINK:
            return
        fd = os.open(name, _OPEN, dir_fd=self._stage.fd)
        try:
            if replaced is None:
                _inherit_group(fd, folder)
            else:
                _give(fd, replaced.st_uid, replaced.st_gid)
            os.fchmod(fd, entry.mode)
        finally:
            os.close(fd)

    def _place_from_elsewhere(self, staged: str, entry: Entry, folder: int, name: bytes) -> None:
        """Onto another file system that is mounted in the project: through a neighbour."""
        # Always the same name: what a kill leaves is used up by the repetition.
        beside = f"{os.path.basename(self._stage.path)}-{staged}"
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=folder)
        self._stage.copy_out(staged, entry, folder, beside)
        os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)

    def _chmod(self, move: PathMove) -> None:
        fd = self._anchor.open(move.path)
        try:
            self._expect(move, os.fstat(fd))
            os.fchmod(fd, _wanted(move).mode)
            os.fsync(fd)
        finally:
            os.close(fd)

    def _set_modes(self, folders: Sequence[PathMove]) -> None:
        final = {**self._anchor.opened_modes, **{move.path: _wanted(move).mode for move in folders}}
        # Deepest first: a parent that is closed again would be in the way of its children.
        for path in sorted(final, key=lambda path: (path.count(b"/"), path), reverse=True):
            with suppress(FileNotFoundError, NotADirectoryError):
                fd = self._anchor.folder(path)
                os.fchmod(fd, final[path])
                os.fsync(fd)
            self._anchor.close_chain()
        self._anchor.opened_modes.clear()

    def _expect(self, move: PathMove, found: os.stat_result | None) -> None:
        if signature(found) != self._marks.get(move.path):
            raise FolderMovedOnError([move.path])

    def _sync(self) -> None:
        for path in self._touched:
            with suppress(FileNotFoundError, NotADirectoryError):  # removed itself later on
                os.fsync(self._anchor.folder(path))


def signature(found: os.stat_result | None) -> tuple[int, ...] | None:
    """Enough to see that a file was written by somebody else; folders may change freely."""
    if found is None or stat.S_ISDIR(found.st_mode):
        return None
    return found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns


def _give(fd: int, uid: int, gid: int) -> None:
    found = os.fstat(fd)
    if (found.st_uid, found.st_gid) != (uid, gid):
        with suppress(PermissionError):
            os.fchown(fd, uid, gid)


def _inherit_group(fd: int, folder: int) -> None:
    """What the system does for files that are made in their place."""
    parent = os.fstat(folder)
    if parent.st_mode & stat.S_ISGID:
        _give(fd, -1, parent.st_gid)


def _wanted(move: PathMove) -> Entry:
    if move.new is None:
        raise FolderMovedOnError([move.path])
    return move.new


def _depth(move: PathMove) -> tuple[int, bytes]:
    return move.path.count(b"/"), move.path
