"""What every suite shares: the collected tests are no garbage, and need not be looked at again."""

import gc
import os
import sys
from collections.abc import Generator

import coverage
import hypothesis
import pytest

# How long an example takes says how busy the machine is, and nothing about what is tested.
hypothesis.settings.register_profile("untimed", deadline=None)
if not os.environ.get("CI"):  # there hypothesis has a profile of its own, untimed too
    hypothesis.settings.load_profile("untimed")


def pytest_configure() -> None:
    """A process that is forked while another thread has coverage's lock would wait for it for ever.

    What makes the lock new in the child is no Python code: that would be traced, and wait itself.
    """
    collector = getattr(coverage.Coverage.current(), "_collector", None)
    lock = getattr(collector, "data_lock", None)
    if lock is not None:
        os.register_at_fork(after_in_child=lock._at_fork_reinit)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Modules and thousands of tests stay until the end. Tests that fork collect garbage first, so
    that nothing open is closed by the child: a fifth of a second each time, if all were looked at.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def nothing_stays_watched() -> Generator[None]:
    yield
    # Most tests watch nothing, and do not pay for the module either.
    if (runners := sys.modules.get("tests.support.runners")) is not None:
        runners.stop_watching()
