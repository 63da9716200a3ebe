"""Compiled modules of ours are found at once if they belong to their source; else Python looks."""

import importlib.machinery
import importlib.util
import py_compile
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cleveragents.cli.own_modules import OwnModules, find_own_modules

NAME = "cleveragents.made_for_a_test"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Compiled, as Python leaves it beside its source."""
    file = tmp_path / "made_for_a_test.py"
    file.write_text("VALUE = 1\n")
    py_compile.compile(str(file), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
    return file


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "made_for_a_test"
    folder.mkdir()
    (folder / "__init__.py").write_text("VALUE = 2\n")
    py_compile.compile(
        str(folder / "__init__.py"), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP
    )
    return folder


@pytest.fixture(autouse=True)
def searched_as_before() -> Iterator[None]:
    before = list(sys.meta_path)
    yield
    sys.meta_path[:] = before


def found(folder: Path, name: str = NAME):
    return OwnModules.find_spec(name, [str(folder)])


def test_a_compiled_module_is_found_as_python_would_find_it(source: Path) -> None:
    spec = found(source.parent)
    theirs = importlib.machinery.PathFinder.find_spec(NAME, [str(source.parent)])

    assert spec is not None and theirs is not None
    assert (spec.name, spec.origin, spec.cached) == (theirs.name, theirs.origin, theirs.cached)
    assert spec.has_location
    assert spec.submodule_search_locations is None
    module = importlib.util.module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(module)
    assert module.VALUE == 1
    assert spec.loader.get_source(NAME) == "VALUE = 1\n"  # type: ignore[attr-defined]


def test_a_package_says_where_its_modules_are(package: Path) -> None:
    spec = found(package.parent)

    assert spec is not None
    assert spec.submodule_search_locations == [str(package)]
    assert spec.origin == str(package / "__init__.py")


def _changed(source: Path) -> None:
    source.write_text("VALUE = 1000\n")


def _of_another_python(source: Path) -> None:
    cached = Path(importlib.util.cache_from_source(str(source)))
    cached.write_bytes(b"\0\0\0\0" + cached.read_bytes()[4:])


def _torn(source: Path) -> None:
    cached = Path(importlib.util.cache_from_source(str(source)))
    cached.write_bytes(cached.read_bytes()[:24])


def _by_hash(source: Path) -> None:
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(source), invalidation_mode=mode)


def _compiled_elsewhere(source: Path) -> None:
    mode = py_compile.PycInvalidationMode.TIMESTAMP
    py_compile.compile(str(source), dfile="/elsewhere.py", invalidation_mode=mode)


def _not_compiled(source: Path) -> None:
    Path(importlib.util.cache_from_source(str(source))).unlink()


@pytest.mark.parametrize(
    "spoil", [_changed, _of_another_python, _torn, _by_hash, _compiled_elsewhere, _not_compiled]
)
def test_what_does_not_belong_to_its_source_is_left_to_python(source: Path, spoil) -> None:
    assert found(source.parent) is not None
    spoil(source)
    assert found(source.parent) is None


def test_what_is_not_ours_is_left_to_python(source: Path) -> None:
    assert found(source.parent, "made_for_a_test") is None
    assert OwnModules.find_spec(NAME) is None
    assert found(source.parent, "cleveragents.not_there") is None


def test_nothing_is_changed_where_compiled_modules_lie_somewhere_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", "/somewhere")
    find_own_modules()
    assert OwnModules not in sys.meta_path


def test_it_is_asked_right_before_that_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who else wants to be asked first, such as a program that traces imports, still is."""
    monkeypatch.setattr(sys, "pycache_prefix", None)
    before = list(sys.meta_path)
    find_own_modules()
    place = sys.meta_path.index(OwnModules)
    assert sys.meta_path[place + 1] is importlib.machinery.PathFinder
    assert [it for it in sys.meta_path if it is not OwnModules] == before


def test_where_python_searches_in_another_way_nothing_is_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", None)
    sys.meta_path.remove(importlib.machinery.PathFinder)
    find_own_modules()
    assert OwnModules not in sys.meta_path


def test_the_command_finds_its_modules_so(tmp_path: Path) -> None:
    script = (
        "import sys; sys.argv = ['agents', 'config', 'list']; import atexit\n"
        "def told():\n"
        "    ours = [m for n, m in sys.modules.items() if n.startswith('cleveragents.')]\n"
        "    own = [m for m in ours if type(m.__spec__.loader).__name__ == '_Compiled']\n"
        "    print(len(own) > len(ours) / 2, file=sys.stderr, flush=True)\n"
        "atexit.register(told)\n"
        "from cleveragents.__main__ import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", script]
    env = {"HOME": str(tmp_path), "LANG": "C.UTF-8"}
    said = ""
    for _ in range(2):  # the first time may be what compiles them
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        said = done.stderr
    assert said.endswith("True\n")
