"""Processes of the machine by a word on their command line: what a step calls its children, with a
process table of its own, says nothing out here."""

import os
import time
from pathlib import Path


def living_with(word: str) -> list[int]:
    """Zombies are dead, and whoever looks does not count."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal() or int(folder.name) == os.getpid():
            continue
        try:
            line = (folder / "cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if word.encode() in line:
            found.append(int(folder.name))
    return found


def all_gone(word: str, seconds: float = 5) -> bool:
    deadline = time.monotonic() + seconds
    while living_with(word) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not living_with(word)
