"""Which files of the user's working folder have to change between two trees, and changing them.

In which order: git says what is there and fills the new files, inside; what is neither old nor new
ends it; the old files are kept by a link, and all that is made durable; the note is written, from
which on it can be taken back; `PathUpdate` moves the new ones into place.
Why: filters of git may be programs of the plan from the first new file on, so that all of git's
part is over before. A signature taken before git looks shows who has written since.
What is not guaranteed: when the changes are durable; the index, or the end of the apply, does that.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from cleveragents.infrastructure.files.durable_files import status
from cleveragents.infrastructure.files.entry import parent_of
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.files.update.path_update import (
    Becomes,
    MovedOnError,
    PathChange,
    PathUpdate,
    Signature,
    children,
    is_folder,
    signature,
    status_at,
)
from cleveragents.infrastructure.files.update.rooted_writer import Sync
from cleveragents.infrastructure.sandbox.git.apply.undo_folder import (
    UndoFolder,
    UndoNote,
    kept_name,
    staged_name,
)
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
    GitTrees,
    TreeChange,
    same_content,
    tree_changes,
)
from cleveragents.infrastructure.sandbox.git.views import GitView

# Gives whoever looks at a checkout, and can write only in the folder named.
View = Callable[[Git, str], AbstractContextManager[GitView]]
# No file of a commit has these.
_SPECIAL_BITS = stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX


class StrangeFileError(Exception):
    """A filter has put something else in the place of a file that was checked out."""

    def __init__(self, path: bytes) -> None:
        super().__init__(path)
        self.path = path


class FileUpdate:
    """The working folder as it is now, and what has to change in it.

    Who looks at it, and fills the new files, is held inside: filters run, and their programs may be
    the plan's own as soon as the first of its files is in its place. Where there is a folder of
    files that were `kept`, only what is noted there changes, and these are the new files.
    """

    def __init__(self, git: Git, old: str, new: str, kept: UndoFolder | None = None) -> None:
        self._git = git
        self._top = Path(git.directory)
        self._kept = kept
        self._noted = (kept.note() or UndoNote()) if kept else None
        self._made = self._noted.made if self._noted else ()
        self._changes = tuple(filter(self._is_noted, tree_changes(git, old, new)))
        self._old, self._new = old, new
        with opened(git) as root:
            self._seen = {c.path: signature(status_at(root, c.path)) for c in self._changes}
        self._state: DiskState

    @property
    def changes(self) -> Sequence[TreeChange]:
        return self._changes

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
        if self._kept is not None:
            _lay_out(self._kept, files, undo)
        todo = [change for change in self._changes if not self._is_new(change, fresh)]
        if strange := [change.path for change in todo if not self._state.is_old(change)]:
            raise MovedOnError(strange)
        with opened(self._git) as root, undo.stage() as stage:
            note = self._note(root, todo)
            for path in (path for path, is_file in note.files.items() if is_file):
                if signature(status_at(root, path)) != self._seen[path]:
                    raise MovedOnError([path])
                stage.keep(kept_name(path), *root.place(path))
            if todo:
                # The new files and what is kept of the old ones: from here on every path is either.
                stage.make_durable()
            undo.add(note)
            steps = self._steps(root, todo, self._emptied(undo))
            # Durable with the index, or with all else of the apply.
            PathUpdate(root, stage.fd, anything_may_stay).run(steps, Sync.LATER)

    def _is_noted(self, change: TreeChange) -> bool:
        return self._noted is None or change.path in self._noted.files

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

    def _note(self, root: RootedFolder, todo: Sequence[TreeChange]) -> UndoNote:
        folders = {folder for change in todo for folder in _above(change.path)}
        folders.update(self._made)
        for change in todo:
            folders.update(_folders_at(root, change))
        found = {folder: status_at(root, folder) for folder in folders}
        return UndoNote(
            files={c.path: self._state.disk(c.path) is Disk.FILE for c in todo},
            folders={
                path: stat.S_IMODE(there.st_mode)
                for path, there in found.items()
                if there and stat.S_ISDIR(there.st_mode)
            },
            made=tuple(sorted(path for path in _coming(todo) if not is_folder(root, path))),
        )

    def _emptied(self, undo: UndoFolder) -> Iterator[bytes]:
        """As git does it, a folder goes with its last file: also where a killed run took that."""
        noted = (undo.note() or UndoNote()).files
        gone = [c.path for c in self._changes if c.path in noted and not c.is_file]
        return filter(self._may_go, {folder for path in gone for folder in _above(path)})

    def _steps(
        self, root: RootedFolder, todo: Sequence[TreeChange], emptied: Iterable[bytes]
    ) -> list[PathChange]:
        """One for each path: where a file goes, a folder may come, and a submodule's folder goes
        if it is empty."""
        came = [path for path in self._made if is_folder(root, path)]
        steps = {path: PathChange(path, Becomes.ABSENT) for path in (*came, *emptied)}
        for change in todo:
            for folder in _folders_at(root, change):
                steps[folder] = PathChange(folder, Becomes.ABSENT)
        for change in todo:
            becomes = Becomes.FILE if change.is_file else Becomes.ABSENT
            seen = self._seen[change.path]
            steps[change.path] = PathChange(change.path, becomes, seen, staged_name(change.path))
        modes = (self._noted or UndoNote()).folders
        for path in _coming(todo):
            seen = self._seen.get(path)
            steps[path] = PathChange(path, Becomes.FOLDER, seen, mode=modes.get(path))
        return list(steps.values())

    def _may_go(self, folder: bytes) -> bool:
        """On the way back, what was there before stays."""
        return self._noted is None or folder in self._made


class FileReturn:
    """`ends` are the commits that the apply led from and to; `laid` are files that it has brought
    as they had been kept."""

    def __init__(
        self, git: Git, trees: GitTrees, ends: tuple[str, str], laid: UndoFolder | None = None
    ) -> None:
        self._git, self._trees = git, trees
        self._top = Path(git.directory)
        self._old, self._new = ends
        self._laid = laid

    def run(self, undo: UndoFolder, view: View) -> tuple[bytes, ...]:
        """Gives back the paths that somebody changed on top of the apply."""
        note = undo.note()
        if note is None:
            return ()
        with opened(self._git) as root, undo.stage() as stage:
            # Before anybody compares: what changes from here on is not replaced.
            signatures = {path: signature(status_at(root, path)) for path in note.files}
            theirs = self._theirs(note, undo, view)
            update = PathUpdate(root, stage.fd, anything_may_stay, patient=True)
            ours = {path: of for path, of in signatures.items() if path not in theirs}
            update.run(self._steps(root, ours, note, undo), Sync.LATER)
        if update.failed:
            raise next(iter(update.failed.values()))
        return tuple(sorted(theirs.union(note.files.keys() & set(update.theirs))))

    def _theirs(self, note: UndoNote, undo: UndoFolder, view: View) -> set[bytes]:
        changes = [c for c in tree_changes(self._git, self._old, self._new) if c.path in note.files]
        with self._trees.folder() as ours:
            written = [change for change in changes if change.is_file]
            with view(self._git, str(ours)) as held:
                held.trees.materialise(held.git, self._new, [c.path for c in written], ours)
            refuse_strange(ours, written)
            return {path for path in note.files if not self._is_known(path, note, undo, ours)}

    def _steps(
        self,
        root: RootedFolder,
        ours: Mapping[bytes, Signature | None],
        note: UndoNote,
        undo: UndoFolder,
    ) -> list[PathChange]:
        """One for each path: what came goes, what is kept comes back, and folders with it."""
        came = [path for path in note.made if is_folder(root, path)]
        steps = {path: PathChange(path, Becomes.ABSENT) for path in came}
        for path, there in ours.items():
            kept = undo.kept(path)
            if not note.files[path] and there is not None:
                steps[path] = PathChange(path, Becomes.ABSENT, there)
            elif os.path.lexists(kept) and not _same(self._place(path), kept):
                steps[path] = PathChange(path, Becomes.FILE, there, kept_name(path))
        for path, mode in note.folders.items():
            if not is_folder(root, path) and (path in ours or path not in note.files):
                steps[path] = PathChange(path, Becomes.FOLDER, ours.get(path), mode=mode)
        return list(steps.values())

    def _is_known(self, path: bytes, note: UndoNote, undo: UndoFolder, ours: Path) -> bool:
        """Whether it holds what was there before, or what we wrote."""
        place, kept = self._place(path), undo.kept(path)
        if self._is_folder(path):
            return True  # only an empty one is removed
        if not os.path.lexists(place):
            return True
        if note.files[path] and (not os.path.lexists(kept) or _same(place, kept)):
            return True
        if self._laid is not None and _same(place, self._laid.kept(path)):
            return True
        return _same(place, ours / os.fsdecode(path))

    def _is_folder(self, path: bytes) -> bool:
        return stat.S_ISDIR(mode_of(self._place(path)) or 0)

    def _place(self, path: bytes) -> Path:
        return self._top / os.fsdecode(path)


def opened(git: Git) -> RootedFolder:
    """The working folder; its own path may lead over a link of the user's."""
    return RootedFolder(os.path.realpath(git.directory))


def anything_may_stay(inside: tuple[bytes, bool]) -> bool:  # noqa: ARG001 - what PathUpdate asks
    """Git has no folders: one that is not empty is no conflict."""
    return True


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


def _lay_out(kept: UndoFolder, files: Sequence[TreeChange], undo: UndoFolder) -> None:
    """The user's own files in the place of what git would make of them, with the present time: what
    was built from others since is older."""
    with kept.stage() as source, undo.stage() as stage:
        for change in files:
            if os.path.lexists(kept.kept(change.path)):
                name = staged_name(change.path)
                stage.keep(name, source.fd, kept_name(change.path))
                os.utime(name, dir_fd=stage.fd, follow_symlinks=False)


def executable(path: Path) -> bool:
    return bool(path.lstat().st_mode & stat.S_IXUSR)


def _coming(todo: Sequence[TreeChange]) -> set[bytes]:
    """Folders that have to be there in the end; a new submodule is an empty one."""
    submodules = {change.path for change in todo if change.new_mode == GITLINK}
    files = {change.path for change in todo if change.is_file}
    return submodules.union(*(_above(path) for path in submodules | files))


def _above(path: bytes) -> Iterator[bytes]:
    while path := parent_of(path):
        yield path


def _folders_at(root: RootedFolder, change: TreeChange) -> Iterator[bytes]:
    """What has to make room; a submodule, which is not looked into, only if it is empty."""
    waiting = [change.path] if is_folder(root, change.path) else []
    while waiting:
        folder = waiting.pop()
        yield folder
        if change.is_file:
            waiting += [path for path, inner in children(root, folder) if inner]


def _same(one: Path, other: Path) -> bool:
    kinds = [stat.S_IFMT(mode_of(path) or 0) for path in (one, other)]
    if kinds[0] != kinds[1] or kinds[0] not in (stat.S_IFREG, stat.S_IFLNK):
        return False
    if not same_content(one, other):
        return False
    return kinds[0] == stat.S_IFLNK or executable(one) == executable(other)
