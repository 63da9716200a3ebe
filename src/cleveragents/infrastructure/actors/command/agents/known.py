"""Which agents are known here: for each name of a preset, how its hooks are put in."""

import os
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.infrastructure.actors.command.agents import (
    aider,
    claude,
    codex,
    gemini,
    opencode,
)
from cleveragents.infrastructure.actors.command.agents.agent_run import AgentRun, Injection
from cleveragents.infrastructure.actors.command.process import AgentCommand, as_command
from cleveragents.infrastructure.processes.runner import ProcessRunner
from cleveragents.infrastructure.processes.running import Running

_PREPARED: Mapping[str, Callable[[AgentRun], Injection]] = {
    "claude": claude.prepared,
    "codex": codex.prepared,
    "gemini": gemini.prepared,
    "opencode": opencode.prepared,
    "aider": aider.prepared,
}
_TALK_SECONDS = 60.0


class Whereabout(Struct, frozen=True, kw_only=True):
    """Of one start: the folder of its hooks, its memory, its sandbox, the project that is one of,
    and the conversation that it had before, if any."""

    hooks: str
    memory: str
    top: str
    project: str
    session: str = ""


class KnownAgents(Struct, frozen=True):
    """`hook` is the command `agents hook`, as it can be called from anywhere."""

    _runner: ProcessRunner
    _hook: Sequence[str]
    _environ: Mapping[str, str]

    def injected(self, name: str, command: AgentCommand, where: Whereabout) -> AgentCommand:
        """What to start, so that this agent calls our hooks. A name that is not known changes
        nothing: what such a program does is watched."""
        prepared = _PREPARED.get(name)
        if prepared is None:
            return command
        folder = os.path.join(where.hooks, "agent")
        os.mkdir(folder, 0o700)
        found = prepared(
            AgentRun(
                argv=command.argv,
                folder=folder,
                memory=where.memory,
                top=where.top,
                project=where.project,
                session=where.session,
                fresh=str(uuid.uuid4()),
                hook=self._hook,
                environ=self._environ,
                talk=lambda argv: self._talk(command, argv),
            )
        )
        variables = {**command.variables, **found.variables}
        return replace(command, argv=found.argv, variables=variables)

    @contextmanager
    def _talk(self, command: AgentCommand, argv: Sequence[str]) -> Generator[Running]:
        asked = replace(as_command(command), argv=argv, talks=True, timeout=_TALK_SECONDS)
        with self._runner.started(asked, self._runner.limits(_TALK_SECONDS)) as running:
            yield running
