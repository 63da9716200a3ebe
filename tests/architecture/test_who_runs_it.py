"""Who runs it is asked at few places: most tests need not run as root as well (ADR 0069)."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/cleveragents/infrastructure"
ASKING = re.compile(r"\bos\.get(?:res|e)?[ug]id\(")

# What depends on it. Tests that go through a new one run as root and as an ordinary user: they are
# in ORDINARY of `tests/support/parts.py`, and not in ONCE.
PLACES = {
    "confinement/enclosure.py": "root gives its rights up before a step",
    "confinement/read_only_view.py": "the number that a step has in its view",
    "files/closed_process.py": "the number of whoever opens closed files",
    "files/copy/copy_worker.py": "whether the owner of a file has to be set",
    "files/copy/parallel_copy.py": "whether a mode stops us",
    "files/data_folder.py": "whether the data folder is ours",
    "sandbox/folder/apply/staging.py": "whether a folder for staged files is ours",
    "sandbox/folder/inspect.py": "whether files of others can be given back to them",
    "sandbox/in_place/databases/places.py": "whether a database is another user's",
}


def test_every_place_that_asks_who_runs_it_is_known() -> None:
    asking = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if ASKING.search(path.read_text())
    }
    assert asking == PLACES.keys()


@pytest.mark.parametrize("name", ["cli", "application", "domain", "config", "container"])
def test_elsewhere_nobody_asks(name: str) -> None:
    files = (ROOT / "src/cleveragents" / name).rglob("*.py")
    assert [path for path in files if ASKING.search(path.read_text())] == []


def test_what_runs_once_is_run_by_the_ordinary_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # as `nox` does
    parts = runpy.run_path("tests/support/parts.py")
    once, ordinary = (parts["files_at"](*parts[name]) for name in ("ONCE", "ORDINARY"))
    assert once < ordinary
