"""What happens to a database that a child changed: taken over whole, or a plain refusal."""

import os
import stat
from collections.abc import Sequence

from cleveragents.application.ports.merging import Decide, PreparedMerge
from cleveragents.domain.action import MergeStrategy
from cleveragents.domain.conflicts import LeftOut, Side
from cleveragents.domain.errors import SnapshotDamagedError
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.subplan import Conflict, ConflictKind
from cleveragents.infrastructure.files.copy.clone_bytes import copy_bytes
from cleveragents.infrastructure.files.descriptors import opened
from cleveragents.infrastructure.snapshots.pages.database_file import clear, drop_journals
from cleveragents.infrastructure.snapshots.pages.engine import PagesEngine

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class PreparedDatabase(PreparedMerge, frozen=True, kw_only=True):
    """`changes` is 1 if the child's database will take the place of the parent's."""


class DatabaseMerge:
    def __init__(self, snapshots: PagesEngine) -> None:
        self._snapshots = snapshots

    def prepare(
        self,
        parent: PlanResource,
        child: PlanResource,
        strategy: MergeStrategy,
        before: Sequence[PreparedMerge],
        decide: Decide,
    ) -> PreparedDatabase:
        theirs = self._differ(child, child.base_snapshot, child.boundary)
        ours = any(earlier.changes for earlier in before) or self._moved_on(parent, child)
        if not (theirs and ours):
            notes = self._notes(parent, child) if theirs else ()
            return PreparedDatabase(resource=parent.name, changes=int(theirs), notes=notes)
        # Pages of two databases cannot be mixed, whatever rows they hold.
        conflict = self._conflict(parent, child)
        wins = strategy is MergeStrategy.LAST_WINS
        answer = Side.THEIRS if wins else decide(conflict)
        if not isinstance(answer, Side):
            return PreparedDatabase(resource=parent.name, conflicts=(conflict,))
        lost = Side.OURS if answer is Side.THEIRS else Side.THEIRS
        return PreparedDatabase(
            resource=parent.name,
            changes=int(answer is Side.THEIRS),
            left_out=(LeftOut(path=conflict.path, side=lost),),
        )

    def _conflict(self, parent: PlanResource, child: PlanResource) -> Conflict:
        states = [
            self._snapshots.state_hash(resource, resource.boundary or "")
            for resource in (parent, child)
        ]
        return Conflict(
            resource=parent.name,
            path=os.path.basename(parent.sandbox_path),
            kind=ConflictKind.DATABASE,
            ours="a changed database",
            theirs="a changed database",
            key="/".join(states),
        )

    def _notes(self, parent: PlanResource, child: PlanResource) -> tuple[str, ...]:
        """A child that began anew has worked on what others had merged."""
        if child.origin is None or not self._changed(parent, child.origin, child.branched_at):
            return ()
        name = os.path.basename(parent.sandbox_path)
        return (
            f"{parent.name}:{name} was changed on top of what others had changed there since the"
            " child first began; what became of their rows was not compared",
        )

    def _moved_on(self, parent: PlanResource, child: PlanResource) -> bool:
        """Whether the parent's is not what it was when the child's was copied from it.

        By the parent's own snapshots: a copy of a database need not be the same bytes.
        """
        return self._changed(parent, child.branched_at, parent.boundary)

    def _changed(self, resource: PlanResource, old: str | None, new: str | None) -> bool:
        if old == new:
            return False
        try:
            return self._differ(resource, old, new)
        except SnapshotDamagedError:
            return True  # pruned since: then there is no telling

    def _differ(self, resource: PlanResource, old: str | None, new: str | None) -> bool:
        one, two = (self._snapshots.state_hash(resource, ref or "") for ref in (old, new))
        return one != two

    def carry_out(
        self, parent: PlanResource, child: PlanResource, prepared: PreparedDatabase
    ) -> None:
        if not prepared.changes:
            return
        target = parent.sandbox_path
        draft = target + ".cleveragents-draft"
        with self._snapshots.copy_of(child, child.boundary or "", draft) as source:
            _replace(target, source)


def _replace(target: str, source: str) -> None:
    """Without following what a step may have put beside the database, or in its place."""
    beside = target + ".cleveragents-new"
    clear(beside)
    found = os.lstat(target) if os.path.lexists(target) else None
    mode = found.st_mode if found and stat.S_ISREG(found.st_mode) else 0o600
    with opened(beside, _NEW, 0o600) as fd:
        with open(source, "rb") as file:
            copy_bytes(file.fileno(), fd, os.fstat(file.fileno()).st_size)
        os.fchmod(fd, mode & 0o7777)
        os.fsync(fd)
    # Journals first: one of the old database would be replayed into the new one.
    drop_journals(target)
    if os.path.isdir(target) and not os.path.islink(target):
        clear(target)
    os.replace(beside, target)
    with opened(os.path.dirname(target), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) as folder:
        os.fsync(folder)
