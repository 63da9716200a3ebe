"""Which submodules a sandbox's repository has checked out.

A submodule's own repository is not in the sandbox but in the sandbox's git folder. Its HEAD, refs,
index and operations are state; its objects are stored as packs.
"""

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache

from cleveragents.infrastructure.files.durable_files import read_file
from cleveragents.infrastructure.files.entry import RACY_NS

Stamp = tuple[int, int, int, int]
"""Size, both times and number of a file: what changes when it is written."""

_Parse = Callable[[str], str | None]
_STATE_FOLDERS = frozenset({"refs", "info", "hooks", "rebase-merge", "rebase-apply", "sequencer"})
_WORKTREE = r'(?m)^\s*worktree\s*=\s*("(?:[^"\\]|\\.)*"|.+?)\s*$'
_ESCAPED = {"n": "\n", "t": "\t", "b": "\b"}


def checked_out(gitdir: str) -> Iterator[str]:
    """Their places relative to `gitdir`.

    One that is not checked out is no state: git takes up what it finds when it is populated again.
    """
    for module in modules_in(os.path.join(gitdir, "modules")):
        if _is_checked_out(module):
            yield module.removeprefix(gitdir + "/")


def modules_in(top: str) -> Iterator[str]:
    """Names of submodules have slashes, and submodules have submodules."""
    folders = {entry.name for entry in _listed(top) if entry.is_dir(follow_symlinks=False)}
    if "objects" in folders and os.path.lexists(f"{top}/HEAD"):
        yield top
        folders &= {"modules"}
    for name in sorted(folders):
        yield from modules_in(f"{top}/{name}")


def stamps_of(module: str) -> Iterator[tuple[str, Stamp]]:
    """When what is state of it was last written, and some more: quicker than to list what is."""
    yield from _stamps_in(module, _STATE_FOLDERS)
    # Every stash but the newest is named there alone.
    with suppress(OSError):
        log = f"{module}/logs/refs/stash"
        yield log, stamp_of(os.lstat(log))


def _stamps_in(folder: str, inner: frozenset[str] | None = None) -> Iterator[tuple[str, Stamp]]:
    for entry in _listed(folder):
        if not entry.is_dir(follow_symlinks=False):
            with suppress(FileNotFoundError):
                yield entry.path, stamp_of(entry.stat(follow_symlinks=False))
        elif inner is None or entry.name in inner:
            yield from _stamps_in(entry.path)


def stamp_of(found: os.stat_result) -> Stamp:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _listed(folder: str) -> list["os.DirEntry[str]"]:
    if os.path.islink(folder):
        return []
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _is_checked_out(module: str) -> bool:
    place = _told_in(module, "config", _folder_in)
    if place is None:
        return False
    top = os.path.normpath(os.path.join(module, place))
    named = _told_in(top, ".git", _repository_in)
    if not named:
        return False
    real = os.path.join(top, named)
    if os.path.normpath(real) == module:
        return True
    with suppress(OSError):
        return os.path.samefile(real, module)
    return False


def _told_in(folder: str, name: str, parse: _Parse) -> str | None:
    """Asked at every checkpoint of the same files, and so read only if they were written since."""
    try:
        stamp = stamp_of(os.lstat(f"{folder}/{name}"))
    except OSError:
        return None
    if max(stamp[1:3]) >= time.time_ns() - RACY_NS:
        return _read(folder, name, parse)
    return _known(folder, name, parse, stamp)


@lru_cache(maxsize=4096)
def _known(folder: str, name: str, parse: _Parse, stamp: Stamp) -> str | None:
    del stamp  # of one file the same says that its bytes are
    return _read(folder, name, parse)


def worktree_in(config: bytes) -> str | None:
    """Where a repository's settings say that its files are."""
    return _folder_in(config.decode("utf-8", "surrogateescape"))


def with_worktree(config: bytes, place: str) -> bytes:
    """The same settings, with the files there."""
    escaped = place.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    text = config.decode("utf-8", "surrogateescape")
    told = re.sub(_WORKTREE, lambda _: f'\tworktree = "{escaped}"', text, count=1)
    return told.encode("utf-8", "surrogateescape")


def _read(folder: str, name: str, parse: _Parse) -> str | None:
    return parse((read_file(folder, name) or b"").decode("utf-8", "surrogateescape"))


def _unquoted(value: str) -> str:
    if not value.startswith('"'):
        return value
    return re.sub(r"\\(.)", lambda found: _ESCAPED.get(found[1], found[1]), value[1:-1])


def _folder_in(config: str) -> str | None:
    found = re.search(_WORKTREE, config)
    return _unquoted(found[1]) if found else None


def _repository_in(pointer: str) -> str | None:
    return pointer.removeprefix("gitdir: ").removesuffix("\n") or None
