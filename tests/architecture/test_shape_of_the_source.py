"""The shape of source and tests: sizes, names, docstrings, and settings that somebody reads."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import cleveragents
from cleveragents.config import KEYS

ROOT = Path(cleveragents.__file__).parent
TESTS = Path(__file__).parents[1]
MOST_LINES = 400
MOST_FUNCTION_LINES = 45
MOST_MODULES = 15
MOST_COLLABORATORS = 6
# Where guessing by name works as well in a long list: one word of the system each, one view each.
FLAT = {"domain", "cli/views"}
# What a type keeps for itself, and what was known for a decision: a Struct wherever it is read.
OPAQUE = {"details", "token", "intent", "context"}
# Of constructors that take more than MOST_COLLABORATORS; none may be added.
CROWDED = {"infrastructure/sandbox/workbench.py:Workbench"}
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc"}
# A migration is a list of tables, and is never edited once it is released.
MIGRATIONS = "infrastructure/database/migrations/versions/"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.Module]:
    found = {
        str(path.relative_to(ROOT)): ast.parse(path.read_text("utf-8"))
        for path in sorted(ROOT.rglob("*.py"))
    }
    assert len(found) > 50
    return found


def long_modules(below: Path) -> dict[str, int]:
    sizes = {
        str(path.relative_to(below)): len(path.read_text("utf-8").splitlines())
        for path in below.rglob("*.py")
    }
    return {name: size for name, size in sizes.items() if size > MOST_LINES}


def functions(module: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(module):
        if isinstance(node, Function) and node.end_lineno is not None:
            yield node.name, node.end_lineno - node.lineno + 1


@pytest.mark.parametrize("below", [ROOT, TESTS], ids=["source", "tests"])
def test_no_module_is_too_long(below: Path) -> None:
    assert long_modules(below) == {}


def test_no_folder_has_more_modules_than_fit_a_glance(modules: dict[str, ast.Module]) -> None:
    sizes = Counter(str(Path(path).parent) for path in modules if not path.endswith("__init__.py"))
    too_many = {folder: size for folder, size in sizes.items() if size > MOST_MODULES}
    assert too_many.keys() <= FLAT, too_many


def test_the_clock_is_the_only_loose_adapter(modules: dict[str, ast.Module]) -> None:
    loose = [path for path in modules if Path(path).parent == Path("infrastructure")]
    assert sorted(loose) == ["infrastructure/__init__.py", "infrastructure/clock.py"]


def test_every_class_name_is_defined_once(modules: dict[str, ast.Module]) -> None:
    places: dict[str, list[str]] = {}
    for path, module in modules.items():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(path)
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_no_function_is_too_long(modules: dict[str, ast.Module]) -> None:
    too_long = {
        f"{path}:{name}": size
        for path, module in modules.items()
        if not path.startswith(MIGRATIONS)
        for name, size in functions(module)
        if size > MOST_FUNCTION_LINES
    }
    assert too_long == {}


def collaborators(service: ast.ClassDef) -> int:
    """What it is made with: its constructor's parameters, or the fields that have no default."""
    for item in service.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            return len(item.args.args) + len(item.args.kwonlyargs) - 1
    fields = [item for item in service.body if isinstance(item, ast.AnnAssign)]
    return sum(ast.unparse(item.target).startswith("_") and not item.value for item in fields)


def test_no_service_has_more_collaborators_than_one_can_keep_in_mind(
    modules: dict[str, ast.Module],
) -> None:
    many = {
        f"{path}:{node.name}": collaborators(node)
        for path, module in modules.items()
        if path.startswith(("application/", "infrastructure/"))
        for node in ast.walk(module)
        if isinstance(node, ast.ClassDef) and collaborators(node) > MOST_COLLABORATORS
    }
    assert many.keys() <= CROWDED, many


def test_every_module_opens_with_a_line_that_says_what_it_is_for(
    modules: dict[str, ast.Module],
) -> None:
    silent = [
        path
        for path, module in modules.items()
        if not (ast.get_docstring(module, clean=False) or "").partition("\n")[0].strip()
    ]
    assert silent == []


def test_every_test_file_says_what_it_proves() -> None:
    files = list(TESTS.rglob("*.py"))
    assert len(files) > 100
    assert [
        str(path) for path in files if not ast.get_docstring(ast.parse(path.read_bytes()))
    ] == []


def test_no_two_test_files_have_one_name() -> None:
    # The folders of tests are no packages: of two such files pytest could collect only one.
    names = Counter(path.name for path in TESTS.rglob("test_*.py"))
    assert [name for name, times in names.items() if times > 1] == []


def test_every_module_is_named_after_what_it_owns(modules: dict[str, ast.Module]) -> None:
    vague = [
        path
        for path in modules
        if VAGUE & {word for part in Path(path).with_suffix("").parts for word in part.split("_")}
    ]
    assert vague == []


def test_stored_state_is_read_as_its_type_and_not_by_text_keys(
    modules: dict[str, ast.Module],
) -> None:
    by_text = [
        f"{path}:{node.lineno}"
        for path, module in modules.items()
        for node in ast.walk(module)
        if isinstance(node, ast.Subscript)
        or (isinstance(node, ast.Attribute) and node.attr in ("get", "items", "keys"))
        if isinstance(node.value, ast.Attribute) and node.value.attr in OPAQUE
    ]
    assert by_text == []


def test_every_setting_is_read_outside_the_config(modules: dict[str, ast.Module]) -> None:
    read = {
        node.attr
        for path, module in modules.items()
        if not path.startswith("config/")
        for node in ast.walk(module)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }
    assert {key.field for key in KEYS} - read == set()
