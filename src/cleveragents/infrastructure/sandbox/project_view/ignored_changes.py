"""What a sandbox has changed in ignored folders, as changes of the user's own ones (ADR 0089).

What: of a layer, each path of its upper part against what the user has there now; a whiteout and
an opaque folder become all that they hide, gone one by one.
What the user has changed since the layer was found is refused by name: its status has changed
later, and not by an apply of ours that was taken back. What was there when a step first wrote
is on no record, as nobody looks through a folder of fifty thousand files before that.
What is not guaranteed: that a whole folder which the user has put in the place of another one is
noticed, if none of its files was touched.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from msgspec import Struct, field

from cleveragents.domain.errors import SnapshotFailedError
from cleveragents.infrastructure.files.entry import Entry, Kind, parent_of, same_state, shown
from cleveragents.infrastructure.files.excludes import Excludes
from cleveragents.infrastructure.files.layers.known_layers import known_layers
from cleveragents.infrastructure.files.layers.overlay_marks import OPAQUE, is_whiteout, opaque_bit
from cleveragents.infrastructure.files.read_path import hash_only, read_path
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.files.update.path_update import status_at
from cleveragents.infrastructure.files.walk import walk
from cleveragents.infrastructure.snapshots.tree.diff import PathDifference

IsNewer = Callable[[bytes, os.stat_result], bool]
"""Whether the user has changed this path since a step could have seen it."""


class LayerChange(Struct):
    """`written` files and links, `removed` names, and folders of which nothing shows any more."""

    written: int = 0
    removed: int = 0
    replaced: int = 0

    def __bool__(self) -> bool:
        return bool(self.written or self.removed or self.replaced)

    @property
    def in_words(self) -> str:
        told = ((self.written, "written"), (self.removed, "removed"), (self.replaced, "replaced"))
        return ", ".join(f"{count} {what}" for count, what in told if count)


def layer_changes(sandbox: str) -> dict[str, LayerChange]:
    """By layer, as people read its path; it takes as long as there are changes."""
    layers = known_layers(sandbox)
    return {shown(os.fsencode(path)): _change(os.path.join(sandbox, path)) for path in layers}


def without_untouched(sandbox: str, ignored: list[str]) -> list[str]:
    """Of what is ignored in a sandbox: layers only if they were changed, and with how much."""
    changes = layer_changes(sandbox)
    told: list[str] = []
    for path in ignored:
        change = changes.get(path.rstrip("/"))
        if change is None:
            told.append(path)
        elif change:
            told.append(f"{path} ({change.in_words})")
    return told


def _change(upper: str) -> LayerChange:
    found = LayerChange()
    if not os.path.lexists(upper):  # of what is missing at the top, `fwalk` tells by raising
        return found
    for _, folders, files, fd in os.fwalk(os.fsencode(upper), onerror=_nothing):
        found.replaced += sum(bool(opaque_bit(fd, name)) for name in folders)
        for name in files:
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if is_whiteout(status):
                found.removed += 1
            elif not stat.S_ISDIR(status.st_mode):
                found.written += 1
    return found


def _nothing(error: OSError) -> None:
    """A step may have removed it, or closed it to itself."""
    del error


class IgnoredChanges(Struct):
    """`refused` are paths that the user has changed too, or that cannot be read."""

    differences: dict[bytes, PathDifference] = field(default_factory=dict[bytes, PathDifference])
    refused: set[bytes] = field(default_factory=set[bytes])

    def within(self, wanted: bytes) -> "IgnoredChanges":
        """What is at or below a path, with the folders that it takes to get there."""
        return IgnoredChanges(
            differences={
                path: item
                for path, item in self.differences.items()
                if is_at_or_below(path, wanted) or _leads_to(item, wanted)
            },
            refused={path for path in self.refused if is_at_or_below(path, wanted)},
        )


class LayerComparison:
    """One layer: `user` is the project, of which nothing is changed."""

    def __init__(self, user: RootedFolder, exclude: Excludes, is_newer: IsNewer) -> None:
        self._user = user
        self._exclude = exclude
        self._is_newer = is_newer
        self._found = IgnoredChanges()
        self._hidden: set[bytes] = set()

    def run(self, upper: Iterable[Entry]) -> IgnoredChanges:
        """`upper` are the layer's own folder and all that is in it, in any order."""
        entries = {entry.path: entry for entry in upper}
        for path in sorted(entries):
            self._compare(entries[path], entries)
        return self._found

    def _compare(self, entry: Entry, entries: dict[bytes, Entry]) -> None:
        path, found = entry.path, status_at(self._user, entry.path)
        if entry.kind is Kind.DIR:
            self._hide(entry, found, entries)
            self._change(path, found, entry._replace(mode=entry.mode & ~OPAQUE))
            return
        if entry.kind is Kind.WHITEOUT or (found and stat.S_ISDIR(found.st_mode)):
            self._clear(path, found)
        if entry.kind is not Kind.WHITEOUT:
            self._change(path, found, entry)

    def _hide(
        self, entry: Entry, found: os.stat_result | None, entries: dict[bytes, Entry]
    ) -> None:
        """Of an opaque folder, and of all that are in one, the user's names do not count."""
        if not entry.mode & OPAQUE and parent_of(entry.path) not in self._hidden:
            return
        self._hidden.add(entry.path)
        if found is None or not stat.S_ISDIR(found.st_mode):
            return
        for name in self._names(entry.path):
            if name not in entries:
                self._clear(name, status_at(self._user, name))

    def _clear(self, path: bytes, found: os.stat_result | None) -> None:
        """Nothing of it is to be there, as far as it is not excluded."""
        if found is None or (path, stat.S_ISDIR(found.st_mode)) in self._exclude:
            return
        if stat.S_ISDIR(found.st_mode):
            listing = walk(self._user, self._exclude, path)
            self._found.refused.update(listing.special)
            for inner in sorted(listing.found):
                self._change(inner, status_at(self._user, inner), None)
        self._change(path, found, None)

    def _change(self, path: bytes, found: os.stat_result | None, new: Entry | None) -> None:
        try:
            seen = read_path(self._user, path, hash_only) if found is not None else None
        except SnapshotFailedError:
            self._found.refused.add(path)
            return
        old = seen.entry if seen else None
        if same_state(old, new):
            return
        folder_goes = old is not None and old.kind is Kind.DIR and new is None
        unreadable = found is not None and old is None
        if unreadable or (found and not folder_goes and self._is_newer(path, found)):
            self._found.refused.add(path)
        self._found.differences[path] = PathDifference(path, old, new)

    def _names(self, path: bytes) -> Iterator[bytes]:
        with suppress(OSError):
            yield from (path + b"/" + os.fsencode(n) for n in os.listdir(self._user.folder(path)))


def is_at_or_below(path: bytes, folder: bytes) -> bool:
    return not folder or path == folder or path.startswith(folder + b"/")


def _leads_to(item: PathDifference, wanted: bytes) -> bool:
    leads = wanted.startswith(item.path + b"/")
    return leads and item.new is not None and item.new.kind is Kind.DIR
