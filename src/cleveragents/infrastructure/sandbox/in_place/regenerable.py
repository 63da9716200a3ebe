"""Folders that any build makes anew: known by what is in them, never by their name alone.

Each rule is a file that only the tool itself writes. What nobody can tell apart from work stays
part of every checkpoint.
"""

import os
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from cleveragents.infrastructure.files.walk import folders_below

_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"
_SHORT = 200


class Regenerable(Struct, frozen=True, kw_only=True):
    """A folder that is left out; `by` says how it is made again."""

    path: str
    by: str


def regenerable_in(folder: str) -> str | None:
    """What makes it anew, if its content says that something does."""
    return next((by for has, by in _RULES.items() if has(folder)), None)


def _has(name: str) -> Callable[[str], bool]:
    return lambda folder: os.path.isfile(os.path.join(folder, name))


def _is_cache(folder: str) -> bool:
    """https://bford.info/cachedir/"""
    try:
        with open(os.path.join(folder, "CACHEDIR.TAG"), "rb") as file:
            return file.read(_SHORT).startswith(_SIGNATURE)
    except OSError:
        return False


def _is_bytecode(folder: str) -> bool:
    if os.path.basename(folder) != "__pycache__":
        return False
    try:
        return all(name.endswith((".pyc", ".pyo")) for name in os.listdir(folder))
    except OSError:
        return False


_RULES: Mapping[Callable[[str], bool], str] = {
    _has("pyvenv.cfg"): "python -m venv, and pip",
    _has(".package-lock.json"): "npm ci",
    _has(".modules.yaml"): "pnpm install",
    _has(".yarn-integrity"): "yarn install",
    _has(".rustc_info.json"): "cargo build",
    _has("CMakeCache.txt"): "cmake",
    _is_bytecode: "Python",
    _is_cache: "the tool that made it",
}


def found_below(
    top: str, is_spared: Callable[[str], bool], skip: frozenset[str]
) -> Iterator[Regenerable]:
    """Links are not followed; what is `is_spared` is captured all the same."""
    for folder, names in folders_below(top):
        names[:] = [name for name in names if not (folder == top and name in skip)]
        for name in list(names):
            whole = os.path.join(folder, name)
            relative = os.path.relpath(whole, top)
            by = None if os.path.islink(whole) or is_spared(relative) else regenerable_in(whole)
            if by is not None:
                names.remove(name)
                yield Regenerable(path=relative, by=by)
