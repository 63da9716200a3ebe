"""What every suite shares: the collected tests are no garbage, and need not be looked at again."""

import gc

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Modules and thousands of tests stay until the end. Tests that fork collect garbage first, so
    that nothing open is closed by the child: a fifth of a second each time, if all were looked at.
    """
    gc.collect()
    gc.freeze()
