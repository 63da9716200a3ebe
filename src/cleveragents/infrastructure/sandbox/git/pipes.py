"""Pipes, sockets and devices under names that git reads by itself in every folder.

git opens such a file as it opens any other: on a pipe it waits for a writer that never comes. What
a step made of that kind is therefore found by name, and refused, before git looks at the folder.
"""

import os
import shlex
from collections.abc import Generator

from cleveragents.domain.errors import SandboxError

_READ_BY_GIT = frozenset((b".gitattributes", b".gitignore", b".gitmodules"))


def refuse_pipes(directory: str) -> None:
    """Raises SandboxError."""
    found = sorted(os.fsdecode(path) for path in _pipes(os.fsencode(directory)))
    if found:
        raise SandboxError(
            f"git would wait for ever at what a step left here in place of a file: {found[0]}",
            f"remove it: {shlex.join(['rm', *found[:20]])}",
        )


def _pipes(top: bytes) -> Generator[bytes]:
    waiting = [top]
    while waiting:
        for entry in _entries(waiting.pop()):
            if entry.is_dir(follow_symlinks=False):
                waiting += [entry.path] if entry.name != b".git" else []
            elif entry.name in _READ_BY_GIT and not _is_file_or_link(entry):
                yield entry.path


def _entries(folder: bytes) -> "list[os.DirEntry[bytes]]":
    """A folder that is closed, or gone, is git's to tell."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _is_file_or_link(entry: "os.DirEntry[bytes]") -> bool:
    return entry.is_symlink() or entry.is_file(follow_symlinks=False)
