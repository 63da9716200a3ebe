"""A tree written down as text: one record per path, equal as long as the path is unchanged.

Records end with a NUL. The first byte says what the path is, the fields are those that change
whenever it does, and `./` begins the path itself, because no field holds a slash:

    FOLDER MODE INO        another folder may say something else of what a layer has below it
    FILE MODE INO DEV SIZE CTIME      a file with one name
    LINKED MODE INO DEV SIZE CTIME    a file with several names
    LINK INO DEV CTIME
    EXCLUDED
    SPECIAL                a socket, pipe or device
    CHARACTERS INO DEV CTIME          a character device: a whiteout of a layer, or special

The time of the last change of an inode moves with everything that moves the other times, and
nobody can set it.
"""

import os
import stat
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from cleveragents.infrastructure.files.entry import Kind, ManifestRow, parent_of
from cleveragents.infrastructure.files.layers.overlay_marks import OPAQUE

FILE, LINK = b"f", b"l"
# Bytes that hardly any path holds: looking for one of them takes a hundredth of what looking for
# the beginning of a record would.
FOLDER, LINKED, EXCLUDED, SPECIAL, CHARACTERS = b"\1", b"\2", b"\3", b"\4", b"\5"
# As `find -printf` wants them.
FORMATS = {
    FOLDER: FOLDER + b"%m %i %p\\0",
    FILE: FILE + b"%m %i %D %s %C@ %p\\0",
    LINKED: LINKED + b"%m %i %D %s %C@ %p\\0",
    LINK: LINK + b"%i %D %C@ %p\\0",
    EXCLUDED: EXCLUDED + b"%p\\0",
    SPECIAL: SPECIAL + b"%p\\0",
    CHARACTERS: CHARACTERS + b"%i %D %C@ %p\\0",
}
WHOLE = b"."
MOST_TOPS = 2000
_PER_PART = 2500
_MOST_PARTS = 4
_SECOND = 1_000_000_000
_HEAVY = 0.3


class Part(NamedTuple):
    """The subtrees that one process lists, in this order, and what it wrote."""

    tops: tuple[bytes, ...]
    text: bytes


class TreeListing(NamedTuple):
    """A whole tree. `spine` are folders whose children are tops; all above a top are in it."""

    spine: tuple[bytes, ...]
    parts: tuple[Part, ...]


UNLISTED = TreeListing((), (Part((WHOLE,), b""),))


def records(text: bytes) -> list[bytes]:
    found = text.split(b"\0")
    found.pop()
    return found


def path_of(record: bytes) -> bytes:
    return record[record.index(b"/") + 1 :]


def marked(text: bytes, mark: bytes) -> Iterator[bytes]:
    """The paths whose records begin with this byte."""
    at = text.find(mark)
    while at >= 0:
        end = text.index(b"\0", at)
        # In the middle of a record it is part of a path.
        if not at or not text[at - 1]:
            yield text[text.index(b"/", at) + 1 : end]
        at = text.find(mark, end)


def record_of(seen: ManifestRow) -> bytes | None:
    """As the path would be written down while it is what was seen; None if nothing is certain."""
    if seen.kind == Kind.DIR:
        if seen.mode & OPAQUE:
            return None  # of which a listing does not tell
        return b"%b%o %d ./%b" % (FOLDER, seen.mode, seen.ino, seen.path)
    if seen.ctime_ns < 0:
        return None
    when = b"%d.%09d0" % divmod(seen.ctime_ns, _SECOND)
    if seen.kind in (Kind.LINK, Kind.WHITEOUT):
        mark = LINK if seen.kind == Kind.LINK else CHARACTERS
        return b"%b%d %d %b ./%b" % (mark, seen.ino, seen.dev, when, seen.path)
    fields = (FILE, seen.mode, seen.ino, seen.dev, seen.size, when, seen.path)
    return b"%b%o %d %d %d %b ./%b" % fields


def folder_record(path: bytes, found: os.stat_result) -> bytes:
    return b"%b%o %d ./%b\0" % (FOLDER, stat.S_IMODE(found.st_mode), found.st_ino, path)


def listing_of(found: Iterable[bytes]) -> TreeListing:
    """The same records in parts of about equal size, which can be listed at the same time."""
    every = [(path_of(record), record) for record in found]
    spine, weights = _spine(path for path, _ in every)
    if len(weights) > MOST_TOPS:
        text = b"".join(record + b"\0" for _, record in every)
        return TreeListing((), (Part((WHOLE,), text),))
    groups = _shares(weights, max(1, min(_MOST_PARTS, len(every) // _PER_PART)))
    texts: dict[bytes, list[bytes]] = {top: [] for top in weights}
    for path, record in every:
        top = _top_of(path, spine)
        if top in texts:
            texts[top].append(record)
    parts = [
        Part(tuple(tops), b"".join(r + b"\0" for top in tops for r in texts[top]))
        for tops in groups
    ]
    ribs = {path: record for path, record in every if path in spine}
    rib_text = b"".join(ribs[path] + b"\0" for path in spine if path)
    return TreeListing(tuple(spine), (Part((), rib_text), *parts))


def expected_listing(files: Collection[bytes]) -> TreeListing:
    """What is known of a tree of which only the paths of files are: its folders, in parts."""
    folders = _folders_of(files)
    spine, _ = _spine(folders)
    held = set(spine)
    tops = [path for path in files if parent_of(path) in held]
    weights = Counter(_top_of(path, spine) for path in folders if path not in held)
    weights.update(tops)
    if len(weights) > MOST_TOPS:
        return UNLISTED
    texts: dict[bytes, list[bytes]] = {top: [] for top in weights}
    for path in folders:
        if path not in held:
            texts[_top_of(path, spine)].append(b"%b0 0 ./%b\0" % (FOLDER, path))
    # One process for each processor: to start more takes longer than they save.
    most = min(_MOST_PARTS, len(os.sched_getaffinity(0)))
    groups = _shares(weights, max(1, min(most, len(files) // _PER_PART)))
    parts = [Part(tuple(tops), b"".join(r for top in tops for r in texts[top])) for tops in groups]
    return TreeListing(tuple(spine), (Part((), b""), *parts))


def _folders_of(files: Iterable[bytes]) -> list[bytes]:
    """Parents before their children."""
    found: set[bytes] = set()
    for folder in {parent_of(path) for path in files}:
        while folder and folder not in found:
            found.add(folder)
            folder = parent_of(folder)
    return sorted(found)


def _spine(paths: Iterable[bytes]) -> tuple[list[bytes], Counter[bytes]]:
    """Folders to look into by hand, so that what is left can be shared out evenly."""
    every = list(paths)
    spine, weights = [b""], Counter(path.partition(b"/")[0] for path in every)
    while weights:
        heavy, weight = weights.most_common(1)[0]
        below = [path for path in every if path.startswith(heavy + b"/")]
        depth = heavy.count(b"/") + 2
        inner = Counter(b"/".join(path.split(b"/", depth)[:depth]) for path in below)
        if weight <= _HEAVY * len(every) or not inner or len(inner) + len(weights) > MOST_TOPS:
            break
        spine.append(heavy)
        del weights[heavy]
        weights.update(inner)
    return spine, weights


def _shares(weights: Counter[bytes], count: int) -> list[list[bytes]]:
    shares: list[list[bytes]] = [[] for _ in range(count)]
    loads = [0] * count
    for top, weight in weights.most_common():
        least = loads.index(min(loads))
        shares[least].append(top)
        loads[least] += weight
    return [share for share in shares if share]


def _top_of(path: bytes, spine: Sequence[bytes]) -> bytes:
    top = path
    while (parent := parent_of(top)) not in spine:
        top = parent
    return top
