"""The part of the wiring that decides and runs steps: actors, tools, what holds them inside.

Each property imports what it builds, as in the container, of which this is a part (ADR 0004).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cleveragents.application.plan_events import PlanEvents
from cleveragents.config import Settings

if TYPE_CHECKING:
    from cleveragents.application.ports.runtime import EventSink, Tools
    from cleveragents.domain.ids import PlanId
    from cleveragents.domain.resource import SandboxAddress
    from cleveragents.infrastructure.actors.command.actor import CommandActor
    from cleveragents.infrastructure.actors.registry import ActorRegistry
    from cleveragents.infrastructure.clock import SystemClock
    from cleveragents.infrastructure.confinement.confiner import Confiner
    from cleveragents.infrastructure.files.data_folder import DataFolder
    from cleveragents.infrastructure.processes.own_work import OwnWork
    from cleveragents.infrastructure.processes.runner import ProcessRunner
    from cleveragents.infrastructure.sqlite.worker import DatabaseWorkers

SQLITE = "sqlite:///"


class ToolWiring(ABC):
    def __init__(self, settings: Settings, environ: Mapping[str, str], events: "EventSink") -> None:
        self._settings = settings
        self._environ = environ
        self._events = PlanEvents(events)

    @cached_property
    def tools(self) -> "Tools":
        from cleveragents.infrastructure.actors.agent_tools import AgentTools
        from cleveragents.infrastructure.tools.toolbox import ToolBox

        toolbox = ToolBox(self._processes, self._databases)
        return AgentTools(toolbox, lambda: self._command_actor, self._release_agent)

    def action_json_schema(self) -> Mapping[str, Any]:
        """What an editor has to know of action files."""
        from cleveragents.infrastructure.actionfile.json_schema import action_json_schema

        return action_json_schema(self.tools.specs(None))

    def close(self) -> None:
        """End what tools have left running between their calls."""
        if "tools" in self.__dict__:
            self.tools.close()
        if "_databases" in self.__dict__:
            self._databases.close()

    @cached_property
    def data_folder(self) -> "DataFolder":
        from cleveragents.infrastructure.files.data_folder import DataFolder

        return DataFolder(self._settings.data_dir)

    @cached_property
    def confinements(self) -> "Confiner":
        from os.path import realpath

        from cleveragents.infrastructure.confinement.confiner import Confiner
        from cleveragents.infrastructure.confinement.places import Store

        database = self._settings.database_url.removeprefix(SQLITE)
        return Confiner(
            environ=self._environ,
            scratch=self._in_data_dir("scratch"),
            store=Store(
                folder=realpath(self._settings.data_dir),
                database=realpath(database) if database else "",
            ),
            configured=self._settings.confinement_mode,
            variables=self._settings.confinement_environment,
            process_limit=self._settings.tool_process_limit,
        )

    @staticmethod
    def tell_hook(folder: str, message: Mapping[str, Any]) -> str:
        """What a coding agent's hook has to tell its plan; why it may not go on, if so."""
        from cleveragents.infrastructure.actors.command.hook_client import NobodyListensError, tell

        try:
            return tell(folder, message)
        except NobodyListensError:
            return "the plan that started this agent is not running any more"

    @cached_property
    def _command_actor(self) -> "CommandActor":
        from cleveragents.infrastructure.actors.command.actor import CommandActor

        return CommandActor(self._processes, self._addresses, self._in_data_dir("scratch"))

    @cached_property
    def _actors(self) -> "ActorRegistry":
        from cleveragents.infrastructure.actors.llm.factory import LlmKind
        from cleveragents.infrastructure.actors.registry import (
            ActorKind,
            ActorRegistry,
            ReadyKind,
        )

        around = (self.tools, self._clock, self._events)
        kinds: dict[str, ActorKind] = {
            "llm": LlmKind(self._settings, self._environ, around),
            "command": ReadyKind(lambda _: self._command_actor),
        }
        return ActorRegistry(kinds)

    def _release_agent(self, plan_id: "PlanId") -> None:
        if "_command_actor" in self.__dict__:
            self._command_actor.release(plan_id)

    @cached_property
    def _clock(self) -> "SystemClock":
        from cleveragents.infrastructure.clock import SystemClock

        return SystemClock()

    @cached_property
    def _processes(self) -> "ProcessRunner":
        from cleveragents.infrastructure.processes.runner import ProcessRunner

        return ProcessRunner(self.confinements, self._settings.tool_output_limit)

    @cached_property
    def _databases(self) -> "DatabaseWorkers":
        from cleveragents.infrastructure.sqlite.worker import DatabaseWorkers

        return DatabaseWorkers(lambda: self._own_work)

    @cached_property
    def _own_work(self) -> "OwnWork":
        from cleveragents.infrastructure.processes.own_work import OwnWork

        return OwnWork(self.confinements)

    @abstractmethod
    def _addresses(self, plan_id: "PlanId") -> "Mapping[str, SandboxAddress]":
        """Where the sandboxes of a plan are, by the names of its resources."""

    def _in_data_dir(self, name: str) -> str:
        return f"{self._settings.data_dir}/{name}"
