"""How much of the disk is taken."""

import os


def bytes_below(path: str) -> int:
    """What is taken on the disk by a file, or by all that is in a folder; each file once, by
    however many names it is there. What comes and goes meanwhile, or is closed to us, is not."""
    seen: set[tuple[int, int]] = set()
    total = _blocks(path, seen)
    for _, folders, files, descriptor in os.fwalk(path, onerror=lambda _: None):
        for name in (*folders, *files):
            total += _blocks(name, seen, descriptor)
    return total


def _blocks(name: str, seen: set[tuple[int, int]], folder: int | None = None) -> int:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return 0
    key = found.st_dev, found.st_ino
    if key in seen:
        return 0
    seen.add(key)
    return found.st_blocks * 512
