"""What is outside of all sandboxes, watched byte for byte while something tries to reach it."""

import os
from collections.abc import Collection, Generator
from contextlib import contextmanager
from pathlib import Path

from tests.support.trees import tree_of


@contextmanager
def nothing_happens(*places: Path, but: Collection[Path] = ()) -> Generator[None]:
    """In all of these folders: no byte, name, mode, link or time of anything changes.

    What is in the folders `but` may.
    """
    before = {place: _look(place, but) for place in places}
    yield
    for place, seen in before.items():
        now = _look(place, but)
        moved = {name for name in seen.keys() | now.keys() if seen.get(name) != now.get(name)}
        told = {name: (seen.get(name), now.get(name)) for name in sorted(moved)}
        assert not told, f"something happened in {place}: {told}"


def _look(place: Path, but: Collection[Path]) -> dict[bytes, tuple[object, int, int]]:
    top = os.fsencode(place)
    found: dict[bytes, tuple[object, int, int]] = {}
    for name, facts in tree_of(place).items():
        path = place / os.fsdecode(name)
        if any(path.is_relative_to(folder) for folder in but):
            continue
        status = os.lstat(top + b"/" + name)
        found[name] = (facts, status.st_mtime_ns, status.st_nlink)
    return found
