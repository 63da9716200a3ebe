"""Changing files of the user's working folder from one tree to another.

Each file is replaced by one rename, so that a kill leaves every path old or new, never torn.
"""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from cleveragents.infrastructure.files.durable_files import status
from cleveragents.infrastructure.files.filesystems import sync_places
from cleveragents.infrastructure.sandbox.git.apply.undo_folder import UndoFolder, UndoNote
from cleveragents.infrastructure.sandbox.git.apply.worktree_state import (
    Disk,
    DiskState,
    left_out,
    mode_of,
)
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.trees import (
    GITLINK,
    LINK,
    TreeChange,
    same_content,
    tree_changes,
)
from cleveragents.infrastructure.sandbox.git.views import GitView

# Gives whoever looks at a checkout, and can write only in the folder named.
View = Callable[[Git, str], AbstractContextManager[GitView]]
# No file of a commit has these.
_SPECIAL_BITS = stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX
_Signature = tuple[int, int, int, int] | None


class WorktreeMovedOnError(Exception):
    """Somebody changed these paths after they were looked at."""

    def __init__(self, paths: Sequence[bytes]) -> None:
        super().__init__(paths)
        self.paths = tuple(paths)


class StrangeFileError(Exception):
    """A filter has put something else in the place of a file that was checked out."""

    def __init__(self, path: bytes) -> None:
        super().__init__(path)
        self.path = path


class FileUpdate:
    """The working folder as it is now, and what has to change in it.

    Who looks at it, and fills the new files, is held inside: filters run, and their programs may be
    the plan's own as soon as the first of its files is in its place.
    """

    def __init__(self, git: Git, old: str, new: str) -> None:
        self._git = git
        self._top = Path(git.directory)
        self._changes = tree_changes(git, old, new)
        self._old, self._new = old, new
        self._seen = {change.path: _signature(self._top / change.name) for change in self._changes}
        self._state: DiskState

    def overlaps(self, held: GitView) -> list[bytes]:
        """Paths that hold neither the old content nor the new one: changing them would lose
        something."""
        self._look(held)
        known = (self._state.is_old, self._state.is_new)
        return [c.path for c in self._changes if not any(is_it(c) for is_it in known)]

    def write(self, undo: UndoFolder, view: View) -> None:
        """Make every path new. Raises MovedOnError before or while it does."""
        fresh = undo.fresh()
        files = [change for change in self._changes if change.is_file]
        with view(self._git, str(fresh)) as held:
            self._look(held)
            held.trees.materialise(held.git, self._new, [c.path for c in files], fresh)
        refuse_strange(fresh, files)
        todo = [change for change in self._changes if not self._is_new(change, fresh)]
        if strange := [change.path for change in todo if not self._state.is_old(change)]:
            raise WorktreeMovedOnError(strange)
        self._keep(todo, undo)
        # A folder may have to make room for a file, so what goes has to go first.
        for change in reversed(todo):
            if change.was_file and not change.is_file:
                self._remove(change)
        for change in todo:
            if change.is_file:
                self._replace(change, fresh)
            else:
                self._submodule_folder(change)

    def _look(self, held: GitView) -> None:
        absent = left_out(self._git)
        self._state = DiskState(held.git, held.trees, self._old, self._changes, absent)

    def _is_new(self, change: TreeChange, fresh: Path) -> bool:
        if self._state.is_new(change):
            return True
        return (
            change.is_file
            and self._state.disk(change.path) is Disk.FILE
            and same_content(self._top / change.name, fresh / change.name)
            and executable(self._top / change.name) == executable(fresh / change.name)
        )

    def _keep(self, todo: Sequence[TreeChange], undo: UndoFolder) -> None:
        """Files, then the note about them, then the changes: what is noted can be taken back."""
        files = {change.path: self._state.disk(change.path) is Disk.FILE for change in todo}
        for change in todo:
            self._expect_unchanged(change)
            if files[change.path]:
                undo.keep(change.path, self._top / change.name)
        places = [self._top / change.name for change in todo]
        folders = [parent for place in places for parent in _inside(place.parent, self._top)]
        folders += [f for c in todo for f in _folders_at(self._top / c.name, deep=c.is_file)]
        coming = [
            self._top / c.name if c.new_mode == GITLINK else (self._top / c.name).parent
            for c in todo
            if c.is_file or c.new_mode == GITLINK
        ]
        made = {folder for place in coming for folder in _missing(place)}
        if todo:
            # The new files and what is kept of the old ones: from here on every path is either.
            undo.make_durable()
        undo.add(
            UndoNote(
                files=files,
                folders={self._path(f): _permissions(f) for f in folders if _is_folder(f)},
                made=tuple(self._path(folder) for folder in sorted(made)),
            )
        )

    def _path(self, place: Path) -> bytes:
        return os.fsencode(place.relative_to(self._top))

    def _remove(self, change: TreeChange) -> None:
        path = self._top / change.name
        self._expect_unchanged(change)
        path.unlink(missing_ok=True)
        remove_empty(path.parent, self._top)

    def _replace(self, change: TreeChange, fresh: Path) -> None:
        path = self._top / change.name
        self._expect_unchanged(change)
        for folder in reversed(list(_missing(path.parent))):
            folder.mkdir()
        if self._state.disk(change.path) is Disk.FOLDER:
            _remove_empty_folders(path)
        put_in_place(fresh / change.name, path)

    def _submodule_folder(self, change: TreeChange) -> None:
        """As git does it: a new submodule is an empty folder, an old one stays if it has files."""
        path = self._top / change.name
        if change.new_mode == GITLINK:
            path.mkdir(parents=True, exist_ok=True)
        elif change.old_mode == GITLINK:
            with suppress(OSError):
                path.rmdir()

    def _expect_unchanged(self, change: TreeChange) -> None:
        if _signature(self._top / change.name) != self._seen[change.path]:
            raise WorktreeMovedOnError([change.path])


def refuse_strange(top: Path, files: Sequence[TreeChange]) -> None:
    """Nothing may be what it is not said to be, nor be reached through a link; raises
    StrangeFileError. Nobody is left who could change it after this."""
    for change in files:
        found = status(str(top), change.name)
        kind = stat.S_IFLNK if change.new_mode == LINK else stat.S_IFREG
        if found is None or stat.S_IFMT(found.st_mode) != kind:
            raise StrangeFileError(change.path)
        if kind == stat.S_IFREG and found.st_mode & _SPECIAL_BITS:
            (top / change.name).chmod(stat.S_IMODE(found.st_mode) & ~_SPECIAL_BITS)


def put_in_place(source: Path, target: Path) -> None:
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
        sync_places([str(beside.parent)])
        beside.replace(target)
        source.unlink()


def executable(path: Path) -> bool:
    return bool(path.lstat().st_mode & stat.S_IXUSR)


def remove_empty(folder: Path, top: Path) -> None:
    with suppress(OSError):
        while folder != top:
            folder.rmdir()
            folder = folder.parent


def _signature(path: Path) -> _Signature:
    """Enough to see that a file was written by somebody else; folders may change freely."""
    if (mode := mode_of(path)) is None or stat.S_ISDIR(mode):
        return None
    found = path.lstat()
    return (found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns)


def _missing(folder: Path) -> Iterator[Path]:
    while not folder.is_dir():
        yield folder
        folder = folder.parent


def _inside(folder: Path, top: Path) -> Iterator[Path]:
    while folder != top:
        yield folder
        folder = folder.parent


def _folders_at(path: Path, *, deep: bool) -> Iterator[Path]:
    """What has to make room; a submodule, which is not looked into, only if it is empty."""
    if _is_folder(path):
        yield path
        for folder, _, _ in os.walk(path) if deep else ():
            yield Path(folder)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _permissions(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def _remove_empty_folders(path: Path) -> None:
    if path.is_dir():
        for folder, _, _ in os.walk(path, topdown=False):
            Path(folder).rmdir()
