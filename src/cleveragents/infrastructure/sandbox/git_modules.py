"""Owns which files make up the state of populated submodules.

A submodule's own repository is not in the sandbox but in the sandbox's git folder. Its objects
stay there whatever is rolled back; its HEAD, refs, index and operations are state.
"""

import os
import re
from collections.abc import Iterator

from cleveragents.infrastructure.sandbox.private_files import read_file

_STATE_FILES = frozenset({"HEAD", "index", "packed-refs", "ORIG_HEAD", "config"})
_STATE_FOLDERS = ("refs", "reftable")
_WORKTREE = re.compile(r"^\s*worktree\s*=\s*(.+?)\s*$", re.MULTILINE)


def module_states(gitdir: str, operation_files: frozenset[str]) -> Iterator[str]:
    """Paths relative to `gitdir`, of those submodules that the sandbox has checked out.

    One that it has not is no state: git takes up what it finds when it is populated again.
    """
    for module in modules_in(os.path.join(gitdir, "modules")):
        if _is_checked_out(module):
            for path in _files(module, _STATE_FILES | operation_files):
                yield os.path.relpath(path, gitdir)


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
    place = os.path.join(module, found[1].strip('"'))
    named = _text(place, ".git").removeprefix("gitdir: ").removesuffix("\n")
    return bool(named) and os.path.realpath(os.path.join(place, named)) == os.path.realpath(module)


def _files(module: str, names: frozenset[str]) -> Iterator[str]:
    yield from (entry.path for entry in os.scandir(module) if entry.name in names)
    for name in _STATE_FOLDERS:
        for folder, _, files in os.walk(os.path.join(module, name)):
            yield from (os.path.join(folder, file) for file in files)


def _text(folder: str, name: str) -> str:
    return (read_file(folder, name) or b"").decode("utf-8", "surrogateescape")
