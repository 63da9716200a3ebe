"""Keeping Python's garbage collector out of the way of work that makes very many values."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Generator[None]:
    """What is made in here has no cycles, so that looking for some again and again finds none."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
