"""Owns changing files of the user's working folder from one tree to another, or putting them back.

Each file is replaced by one rename, so that a kill leaves every path old or new, never torn.
"""

import errno
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from cleveragents.infrastructure.sandbox.git import Git
from cleveragents.infrastructure.sandbox.git_disk import Disk, DiskState, mode_of
from cleveragents.infrastructure.sandbox.git_trees import (
    GITLINK,
    TreeChange,
    Trees,
    same_content,
    tree_changes,
)

_Signature = tuple[int, int, int, int] | None


class MovedOnError(Exception):
    """Somebody changed these paths after they were looked at."""

    def __init__(self, paths: Sequence[bytes]) -> None:
        super().__init__(paths)
        self.paths = tuple(paths)


class FileUpdate:
    """`stage` is an empty folder for the new files and for copies of the old ones."""

    def __init__(self, git: Git, trees: Trees, old: str, new: str, stage: Path) -> None:
        self._git, self._trees = git, trees
        self._top = Path(git.directory)
        self._changes = tree_changes(git, old, new)
        self._new_tree = new
        self._new, self._backup = stage / "new", stage / "old"
        self._new.mkdir()
        self._backup.mkdir()
        self._made: list[Path] = []
        self._saved: list[tuple[Path, Path | None]] = []
        self._seen = {change.path: _signature(self._top / change.name) for change in self._changes}
        self._state = DiskState(git, trees, old, self._changes)

    def overlaps(self) -> list[bytes]:
        """Paths that do not hold the old content: changing them would lose something."""
        return [c.path for c in self._changes if not self._state.is_old(c)]

    def write(self) -> None:
        """Make every path new. Raises MovedOnError before or while it does; `put_back` then."""
        paths = [change.path for change in self._changes if change.is_file]
        self._trees.materialise(self._git, self._new_tree, paths, self._new)
        todo = [change for change in self._changes if not self._is_new(change)]
        if strange := [change.path for change in todo if not self._state.is_old(change)]:
            raise MovedOnError(strange)
        # A folder may have to make room for a file, so what goes has to go first.
        for change in reversed(todo):
            if change.was_file and not change.is_file:
                self._remove(change)
        for change in todo:
            if change.is_file:
                self._replace(change)
            else:
                self._submodule_folder(change)

    def put_back(self) -> None:
        for path, copy in reversed(self._saved):
            with suppress(FileNotFoundError):
                path.unlink()
            if copy is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                _place(copy, path)
        for folder in reversed(self._made):
            with suppress(OSError):
                folder.rmdir()

    def _is_new(self, change: TreeChange) -> bool:
        if self._state.is_new(change):
            return True
        return (
            change.is_file
            and self._state.disk(change.path) is Disk.FILE
            and same_content(self._top / change.name, self._new / change.name)
            and _executable(self._top / change.name) == _executable(self._new / change.name)
        )

    def _remove(self, change: TreeChange) -> None:
        path = self._top / change.name
        self._save(change, path)
        path.unlink(missing_ok=True)
        _remove_empty(path.parent, self._top)

    def _replace(self, change: TreeChange) -> None:
        path = self._top / change.name
        self._save(change, path)
        for folder in reversed(list(_missing(path.parent))):
            folder.mkdir()
            self._made.append(folder)
        if self._state.disk(change.path) is Disk.FOLDER:
            _remove_empty_folders(path)
        _place(self._new / change.name, path)

    def _submodule_folder(self, change: TreeChange) -> None:
        """As git does it: a new submodule is an empty folder, an old one stays if it has files."""
        path = self._top / change.name
        if change.new_mode == GITLINK:
            path.mkdir(parents=True, exist_ok=True)
        elif change.old_mode == GITLINK:
            with suppress(OSError):
                path.rmdir()

    def _save(self, change: TreeChange, path: Path) -> None:
        if _signature(path) != self._seen[change.path]:
            raise MovedOnError([change.path])
        copy = None
        if self._state.disk(change.path) is Disk.FILE:
            copy = self._backup / str(len(self._saved))
            shutil.copy2(path, copy, follow_symlinks=False)
        self._saved.append((path, copy))


def _signature(path: Path) -> _Signature:
    """Enough to see that a file was written by somebody else; folders may change freely."""
    if (mode := mode_of(path)) is None or stat.S_ISDIR(mode):
        return None
    found = path.lstat()
    return (found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns)


def _executable(path: Path) -> bool:
    return bool(path.lstat().st_mode & stat.S_IXUSR)


def _place(source: Path, target: Path) -> None:
    """Move over `target` in one step, also from another file system."""
    try:
        source.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        # Always the same name: what a kill leaves is used up by the repetition.
        beside = target.with_name(f".{target.name[:200]}.cleveragents")
        beside.unlink(missing_ok=True)
        shutil.copy2(source, beside, follow_symlinks=False)
        beside.replace(target)


def _missing(folder: Path) -> Iterator[Path]:
    while not folder.exists():
        yield folder
        folder = folder.parent


def _remove_empty_folders(path: Path) -> None:
    if path.is_dir():
        for folder, _, _ in os.walk(path, topdown=False):
            Path(folder).rmdir()


def _remove_empty(folder: Path, top: Path) -> None:
    with suppress(OSError):
        while folder != top:
            folder.rmdir()
            folder = folder.parent
