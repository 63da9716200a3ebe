"""What is found out about a real folder before a plan is made on it."""

import os
import stat
from pathlib import Path

from cleveragents.domain.action import ResourceSpec
from cleveragents.domain.errors import ResourceError, SnapshotFailedError
from cleveragents.domain.resource import ResourceInspection
from cleveragents.infrastructure.files.entry import Kind, StatInfo, shown
from cleveragents.infrastructure.files.excludes import excludes
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.files.walk import Listing, walk

_NAMES_SHOWN = 3
_MANY_FILES = 50_000
_MANY_BYTES = 2 * 1024**3


def inspect_folder(spec: ResourceSpec, data_dir: Path) -> ResourceInspection:
    """Look at everything that will be copied. Raises ResourceError."""
    path = checked_folder(spec.location, data_dir)
    listing = _listing(path, spec)
    files = [status for status in listing.found.values() if status.kind is Kind.FILE]
    size = sum(status.size for status in files)
    found = path.stat()
    return ResourceInspection(
        location=str(path),
        base=f"folder:{found.st_ino:x}-{found.st_mtime_ns:x}",
        notices=(*_left_out(listing), *_large(len(files), size)),
    )


def checked_folder(location: str, data_dir: Path) -> Path:
    """The real path of a folder that may be copied. Raises ResourceError."""
    try:
        path = Path(location).resolve(strict=True)
        is_folder = path.is_dir()
    except (OSError, RuntimeError) as error:
        raise ResourceError(
            f"{location} {_missing(location, error)}", "name an existing folder as `path`"
        ) from error
    if not is_folder:
        raise ResourceError(
            f"{location} is not a folder", f"use its folder as `path`: {path.parent}"
        )
    if path in (Path("/"), Path.home().resolve()):
        raise ResourceError(
            f"{path} is too much for one plan: all of it would be copied",
            "name the folder in it that the plan shall work on",
        )
    data = data_dir.resolve()
    if path.is_relative_to(data) or data.is_relative_to(path):
        where = "is inside" if path.is_relative_to(data) else "contains"
        raise ResourceError(
            f"{path} {where} the data directory {data}, where the sandboxes are",
            "use another folder, or another data directory with --data-dir",
        )
    return path


def _missing(location: str, error: OSError | RuntimeError) -> str:
    if not os.path.lexists(location):
        return "does not exist"
    if isinstance(error, FileNotFoundError):
        return "is a link that leads nowhere"
    reason = error.strerror if isinstance(error, OSError) else "a circle of links"
    return f"cannot be reached ({reason})"


def _listing(path: Path, spec: ResourceSpec) -> Listing:
    try:
        with RootedFolder(str(path)) as anchor:
            listing = walk(anchor, excludes(spec.exclude))
            _refuse_unreadable(anchor, listing)
            return listing
    except OSError as error:
        raise ResourceError(f"{path} cannot be read: {error.strerror}", f"ls -ld {path}") from error
    except SnapshotFailedError as error:
        raise ResourceError(f"{path}: {error.message}", error.hint) from error


def _refuse_unreadable(anchor: RootedFolder, listing: Listing) -> None:
    us = os.geteuid()
    closed = [
        name
        for name, status in listing.found.items()
        if not _surely_readable(status, us) and not _readable(anchor, name)
    ]
    if closed:
        raise ResourceError(
            f"{os.fsdecode(anchor.root)}: {_names(closed)} cannot be read",
            "make them readable, or name them under `exclude`",
        )


def _surely_readable(status: StatInfo, us: int) -> bool:
    if status.kind is not Kind.FILE or not us:
        return True
    return status.uid == us and bool(status.mode & stat.S_IRUSR)


def _readable(anchor: RootedFolder, name: bytes) -> bool:
    try:
        os.close(anchor.open(name))
    except FileNotFoundError:
        return True  # gone since it was listed
    except OSError:
        return False
    return True


def _left_out(listing: Listing) -> list[str]:
    if not listing.special:
        return []
    names = sorted(listing.special)
    what = "a socket, pipe or device" if len(names) == 1 else "sockets, pipes or devices"
    verb = "is" if len(names) == 1 else "are"
    return [f"{_names(names)} {verb} {what} and will be left out"]


def _large(files: int, size: int) -> list[str]:
    if files < _MANY_FILES and size < _MANY_BYTES:
        return []
    return [
        f"all {files:,} files ({size / 1024**3:.1f} GB) will be copied: "
        "name what the plan does not need under `exclude`"
    ]


def _names(paths: list[bytes]) -> str:
    more = f" and {len(paths) - _NAMES_SHOWN} more" if len(paths) > _NAMES_SHOWN else ""
    return ", ".join(shown(path) for path in paths[:_NAMES_SHOWN]) + more
