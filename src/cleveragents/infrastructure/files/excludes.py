"""Which paths of a sandbox are not captured because the action excludes them."""

import fnmatch
import os
from collections.abc import Iterable

from msgspec import Struct


class Excludes(Struct, frozen=True, kw_only=True):
    """`hidden` are names at the top that are no content; the patterns are those of the action."""

    patterns: tuple[tuple[bytes, bool], ...] = ()
    hidden: frozenset[bytes] = frozenset()

    def __contains__(self, candidate: tuple[bytes, bool]) -> bool:
        path, is_folder = candidate
        if path in self.hidden:
            return True
        if not self.patterns:
            return False
        base = path.rpartition(b"/")[2]
        return any(
            (is_folder or not folders_only) and _matches(pattern, path, base)
            for pattern, folders_only in self.patterns
        )


def excludes(patterns: Iterable[str], hidden: frozenset[bytes] = frozenset()) -> Excludes:
    """A pattern is a path or a glob on the relative path or the base name; `/` last: a folder."""
    cleaned = ((_clean(os.fsencode(text)), text.endswith("/")) for text in patterns)
    return Excludes(patterns=tuple(item for item in cleaned if item[0]), hidden=hidden)


def fingerprint(exclude: Excludes) -> bytes:
    """Equal for those that leave out the same."""
    return repr((exclude.patterns, sorted(exclude.hidden))).encode()


def _clean(pattern: bytes) -> bytes:
    return pattern.removeprefix(b"./").removeprefix(b"**/").strip(b"/")


def _matches(pattern: bytes, path: bytes, base: bytes) -> bool:
    return (
        path == pattern
        or path.startswith(pattern + b"/")
        or fnmatch.fnmatchcase(path, pattern)
        or fnmatch.fnmatchcase(base, pattern)
    )
