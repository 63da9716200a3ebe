"""Which tools there are, whether a call of one makes sense, and how it is run."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from msgspec.structs import replace

from cleveragents.application.ports.runtime import ToolContext
from cleveragents.domain.action import Action, Step, ToolSpec
from cleveragents.domain.decision import ToolResult
from cleveragents.domain.errors import (
    ToolArgumentError,
    ToolError,
    ToolNotFoundError,
    ToolNotStartedError,
)
from cleveragents.domain.footprint import Reach
from cleveragents.domain.ids import PlanId
from cleveragents.domain.preflight import refusals
from cleveragents.domain.resource import SandboxAddress
from cleveragents.domain.resource_kinds import SQLITE
from cleveragents.domain.scarcity import scarcity_of
from cleveragents.domain.tool_schema import CallProblem, fits
from cleveragents.infrastructure.processes.runner import Command, ProcessRunner
from cleveragents.infrastructure.sqlite.worker import DatabasePlace, DatabaseWorkers
from cleveragents.infrastructure.tools.builtin import file_tools, layer_tools, search_tool
from cleveragents.infrastructure.tools.builtin.git_tools import GIT_TOOLS
from cleveragents.infrastructure.tools.builtin.python_tools import (
    entry_point_problem,
    http_request,
    run_function,
)
from cleveragents.infrastructure.tools.builtin.specs import BUILT_IN
from cleveragents.infrastructure.tools.builtin.sql_tools import SQL_TOOLS
from cleveragents.infrastructure.tools.declared_reach import PLACEHOLDER, reach_of
from cleveragents.infrastructure.tools.mcp.servers import McpServers

_FILE_TOOLS = (*file_tools.FILE_TOOLS, search_tool.NAME)
_NOT_COMMANDS = (*_FILE_TOOLS, *SQL_TOOLS)


class ToolBox:
    """The built-in tools, and for an action its own ones beside them."""

    def __init__(self, processes: ProcessRunner, databases: DatabaseWorkers) -> None:
        self._processes = processes
        self._databases = databases
        self._servers = McpServers(processes)
        self._built_in = {spec.name: spec for spec in BUILT_IN}

    def stop(self, plan_id: PlanId) -> None:
        self._processes.stop(plan_id)

    def allow(self, plan_id: PlanId) -> None:
        self._processes.allow(plan_id)

    def end(self, plan_id: PlanId) -> None:
        self._servers.end(plan_id)

    def close(self) -> None:
        self._servers.close()

    def refuse_if_stopped(self, plan_id: PlanId) -> None:
        self._processes.refuse_if_stopped(plan_id)

    def specs(self, action: Action | None) -> Sequence[ToolSpec]:
        return [*BUILT_IN, *(action.tools if action else ())]

    def find(self, action: Action | None, name: str) -> ToolSpec:
        known = {spec.name: spec for spec in self.specs(action)}
        if name not in known:
            close = get_close_matches(name, known, n=1)
            raise ToolNotFoundError(name, close[0] if close else None)
        return known[name]

    def check(self, action: Action, step: Step) -> Sequence[CallProblem]:
        try:
            spec = self.find(action, step.tool)
        except ToolNotFoundError as error:
            return [CallProblem(text=error.message)]
        judged = {
            ("resources",): _resource_problems(spec, action, step),
            ("resources", "rollback_policy"): _checkpoint_problems(spec, action, step),
            ("confinement",): self._confinement_problems(spec, action),
            (): _python_problems(spec),
        }
        return [
            *_argument_problems(spec, step.arguments),
            *(CallProblem(text=t, rests_on=by) for by, texts in judged.items() for t in texts),
        ]

    def _confinement_problems(self, spec: ToolSpec, action: Action) -> list[str]:
        if spec.name in _NOT_COMMANDS and spec.name in self._built_in:
            return []
        if spec.network and not action.confinement.network:
            allow = "say `network: true` under `confinement`"
            return [f"`{spec.name}` needs the network, which this action does not have; {allow}"]
        refusal = self._processes.enforcement(action.confinement).refusal
        return [f"`{spec.name}` may not run: {refusal}"] if refusal else []

    def is_held_to_reading(self, action: Action, spec: ToolSpec) -> bool:
        if spec.name in _NOT_COMMANDS and spec.name in self._built_in:
            return True
        if spec.server is not None and spec.server not in action.reading_servers:
            return False  # the server has to be able to write for others
        return self._processes.is_held_to_reading(action.confinement)

    def reach(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, Any],
        action: Action,
        sandboxes: Mapping[str, str],
    ) -> Reach:
        return reach_of(spec, arguments, action, sandboxes)

    def run(self, spec: ToolSpec, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        self._processes.refuse_if_stopped(context.plan_id)
        problems = _argument_problems(spec, arguments)
        if problems:
            raise ToolArgumentError(spec.name, "; ".join(problem.text for problem in problems))
        address = _sandbox(spec, arguments, context)
        try:
            return self._run(spec, arguments, context, address)
        except (OSError, MemoryError, RuntimeError) as error:
            scarce = scarcity_of(error)
            if scarce is None:
                raise
            # The step fails, and is undone, as of any other trouble of a tool.
            raise ToolError(f"{spec.name}: {scarce.message}", scarce.hint) from error

    def _run(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, Any],
        context: ToolContext,
        address: SandboxAddress,
    ) -> ToolResult:
        root = address.value
        if spec.name in file_tools.FILE_TOOLS and spec.name in self._built_in:
            return layer_tools.run(spec.name, address, arguments, self._processes.output_limit)
        timeout = float(arguments.get("timeout", context.timeout))
        if spec.name == search_tool.NAME:
            return search_tool.search(self._processes, root, arguments, context, timeout)
        if spec.name in SQL_TOOLS and spec.name in self._built_in:
            place = DatabasePlace(root, context.confinement)
            return SQL_TOOLS[spec.name](self._databases, place, arguments, timeout)
        return self._run_process(spec, arguments, context, address.folder)

    def _run_process(
        self, spec: ToolSpec, arguments: Mapping[str, Any], context: ToolContext, folder: str
    ) -> ToolResult:
        command = _command(spec, arguments, context, folder)
        if spec.server is not None and spec.remote is not None:
            only_reads = spec.server in context.reading_servers
            started = replace(command, argv=context.servers[spec.server], read_only=only_reads)
            return self._servers.call(started, spec.server, spec.remote, arguments)
        if spec.python is not None:
            return run_function(self._processes, command, spec.python, arguments)
        if spec.name in GIT_TOOLS and spec.name in self._built_in:
            return GIT_TOOLS[spec.name](self._processes, command, arguments)
        if spec.network:
            _refuse_without_network(spec, context)
            return http_request(self._processes, command, arguments)
        return self._processes.run(command)


def _refuse_without_network(spec: ToolSpec, context: ToolContext) -> None:
    if not context.confinement.network:
        raise ToolNotStartedError(
            f"{spec.name}: this action has no network",
            "say `network: true` under `confinement` in the action file",
        )


def _python_problems(spec: ToolSpec) -> list[str]:
    problem = entry_point_problem(spec.python) if spec.python is not None else None
    return [] if problem is None else [f"`{spec.name}`: {problem}"]


def _argument_problems(spec: ToolSpec, arguments: Mapping[str, Any]) -> list[CallProblem]:
    known = {parameter.name: parameter for parameter in spec.parameters}
    problems = [
        CallProblem(text=f"`{spec.name}` needs `{name}` under `with`")
        for name, parameter in known.items()
        if parameter.required and name not in arguments
    ]
    for name, value in arguments.items():
        if name not in known and spec.open_ended:
            continue
        if name not in known:
            text = _unknown_argument(spec, name, list(known))
            problems.append(CallProblem(text=text, argument=name))
        elif not fits(value, known[name].type):
            text = f"`{name}` of `{spec.name}` must be a {known[name].type}"
            problems.append(CallProblem(text=text, argument=name))
    return problems


def _unknown_argument(spec: ToolSpec, name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name, known, n=1)
    meant = (
        f"; did you mean `{close[0]}`?" if close else f"; it takes {', '.join(known) or 'nothing'}"
    )
    return f"`{spec.name}` does not take `{name}`{meant}"


def _resource_problems(spec: ToolSpec, action: Action, step: Step) -> list[str]:
    if spec.resource is not None or not any(p.name == "resource" for p in spec.parameters):
        return []
    names = [resource.name for resource in action.resources]
    wanted = step.arguments.get("resource", names[0] if len(names) == 1 else None)
    if wanted is None:
        return [f"say which `resource`: {', '.join(names)}"]
    if wanted in names:
        return _type_problems(spec, action, wanted)
    close = get_close_matches(str(wanted), names, n=1)
    meant = f"; did you mean `{close[0]}`?" if close else f"; there are {', '.join(names)}"
    return [f"unknown resource `{wanted}`{meant}"]


def _checkpoint_problems(spec: ToolSpec, action: Action, step: Step) -> list[str]:
    """Refused here, before anything runs, rather than in the middle of the plan."""
    captured = {resource.name: resource.checkpointable for resource in action.resources}
    found = refusals(action.rollback_policy, spec, step.arguments, captured)
    allow = "set `require_checkpoints: false` under `rollback_policy` to allow it"
    return [f"{reason}; {allow}" for reason in found]


def _type_problems(spec: ToolSpec, action: Action, name: str) -> list[str]:
    resource = action.resource(name)
    if spec.command or resource is None:
        return []
    kind = resource.kind
    if spec.name in _FILE_TOOLS and kind.is_database:
        return [f"`{name}` is a database; use sql.query and sql.execute on it"]
    if spec.name in GIT_TOOLS and not kind.has_repository:
        known = [item.name for item in action.resources if item.kind.has_repository]
        hint = f"there is {', '.join(known)}" if known else "there is none of type git-checkout"
        return [f"`{spec.name}` needs a checkout, and `{name}` is of type {resource.type}; {hint}"]
    if spec.name in SQL_TOOLS and resource.type != SQLITE.type:
        known = [item.name for item in action.resources if item.type == SQLITE.type]
        hint = f"there is {', '.join(known)}" if known else "there is none of type sqlite"
        return [f"`{spec.name}` needs a database, and `{name}` is of type {resource.type}; {hint}"]
    return []


def _sandbox(spec: ToolSpec, arguments: Mapping[str, Any], context: ToolContext) -> SandboxAddress:
    name = spec.resource or arguments.get("resource")
    takes_one = any(parameter.name == "resource" for parameter in spec.parameters)
    if name is None and (len(context.sandboxes) == 1 or not takes_one):
        return next(iter(context.sandboxes.values()))
    if name is None or name not in context.sandboxes:
        raise ToolArgumentError(spec.name, f"there is no resource `{name}` in this plan")
    return context.sandboxes[name]


def _command(
    spec: ToolSpec, arguments: Mapping[str, Any], context: ToolContext, folder: str
) -> Command:
    if spec.command:
        # Argument by argument, so that a value can never become another argument or a shell word.
        argv = [_filled(part, arguments) for part in spec.command]
    else:
        argv = ["/bin/sh", "-c", arguments.get("command", "")]
    return Command(
        name=spec.name,
        argv=argv,
        folder=folder,
        sandboxes=context.sandboxes,
        plan_id=context.plan_id,
        timeout=float(arguments.get("timeout", context.timeout)),
        confinement=context.confinement,
        # A validation may write, reports and caches: that is taken back.
        read_only=spec.read_only and spec.validation is None,
    )


def _filled(part: str, arguments: Mapping[str, Any]) -> str:
    # In one pass, so that a value which looks like a placeholder stays what it is.
    return PLACEHOLDER.sub(lambda found: str(arguments.get(found[1], found[0])), part)
