"""Taking the files of an apply back: each that still is ours becomes what it was before.

What somebody has changed since is theirs, and stays. Every part may be repeated.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from cleveragents.infrastructure.files.path_update import (
    Becomes,
    PathChange,
    PathUpdate,
    Signature,
    is_folder,
    signature,
    status_at,
)
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.files.rooted_writer import Sync
from cleveragents.infrastructure.sandbox.git.apply.undo_folder import (
    UndoFolder,
    UndoNote,
    kept_name,
)
from cleveragents.infrastructure.sandbox.git.apply.worktree_state import mode_of
from cleveragents.infrastructure.sandbox.git.apply.worktree_update import (
    View,
    anything_may_stay,
    executable,
    opened,
    refuse_strange,
)
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.trees import GitTrees, same_content, tree_changes


class FileReturn:
    """`old` and `new` are the commits that the apply led from and to."""

    def __init__(self, git: Git, trees: GitTrees, old: str, new: str) -> None:
        self._git, self._trees = git, trees
        self._top = Path(git.directory)
        self._old, self._new = old, new

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
        return _same(place, ours / os.fsdecode(path))

    def _is_folder(self, path: bytes) -> bool:
        return stat.S_ISDIR(mode_of(self._place(path)) or 0)

    def _place(self, path: bytes) -> Path:
        return self._top / os.fsdecode(path)


def _same(one: Path, other: Path) -> bool:
    kinds = [stat.S_IFMT(mode_of(path) or 0) for path in (one, other)]
    if kinds[0] != kinds[1] or kinds[0] not in (stat.S_IFREG, stat.S_IFLNK):
        return False
    if not same_content(one, other):
        return False
    return kinds[0] == stat.S_IFLNK or executable(one) == executable(other)
