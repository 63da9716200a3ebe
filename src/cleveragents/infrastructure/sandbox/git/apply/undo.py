"""Taking the files of an apply back: each that still is ours becomes what it was before.

What somebody has changed since is theirs, and stays. Every part may be repeated.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

from cleveragents.infrastructure.sandbox.git.apply.undo_folder import UndoFolder, UndoNote
from cleveragents.infrastructure.sandbox.git.apply.worktree_state import mode_of
from cleveragents.infrastructure.sandbox.git.apply.worktree_update import (
    View,
    executable,
    put_in_place,
    refuse_strange,
)
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.trees import GitTrees, same_content, tree_changes

# A file is where a folder has to be, or the other way round: somebody else made it.
_OCCUPIED = (NotADirectoryError, IsADirectoryError, FileExistsError)


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
        changes = [c for c in tree_changes(self._git, self._old, self._new) if c.path in note.files]
        with self._trees.folder() as ours:
            written = [change for change in changes if change.is_file]
            with view(self._git, str(ours)) as held:
                held.trees.materialise(held.git, self._new, [c.path for c in written], ours)
            refuse_strange(ours, written)
            theirs = [path for path in note.files if not self._is_known(path, note, undo, ours)]
            todo = [path for path in note.files if path not in theirs]
            return tuple(sorted({*theirs, *self._put_back(todo, note, undo)}))

    def _put_back(self, paths: list[bytes], note: UndoNote, undo: UndoFolder) -> list[bytes]:
        # A file may stand where a folder was, so what came has to go first.
        for path in sorted(paths, reverse=True):
            if not note.files[path] and self._is_file(path):
                self._place(path).unlink()
        for path in sorted(note.made, reverse=True):
            with suppress(OSError):  # somebody else has put something in it
                self._place(path).rmdir()
        for path in sorted(note.folders):
            if not os.path.lexists(self._place(path)):
                undo.make_folder(self._place(path), note.folders[path])
        kept = [path for path in sorted(paths) if os.path.lexists(undo.kept(path))]
        return [path for path in kept if not self._return(path, undo.kept(path))]

    def _return(self, path: bytes, kept: Path) -> bool:
        place = self._place(path)
        if _same(place, kept):
            return True
        try:
            if place.is_dir() and not place.is_symlink():
                place.rmdir()
            put_in_place(kept, place)
        except OSError as error:
            if isinstance(error, _OCCUPIED) or _is_full_folder(place):
                return False
            raise
        return True

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

    def _is_file(self, path: bytes) -> bool:
        return os.path.lexists(self._place(path)) and not self._is_folder(path)

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


def _is_full_folder(path: Path) -> bool:
    return path.is_dir() and any(path.iterdir())
