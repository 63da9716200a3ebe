"""The order of an apply into a folder: stage everything, keep the old, change, or put back.

What was there before stays in the stage until the apply is settled, so that it can be taken back.
In which order: what is there now is old, new, or ends it; new files are staged; old ones are kept
by a link; all that is durable; the journal says which paths change; `PathUpdate` changes them.
Why: what can fail for want of room fails before a change, and from the journal on every path can
be brought to either end. What was not kept whole comes back from the snapshots.
What is not guaranteed: that all paths change at one instant. What somebody has changed on top of
ours stays when it is taken back, and is told.
"""

import os
from collections.abc import Container, Generator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from cleveragents.domain.errors import ApplyRefusedError, PlanError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.entry import Entry, Kind, ManifestRow, parent_of, shown
from cleveragents.infrastructure.files.excludes import excludes
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.files.update.path_update import (
    OWNER_ALL,
    Becomes,
    MovedOnError,
    PathChange,
    PathUpdate,
    Signature,
    signature,
    status_at,
)
from cleveragents.infrastructure.files.update.rooted_writer import sync_of
from cleveragents.infrastructure.sandbox.folder.apply.journal import ApplyJournal
from cleveragents.infrastructure.sandbox.folder.apply.project_state import ProjectState
from cleveragents.infrastructure.sandbox.folder.apply.staging import FolderStage, stage_path
from cleveragents.infrastructure.snapshots.tree.diff import PathDifference
from cleveragents.infrastructure.snapshots.tree.reader import TreeReader


class PathMove(NamedTuple):
    """One path from `old` to `new`; `name` is what the new file is called in the stage."""

    path: bytes
    old: Entry | None
    new: Entry | None
    name: bytes

    @property
    def only_mode(self) -> bool:
        one, two = self.old, self.new
        if one is None or two is None:
            return False
        return one.kind is two.kind is Kind.FILE and one.hash == two.hash

    @property
    def is_staged(self) -> bool:
        return self.new is not None and self.new.kind is not Kind.DIR and not self.only_mode

    def change(self, expected: Signature | None, fresh: Container[bytes]) -> PathChange:
        if self.new is None:
            return PathChange(self.path, Becomes.ABSENT, expected)
        if self.new.kind is Kind.DIR:
            return PathChange(self.path, Becomes.FOLDER, expected, mode=self.new.mode)
        if self.only_mode:
            return PathChange(self.path, Becomes.CHMODDED, expected, mode=self.new.mode)
        mode = self.new.mode if self.name in fresh else None
        return PathChange(self.path, Becomes.FILE, expected, self.name, mode)


class CarryOut:
    """From old to new. Names in the stage follow from the position, so that a repetition finds
    what an interrupted run has kept. The stage is at the top of the project, or where it is said.
    """

    def __init__(
        self,
        resource: PlanResource,
        reader: TreeReader,
        differences: Sequence[PathDifference],
        journal: ApplyJournal,
        stage: str = "",
    ) -> None:
        self._resource = resource
        self._place = stage or stage_path(resource.location, resource.resource_id)
        self._reader = reader
        self._journal = journal
        self._changes = {item.path: item for item in differences}
        self._number = {item.path: number for number, item in enumerate(differences)}
        self._exclude = excludes(resource.exclude)

    def run(self) -> None:
        """Raises MovedOnError or OSError, and then everything is as it was before; EditsKeptError
        if it is so but for what somebody changed on top of ours."""
        if self._journal.is_done():
            return
        with RootedFolder(self._resource.location, open_up=True) as anchor, self._stage() as stage:
            self._remember_opened(anchor)
            try:
                self._forwards(anchor, stage)
                self._journal.finish()
            except BaseException as error:
                kept = self._put_back(anchor, stage)
                stage.remove()
                if kept:
                    raise EditsKeptError(kept, error) from error
                raise

    def revert(self) -> list[bytes]:
        """Make everything as it was; gives the paths that somebody changed on top of ours."""
        if not self._journal.changed():
            return []
        with RootedFolder(self._resource.location, open_up=True) as anchor, self._stage() as stage:
            self._remember_opened(anchor)
            return self._put_back(anchor, stage)

    @contextmanager
    def _stage(self) -> Generator[FolderStage]:
        """Stays on disk: it may hold what has to be put back by another process."""
        stage = FolderStage(self._place)
        try:
            yield stage
        except _NotPutBackError as error:
            names = ", ".join(shown(path) for path in error.paths)
            raise ApplyRefusedError(
                f"{self._resource.location} could not be changed, and not all of it could be put "
                f"back: {names}",
                f"what they held before is in {stage.path}; make room for it and run "
                f"`agents plan apply {self._resource.plan_id}`",
            ) from error
        finally:
            stage.close()

    def _remember_opened(self, anchor: RootedFolder) -> None:
        """Folders that a killed run opened up for itself get their modes back in the end."""
        parents = {parent_of(path) for path in self._changes}
        for path in list(parents):
            while path := parent_of(path):
                parents.add(path)
        for path in sorted(parents - self._changes.keys() - {b""}):
            entry = self._reader.entry(path, self._resource.base_snapshot or "")
            found = status_at(anchor, path)
            if entry is None or found is None or entry.mode & OWNER_ALL == OWNER_ALL:
                continue
            if found.st_mode & 0o7777 == entry.mode | OWNER_ALL:
                anchor.opened_modes[path] = entry.mode

    def _forwards(self, anchor: RootedFolder, stage: FolderStage) -> None:
        state = ProjectState(anchor, self._changes, self._exclude)
        if conflicts := state.conflicts(accept_halfway=True):
            raise MovedOnError(conflicts)
        todo = [item for item in self._changes.values() if not state.is_new(item)]
        moves = [self._forward(item) for item in todo]
        # All that can fail for want of room or a damaged snapshot fails here, before a change.
        stage.fill(self._reader, {m.name: m.new for m in moves if m.is_staged and m.new})
        changes = [m.change(self._keep(anchor, stage, m, state), stage.fresh) for m in moves]
        stage.make_durable()
        self._journal.begin(move.path for move in moves)
        self._update(anchor, stage).run(changes, sync_of(len(changes)))

    def _keep(
        self, anchor: RootedFolder, stage: FolderStage, move: PathMove, state: ProjectState
    ) -> Signature | None:
        """Hold on to the old file; its signature, which is that of what was looked at."""
        found, seen = status_at(anchor, move.path), state.seen(move.path)
        if not _is_what_was_seen(found, seen):
            raise MovedOnError([move.path])
        if seen and seen.entry.kind is not Kind.DIR and not move.only_mode:
            stage.keep(self._name("old", move.path), *anchor.place(move.path))
        return signature(found)

    def _update(
        self, anchor: RootedFolder, stage: FolderStage, *, patient: bool = False
    ) -> PathUpdate:
        # Excluded paths are the user's: a folder that holds nothing else stays with them.
        stays = self._exclude.__contains__
        return PathUpdate(anchor, stage.fd, stays, patient=patient)

    def _forward(self, item: PathDifference) -> PathMove:
        return PathMove(item.path, item.old, item.new, self._name("new", item.path))

    def _backward(self, item: PathDifference) -> PathMove:
        return PathMove(item.path, item.new, item.old, self._name("old", item.path))

    def _name(self, side: str, path: bytes) -> bytes:
        return f"{side}-{self._number[path]}".encode()

    def _put_back(self, anchor: RootedFolder, stage: FolderStage) -> list[bytes]:
        """Everything that is ours becomes old again; gives what somebody changed on top of it."""
        anchor.close_chain()
        state = ProjectState(anchor, self._changes, self._exclude)
        noted = self._journal.changed()
        changed = [i for i in self._changes.values() if i.path in noted and not state.is_old(i)]
        ours = [item for item in changed if state.is_new(item) or state.is_halfway(item)]
        moves = [self._backward(item) for item in ours]
        failed = self._refill(stage, moves)
        changes = [
            move.change(signature(status_at(anchor, move.path)), stage.fresh)
            for move in moves
            if move.path not in failed
        ]
        update = self._update(anchor, stage, patient=True)
        update.run(changes, sync_of(len(changes)))
        if failed or update.failed:
            raise _NotPutBackError([*failed, *update.failed])
        theirs = {i.path for i in changed if i not in ours and self._was_reached(i, state, stage)}
        self._journal.clear()
        return sorted({*theirs, *update.theirs})

    def _was_reached(self, item: PathDifference, state: ProjectState, stage: FolderStage) -> bool:
        """Whether our change had been made before somebody changed the path again."""
        move = self._forward(item)
        if move.only_mode and item.new:
            seen = state.seen(item.path)
            return seen is not None and seen.entry.mode == item.new.mode
        return move.is_staged and not stage.has(move.name)

    def _refill(self, stage: FolderStage, moves: Sequence[PathMove]) -> list[bytes]:
        """What was not kept whole comes from the snapshots; gives those that cannot."""
        failed: list[bytes] = []
        lacking = [m for m in moves if m.is_staged and m.new and not stage.holds(m.name, m.new)]
        for move in lacking:
            try:
                stage.fill(self._reader, {move.name: move.new} if move.new else {})
            except (OSError, PlanError):
                failed.append(move.path)
        if lacking:
            stage.make_durable()
        return failed


def finish(resource: PlanResource, journal: ApplyJournal, stage: str = "") -> None:
    """Let go of what was kept. The note goes last, as it says that something is kept."""
    place = stage or stage_path(resource.location, resource.resource_id)
    if os.path.lexists(place):
        kept = FolderStage(place)
        try:
            kept.remove()
        finally:
            kept.close()
    journal.clear()


class EditsKeptError(Exception):
    """Everything was put back for `cause` but these, which somebody has changed on top of ours."""

    def __init__(self, paths: Sequence[bytes], cause: BaseException) -> None:
        super().__init__(paths)
        self.paths = tuple(paths)
        self.cause = cause


class _NotPutBackError(Exception):
    def __init__(self, paths: Sequence[bytes]) -> None:
        super().__init__(paths)
        self.paths = tuple(paths)


def _is_what_was_seen(found: os.stat_result | None, seen: ManifestRow | None) -> bool:
    if found is None or seen is None:
        return found is None and seen is None
    if seen.entry.kind is Kind.DIR:
        return True
    return (found.st_ino, found.st_mtime_ns) == (seen.ino, seen.entry.mtime_ns)
