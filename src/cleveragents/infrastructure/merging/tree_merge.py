"""Merging a child's tree into its parent's sandbox, from the snapshots of both.

In which order: everything is decided from the store, with merges that are prepared and not carried
out laid over the parent's; conflicts in files that git ignores are given up, and the parent's stay,
or what the child built again; only then `carry_out` stages the contents and changes the sandbox.
Why: what conflicts is known before a file changes, and several children can be tried together.
What is not guaranteed: a record. The sandbox is changed, and the caller's capture says so.
"""

import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct

from cleveragents.application.ports.merging import Decide, PreparedMerge
from cleveragents.domain.action import MergeStrategy
from cleveragents.domain.errors import SandboxError, SnapshotDamagedError
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.subplan import ConflictKind
from cleveragents.infrastructure.files.entry import Entry, Kind, same_state, shown
from cleveragents.infrastructure.merging.path_merge import (
    Merged,
    MergeText,
    MergeTrees,
    PathMerge,
    Resolve,
)
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.inside import GitInside, InsideSession, View
from cleveragents.infrastructure.snapshots.tree.diff import PathDifference
from cleveragents.infrastructure.snapshots.tree.engine import TreeEngine
from cleveragents.infrastructure.snapshots.tree.reader import TreeReader
from cleveragents.infrastructure.snapshots.tree.restore.staging import Staging

_MOST_CONFLICTS = 127
# No settings of the user's: the same three texts give the same result everywhere.
_NO_SETTINGS = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}

Ignored = Callable[[PlanResource, Sequence[bytes]], frozenset[bytes]]
"""Those of the paths that the project itself ignores."""


class PreparedTree(PreparedMerge, frozen=True, kw_only=True):
    merged: Merged


class TreeMerge:
    def __init__(self, snapshots: TreeEngine, inside: GitInside, ignored: Ignored) -> None:
        self._snapshots = snapshots
        self._inside = inside
        self._ignored = ignored

    def prepare(
        self,
        parent: PlanResource,
        child: PlanResource,
        strategy: MergeStrategy,
        before: Sequence[PreparedMerge],
        decide: Decide,
    ) -> PreparedTree:
        earlier = [item.merged for item in before if isinstance(item, PreparedTree)]
        with (
            self._snapshots.reading(parent) as ours,
            self._snapshots.reading(child) as theirs,
            merge_of_texts(self._inside, parent) as merge_text,
        ):
            seen = _MergeView(ours, theirs, parent, child, earlier)
            trees = seen.trees()
            now, resolve = time.time_ns(), _resolving(decide, parent.name)
            merged = PathMerge(trees, strategy, merge_text, now, resolve).run()
        given_up = self._ignored(parent, [conflict.path for conflict in merged.conflicts])
        told = [found for found in merged.conflicts if found.path not in given_up]
        # Two builds of the same thing are no reason to refuse a result: the parent's stay.
        kept = [shown(path) for path in given_up - _built_again(merged, given_up)]
        return PreparedTree(
            resource=parent.name,
            conflicts=tuple(found.told(parent.name) for found in told),
            kept=tuple(sorted(kept)),
            changes=len(merged.wanted),
            drafts={shown(d.path): d.draft for d in told if d.draft is not None},
            left_out=tuple(merged.left_out),
            notes=seen.notes(),
            merged=merged,
        )

    def carry_out(self, parent: PlanResource, child: PlanResource, prepared: PreparedTree) -> None:
        merged = prepared.merged
        if not merged.wanted:
            return
        needed = {
            entry.hash: shown(path)
            for path, entry in merged.wanted.items()
            if entry is not None and entry.kind is Kind.FILE
        }

        def fill(staging: Staging) -> None:
            stored = {key: name for key, name in needed.items() if key not in merged.contents}
            for key in needed.keys() & merged.contents.keys():
                staging.add(key, merged.contents[key])
            # Contents of both are in one store, whichever of the two they come from.
            with self._snapshots.reading(child) as reader:
                staging.fill(reader.session.contents, stored, lambda _: None)

        self._snapshots.put(parent, merged.wanted, fill)


class _MergeView(Struct, frozen=True):
    """The two trees, with merges that were prepared and not yet carried out laid over the
    parent's."""

    ours: TreeReader
    theirs: TreeReader
    parent: PlanResource
    child: PlanResource
    earlier: Sequence[Merged]

    def trees(self) -> MergeTrees:
        return MergeTrees(
            changes=self.theirs.between(self._base, _ref(self.child.boundary, self.child)),
            our_changes=self._our_changes,
            ours=self._entry,
            below=self._below,
            folder=self._folder,
            content=self._content,
            began=self._began if self._knows_origin() else None,
        )

    def notes(self) -> tuple[str, ...]:
        if self.child.origin is None or self._knows_origin():
            return ()
        return (
            f"{self.parent.name}: what was there when the child first began is pruned; whether it"
            " undoes something that was merged since was not compared",
        )

    def _knows_origin(self) -> bool:
        try:
            self.ours.state_hash(self.child.origin or "")
        except SnapshotDamagedError:
            return False
        return True

    def _began(self, path: bytes) -> Entry | None:
        return self.ours.entry(path, _ref(self.child.origin, self.child))

    @property
    def _base(self) -> str:
        return _ref(self.child.base_snapshot, self.child)

    def _entry(self, path: bytes) -> Entry | None:
        for merged in reversed(self.earlier):
            if path in merged.wanted:
                return merged.wanted[path]
        return self.ours.entry(path, _ref(self.parent.boundary, self.parent))

    def _our_changes(self) -> Sequence[PathDifference]:
        start = _ref(self.child.branched_at, self.child)
        newest = _ref(self.parent.boundary, self.parent)
        paths = self.ours.touched(start, newest).union(*(m.wanted for m in self.earlier))
        compared = (
            PathDifference(path, self.theirs.entry(path, self._base), self._entry(path))
            for path in sorted(paths)
        )
        return [item for item in compared if not same_state(item.old, item.new)]

    def _below(self, folder: bytes) -> Iterable[bytes]:
        stored = self.ours.paths_below(folder, _ref(self.parent.boundary, self.parent))
        added = {path for path in self._earlier_paths() if path.startswith(folder + b"/")}
        return [path for path in stored | added if self._entry(path) is not None]

    def _earlier_paths(self) -> Iterator[bytes]:
        for merged in self.earlier:
            yield from merged.wanted

    def _folder(self, path: bytes) -> Entry:
        found = self.theirs.entry(path, _ref(self.child.boundary, self.child))
        return found or Entry(path=path, kind=Kind.DIR, mode=0o755)

    def _content(self, entry: Entry) -> bytes:
        for merged in self.earlier:
            if entry.hash in merged.contents:
                return merged.contents[entry.hash]
        return self.theirs.content(entry)


def _resolving(decide: Decide, resource: str) -> Resolve:
    return lambda dispute: decide(dispute.told(resource))


def _built_again(merged: Merged, ignored: frozenset[bytes]) -> frozenset[bytes]:
    """Ignored files that a child made once more on top of what was merged: the newer ones count."""
    again = {
        found.path: found.theirs
        for found in merged.conflicts
        if found.path in ignored
        and found.kind is ConflictKind.OVERWRITE
        and found.ours is not None
        and found.theirs is not None
    }
    merged.wanted.update(again)
    return frozenset(again)


def _ref(snapshot: str | None, resource: PlanResource) -> str:
    if snapshot is None:
        raise SnapshotDamagedError(resource.name, "it was never captured")
    return snapshot


@contextmanager
def merge_of_texts(inside: GitInside, parent: PlanResource) -> Generator[MergeText]:
    """Of three versions of one text that steps of this plan have written, with the tool that people
    trust for it: `git merge-file` needs no repository, and raw bytes go in and come out."""
    view = View(confinement=parent.confinement, plan_id=parent.plan_id, folder=parent.sandbox_path)
    with inside.opened(view) as session:
        yield lambda base, ours, theirs: _merged_text(session, (base, ours, theirs))


def _merged_text(inside: InsideSession, texts: tuple[bytes, bytes, bytes]) -> bytes | None:
    """None if both changed the same lines."""
    for name, data in zip(("base", "ours", "theirs"), texts, strict=True):
        (inside.told / name).write_bytes(data)
    git = Git(str(inside.told), {**_NO_SETTINGS, "GIT_DIR": os.devnull}, inside.start)
    done = git.run("merge-file", "--stdout", "ours", "base", "theirs", check=False)
    if done.code == 0:
        return done.stdout
    if done.code <= _MOST_CONFLICTS:
        return None
    raise SandboxError(
        f"git merge-file failed: {done.stderr.decode('utf-8', 'backslashreplace').strip()}",
        "check that git works and that there is room on the disk",
    )
