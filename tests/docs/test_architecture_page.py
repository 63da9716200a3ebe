"""The walks through the code lead to places that are there."""

import ast
import re
from pathlib import Path

import cleveragents

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(cleveragents.__file__).parent
PAGE = (ROOT / "docs/architecture.md").read_text("utf-8")
NAMED = re.compile(r"`((?:[\w]+/)*\w+\.py)`\s+`([\w.]+)`")
ALONE = re.compile(r"`([A-Z]\w+\.\w+)`")


def test_every_file_and_name_of_the_walks_is_there() -> None:
    found = NAMED.findall(PAGE)
    assert len(found) > 30
    assert [(path, name) for path, name in found if name not in _names(SOURCE / path)] == []


def test_every_method_that_is_named_without_its_file_is_there() -> None:
    known = {name for path, _ in NAMED.findall(PAGE) for name in _names(SOURCE / path)}
    assert [name for name in ALONE.findall(PAGE) if name not in known] == []


def test_every_folder_that_is_named_is_there() -> None:
    folders = re.findall(r"`((?:cli|domain|infrastructure|application)/[\w/]*)`", PAGE)
    assert [folder for folder in folders if not (SOURCE / folder).is_dir()] == []


def _names(path: Path) -> set[str]:
    """Functions, classes, methods and constants of a module."""
    if not path.exists():
        return set()
    names: set[str] = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            inner = [n for n in node.body if isinstance(n, ast.FunctionDef)]
            names |= {f"{node.name}.{method.name}" for method in inner}
        if isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def test_every_name_of_the_glossary_is_there() -> None:
    rows = re.findall(r"^\| .* \| (`.*`) \|$", (ROOT / "docs/glossary.md").read_text("utf-8"), re.M)
    names = {name for row in rows for name in re.findall(r"`([\w.]+)`", row)}
    assert len(names) > 40
    there = set[str]().union(*(_names(path) for path in SOURCE.rglob("*.py")))
    assert names - there == set()
