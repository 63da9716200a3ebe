"""The part of the wiring that decides and runs steps: actors, tools, what holds them inside.

Each property imports what it builds, as in the container, of which this is a part (ADR 0004).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cleveragents.config import Settings

if TYPE_CHECKING:
    from cleveragents.application.ports.runtime import EventSink, Tools
    from cleveragents.domain.confinement import Confinement, Enforcement
    from cleveragents.domain.ids import PlanId
    from cleveragents.domain.resource import PlanResource, SandboxAddress
    from cleveragents.infrastructure.terminal.console import Console

SQLITE = "sqlite:///"


class ToolWiring(ABC):
    def __init__(self, settings: Settings, environ: Mapping[str, str], events: "EventSink") -> None:
        self._settings = settings
        self._environ = environ
        self._sink = events
        self._console: Console | None = None

    def show_programs(self, *, aside: bool) -> "Console":
        """From now on what a coding agent prints is seen, and it can be typed at. `aside`: on
        stderr, as our output is for an answer."""
        from cleveragents.infrastructure.terminal.console import Console

        self._console = Console(aside=aside)
        return self._console

    @cached_property
    def _events(self):
        from cleveragents.application.plan_events import PlanEvents

        return PlanEvents(self._sink)

    @cached_property
    def tools(self) -> "Tools":
        from cleveragents.infrastructure.actors.agent_tools import AgentTools

        return AgentTools(
            self._processes, self._databases, lambda: self._command_actor, self._release_agent
        )

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
        if "_fork_server" in self.__dict__:
            self._fork_server.close()

    @cached_property
    def data_folder(self):
        from cleveragents.infrastructure.files.data_folder import DataFolder

        return DataFolder(self._settings.data_dir)

    @cached_property
    def confinements(self):
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

    def held_by(self, asked: "Confinement") -> "Enforcement":
        """What this machine can do of it, for people to see; steps do not rely on this."""
        from cleveragents.domain.confinement import ConfinementMeans, ConfinementMode, enforcement
        from cleveragents.infrastructure.confinement.remembered import RememberedMachine

        if asked.by is ConfinementMeans.BUBBLEWRAP:
            return self.confinements.enforcement(asked)
        known = RememberedMachine(
            self._in_data_dir("machine.json"),
            lambda: self.confinements.machine.abilities(with_bubblewrap=False, with_layers=True),
        )
        was_asked = "confinements" in self.__dict__  # by a step that this process has run
        found = known.found_out() if was_asked else known.abilities()
        return enforcement(asked, ConfinementMode(self._settings.confinement_mode), found)

    @staticmethod
    def tell_hook(folder: str, message: Mapping[str, Any]) -> str:
        """What a coding agent's hook has to tell its plan; why it may not go on, if so."""
        from cleveragents.infrastructure.actors.command.hook_client import NobodyListensError, tell

        try:
            return tell(folder, message)
        except NobodyListensError:
            return "the plan that started this agent is not running any more"

    @cached_property
    def _command_actor(self):
        from cleveragents.infrastructure.actors.command.actor import CommandActor
        from cleveragents.infrastructure.actors.command.agents.known import KnownAgents
        from cleveragents.infrastructure.surroundings.own_program import own_program
        from cleveragents.infrastructure.terminal.relays import KeptOutput

        known = KnownAgents(self._processes, [*own_program(), "hook"], self._environ)
        relay = KeptOutput if self._console is None else self._console.open_relay
        scratch = self._in_data_dir("scratch")
        return CommandActor(self._processes, self._addresses, scratch, known, relay)

    @cached_property
    def _actors(self):
        from cleveragents.infrastructure.actors.llm.factory import LlmKind
        from cleveragents.infrastructure.actors.registry import ActorKind, ActorRegistry, ReadyKind

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
    def _clock(self):
        from cleveragents.infrastructure.clock import SystemClock

        return SystemClock()

    @cached_property
    def _processes(self):
        from cleveragents.infrastructure.processes.runner import ProcessRunner

        return ProcessRunner(
            self.confinements,
            self._fork_server,
            self._settings.tool_output_limit,
            self._project_views,
        )

    @cached_property
    def _fork_server(self):
        from cleveragents.infrastructure.processes.forking.fork_server import ForkServer

        return ForkServer()

    @cached_property
    def _project_views(self):
        from cleveragents.infrastructure.sandbox.project_view.project_views import ProjectViews

        return ProjectViews(self._sandboxed, self._layers, self._settings.data_dir)

    @cached_property
    def _layers(self):
        from cleveragents.infrastructure.sandbox.project_view.layers import SandboxLayers

        sandboxes, scratch = self._in_data_dir("sandboxes"), self._in_data_dir("scratch")
        return SandboxLayers(
            sandboxes, scratch, lambda asked, at: self.confinements.can_layer(asked, at)
        )

    @cached_property
    def _databases(self):
        from cleveragents.infrastructure.sqlite.worker import DatabaseWorkers

        return DatabaseWorkers(lambda: self._own_work)

    @cached_property
    def _own_work(self):
        from cleveragents.infrastructure.processes.own_work import OwnWork

        return OwnWork(self.confinements, self._fork_server)

    @abstractmethod
    def _sandboxed(self, plan_id: "PlanId") -> "Sequence[PlanResource]":
        """The resources of a plan that have a sandbox."""

    @abstractmethod
    def _addresses(self, plan_id: "PlanId") -> "Mapping[str, SandboxAddress]":
        """Where the sandboxes of a plan are, by the names of its resources."""

    def _in_data_dir(self, name: str) -> str:
        return f"{self._settings.data_dir}/{name}"
