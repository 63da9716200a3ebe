"""How the unit tests run under `make mutate`: the nearest first, and the same every time."""

import functools
import json
import resource
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

# A mistake can make a test collect things for ever, and the machine is not its own.
_MOST_MEMORY = 2 << 30
resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))

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

# The tests of what the mistakes are put into; they are few, and notice nearly all of them.
NEAREST = (
    "tests/unit/domain/",
    "tests/unit/application/test_checkpoint_service.py",
    "tests/unit/application/test_pruning.py",
)
# These prove the order of things by a kill at every port call, which is half of the time of all.
LEFT_OUT = "test_service_crashes.py"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    return True if collection_path.name == LEFT_OUT else None


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, int, int]:
    """All others run only if the nearest notice nothing: collecting hundreds takes the time."""
    chosen = [arg for arg in config.args if "::" in arg]
    near = [arg for arg in chosen if arg.startswith(NEAREST)]
    far = [arg for arg in chosen if not arg.startswith(NEAREST)]
    if near and far:
        config.args[:] = near
    found = yield
    if near and far and not found:
        options = [arg for arg in config.invocation_params.args if arg not in chosen]
        return int(pytest.main([*options, *far]))
    return found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test that fails ends the run."""
    known = _durations()
    items.sort(key=lambda item: known.get(item.nodeid, 0.0))


@functools.cache
def _durations() -> dict[str, float]:
    stats = Path("mutmut-stats.json")
    return json.loads(stats.read_text())["duration_by_test"] if stats.exists() else {}
