"""A folder that is looked at again and again; each look proves that nothing was missed."""

import os
import subprocess
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path

import pytest

from cleveragents.domain.checkpoint import Snapshot
from cleveragents.domain.errors import SnapshotFailedError
from cleveragents.domain.ids import PlanId, ResourceId
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import FS_DIRECTORY
from cleveragents.infrastructure.files.entry import ManifestRow, shown
from cleveragents.infrastructure.files.excludes import Excludes, excludes
from cleveragents.infrastructure.files.read_path import hash_only, read_path
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.files.tree_hash import SUM_MODULUS, state_hash, token
from cleveragents.infrastructure.files.walk import walk
from cleveragents.infrastructure.snapshots.changes.folder_watches import FolderWatches, open_watches
from cleveragents.infrastructure.snapshots.changes.full_scan import FullComparison
from cleveragents.infrastructure.snapshots.changes.tracker import Candidates, ManifestView
from cleveragents.infrastructure.snapshots.changes.watcher import Watcher
from cleveragents.infrastructure.snapshots.store.connections import Connections
from cleveragents.infrastructure.snapshots.tree.engine import TreeEngine
from cleveragents.infrastructure.snapshots.tree.extra_state import Before, ExtraRecord, NoExtraState


class Tree:
    """A folder under the watcher, as the engine uses it, without a store."""

    def __init__(self, top: Path, opener: Callable[[str], FolderWatches] = open_watches) -> None:
        self.root = top / "tree"
        self.scratch = top / "scratch"
        self.exclude: Excludes = excludes(())
        self.watcher = Watcher(str(self.scratch), opener)
        self.seen: dict[bytes, ManifestRow] = {}
        self.root.mkdir(parents=True)
        self.sh(
            "mkdir -p a/b/c; echo 1 > a/one; echo 2 > a/b/two; echo 3 > a/b/c/three; echo 0 > f"
        )

    def sh(self, command: str) -> None:
        subprocess.run(["/bin/sh", "-ec", command], cwd=self.root, check=True)

    def known(self) -> ManifestView:
        return ManifestView(self.seen, lambda f: [p for p in self.seen if p.startswith(f + b"/")])

    def look(self, *, settle: bool = True) -> Candidates:
        """Ask the watcher, take over what it names, and prove that it named all there is."""
        with RootedFolder(str(self.root)) as anchor:
            found = self.watcher.candidates(anchor, self.exclude, self.known())
            now = {path: read_path(anchor, path, hash_only) for path in found.paths}
            if not settle:
                return found
            for path, seen in now.items():
                self.seen.pop(path, None)
                if seen is not None:
                    self.seen[path] = seen
            self.watcher.acknowledge(anchor.root, self.seen)
            self._prove(anchor, found)
        return found

    def _prove(self, anchor: RootedFolder, found: Candidates) -> None:
        fresh = FullComparison().candidates(anchor, self.exclude, ManifestView({}, lambda _: ()))
        looked = {path: read_path(anchor, path, hash_only) for path in fresh.paths}
        assert _state(self.seen) == _state({p: s for p, s in looked.items() if s is not None})
        assert found.special == fresh.special

    def names(self, command: str) -> set[str]:
        self.look()
        self.sh(command)
        found = self.look()
        assert found.notes == ()
        return {os.fsdecode(path) for path in found.paths}


@pytest.fixture
def tree(tmp_path: Path) -> Generator[Tree]:
    made = Tree(tmp_path)
    yield made
    made.watcher.close()


def _state(seen: dict[bytes, ManifestRow]) -> dict[bytes, tuple[int, int, bytes, bytes]]:
    return {path: (s.kind, s.mode, s.hash, s.target) for path, s in seen.items()}


class _Unreadable(NoExtraState, frozen=True):
    """What is read last, so that everything was done in vain."""

    def read(self, before: Before | None) -> ExtraRecord | None:
        raise SnapshotFailedError("in vain", "")


class StoredTree:
    """A folder with its snapshots. `small` says up to which size it is walked by ourselves."""

    def __init__(self, top: Path, *, exclude: tuple[str, ...] = (), small: int) -> None:
        self.root = top / "tree"
        self.root.mkdir(parents=True)
        self._top, self._small = top, small
        self._side: NoExtraState = NoExtraState()
        self.resource = PlanResource(
            resource_id=ResourceId("01ARZ3NDEKTSV4RRFFQ69G5FAW"),
            plan_id=PlanId("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
            name="folder",
            type=FS_DIRECTORY.type,
            location=str(top),
            base="",
            sandbox_path=str(self.root),
            exclude=exclude,
        )
        self._connections = Connections()
        self._watcher: Watcher | None = None
        self.new_process()

    def new_process(self) -> None:
        """Nothing is known and nothing is watched any more."""
        self.close()
        scratch = str(self._top / "scratch")
        self._watcher = watcher = Watcher(scratch, small=self._small)
        snapshots = str(self._top / "snapshots")
        self.engine = TreeEngine(
            snapshots, scratch, lambda _: self._side, watcher, self._connections
        )

    def close(self) -> None:
        self._connections.close()
        if self._watcher is not None:
            self._watcher.close()

    def capture(self) -> Snapshot:
        known = self._known()
        taken = self.engine.capture(self.resource)
        assert (taken.state_hash, set(taken.skipped)) == self._truth(known)
        return taken

    def capture_in_vain(self) -> None:
        """One that fails at the last moment."""
        self._side = _Unreadable()
        with suppress(SnapshotFailedError):
            self.engine.capture(self.resource)
        self._side = NoExtraState()

    def restore(self, ref: str) -> None:
        restored = self.engine.restore(self.resource, ref)
        assert restored.snapshot.state_hash == self._truth(self._known())[0]
        assert self.capture().ref == restored.snapshot.ref

    def _known(self) -> set[bytes]:
        with self.engine.reading(self.resource) as reader:
            return set(reader.session.manifest.seen)

    def _truth(self, known: set[bytes]) -> tuple[str, set[str]]:
        """The hash of all there is, each path looked at anew.

        A folder with nothing but excluded paths in it counts only if it was known before.
        """
        with RootedFolder(str(self.root)) as anchor:
            listing = walk(anchor, excludes(self.resource.exclude))
            paths = known.union(listing.found)
            looked = [read_path(anchor, path, hash_only) for path in paths]
        total = sum(token(seen) for seen in looked if seen) % SUM_MODULUS
        return state_hash(total, ""), {shown(path) for path in listing.special}
