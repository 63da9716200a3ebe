"""The JSON Schema of action files says what the program says, as far as it can."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.agents import Agents

from cleveragents.infrastructure.actionfile.actors import CommandKeys, LlmKeys
from cleveragents.infrastructure.actionfile.sections import (
    SECTIONS,
    ActionKeys,
    ConfinementKeys,
    SubplansKeys,
)

pytest.importorskip("jsonschema", reason="this .venv is older than pyproject.toml; `make test`")
from jsonschema import Draft202012Validator

ROOT = Path(__file__).resolve().parents[2]
FENCED = re.compile(r"^```yaml.*?\n(.*?)^```", re.DOTALL | re.MULTILINE)
SCHEMA = json.loads((ROOT / "docs/reference/action.schema.json").read_text("utf-8"))
WRITE = {"tool": "file.write", "with": {"path": "a.txt", "content": "a"}}
GOOD: dict[str, Any] = {
    "name": "try",
    "description": "Try it",
    "resources": {"code": {"type": "git-checkout", "path": "."}},
    "steps": [WRITE],
}
CHILDREN = {"plans": [{"name": "one", "steps": [WRITE]}, {"name": "two", "steps": [WRITE]}]}
LLM = {"type": "llm", "model": "openai:x"}

GOOD_CHANGES: list[dict[str, Any]] = [
    {},
    {"resources": {"db": {"type": "sqlite", "path": "a.db"}}, "steps": [{"tool": "mine"}]}
    | {"tools": {"mine": {"command": ["true"], "timeout": 5}}},
    {"steps": [{"name": "both", "subplans": CHILDREN | {"parallel": True, "max_parallel": 2}}]},
    {"confinement": "required"},
    {"confinement": {"mode": "off", "network": True, "environment": ["A_KEY"], "write": ["~/x"]}},
    {"rollback_policy": {"enabled": True, "max_checkpoints": 5}},
    {"tools": {"t": {"command": ["x", "{a}"], "validation": "required"}}}
    | {"validations": [{"tool": "t", "with": {"a": "1"}}]},
]
BAD_CHANGES: list[dict[str, Any]] = [
    {"nmae": "typing error"},
    {"name": "a/b"},
    {"name": ""},
    {"name": "two\nlines"},
    {"description": 7},
    {"resources": {}},
    {"resources": {"1code": {"type": "git-checkout", "path": "."}}},
    {"resources": {"code": {"type": "git", "path": "."}}},
    {"resources": {"code": {"type": "git-checkout"}}},
    {"resources": {"code": {"type": "git-checkout", "path": ".", "url": "x"}}},
    {"resources": {"code": {"type": "git-checkout", "path": ".", "exclude": ["/etc"]}}},
    {"resources": {"code": {"type": "git-checkout", "path": ".", "include": ["a/../../b"]}}},
    {"resources": {"db": {"type": "sqlite", "path": "a.db", "exclude": ["b"]}}},
    {"resources": {"db": {"type": "postgres", "url": "mysql://x"}}},
    {"steps": []},
    {"steps": [{"name": "no tool"}]},
    {"steps": [{"tool": "file.write", "with": {"path": "a.txt"}}]},
    {"steps": [{"tool": "file.write"}]},
    {"steps": [{"tool": "file.read", "with": {"path": "a", "pth": "b"}}]},
    {"steps": [{"tool": "shell", "with": {"command": ["ls"]}}]},
    {"steps": [{"tool": "shell", "command": "ls"}]},
    {"steps": [WRITE | {"name": "x" * 201}]},
    {"steps": [{"subplans": {"plans": []}}]},
    {"steps": [{"subplans": CHILDREN | {"max_parallel": 51}}]},
    {"steps": [{"subplans": CHILDREN | {"merge_strategy": "mine"}}]},
    {"steps": [{"subplans": {"plans": [{"name": "1", "steps": [WRITE]}]}}]},
    {"steps": [WRITE | {"subplans": CHILDREN}]},
    {"max_retries_per_step": 101},
    {"max_retries_per_step": True},
    {"rollback_policy": {"max_checkpoints": 0}},
    {"tools": {"t": {"command": "a shell string"}}},
    {"tools": {"t": {"description": "does nothing"}}},
    {"tools": {"t": {"command": ["x"], "python": "y"}}},
    {"tools": {"t": {"server": "x"}}},
    {"tools": {"t t": {"command": ["x"]}}},
    {"tools": {"t": {"command": ["x"], "validation": "perhaps"}}},
    {"tools": {"t": {"command": ["x"], "timeout": 0}}},
    {"confinement": "sometimes"},
    {"confinement": {"environment": ["not a name"]}},
    {"confinement": {"write": ["relative"]}},
    {"validations": [{"subplans": CHILDREN}]},
    {"actor": "robot"},
    {"actor": {"type": "scripted", "model": "x"}},
    {"actor": {"type": "llm"}, "steps": None},
    {"actor": LLM | {"temperature": 3}, "steps": None},
    {"actor": {"type": "command", "command": []}, "steps": None},
]


def merged(changes: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in (GOOD | changes).items() if value is not None}


def problems(action: Any) -> list[str]:
    return [error.message for error in Draft202012Validator(SCHEMA).iter_errors(action)]


def examples() -> list[tuple[str, str]]:
    """Every whole action file that the repository shows."""
    found = [(str(p.relative_to(ROOT)), p.read_text("utf-8")) for p in ROOT.glob("demo/**/*.yaml")]
    for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]:
        blocks = FENCED.findall(page.read_text("utf-8"))
        found += [(page.name, text) for text in blocks if re.search("^description:", text, re.M)]
    assert len(found) > 5
    return found


@pytest.mark.parametrize(("name", "text"), examples())
def test_every_action_file_that_is_shown_is_valid(name: str, text: str) -> None:
    assert problems(yaml.safe_load(text)) == [], name


@pytest.mark.parametrize("changes", GOOD_CHANGES, ids=str)
def test_what_the_program_takes_the_schema_takes(changes: dict[str, Any], tmp_path: Path) -> None:
    action = merged(changes)
    assert problems(action) == []
    assert _read(tmp_path, action).code == 0


@pytest.mark.parametrize("changes", BAD_CHANGES, ids=str)
def test_what_the_schema_refuses_the_program_refuses(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    action = merged(changes)
    assert problems(action) != []
    answer = _read(tmp_path, action)
    assert (answer.code, answer.error["code"]) == (1, "action-invalid")


def test_the_command_prints_what_is_in_the_documentation(tmp_path: Path) -> None:
    agents = Agents(tmp_path, tmp_path)
    assert agents("action", "schema").ok().data["schema"] == SCHEMA
    assert json.loads(agents.inside("--format", "plain", "action", "schema").out) == SCHEMA


def test_every_key_is_in_the_reference() -> None:
    pages = ("action-file", "actors", "confinement", "tools")
    told = "".join((ROOT / f"docs/reference/{page}.md").read_text("utf-8") for page in pages)
    rows = set(re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", told, re.MULTILINE))
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    named |= set(re.findall(r"^ +(\w+):", told, re.MULTILINE))
    sections = (ActionKeys, ConfinementKeys, SubplansKeys, LlmKeys, CommandKeys, *SECTIONS)
    keys = {name for section in sections for name in section.keys}
    assert keys - named == set()


def _read(folder: Path, action: dict[str, Any]) -> Any:
    (folder / "action.yaml").write_text(json.dumps(action))
    return Agents(folder, folder)("action", "check", "--file-only", "action.yaml")
