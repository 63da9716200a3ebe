"""Which paths of a sandbox are not captured because the action excludes them."""

import fnmatch
import os
from collections.abc import Iterable, Iterator

from msgspec import Struct

_SPARED = "!"


class Excludes(Struct, frozen=True, kw_only=True):
    """`hidden` are names at the top that are no content; the patterns are those of the action.
    What has one of `spared_names`, or is one of `spared_paths`, is not left out by any pattern."""

    patterns: tuple[tuple[bytes, bool], ...] = ()
    hidden: frozenset[bytes] = frozenset()
    spared_names: tuple[bytes, ...] = ()
    spared_paths: frozenset[bytes] = frozenset()

    def __contains__(self, candidate: tuple[bytes, bool]) -> bool:
        path, is_folder = candidate
        if path in self.hidden:
            return True
        if not self.patterns or path in self.spared_paths:
            return False
        base = path.rpartition(b"/")[2]
        if any(fnmatch.fnmatchcase(base, name) for name in self.spared_names):
            return False
        if self._is_matched(path, base, is_folder=is_folder):
            return True
        # A folder that is spared for what it holds: the rest in it is left out all the same.
        return bool(self.spared_paths) and any(
            folder in self.spared_paths
            and self._is_matched(folder, folder.rpartition(b"/")[2], is_folder=True)
            for folder in _folders_of(path)
        )

    def _is_matched(self, path: bytes, base: bytes, *, is_folder: bool) -> bool:
        return any(
            (is_folder or not folders_only) and _matches(pattern, path, base)
            for pattern, folders_only in self.patterns
        )


def excludes(patterns: Iterable[str], hidden: frozenset[bytes] = frozenset()) -> Excludes:
    """A pattern is a path or a glob on the relative path or the base name; `/` last: a folder. `!`
    first: what is called so is not left out after all, or, with `/` behind that, this path."""
    texts = tuple(patterns)
    spared = [os.fsencode(text[1:]) for text in texts if text.startswith(_SPARED)]
    cleaned = (
        (_clean(os.fsencode(text)), text.endswith("/"))
        for text in texts
        if not text.startswith(_SPARED)
    )
    return Excludes(
        patterns=tuple(item for item in cleaned if item[0]),
        hidden=hidden,
        spared_names=tuple(name for name in spared if name and not name.startswith(b"/")),
        spared_paths=frozenset(path[1:] for path in spared if path.startswith(b"/")),
    )


def fingerprint(exclude: Excludes) -> bytes:
    """Equal for those that leave out the same."""
    told = (exclude.patterns, sorted(exclude.hidden))
    spared = (exclude.spared_names, sorted(exclude.spared_paths))
    return repr((*told, *spared) if any(spared) else told).encode()


def _folders_of(path: bytes) -> Iterator[bytes]:
    while path := path.rpartition(b"/")[0]:
        yield path


def _clean(pattern: bytes) -> bytes:
    return pattern.removeprefix(b"./").removeprefix(b"**/").strip(b"/")


def _matches(pattern: bytes, path: bytes, base: bytes) -> bool:
    return (
        path == pattern
        or path.startswith(pattern + b"/")
        or fnmatch.fnmatchcase(path, pattern)
        or fnmatch.fnmatchcase(base, pattern)
    )
