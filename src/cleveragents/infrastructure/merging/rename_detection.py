"""Finding out where a file went that is not at its old path any more.

What the merge of a child does with it: `path_merge.PathMerge`, which follows the file. At an apply
it is git that merges (`sandbox/git/merge.py`); in a folder nothing is merged, and a path that both
sides changed is refused (`sandbox/folder/apply/prepare.py`).
In which order: among the files that the same side has added, one with the same bytes; else the one
that shares most with it, counted by lines, if that is half of the larger one.
Why: equal bytes need no reading, and to compare lines reads every candidate of a fitting size.
What is not guaranteed: that it is the right one, or any: very large files and more candidates than
a limit are left out, and then the file counts as deleted.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct, field

from cleveragents.infrastructure.files.entry import Entry, Kind
from cleveragents.infrastructure.snapshots.tree.diff import PathDifference

# As git does it: half of the bytes, by lines, and not for a whole tree of candidates.
_ENOUGH = 0.5
_MOST_CANDIDATES = 1000
_MOST_BYTES = 4 * 1024 * 1024

Content = Callable[[Entry], bytes]


class Renames(Struct):
    """The files that one side deleted, and the new ones one of which each may have become."""

    content: Content
    deleted: dict[bytes, Entry] = field(default_factory=dict[bytes, Entry])
    added: dict[bytes, Entry] = field(default_factory=dict[bytes, Entry])

    @classmethod
    def among(cls, changes: Iterable[PathDifference], content: Content) -> "Renames":
        found = cls(content)
        for path, old, new in changes:
            if old is not None and old.kind is Kind.FILE and new is None:
                found.deleted[path] = old
            elif new is not None and new.kind is Kind.FILE and old is None:
                found.added[path] = new
        return found

    def target(self, path: bytes) -> Entry | None:
        """Where the file at `path` is now, if it was moved."""
        old = self.deleted.get(path)
        if old is None or not self.added:
            return None
        same = [entry for entry in self.added.values() if entry.hash == old.hash]
        if same:
            return min(same, key=lambda entry: _preference(path, entry))
        return self._similar(old)

    def _similar(self, old: Entry) -> Entry | None:
        fitting = [e for e in self.added.values() if _may_fit(old, e)][:_MOST_CANDIDATES]
        if not fitting:
            return None
        before = _lines(self.content(old))
        scores: Mapping[bytes, float] = {
            entry.path: _score(before, _lines(self.content(entry)), max(old.size, entry.size))
            for entry in fitting
        }
        best = min(fitting, key=lambda e: (-scores[e.path], *_preference(old.path, e)))
        return best if scores[best.path] >= _ENOUGH else None


def _preference(path: bytes, entry: Entry) -> tuple[bool, bytes]:
    """Of those that are equally alike, one of the same name, and then the first."""
    name = path.rpartition(b"/")[2]
    return entry.path.rpartition(b"/")[2] != name, entry.path


def _may_fit(old: Entry, new: Entry) -> bool:
    small, large = sorted((old.size, new.size))
    return 0 < large <= _MOST_BYTES and small >= _ENOUGH * large


def _lines(data: bytes) -> Counter[bytes]:
    return Counter(data.splitlines(keepends=True))


def _score(one: Counter[bytes], other: Counter[bytes], size: int) -> float:
    common = sum(len(line) * count for line, count in (one & other).items())
    return common / size
