"""Listing a whole tree: every path with its status, links not followed."""

import errno
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator

from msgspec import Struct, field

from cleveragents.domain.errors import SnapshotFailedError
from cleveragents.infrastructure.files.entry import Kind, StatInfo, parent_of, shown, status_of
from cleveragents.infrastructure.files.excludes import Excludes
from cleveragents.infrastructure.files.layers.overlay_marks import opaque_bit
from cleveragents.infrastructure.files.rooted_folder import RootedFolder

_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
# Takes a folder's path, and a descriptor of it that may be used during the call.
BeforeListing = Callable[[bytes, int], None]


class Listing(Struct):
    """What is there. `special` are sockets, pipes and devices, which cannot be captured."""

    found: dict[bytes, StatInfo] = field(default_factory=dict[bytes, StatInfo])
    special: list[bytes] = field(default_factory=list[bytes])
    excluded: list[bytes] = field(default_factory=list[bytes])


def walk(
    anchor: RootedFolder, exclude: Excludes, top: bytes = b"", before: BeforeListing | None = None
) -> Listing:
    """Everything below `top`; `before` is called with each folder before it is listed.

    A folder that holds excluded paths and nothing else is not listed: a restore leaves those in
    place, so that such a folder is there in states that never knew it.
    """
    listing = Listing()
    waiting = [top]
    while waiting:
        waiting.extend(_list_folder(anchor, waiting.pop(), exclude, listing, before))
    _drop_mere_holders(listing)
    return listing


def walk_if_small(
    anchor: RootedFolder, exclude: Excludes, most: int, before: BeforeListing | None = None
) -> Listing | None:
    """The same for a whole tree; None if it has more than so many paths."""
    listing = Listing()
    waiting = [b""]
    while waiting:
        waiting.extend(_list_folder(anchor, waiting.pop(), exclude, listing, before))
        if len(listing.found) > most:
            return None
    _drop_mere_holders(listing)
    return listing


def folders_below(top: str) -> Iterator[tuple[str, list[str]]]:
    """`top` and each folder below it, with the names of the folders in it: those that are taken out
    of the list are not gone into. What cannot be listed is passed over. Not by calling itself:
    somebody may have planted thousands of folders in each other."""
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                names = [e.name for e in entries if e.is_dir(follow_symlinks=False)]
        except OSError:
            names = []
        yield folder, names
        waiting.extend(os.path.join(folder, name) for name in reversed(names))


def linked_files(listing: Listing) -> set[bytes]:
    return {p for p, s in listing.found.items() if s.links > 1 and s.kind is Kind.FILE}


def status_at(anchor: RootedFolder, path: bytes) -> StatInfo | None:
    """What one path is now; None if nothing is there. Raises OSError."""
    try:
        status = status_of(anchor.status(path), time.time_ns())
        return with_opaque(status, *anchor.place(path)) if status.kind is Kind.DIR else status
    except OSError as error:
        if error.errno in _GONE:
            return None
        raise


def with_opaque(status: StatInfo, folder: int, name: bytes) -> StatInfo:
    """The status of a folder, with what it says of the lower one of a layer."""
    bit = opaque_bit(folder, name)
    return status._replace(mode=status.mode | bit) if bit else status


def _list_folder(
    anchor: RootedFolder,
    folder: bytes,
    exclude: Excludes,
    listing: Listing,
    before: BeforeListing | None,
) -> list[bytes]:
    try:
        fd = anchor.folder(folder)
        if before is not None:
            before(folder, fd)
        return _note_all(anchor, folder, exclude, listing)
    except OSError as error:
        if error.errno in _GONE:
            # Since its parent was listed: then it is as if it had never been seen.
            listing.found.pop(folder, None)
            return []
        raise SnapshotFailedError(
            f"the folder {shown(folder)!r} cannot be listed ({error.strerror})",
            "make it readable, or name it under `exclude`",
        ) from error


def _note_all(
    anchor: RootedFolder, folder: bytes, exclude: Excludes, listing: Listing
) -> list[bytes]:
    """Note what is in a folder; gives back the folders in it."""
    folders: list[bytes] = []
    prefix = folder + b"/" if folder else b""
    # The file system's own clock, which Clock is not: its stamps are compared with this. Once for
    # all of them: too early a time makes one more file be looked at, never one less.
    now = time.time_ns()
    length = len(prefix)
    with os.scandir(anchor.folder(folder)) as entries:
        inner = [_found(anchor, prefix, entry) for entry in entries]
    for path, found in inner:
        if found is None:
            continue
        status = status_of(found, now)
        kind = status.kind
        if (path, kind is Kind.DIR) in exclude:
            listing.excluded.append(path)
        elif kind is None:
            listing.special.append(path)
        elif kind is Kind.DIR:
            listing.found[path] = with_opaque(status, anchor.folder(folder), path[length:])
            folders.append(path)
        else:
            listing.found[path] = status
    return folders


def _found(
    anchor: RootedFolder, prefix: bytes, entry: os.DirEntry[str]
) -> tuple[bytes, os.stat_result | None]:
    path = prefix + os.fsencode(entry.name)
    try:
        return path, entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return path, None
    except PermissionError:
        pass  # its folder can be listed, and not be looked into
    try:
        return path, anchor.status(path)
    except FileNotFoundError:
        return path, None


def _drop_mere_holders(listing: Listing) -> None:
    for holder in folders_with_only_excluded(listing.found, listing.excluded):
        del listing.found[holder]


def folders_with_only_excluded(found: Collection[bytes], excluded: Iterable[bytes]) -> set[bytes]:
    """Folders among `found` with excluded paths in them and nothing else."""
    holders: set[bytes] = set()
    for path in excluded:
        folder = parent_of(path)
        while folder and folder not in holders:
            holders.add(folder)
            folder = parent_of(folder)
    if not holders:
        return holders
    counts = Counter(parent_of(path) for path in found)
    mere: set[bytes] = set()
    for holder in sorted(holders, key=lambda path: path.count(b"/"), reverse=True):
        if not counts[holder] and holder in found:
            mere.add(holder)
            counts[parent_of(holder)] -= 1
    return mere
