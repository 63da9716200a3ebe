"""The user's own index: git's lock on it, and switching it from one commit to another.

In which order: the lock, which comes signed by a link; a copy of the index as it was; the new one,
made in private; a copy of that; files and folder synced; one rename.
Why: by comparing the bytes with the two copies, whoever comes after a kill knows how far it got,
and whether somebody has staged something since: then the same change is made backwards instead.
What is not guaranteed: that index and reference are durable together; `catch_up` mends that.
"""

import filecmp
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from cleveragents.domain.errors import ApplyRefusedError
from cleveragents.domain.ids import PlanId
from cleveragents.infrastructure.files.filesystems import sync_places
from cleveragents.infrastructure.sandbox.git.apply.undo_folder import UndoFolder
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.config import without_filters
from cleveragents.infrastructure.sandbox.git.repository.ref_locks import is_from_before_start
from cleveragents.infrastructure.sandbox.git.trees import GitTrees, index_path

_MARK = b"cleveragents apply of plan "


class UserIndex:
    """The lock is git's own `index.lock`; ours says whose it is, so that a plan whose apply was
    killed can take its lock up again."""

    def __init__(self, git: Git, trees: GitTrees, plan_id: PlanId) -> None:
        self._git = git
        self._trees = trees
        self._mark = _MARK + plan_id.encode()
        self.path = index_path(git)
        self._lock = self.path.with_name(self.path.name + ".lock")
        self._beside = self.path.with_name(self.path.name + ".cleveragents")
        self._draft = self.path.with_name(self.path.name + ".lock.cleveragents")

    def refuse_if_locked(self) -> None:
        """Raises ApplyRefusedError if somebody else holds the lock."""
        holder = self._holder()
        if holder in (None, self._mark):
            return
        if holder.startswith(_MARK):
            other = holder.removeprefix(_MARK).decode("ascii", "replace")
            raise ApplyRefusedError(
                f"the apply of plan {other} to {self._git.directory} is not finished",
                f"agents plan apply {other}",
            )
        raise ApplyRefusedError(
            f"another git command is at work in {self._git.directory} ({self._lock} exists)",
            f"wait for it; if there is none, remove what it left: rm {self._lock}",
        )

    @contextmanager
    def locked(self) -> Generator[None, None, None]:
        self._clear_if_of_nobody()
        self.refuse_if_locked()
        if self._holder() is None:
            self._take()
        try:
            yield
        finally:
            self.unlock()

    def unlock(self) -> None:
        if self._holder() == self._mark:
            self._beside.unlink(missing_ok=True)  # of a run that was killed
            self._lock.unlink()
        self._draft.unlink(missing_ok=True)

    def switch(self, old: str, new: str, undo: UndoFolder) -> None:
        """Take up what `new` changes; other entries, staged ones too, stay as they are."""
        if not _same_bytes(self.path, undo.index_after):  # else a killed run has got that far
            _copy(self.path, undo.index_before)
        with self._switched(old, new) as made:
            _copy(made, undo.index_after)
            self._install(made)

    def catch_up(self, undo: UndoFolder) -> None:
        """With a branch that has moved: the index is moved before it, but a file system may have
        made durable the one and not the other."""
        if undo.index_after.exists() and _same_bytes(self.path, undo.index_before):
            with self.locked():
                self._install(undo.index_after)

    def switch_back(self, old: str, new: str, undo: UndoFolder) -> None:
        """To the very bytes it had, or, if somebody staged something since, by the same way."""
        if not undo.index_after.exists() or _same_bytes(self.path, undo.index_before):
            return
        if _same_bytes(self.path, undo.index_after):
            self._install(undo.index_before)
            return
        with self._switched(new, old) as made:
            self._install(made)

    @contextmanager
    def _switched(self, old: str, new: str) -> Generator[Path, None, None]:
        # Without filters, for all that writes an index looks at files too: a script in the checkout
        # that one of them runs may be the plan's by now.
        git = without_filters(self._git)
        with self._trees.private_index(git, copy_of=self.path) as private:
            # -i: the files are ours to judge, and may already be the new ones.
            private.run("read-tree", "-m", "-i", old, new)
            private.run("update-index", "-q", "--refresh", check=False)
            yield Path(private.env["GIT_INDEX_FILE"])

    def _install(self, source: Path) -> None:
        """Replace the index at once, with the time of `source`: git judges entries by it."""
        shutil.copy2(source, self._beside)
        if self.path.exists():
            shutil.copymode(self.path, self._beside)
        # The files that it tells of too: whoever finds it new, or what comes after it, finds all.
        sync_places([str(self.path.parent), self._git.directory])
        self._beside.replace(self.path)

    def _holder(self) -> bytes | None:
        try:
            return self._lock.read_bytes()[:200]
        except FileNotFoundError:
            return None

    def _clear_if_of_nobody(self) -> None:
        """An empty lock from before the machine was started: whoever made it is gone, and wrote
        nothing. With an apply on record, it most probably was us."""
        with suppress(FileNotFoundError):
            found = self._lock.stat()
            if not found.st_size and is_from_before_start(found):
                self._lock.unlink()

    def _take(self) -> None:
        """The lock comes signed: an empty one would be taken for that of a git command."""
        with self._draft.open("wb") as file:
            file.write(self._mark)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(self._draft, self._lock)
        except FileExistsError:
            self.refuse_if_locked()
            raise
        finally:
            self._draft.unlink()


def _same_bytes(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and filecmp.cmp(one, other, shallow=False)


def _copy(source: Path, target: Path) -> None:
    """Whole or not at all, with its time."""
    half = target.with_name(target.name + ".half")
    shutil.copy2(source, half)
    half.replace(target)
