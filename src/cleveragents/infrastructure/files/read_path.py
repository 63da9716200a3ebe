"""Looking at one path closely: its kind, its mode, and its bytes while they hold still."""

import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator

from cleveragents.domain.errors import SnapshotFailedError
from cleveragents.infrastructure.files.entry import (
    Kind,
    ManifestRow,
    StatInfo,
    file_seen,
    same_state,
    shown,
    status_of,
)
from cleveragents.infrastructure.files.layers.overlay_marks import opaque_bit
from cleveragents.infrastructure.files.rooted_folder import RootedFolder

CHUNK = 4 * 1024 * 1024
_ATTEMPTS = 5
_PAUSE = 0.02
_CHANGING = "keeps changing while it is read"

# Takes the bytes of a file as chunks of CHUNK bytes, its path and its size; gives back the hash.
Sink = Callable[[Iterable[bytes], bytes, int], bytes]


def hash_only(chunks: Iterable[bytes], path: bytes, size: int) -> bytes:  # noqa: ARG001 - a Sink
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.digest()


def examine_file(anchor: RootedFolder, path: bytes, sink: Sink) -> ManifestRow | None:
    """The same as `read_path`, faster for what most likely is a file."""
    try:
        return _look_at_file(anchor.open_file(path), path, sink)
    except (_PathMovedError, OSError):
        return read_path(anchor, path, sink)


def examine_mapped(
    anchor: RootedFolder, path: bytes, sink: Sink, hashed: Sink = hash_only
) -> ManifestRow | None:
    """The same for what somebody writes through memory, of which its times need not tell: it is
    what it was read as twice. `hashed` gives what the sink gives, and keeps nothing."""
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_PAUSE * attempt)
        first, second = read_path(anchor, path, hashed), read_path(anchor, path, sink)
        if same_state(first, second):
            return second
    raise _failed(path, _CHANGING)


def read_path(anchor: RootedFolder, path: bytes, sink: Sink) -> ManifestRow | None:
    """What is at `path`; None if nothing that can be captured. Raises SnapshotFailedError."""
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_PAUSE * attempt)
        try:
            return _look(anchor, path, sink)
        except _PathMovedError:
            continue
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            # One of its folders became something else, so that the path itself is gone.
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:
                continue
            raise _failed(path, f"cannot be read ({error.strerror})") from error
    raise _failed(path, _CHANGING)


class _PathMovedError(Exception):
    """The path changed while it was read."""


def _failed(path: bytes, reason: str) -> SnapshotFailedError:
    return SnapshotFailedError(
        f"no snapshot could be taken: {shown(path)!r} {reason}",
        "stop what writes to the file or make it readable, or name it under `exclude`",
    )


def _look(anchor: RootedFolder, path: bytes, sink: Sink) -> ManifestRow | None:
    status = status_of(anchor.status(path), time.time_ns())
    if status.kind is None:
        return None
    if status.kind is Kind.LINK:
        return _look_at_link(anchor, path, status)
    if status.kind is Kind.DIR:
        # What the anchor did to get in is not the folder's own mode.
        mode = anchor.opened_modes.get(path, status.mode) | opaque_bit(*anchor.place(path))
        return status._replace(mode=mode).seen(path)
    if status.kind is Kind.WHITEOUT:
        return status.seen(path)
    return _look_at_file(anchor.open(path), path, sink)


def _look_at_link(anchor: RootedFolder, path: bytes, status: StatInfo) -> ManifestRow:
    target = _link_target(anchor, path)
    after = anchor.status(path)
    if (after.st_ino, after.st_ctime_ns) != (status.ino, status.ctime_ns):
        raise _PathMovedError
    return status.seen(path, target=target)


def _link_target(anchor: RootedFolder, path: bytes) -> bytes:
    try:
        return anchor.link_target(path)
    except OSError as error:
        if error.errno == errno.EINVAL:
            raise _PathMovedError from error
        raise


def _look_at_file(fd: int, path: bytes, sink: Sink) -> ManifestRow:
    try:
        found, taken_ns = os.fstat(fd), time.time_ns()
        if not stat.S_ISREG(found.st_mode):
            raise _PathMovedError
        size = found.st_size
        digest = sink(_chunks(fd, size) if size > CHUNK else _whole(fd, size), path, size)
        after = os.fstat(fd)
    finally:
        os.close(fd)
    if (
        after.st_ctime_ns != found.st_ctime_ns
        or after.st_mtime_ns != found.st_mtime_ns
        or after.st_size != size
        or after.st_mode != found.st_mode
    ):
        raise _PathMovedError
    return file_seen(found, taken_ns, path, digest)


def _whole(fd: int, size: int) -> tuple[bytes, ...]:
    """What `_chunks` gives for nearly all files, without its overhead."""
    data = _read_fully(fd, size)
    if len(data) != size:
        raise _PathMovedError
    return (data,)


def _chunks(fd: int, size: int) -> Iterator[bytes]:
    """Stops with _MovedError before a sink could finish a file of another length."""
    missing = size
    while missing:
        chunk = _read_fully(fd, min(CHUNK, missing))
        missing -= len(chunk)
        if not chunk or os.fstat(fd).st_size != size:
            raise _PathMovedError
        yield chunk


def _read_fully(fd: int, size: int) -> bytes:
    first = os.read(fd, size)
    if len(first) in (0, size):
        return first
    # Short reads are allowed, but chunk borders must not depend on them.
    parts = [first]
    missing = size - len(first)
    while missing and (part := os.read(fd, missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)
