"""What the user's folder holds at the paths that an apply changes: old, new, or neither."""

from collections.abc import Mapping

from cleveragents.domain.errors import SnapshotFailedError
from cleveragents.infrastructure.files.entry import Entry, Kind, ManifestRow, parent_of, same_state
from cleveragents.infrastructure.files.excludes import Excludes
from cleveragents.infrastructure.files.read_path import hash_only, read_path
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.files.update.path_update import OWNER_ALL, children, status_at
from cleveragents.infrastructure.snapshots.tree.diff import PathDifference


class ProjectState:
    """What is there at each path of `changes`, looked at once, without following links."""

    def __init__(
        self, anchor: RootedFolder, changes: Mapping[bytes, PathDifference], exclude: Excludes
    ) -> None:
        self._anchor = anchor
        self._changes = changes
        self._exclude = exclude
        self._seen = {path: _look(anchor, path) for path in changes}

    def seen(self, path: bytes) -> ManifestRow | None:
        return self._seen[path]

    def is_old(self, item: PathDifference) -> bool:
        return same_state(self._entry(item.path), item.old)

    def is_new(self, item: PathDifference) -> bool:
        return same_state(self._entry(item.path), item.new)

    def is_halfway(self, item: PathDifference) -> bool:
        """A state that only our own, interrupted change leaves between old and new."""
        now, sides = self._entry(item.path), [e for e in (item.old, item.new) if e]
        if now is None:
            return len({e.kind is Kind.DIR for e in sides}) == 2
        folder_modes = {e.mode | OWNER_ALL for e in sides if e.kind is Kind.DIR}
        if item.old is None and folder_modes:
            folder_modes.add(OWNER_ALL)
        return now.kind is Kind.DIR and now.mode in folder_modes

    def conflicts(self, *, accept_halfway: bool) -> list[bytes]:
        """Paths where changing old to new would lose something, or cannot be done."""
        found: set[bytes] = set()
        for item in self._changes.values():
            if self.is_new(item):
                continue
            known = self.is_old(item) or (accept_halfway and self.is_halfway(item))
            if not known or not self._has_folder(item):
                found.add(item.path)
            else:
                found.update(self._strangers(item))
        return sorted(found)

    def _entry(self, path: bytes) -> Entry | None:
        seen = self._seen[path]
        return seen.entry if seen else None

    def _has_folder(self, item: PathDifference) -> bool:
        """The folder it belongs in is there as a real folder, or will be made."""
        parent = parent_of(item.path)
        if item.new is None or not parent:
            return True
        if parent in self._changes:
            return _is_folder(self._changes[parent].new)
        try:
            self._anchor.folder(parent)
        except OSError:
            return False
        return True

    def _strangers(self, item: PathDifference) -> list[bytes]:
        """What is in a folder that has to go, and is not part of the change."""
        if not _is_folder(self._entry(item.path)) or _is_folder(item.new):
            return []
        may_stay = item.new is None and not self._is_below_a_file(item.path)
        inside = children(self._anchor, item.path)
        return [
            path
            for path, is_folder in inside
            if path not in self._changes and not (may_stay and (path, is_folder) in self._exclude)
        ]

    def _is_below_a_file(self, path: bytes) -> bool:
        """A folder above it becomes a file or a link, so that nothing below that can stay."""
        while path := parent_of(path):
            change = self._changes.get(path)
            if change and change.new and change.new.kind is not Kind.DIR:
                return True
        return False


def _look(anchor: RootedFolder, path: bytes) -> ManifestRow | None:
    # What cannot be read or has no content equals nothing, and so is never overwritten.
    strange = ManifestRow(path=path, kind=Kind.GONE)
    try:
        seen = read_path(anchor, path, hash_only)
    except SnapshotFailedError:
        return strange
    if seen is not None:
        return seen
    return strange if status_at(anchor, path) else None


def _is_folder(entry: Entry | None) -> bool:
    return entry is not None and entry.kind is Kind.DIR
