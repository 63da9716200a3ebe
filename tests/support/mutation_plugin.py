"""How the unit tests run under `make mutate`: the quickest first, and the same every time."""

import functools
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

# What mutmut 3.8 reads of a test and pytest 9.2 calls otherwise.
pytest.Item._nodeid = property(lambda item: item.nodeid)  # type: ignore[attr-defined]

# A mistake is noticed or not: nobody looks at the smallest example, nor wants it to depend on luck.
settings.register_profile(
    "mutate",
    database=None,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=tuple(HealthCheck),
)
settings.load_profile("mutate")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test that fails ends the run."""
    known = _durations()
    items.sort(key=lambda item: known.get(item.nodeid, 0.0))


@functools.cache
def _durations() -> dict[str, float]:
    stats = Path("mutmut-stats.json")
    return json.loads(stats.read_text())["duration_by_test"] if stats.exists() else {}
