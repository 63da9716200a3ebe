"""A home, a project and an environment of its own, to try settings with."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from cleveragents import config
from cleveragents.config import ConfigProblem, LoadedSettings, editing

TRIGGERS = "sandbox.checkpoint.auto-create-on"
MAXIMUM = "sandbox.checkpoint.max-checkpoints-per-plan"


class World:
    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.cwd = root / "work" / "project" / "src"
        self.home.mkdir()
        self.cwd.mkdir(parents=True)
        self.global_file = self.home / ".cleveragents" / "config.toml"
        self.project_file = self.cwd.parent / ".cleveragents" / "config.toml"
        self.config_path: str | None = None

    def load(
        self, environ: Mapping[str, str] | None = None, flags: Mapping[str, str] | None = None
    ) -> LoadedSettings:
        return config.load_settings(
            environ or {},
            home=str(self.home),
            cwd=str(self.cwd),
            flags=flags or {},
            config_path=self.config_path,
        )

    def set(self, key: str, text: str, *, project: bool = False) -> str:
        return editing.set_value(
            key,
            text,
            home=str(self.home),
            cwd=str(self.cwd),
            config_path=self.config_path,
            project=project,
        )

    def write_global(self, text: str) -> Path:
        return write(self.global_file, text)

    def write_project(self, text: str) -> Path:
        return write(self.project_file, text)

    def refused(self, environ: Mapping[str, str] | None = None) -> ConfigProblem:
        with pytest.raises(ConfigProblem) as caught:
            self.load(environ)
        return caught.value


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)
