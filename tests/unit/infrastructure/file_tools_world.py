"""A sandbox with a secret beside it, for the tests of the file tools."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cleveragents.domain.decision import ToolResult
from cleveragents.infrastructure.tools.file_tools import FILE_TOOLS

SECRET = "the secret of somebody else\n"


@dataclass
class Sandbox:
    """A sandbox, and beside it a folder that no tool may see or touch."""

    root: Path
    outside: Path

    def __call__(self, tool: str, path: str | None = None, **arguments: Any) -> ToolResult:
        given = arguments if path is None else {"path": path, **arguments}
        return FILE_TOOLS[f"file.{tool}"](str(self.root), given)

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
