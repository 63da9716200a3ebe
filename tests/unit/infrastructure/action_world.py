"""An action file and a reader for it, for the tests of what such files mean."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from cleveragents.application.ports.actors import ActionReader
from cleveragents.domain.action import Action, Step
from cleveragents.domain.errors import ActionFileError
from cleveragents.domain.tool_schema import CallProblem
from cleveragents.infrastructure.actionfile.reader import YamlActionReader

BUILT_IN = ("file.write", "shell")
HEAD = "name: a\ndescription: d\nresources: {code: {type: git-checkout, path: .}}\n"
STEPS = "steps: [{tool: shell}]\n"


class World:
    def __init__(self, folder: Path) -> None:
        self.file = folder / "action.yaml"
        self.base_dir = "/base"
        self.check_step: Callable[[Action, Step], Sequence[CallProblem]] = lambda action, step: ()

    def reader(self) -> ActionReader:
        return YamlActionReader(
            base_dir=self.base_dir, builtin_names=BUILT_IN, check_step=self.check_step
        )

    def read(self, text: str | bytes, overrides: Mapping[str, str] | None = None) -> Action:
        self.file.write_bytes(text.encode() if isinstance(text, str) else text)
        return self.reader().read(str(self.file), overrides or {})

    def problems(
        self, text: str | bytes, overrides: Mapping[str, str] | None = None
    ) -> tuple[str, ...]:
        with pytest.raises(ActionFileError) as caught:
            self.read(text, overrides)
        return caught.value.problems

    def problem(self, text: str | bytes, overrides: Mapping[str, str] | None = None) -> str:
        (only,) = self.problems(text, overrides)
        return only


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def with_resource(text: str) -> str:
    return f"name: a\ndescription: d\nresources:\n  code: {text}\n{STEPS}"


def with_tool(text: str) -> str:
    return f"{HEAD}tools:\n  mine: {text}\n{STEPS}"


def with_step(text: str) -> str:
    return f"{HEAD}steps:\n  - {text}\n"


FULL = """
name: add-login
description: Add the login table
resources:
  code: {type: git-checkout, path: ., include: [.env, node_modules], exclude: [target/]}
  assets: {type: fs-directory, path: ./assets, checkpointable: false}
  db: {type: sqlite, path: /abs/app.db}
rollback_policy: {enabled: false, require_checkpoints: false, max_checkpoints: 5}
max_retries_per_step: 3
tools:
  migrate:
    description: Move the schema
    command: [python, migrate.py, "{target}", "--from={base}", "{target}", "{}", "{print $1}"]
    resource: code
    writes: true
    checkpointable: false
    write_scope: [db, gen/]
    reads: [db, "{target}", "."]
    side_effects: [sends a mail]
    idempotent: true
    compensate: look
    timeout: 3
  look:
    command: [cat, x]
    resource: db
    read_only: true
steps:
  - name: write the page
    tool: file.write
    with: {resource: code, path: src/login.py, content: "..."}
  - tool: migrate
"""
