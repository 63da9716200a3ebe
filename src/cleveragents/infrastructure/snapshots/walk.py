"""Owns listing a whole tree: every path with its status, links not followed."""

import os
import time
from collections import Counter
from dataclasses import dataclass, field

from cleveragents.domain.errors import SnapshotFailedError
from cleveragents.infrastructure.snapshots.anchor import Anchor
from cleveragents.infrastructure.snapshots.entry import Kind, Status, parent_of, shown, status_of
from cleveragents.infrastructure.snapshots.excludes import Excludes


@dataclass(slots=True)
class Listing:
    """What is there. `special` are sockets, pipes and devices, which cannot be captured."""

    found: dict[bytes, Status] = field(default_factory=dict[bytes, Status])
    special: list[bytes] = field(default_factory=list[bytes])
    excluded: list[bytes] = field(default_factory=list[bytes])


def walk(anchor: Anchor, exclude: Excludes, top: bytes = b"") -> Listing:
    """Everything below `top`.

    A folder that holds excluded paths and nothing else is not listed: a restore leaves those in
    place, so that such a folder is there in states that never knew it.
    """
    listing = Listing()
    waiting = [top]
    while waiting:
        waiting.extend(_list_folder(anchor, waiting.pop(), exclude, listing))
    if listing.excluded:
        _drop_mere_holders(listing)
    return listing


def _list_folder(anchor: Anchor, folder: bytes, exclude: Excludes, listing: Listing) -> list[bytes]:
    prefix = folder + b"/" if folder else b""
    try:
        with os.scandir(anchor.folder(folder)) as entries:
            inner = ((prefix + os.fsencode(entry.name), entry) for entry in entries)
            return [
                path for path, entry in inner if _note(path, entry, exclude, listing) is Kind.DIR
            ]
    except FileNotFoundError:
        # Removed since its parent was listed: then it is gone, as if it had never been seen.
        listing.found.pop(folder, None)
        return []
    except OSError as error:
        raise SnapshotFailedError(
            f"the folder {shown(folder)!r} cannot be listed ({error.strerror})",
            "make it readable, or name it under `exclude`",
        ) from error


def _note(path: bytes, entry: os.DirEntry[str], exclude: Excludes, listing: Listing) -> Kind | None:
    # The file system's own clock, which Clock is not: its stamps are compared with this.
    now = time.time_ns()
    try:
        status = status_of(entry.stat(follow_symlinks=False), now)
    except FileNotFoundError:
        return None
    if (path, status.kind is Kind.DIR) in exclude:
        listing.excluded.append(path)
        return None
    if status.kind is None:
        listing.special.append(path)
        return None
    listing.found[path] = status
    return status.kind


def _drop_mere_holders(listing: Listing) -> None:
    holders: set[bytes] = set()
    for path in listing.excluded:
        folder = parent_of(path)
        while folder and folder not in holders:
            holders.add(folder)
            folder = parent_of(folder)
    if not holders:
        return
    counts = Counter(parent_of(path) for path in listing.found)
    for holder in sorted(holders, key=lambda path: path.count(b"/"), reverse=True):
        if not counts[holder] and holder in listing.found:
            del listing.found[holder]
            counts[parent_of(holder)] -= 1
