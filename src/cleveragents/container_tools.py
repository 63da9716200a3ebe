"""Owns the part of the wiring that runs tools: what they are, and what holds them inside.

Each property imports what it builds, as in the container, of which this is a part (ADR 0004).
"""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from cleveragents.config import Settings

if TYPE_CHECKING:
    from cleveragents.application.ports import Tools
    from cleveragents.infrastructure.confinement.confiner import Confiner


class ToolWiring:
    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ

    @cached_property
    def tools(self) -> "Tools":
        from cleveragents.infrastructure.tools.processes import ProcessRunner
        from cleveragents.infrastructure.tools.toolbox import ToolBox

        return ToolBox(ProcessRunner(self.confinements, self._settings.tool_output_limit))

    @cached_property
    def confinements(self) -> "Confiner":
        from cleveragents.infrastructure.confinement.confiner import Confiner

        return Confiner(
            environ=self._environ,
            scratch=self._in_data_dir("scratch"),
            configured=self._settings.confinement_mode,
            variables=self._settings.confinement_environment,
            process_limit=self._settings.tool_process_limit,
        )

    def _in_data_dir(self, name: str) -> str:
        return f"{self._settings.data_dir}/{name}"
