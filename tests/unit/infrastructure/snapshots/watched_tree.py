"""A folder under the watcher, without a store: each look proves that nothing was missed."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from cleveragents.infrastructure.snapshots.anchor import Anchor
from cleveragents.infrastructure.snapshots.entry import Seen
from cleveragents.infrastructure.snapshots.examine import examine, hash_only
from cleveragents.infrastructure.snapshots.excludes import Excludes, excludes
from cleveragents.infrastructure.snapshots.folder_watches import FolderWatches, open_watches
from cleveragents.infrastructure.snapshots.tracker import Candidates, FullComparison, Known
from cleveragents.infrastructure.snapshots.watcher import Watcher


class Tree:
    """A folder that is looked at again and again, as the engine does it, without a store."""

    def __init__(self, top: Path, opener: Callable[[str], FolderWatches] = open_watches) -> None:
        self.root = top / "tree"
        self.scratch = top / "scratch"
        self.exclude: Excludes = excludes(())
        self.watcher = Watcher(str(self.scratch), opener)
        self.seen: dict[bytes, Seen] = {}
        self.root.mkdir(parents=True)
        self.sh(
            "mkdir -p a/b/c; echo 1 > a/one; echo 2 > a/b/two; echo 3 > a/b/c/three; echo 0 > f"
        )

    def sh(self, command: str) -> None:
        subprocess.run(["/bin/sh", "-ec", command], cwd=self.root, check=True)

    def known(self) -> Known:
        return Known(self.seen, lambda f: [p for p in self.seen if p.startswith(f + b"/")])

    def look(self, *, settle: bool = True) -> Candidates:
        """Ask the watcher, take over what it names, and prove that it named all there is."""
        with Anchor(str(self.root)) as anchor:
            found = self.watcher.candidates(anchor, self.exclude, self.known())
            now = {path: examine(anchor, path, hash_only) for path in found.paths}
            if not settle:
                return found
            for path, seen in now.items():
                self.seen.pop(path, None)
                if seen is not None:
                    self.seen[path] = seen
            self.watcher.settled(anchor.root, self.seen)
            self._prove(anchor, found)
        return found

    def _prove(self, anchor: Anchor, found: Candidates) -> None:
        fresh = FullComparison().candidates(anchor, self.exclude, Known({}, lambda _: ()))
        looked = {path: examine(anchor, path, hash_only) for path in fresh.paths}
        assert _state(self.seen) == _state({p: s for p, s in looked.items() if s is not None})
        assert found.special == fresh.special

    def names(self, command: str) -> set[str]:
        self.look()
        self.sh(command)
        found = self.look()
        assert found.notes == ()
        return {os.fsdecode(path) for path in found.paths}


def _state(seen: dict[bytes, Seen]) -> dict[bytes, tuple[int, int, bytes, bytes]]:
    return {path: (s.kind, s.mode, s.hash, s.target) for path, s in seen.items()}
