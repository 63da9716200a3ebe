"""Switches coverage off where nothing new is covered: what dies or runs a hundred times over."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from unittest import mock

import coverage

# By these a new Python process finds out that it is measured.
PASSED_ON = "COVERAGE_"


@contextmanager
def unmeasured() -> Generator[None]:
    """Tracing takes as long as the work itself; a kill throws away what it has seen anyway.

    Processes that are started meanwhile are not measured either: of a short one, coverage is most.
    """
    measuring = coverage.Coverage.current()
    if measuring is None:
        yield
        return
    others = {key: value for key, value in os.environ.items() if not key.startswith(PASSED_ON)}
    measuring.stop()
    try:
        with mock.patch.dict(os.environ, others, clear=True):
            yield
    finally:
        measuring.start()
