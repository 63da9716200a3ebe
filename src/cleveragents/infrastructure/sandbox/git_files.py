"""Owns changing files of the user's working folder from one tree to another, or putting them back.

Each file is replaced by one rename, so that a kill leaves every path old or new, never torn.
"""

import errno
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path, PurePosixPath

from cleveragents.infrastructure.sandbox.git import Git
from cleveragents.infrastructure.sandbox.git_trees import (
    GITLINK,
    PRIVATE,
    TreeChange,
    Trees,
    index_path,
    nul_ended,
    same_content,
)

_Signature = tuple[int, int, int, int] | None


class Disk(Enum):
    ABSENT = "absent"
    BLOCKED = "a folder on the way is a file or a link"
    FILE = "file or link"
    FOLDER = "folder"
    STRANGE = "pipe, socket or device"


class MovedOnError(Exception):
    """Somebody changed these paths after they were looked at."""

    def __init__(self, paths: Sequence[bytes]) -> None:
        super().__init__(paths)
        self.paths = tuple(paths)


class FileUpdate:
    """`stage` is an empty folder for the new files and for copies of the old ones."""

    def __init__(
        self, git: Git, trees: Trees, changes: Sequence[TreeChange], new_tree: str, stage: Path
    ) -> None:
        self._git, self._trees = git, trees
        self._top = Path(git.directory)
        self._changes = changes
        self._new_tree = new_tree
        self._new, self._backup = stage / "new", stage / "old"
        self._new.mkdir()
        self._backup.mkdir()
        self._made: list[Path] = []
        self._saved: list[tuple[Path, Path | None]] = []
        self._seen = {change.path: _signature(self._top / change.name) for change in changes}
        self._state = _DiskState(git, trees, changes)

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


class _DiskState:
    """What the working folder holds at the changed paths, compared as git would store it."""

    def __init__(self, git: Git, trees: Trees, changes: Sequence[TreeChange]) -> None:
        self._top = Path(git.directory)
        self._leaving = {c.path for c in changes if c.was_file and not c.is_file}
        self._disk = {change.path: _disk(self._top, change.name) for change in changes}
        files = [path for path, disk in self._disk.items() if disk is Disk.FILE]
        with trees.private_index(git, copy_of=index_path(git)) as private:
            self._sparse = _clear_flags(private, set(self._disk))
            private.run(
                *PRIVATE, "update-index", "--add", "--replace", "-z", "--stdin",
                input=nul_ended(files),
            )  # fmt: skip
            self._entries = _entries(private, files)

    def disk(self, path: bytes) -> Disk:
        return self._disk[path]

    def is_old(self, change: TreeChange) -> bool:
        match self._disk[change.path]:
            case Disk.FILE:
                return self._entries.get(change.path) == (change.old_mode, change.old_oid)
            case Disk.ABSENT:
                return not change.was_file or change.path in self._sparse
            case Disk.BLOCKED:
                return not change.was_file and self._will_be_free(change.path)
            case Disk.FOLDER:
                in_the_way = change.is_file and not self._will_be_empty(change.name)
                return not change.was_file and not in_the_way
            case Disk.STRANGE:
                return False

    def is_new(self, change: TreeChange) -> bool:
        match self._disk[change.path]:
            case Disk.FILE:
                return self._entries.get(change.path) == (change.new_mode, change.new_oid)
            case Disk.ABSENT | Disk.BLOCKED:
                return change.was_file and not change.new_oid.strip(b"0")
            case Disk.FOLDER:
                return not change.is_file
            case Disk.STRANGE:
                return False

    def _will_be_free(self, path: bytes) -> bool:
        parents = PurePosixPath(os.fsdecode(path)).parents
        return any(os.fsencode(parent) in self._leaving for parent in parents)

    def _will_be_empty(self, name: str) -> bool:
        """Everything in the folder is on its way out, so that a file can take its place."""
        for folder, folders, files in os.walk(self._top / name):
            links = [item for item in folders if Path(folder, item).is_symlink()]
            inside = [Path(folder, item).relative_to(self._top) for item in (*files, *links)]
            if any(os.fsencode(item) not in self._leaving for item in inside):
                return False
        return True


def _clear_flags(private: Git, paths: set[bytes]) -> set[bytes]:
    """Look at files that the user told git not to look at; gives those left out as sparse."""
    listed = private.run("ls-files", "-v", "-z").stdout.split(b"\0")[:-1]
    flagged = [line for line in listed if line[2:] in paths and not line.startswith(b"H ")]
    names = nul_ended([line[2:] for line in flagged])
    for option in ("--no-assume-unchanged", "--no-skip-worktree"):
        private.run(*PRIVATE, "update-index", option, "-z", "--stdin", input=names)
    return {line[2:] for line in flagged if line[:1] in b"Ss"}


def _entries(private: Git, paths: Iterable[bytes]) -> dict[bytes, tuple[bytes, bytes]]:
    wanted = set(paths)
    found: dict[bytes, tuple[bytes, bytes]] = {}
    for line in private.run("ls-files", "--stage", "-z").stdout.split(b"\0")[:-1]:
        meta, _, path = line.partition(b"\t")
        if path in wanted:
            mode, oid, _ = meta.split(b" ")
            found[path] = (mode, oid)
    return found


def _disk(top: Path, name: str) -> Disk:
    path = top
    for part in PurePosixPath(name).parts[:-1]:
        path /= part
        if path.is_symlink() or path.is_file():
            return Disk.BLOCKED
    mode = _mode(top / name)
    if mode is None:
        return Disk.ABSENT
    if stat.S_ISDIR(mode):
        return Disk.FOLDER
    return Disk.FILE if stat.S_ISREG(mode) or stat.S_ISLNK(mode) else Disk.STRANGE


def _mode(path: Path) -> int | None:
    try:
        return path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _signature(path: Path) -> _Signature:
    """Enough to see that a file was written by somebody else; folders may change freely."""
    if (mode := _mode(path)) is None or stat.S_ISDIR(mode):
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
