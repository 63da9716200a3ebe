"""Owns which submodules a sandbox's repository has checked out.

A submodule's own repository is not in the sandbox but in the sandbox's git folder. Its HEAD, refs,
index and operations are state; its objects are stored as packs.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress

from cleveragents.infrastructure.sandbox.private_files import read_file

_WORKTREE = re.compile(r'^\s*worktree\s*=\s*("(?:[^"\\]|\\.)*"|.+?)\s*$', re.MULTILINE)
_ESCAPED = {"n": "\n", "t": "\t", "b": "\b"}


def checked_out(gitdir: str) -> Iterator[str]:
    """Their places relative to `gitdir`.

    One that is not checked out is no state: git takes up what it finds when it is populated again.
    """
    for module in modules_in(os.path.join(gitdir, "modules")):
        if _is_checked_out(module):
            yield os.path.relpath(module, gitdir)


def modules_in(top: str) -> Iterator[str]:
    """Names of submodules have slashes, and submodules have submodules."""
    if os.path.islink(top):
        return
    for folder, folders, names in os.walk(top):
        if "HEAD" in names and "objects" in folders:
            yield folder
            folders[:] = [name for name in folders if name == "modules"]


def _is_checked_out(module: str) -> bool:
    found = _WORKTREE.search(_text(module, "config"))
    if found is None:
        return False
    place = os.path.join(module, _unquoted(found[1]))
    named = _text(place, ".git").removeprefix("gitdir: ").removesuffix("\n")
    with suppress(OSError):
        return bool(named) and os.path.samefile(os.path.join(place, named), module)
    return False


def _unquoted(value: str) -> str:
    if not value.startswith('"'):
        return value
    return re.sub(r"\\(.)", lambda found: _ESCAPED.get(found[1], found[1]), value[1:-1])


def _text(folder: str, name: str) -> str:
    return (read_file(folder, name) or b"").decode("utf-8", "surrogateescape")
