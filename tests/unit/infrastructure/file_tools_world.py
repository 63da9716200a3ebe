"""A sandbox with a secret beside it, for the tests of the file tools."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.runners import runner_with

from cleveragents.application.ports.runtime import ToolContext
from cleveragents.domain.decision import ToolResult
from cleveragents.domain.ids import PlanId
from cleveragents.infrastructure.tools.builtin.file_tools import run
from cleveragents.infrastructure.tools.builtin.search_tool import search

MOST = 100_000
SECRET = "the secret of somebody else\n"


@dataclass
class Sandbox:
    """A sandbox, and beside it a folder that no tool may see or touch."""

    root: Path
    outside: Path

    def __call__(self, tool: str, path: str | None = None, **arguments: Any) -> ToolResult:
        given = arguments if path is None else {"path": path, **arguments}
        if tool != "search":
            return run(f"file.{tool}", str(self.root), given, MOST)
        context = ToolContext(
            plan_id=PlanId("01HZZZZZZZZZZZZZZZZZZZZZZZ"), sandboxes={}, timeout=60
        )
        return search(runner_with({}, MOST), str(self.root), given, context, 60)

    def file(self, path: str, content: str | bytes) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        return target

    def content(self) -> Mapping[str, str | bytes]:
        return {
            str(path.relative_to(self.root)): seen(path) for path in sorted(self.root.rglob("*"))
        }


def seen(path: Path) -> str | bytes:
    if path.is_symlink():
        return f"-> {path.readlink()}"
    return path.read_bytes() if path.is_file() else "folder"


@pytest.fixture
def box(tmp_path: Path) -> Sandbox:
    made = Sandbox(tmp_path / "sandbox", tmp_path / "outside")
    made.root.mkdir()
    made.outside.mkdir()
    (made.outside / "secret.txt").write_text(SECRET)
    made.file(".git", "gitdir: elsewhere\n")
    return made
