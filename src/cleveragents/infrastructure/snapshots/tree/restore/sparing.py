"""Bringing files of the user's own tree back: only what a snapshot holds exactly is replaced.

In which order: what differs; which of that may be replaced (`_spared`); what goes is whole in the
store; all contents are read, proven and synced in a stage on the tree's own file system; then the
tree changes, each path by one rename or unlink, with a last look at the file just before it.
Why: whoever changes a file while we work, or has changed it since the safety group was made, keeps
it, since no group holds what is there. A kill leaves old and new files, each whole, and the
repetition goes on where it stopped, as what is done does not differ any more.
What is not guaranteed: that somebody who has a file open and writes to it later writes to the one
that is there by then. Files get the present time, so that whatever is built from them is built anew
(ADR 0101).
"""

import os
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct, field

from cleveragents.domain.errors import RestoreFailedError
from cleveragents.domain.in_place import Sparing
from cleveragents.infrastructure.files.copy.one_file import give
from cleveragents.infrastructure.files.descriptors import opened
from cleveragents.infrastructure.files.entry import Entry, Kind, ManifestRow, parent_of, same_state
from cleveragents.infrastructure.files.filesystems import sync_all
from cleveragents.infrastructure.files.read_path import examine_file, read_path
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.files.update.path_update import (
    Becomes,
    PathChange,
    PathUpdate,
    Signature,
    signature,
    status_at,
)
from cleveragents.infrastructure.files.update.rooted_writer import sync_of
from cleveragents.infrastructure.snapshots.tree.diff import PathDifference
from cleveragents.infrastructure.snapshots.tree.manifest import Delta
from cleveragents.infrastructure.snapshots.tree.restore.mending import mend_files
from cleveragents.infrastructure.snapshots.tree.restore.staging import Staging
from cleveragents.infrastructure.snapshots.tree.restore.whole import replaced, told
from cleveragents.infrastructure.snapshots.tree.session import Session, needed_contents

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class SparedFiles(Struct, frozen=True, kw_only=True):
    """What was done: the present now, what was replaced, and what was left as it is."""

    delta: Delta
    done: Sequence[PathDifference]
    left: Sequence[bytes]
    notes: list[str] = field(default_factory=list[str])


class _Choice(Struct, frozen=True, kw_only=True):
    chosen: Sequence[PathDifference]
    left: Sequence[bytes]


def restore_files(
    session: Session,
    anchor: RootedFolder,
    delta: Delta,
    differences: Sequence[PathDifference],
    sparing: Sparing,
    staging: Staging,
) -> SparedFiles:
    """`differences` lead from the present, which `delta` is, to what is wanted."""
    choice = _spared(session, differences, sparing)
    notes = mend_files(session, anchor, replaced(session, delta, choice.chosen))
    rows = _rows(session, delta, choice.chosen)
    with told(session):
        expected = {path: _expected(anchor, path, rows.get(path)) for path, _, _ in choice.chosen}
        staged = _staged(session, anchor, choice.chosen, staging)
        changes = [_change(item, expected[item.path], staged) for item in choice.chosen]
        # From here on the tree changes.
        update = PathUpdate(anchor, staging.fd, lambda item: item in session.exclude, patient=True)
        update.run(changes, sync_of(len(changes)))
    for path, error in update.failed.items():
        raise RestoreFailedError(session.resource.name, f"{os.fsdecode(path)}: {error.strerror}")
    left = {*choice.left, *update.theirs}
    return _looked_at(session, anchor, delta, choice.chosen, left, notes)


def _looked_at(
    session: Session,
    anchor: RootedFolder,
    delta: Delta,
    chosen: Sequence[PathDifference],
    left: set[bytes],
    notes: list[str],
) -> SparedFiles:
    """Read back what was to change. What is something else was written by somebody at once."""
    anchor.close_chain()
    now, done = dict(delta.now), list[PathDifference]()
    hashed = session.hashing([item.path for item in chosen])
    for item in chosen:
        look = examine_file if item.new and item.new.kind is Kind.FILE else read_path
        seen = look(anchor, item.path, hashed)
        stays = item.new is None and seen is not None and seen.kind == Kind.DIR
        if stays and _is_mere_holder(session, anchor, item.path):
            seen = None
        now[item.path] = seen
        if same_state(seen, item.new):
            done.append(item)
        elif not (stays and any(path.startswith(item.path + b"/") for path in left)):
            left.add(item.path)
    return SparedFiles(
        delta=Delta(now=now, listing=delta.listing), done=done, left=sorted(left), notes=notes
    )


def _is_mere_holder(session: Session, anchor: RootedFolder, path: bytes) -> bool:
    """A folder that stays since it holds what is excluded, and nothing else."""
    from cleveragents.infrastructure.files.walk import walk  # noqa: PLC0415 - hardly ever

    listing = walk(anchor, session.exclude, path)
    return bool(listing.excluded) and not listing.found


# --- what may be replaced -------------------------------------------------------------------------


def _spared(session: Session, differences: Sequence[PathDifference], sparing: Sparing) -> _Choice:
    versions, paths = session.versions, [item.path for item in differences]
    held = versions.at_all(paths, session.snapshot(sparing.held).seq)
    keeps = sparing.keep and sparing.last is not None
    last = versions.at_all(paths, session.snapshot(sparing.last or "").seq) if keeps else held
    left = {
        path
        for path, present, _ in differences
        if not same_state(present, held.get(path)) or not same_state(held.get(path), last.get(path))
    }
    needed = set(_parents(path for path, _, _ in differences if path in left))
    # A folder stays if something in it does, and what is below a file that stays cannot come.
    blocked = {path for path, old, _ in differences if path in left and not _is_folder(old)}
    chosen = [
        item
        for item in differences
        if item.path not in left
        and not (item.path in needed and not _is_folder(item.new))
        and not (blocked and any(above in blocked for above in _parents([item.path])))
    ]
    going = {item.path for item in chosen}
    return _Choice(
        chosen=chosen,
        left=[item.path for item in differences if item.path in left or _hangs(item, going)],
    )


def _hangs(item: PathDifference, going: Collection[bytes]) -> bool:
    """A path that cannot come, though nobody has changed it: something else is in its way."""
    return item.path not in going and item.new is not None


def _is_folder(entry: Entry | None) -> bool:
    return entry is not None and entry.kind is Kind.DIR


def _parents(paths: Iterable[bytes]) -> Iterable[bytes]:
    for path in paths:
        above = parent_of(path)
        while above:
            yield above
            above = parent_of(above)


# --- what is expected there, and what comes -------------------------------------------------------


def _rows(
    session: Session, delta: Delta, chosen: Sequence[PathDifference]
) -> Mapping[bytes, ManifestRow | None]:
    """What each was when it was read."""
    seen = session.manifest.seen.prefetch([item.path for item in chosen])
    return {p: delta.now[p] if p in delta.now else seen.get(p) for p, _, _ in chosen}


def _expected(anchor: RootedFolder, path: bytes, row: ManifestRow | None) -> Signature | None:
    """The signature of the very file that was read; one that nothing has if it is another."""
    found = status_at(anchor, path)
    is_file = found is not None and not stat.S_ISDIR(found.st_mode)
    if row is None or row.kind == Kind.DIR:
        return _NOBODYS if is_file else None
    if found is None or not _is_that(anchor, path, found, row):
        return _NOBODYS
    return signature(found)


_NOBODYS: Signature = (-1,)


def _is_that(anchor: RootedFolder, path: bytes, found: os.stat_result, row: ManifestRow) -> bool:
    if stat.S_ISLNK(found.st_mode):
        return row.kind == Kind.LINK and anchor.link_target(path) == row.target
    return (
        row.kind == Kind.FILE
        and stat.S_ISREG(found.st_mode)
        and (found.st_dev, found.st_ino) == (row.dev, row.ino)
        and (found.st_size, found.st_mtime_ns) == (row.size, row.mtime_ns)
        and stat.S_IMODE(found.st_mode) == row.mode
    )


def _change(
    item: PathDifference, expected: Signature | None, staged: Mapping[bytes, bytes]
) -> PathChange:
    path, old, new = item
    if new is None:
        return PathChange(path, Becomes.ABSENT, expected)
    if new.kind is Kind.DIR:
        return PathChange(path, Becomes.FOLDER, expected, mode=new.mode)
    if new.kind is Kind.LINK:
        return PathChange(path, Becomes.FILE, expected, staged[path])
    if _is_same_content(old, new):
        return PathChange(path, Becomes.CHMODDED, expected, mode=new.mode)
    return PathChange(path, Becomes.FILE, expected, staged[path], new.mode)


def _is_same_content(old: Entry | None, new: Entry) -> bool:
    return old is not None and old.kind is new.kind is Kind.FILE and old.hash == new.hash


def _staged(
    session: Session,
    anchor: RootedFolder,
    chosen: Sequence[PathDifference],
    staging: Staging,
) -> Mapping[bytes, bytes]:
    """By path, the name in the stage of the file or link that is to come; all of it is durable."""
    coming = [item for item in chosen if item.new and not _is_same_content(item.old, item.new)]
    files = {item.path: item.new for item in coming}
    staging.fill(session.contents, needed_contents(files), lambda _: None)
    names: dict[bytes, bytes] = {}
    for number, item in enumerate(coming, 1):
        assert item.new is not None
        if item.new.kind is Kind.LINK:
            names[item.path] = b"link-%d" % number
            os.symlink(item.new.target, names[item.path], dir_fd=staging.fd)
        elif item.new.kind is Kind.FILE:
            fd, names[item.path] = staging.open(item.new.hash, copy=number)
            try:
                _dress(anchor, fd, item)
            finally:
                os.close(fd)
    if names:
        sync_all(staging.fd)
    return names


def _dress(anchor: RootedFolder, fd: int, item: PathDifference) -> None:
    """Attributes and access lists of what it replaces; of a new one the owner that it had."""
    assert item.new is not None
    os.utime(fd)
    if item.old is None or item.old.kind is not Kind.FILE:
        give(fd, item.new.uid, item.new.gid)
        return
    folder, name = anchor.place(item.path)
    with suppress(OSError), opened(name, _READ, dir_fd=folder) as old:
        _copy_attributes(old, fd)


def _copy_attributes(old: int, new: int) -> None:
    for attribute in os.listxattr(old):
        with suppress(OSError):  # of the system's own, which are not ours to give
            os.setxattr(new, attribute, os.getxattr(old, attribute))
