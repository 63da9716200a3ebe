"""Counts what a command does, rather than how long it takes: the same on every machine."""

import contextlib
import json
import sqlite3
import sys
import threading
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

from tests.support.world import World

_INSTRUCTIONS = 20
"""SQLite tells that so many of its instructions have run; fewer would take too long to count."""


@dataclass(slots=True)
class Work:
    """Calls of Python functions, and instructions of SQLite's machine: what it reads, sorts and
    compares, whether a row of it comes out in the end or not."""

    calls: Counter[str] = field(default_factory=Counter[str])
    """By the name of the file that the function is in."""
    instructions: int = 0

    @property
    def all(self) -> int:
        return self.calls.total() + self.instructions


@contextlib.contextmanager
def counted() -> Generator[Work]:
    """All that this process does meanwhile, in every thread that begins in it."""
    work, connect = Work(), sqlite3.connect

    def profile(frame: FrameType, event: str, _arg: object) -> None:
        if event == "call":
            work.calls[frame.f_code.co_filename.rpartition("/")[2]] += 1

    def told() -> int:
        work.instructions += _INSTRUCTIONS
        return 0

    def watched(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        connection = connect(*args, **kwargs)
        connection.set_progress_handler(told, _INSTRUCTIONS)
        return connection

    with mock.patch.object(sqlite3, "connect", watched):
        threading.setprofile(profile)
        sys.setprofile(profile)
        try:
            yield work
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


def gits_of(world: World, *words: str) -> int:
    """How many processes of git the installed command starts; git itself tells, by its settings."""
    folder = world.top / "told by git"
    folder.mkdir()
    settings = world.home / ".gitconfig"
    before = settings.read_text()
    settings.write_text(f'{before}[trace2]\n\teventTarget = "{folder}"\n')
    try:
        assert world.agents.json(*words).data
    finally:
        settings.write_text(before)
    started = sum(map(_starts, folder.iterdir()))
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    return started


def _starts(file: Path) -> int:
    events = (json.loads(line)["event"] for line in file.read_text().splitlines())
    return sum(1 for event in events if event == "start")
