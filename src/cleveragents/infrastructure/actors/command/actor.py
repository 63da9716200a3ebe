"""The actor `command`: a coding agent's own program decides, and does, the steps."""

import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.domain.action import Action, Step
from cleveragents.domain.actor_protocol import (
    AGENT_TOOL,
    HEAD,
    SUMMARY,
    UNANNOUNCED,
    UNNOTED,
    UNSAVED,
    Finished,
    Memory,
    Proposal,
    Situation,
    StepOutcome,
    Strategy,
    Unannounced,
)
from cleveragents.domain.decision import ToolResult
from cleveragents.domain.errors import ActorError, ProgramFailedError, ToolError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import SandboxAddress
from cleveragents.infrastructure.actors.command.agents.known import KnownAgents, Whereabout
from cleveragents.infrastructure.actors.command.hook_client import FOLDER_VARIABLE
from cleveragents.infrastructure.actors.command.hooks import HookEvent, HookFolder
from cleveragents.infrastructure.actors.command.memory import MemoryFolder
from cleveragents.infrastructure.actors.command.process import (
    AgentCommand,
    AgentEnd,
    AgentProcess,
)
from cleveragents.infrastructure.actors.command.quiet_detection import Pauses, Stillness
from cleveragents.infrastructure.actors.command.sessions import AgentSession, Rest
from cleveragents.infrastructure.processes.runner import ProcessRunner, last_lines
from cleveragents.infrastructure.terminal.relays import KeptOutput, OpenRelay

MEMORY_VARIABLE = "CLEVERAGENTS_MEMORY"
_TASK_VARIABLE, _GUIDANCE_VARIABLE = "CLEVERAGENTS_TASK", "CLEVERAGENTS_GUIDANCE"
_PLAN, _STARTED, _PROBLEM, _SESSION = "plan", "started", "problem", "session"
_DEFAULT_TIMEOUT, _DEFAULT_QUIET = 3600.0, 2.0
_LONGEST_NAME, _LONGEST_RATIONALE, _LONGEST_SUMMARY = 60, 4000, 20_000


class _Live(Struct):
    """A session and the folder that its agent remembers things in."""

    session: AgentSession
    memory: MemoryFolder


class CommandActor:
    """`sandboxes` are those of a plan by name. What is live here is gone with the process: all
    that counts is in the plan's record, and the program is simply started again."""

    def __init__(
        self,
        runner: ProcessRunner,
        sandboxes: Callable[[PlanId], Mapping[str, SandboxAddress]],
        scratch: str,
        known: KnownAgents,
        open_relay: OpenRelay = KeptOutput,
    ) -> None:
        self._runner = runner
        self._known = known
        self._open_relay = open_relay
        self._sandboxes = sandboxes
        self._scratch = scratch
        self._live: dict[PlanId, _Live] = {}
        self._broken: dict[PlanId, ToolError] = {}
        self._situations: dict[PlanId, Situation] = {}

    def strategize(self, situation: Situation) -> Strategy:
        self._situations[situation.plan_id] = situation
        return Strategy(steps=())

    def decide(self, situation: Situation) -> Proposal | Unannounced | Finished:
        self._situations[situation.plan_id] = situation
        self._refuse_if_broken(situation.plan_id)
        live = self._session(situation)
        try:
            said = live.session.next_call()
        except ToolError as error:
            words = last_lines(live.session.said())
            self.release(situation.plan_id)
            raise ActorError(f"{error.message}{words}", error.hint) from error
        if isinstance(said, AgentEnd):
            return self._finished(situation, live, said)
        if isinstance(said, Rest):
            return Unannounced(memory=_at_rest(situation, live), said=_words(said))
        return self._proposal(situation, said, live.session.said())

    def observe(self, action: Action, state: Mapping[str, Any], outcome: StepOutcome) -> Memory:  # noqa: ARG002  each plan has its own
        plan_id = PlanId(state[_PLAN]) if _PLAN in state else None
        live = self._live.get(plan_id) if plan_id else None
        if outcome.error is not None and not outcome.step.tool.startswith(AGENT_TOOL):
            # A validation that failed, or a person's step: the agent is told when it starts.
            return Memory(state={**state, _PROBLEM: f"{outcome.step.name}: {outcome.error}"})
        if live is None:
            return Memory(state=state)
        if outcome.step.tool == UNANNOUNCED:
            live.session.noted()
        memory = _remembered(live.memory, state)
        if memory.head is None or not live.session.waits_with_result:
            return memory
        # Agents note a result once their hook has let them go on, and the files are captured now.
        unnoted = [*state.get(UNNOTED, ()), outcome.step.name]
        return replace(memory, state={**memory.state, UNNOTED: unnoted})

    def carry_out(self, plan_id: PlanId, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        """The step that the agent is about to do. Raises ToolError."""
        situation = self._situations[plan_id]
        live = self._session(situation)
        try:
            return live.session.carry_out(tool, arguments)
        except ToolError as error:
            if live.session.is_over:
                self._broken[plan_id] = error
                self.release(plan_id)
            raise

    def release(self, plan_id: PlanId) -> None:
        """End the plan's agent, if it is still running."""
        live = self._live.pop(plan_id, None)
        if live is not None:
            live.session.close()
            live.memory.close()

    # --- what it says ---------------------------------------------------------------------------

    def _proposal(self, situation: Situation, call: HookEvent, said: str) -> Proposal:
        state = _running(situation)
        if call.session:
            state[_SESSION] = call.session
        name = _name(call, self._sandboxes(situation.plan_id).values())
        return Proposal(
            step=Step(name=name, tool=AGENT_TOOL + call.tool, arguments=call.arguments),
            question="What does the agent do next?",
            rationale=said[-_LONGEST_RATIONALE:] or "the agent said nothing about it",
            memory=Memory(state=state),
        )

    def _finished(self, situation: Situation, live: _Live, end: AgentEnd) -> Finished:
        # Also what it said before it rested, if no step has that: its words belong to the end.
        words = live.session.said()
        if end.code != 0:
            self.release(situation.plan_id)
            if situation.action.is_program:
                told = f"the program ended with {end.in_words}{last_lines(words)}"
                failed = ProgramFailedError(situation.plan_id, told, end.hint)
                failed.ended_with = end.code
                raise failed
            raise ActorError(
                f"the agent ended with {end.in_words}{last_lines(words)}",
                end.hint or f"agents plan resume {situation.plan_id} starts it again",
            )
        said = words[-_LONGEST_SUMMARY:]
        state = _running(situation)
        memory = _remembered(live.memory, {**state, SUMMARY: said} if said else state)
        self.release(situation.plan_id)
        return Finished(memory=memory, summary=said)

    def _refuse_if_broken(self, plan_id: PlanId) -> None:
        error = self._broken.pop(plan_id, None)
        if error is not None:
            raise ActorError(error.message, error.hint)

    # --- its runs -------------------------------------------------------------------------------

    def _session(self, situation: Situation) -> _Live:
        live = self._live.get(situation.plan_id)
        if live is None:
            live = self._live[situation.plan_id] = self._start(situation)
        return live

    def _start(self, situation: Situation) -> _Live:
        options = situation.action.actor.options
        memory = MemoryFolder(self._scratch)
        try:
            if head := situation.state.get(HEAD):
                memory.fill(situation.recall(head))
            return _Live(self._started(situation, options, memory), memory)
        except ToolError as error:
            memory.close()
            raise ActorError(error.message, error.hint) from error
        except BaseException:
            memory.close()
            raise

    def _started(
        self, situation: Situation, options: Mapping[str, Any], memory: MemoryFolder
    ) -> AgentSession:
        # Its memory too: what it notes while it waits for its model is to be kept as well.
        sandboxes = self._sandboxes(situation.plan_id).values()
        folders = [*(address.folder for address in sandboxes), memory.path]
        pauses = Pauses(lambda: Stillness(folders), options.get("quiet_seconds", _DEFAULT_QUIET))
        tells = options.get("steps", "hooks") == "hooks"
        with ExitStack() as undone:
            undone.callback(pauses.close)
            hooks = HookFolder(self._scratch) if tells else None
            if hooks is None:
                pauses.begin()
            else:
                undone.callback(hooks.close)
            command = self._command(situation, memory, hooks)
            if hooks is not None and (name := options.get("agent")):
                where = self._where(situation, memory, hooks)
                command = self._known.injected(name, command, where)
            process = AgentProcess(self._runner, command, self._open_relay)
            undone.pop_all()
        return AgentSession(process, hooks, pauses, keeps=options.get("failure") == "keep")

    def _where(self, situation: Situation, memory: MemoryFolder, hooks: HookFolder) -> Whereabout:
        first = situation.action.resources[0]
        return Whereabout(
            hooks=hooks.path,
            memory=memory.path,
            top=self._sandboxes(situation.plan_id)[first.name].folder,
            project=first.location,
            session=situation.state.get(_SESSION, ""),
        )

    def _command(
        self, situation: Situation, memory: MemoryFolder, hooks: HookFolder | None
    ) -> AgentCommand:
        action, options = situation.action, situation.action.actor.options
        sandboxes = self._sandboxes(situation.plan_id)
        told = {"task": _task(action), "guidance": _guidance(situation)}
        writable = (memory.path,) if hooks is None else (memory.path, hooks.path)
        hook_variable = {} if hooks is None else {FOLDER_VARIABLE: hooks.path}
        return AgentCommand(
            plan_id=situation.plan_id,
            argv=_filled(_argv(options, started=_STARTED in situation.state), told),
            folder=_folder(action, options, sandboxes),
            sandboxes=sandboxes,
            timeout=options.get("timeout", _DEFAULT_TIMEOUT),
            confinement=action.confinement,
            writable=writable,
            variables={
                MEMORY_VARIABLE: memory.path,
                _TASK_VARIABLE: told["task"],
                _GUIDANCE_VARIABLE: told["guidance"],
                **hook_variable,
            },
        )


def _at_rest(situation: Situation, live: _Live) -> Memory:
    """What the agent knows by now, while the files are as it left them."""
    state = _running(situation)
    if live.session.has_gone_on:
        state.pop(UNNOTED, None)
    return _remembered(live.memory, state)


def _remembered(folder: MemoryFolder, state: Mapping[str, Any]) -> Memory:
    message, skipped = folder.changes(state.get(HEAD))
    known = {key: value for key, value in state.items() if key != UNSAVED}
    if skipped:
        known[UNSAVED] = list(skipped)
    if message is None:
        return Memory(state=known)
    return Memory(state={**known, HEAD: message.key}, added=(message,))


def _running(situation: Situation) -> dict[str, Any]:
    """What is known once the agent was started; of a problem it was told then."""
    settled = {key: value for key, value in situation.state.items() if key != _PROBLEM}
    return {**settled, _PLAN: situation.plan_id, _STARTED: True}


def _argv(options: Mapping[str, Any], *, started: bool) -> Sequence[str]:
    wanted = options.get("resume") if started else None
    command = wanted or options["command"]
    return shlex.split(command) if isinstance(command, str) else command


def _filled(argv: Sequence[str], told: Mapping[str, str]) -> list[str]:
    """Each placeholder is part of one argument, whatever its text is."""
    return [
        part.replace("{task}", told["task"]).replace("{guidance}", told["guidance"])
        for part in argv
    ]


def _task(action: Action) -> str:
    rules = "\n".join(f"- {rule}" for rule in action.invariants)
    return f"{action.description}\n\nAlways:\n{rules}" if rules else action.description


def _guidance(situation: Situation) -> str:
    texts = [item.text for item in situation.guidance]
    problem = situation.state.get(_PROBLEM)
    if problem:
        texts.append(f"This failed: {problem}")
    if unnoted := situation.state.get(UNNOTED):
        done = ", ".join(unnoted)
        texts.append(f"This was done and is in the files, whatever you remember of it: {done}")
    return "\n".join(texts)


def _words(rest: Rest) -> str:
    said = rest.said[-_LONGEST_RATIONALE:]
    return f"{said}\n[{rest.problem}]".lstrip() if rest.problem else said


def _folder(
    action: Action, options: Mapping[str, Any], sandboxes: Mapping[str, SandboxAddress]
) -> str:
    top = sandboxes[options.get("resource") or action.resources[0].name].folder
    wanted = os.path.normpath(os.path.join(top, options.get("folder", "")))
    # What is ignored, or was never added, is not in the sandbox; nor may a link lead out of it.
    while not os.path.isdir(wanted) or not f"{os.path.realpath(wanted)}/".startswith(
        f"{os.path.realpath(top)}/"
    ):
        if len(wanted) <= len(top):
            return top
        wanted = os.path.dirname(wanted)
    return wanted


def _name(call: HookEvent, sandboxes: Iterable[SandboxAddress]) -> str:
    """The call in a few words: what most agents' tools are about."""
    for key in ("file_path", "filePath", "path", "command", "description", "pattern", "url"):
        value = call.arguments.get(key)
        if isinstance(value, str) and value.strip():
            first = value.strip().splitlines()[0]
            for place in (p for a in sandboxes for p in (a.value, a.home) if p):
                first = first.replace(os.path.join(place, ""), "")  # where it is says nothing
            short = first if len(first) <= _LONGEST_NAME else first[: _LONGEST_NAME - 1] + "…"
            return f"{call.tool} {short}"
    return call.tool
