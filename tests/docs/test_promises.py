"""The map of promises leads somewhere: each promise to one test that is there."""

import ast
import re
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROW = re.compile(r"^\| .+ \| `([^`]+)::([^`]+)` \|$", re.MULTILINE)
PAGE = (TESTS / "promises.md").read_text("utf-8")


def test_every_promise_has_a_test_that_is_there() -> None:
    named = ROW.findall(PAGE)
    assert len(named) > 90
    assert [f"{file}::{name}" for file, name in named if name not in named_in(file)] == []


def test_every_row_is_a_promise_with_its_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    headings = [line for line in rows if line == "| promise | test |"]
    assert len(rows) == len(headings) + len(ROW.findall(PAGE))


def test_no_test_has_to_show_two_promises() -> None:
    twice = [key for key, number in Counter(ROW.findall(PAGE)).items() if number > 1]
    assert twice == []


def named_in(file: str) -> set[str]:
    path = TESTS / file
    if not path.exists():
        return set()
    body = ast.parse(path.read_text("utf-8")).body
    return {node.name for node in body if isinstance(node, ast.FunctionDef)}
