"""The processes below one: found by the kernel's own lists, or else among all that there are."""

import os
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest
from tests.support.world import wait_for

from cleveragents.infrastructure.processes import process_tree
from cleveragents.infrastructure.processes.process_tree import (
    descendants,
    place_of,
    threads_of,
)

NOBODY = 2**22 + 1  # there is no higher number of a process than 2**22


@pytest.fixture
def family() -> Generator[int]:
    """A shell, with a child that has a child."""
    shell = subprocess.Popen(["sh", "-c", "sh -c 'sleep 60; :' & wait"], start_new_session=True)
    wait_for(lambda: len(descendants(shell.pid)) == 2)
    yield shell.pid
    os.killpg(shell.pid, 9)
    shell.wait()


def test_children_and_their_children_are_below(family: int) -> None:
    below = descendants(family)

    (child,) = [pid for pid, place in below.items() if place.parent == family]
    (grandchild,) = below.keys() - {child}
    assert below[grandchild].parent == child
    assert {place.group for place in below.values()} == {family}


def test_without_the_kernels_lists_the_same_are_found(
    family: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = descendants(family).keys()

    monkeypatch.setattr(process_tree, "_children", lambda _process: None)

    assert descendants(family).keys() == known
    assert descendants(family)[max(known)].group == family


def test_who_is_gone_has_no_place_and_no_threads() -> None:
    assert place_of(NOBODY) is None
    assert list(threads_of(NOBODY)) == []
    assert descendants(NOBODY) == {}


def test_who_has_ended_and_was_not_taken_note_of_has_no_place() -> None:
    ended = subprocess.Popen(["true"])
    wait_for(lambda: b") Z" in Path(f"/proc/{ended.pid}/stat").read_bytes())

    assert place_of(ended.pid) is None
    assert ended.pid not in descendants(os.getpid())
    ended.wait()
