"""Making the plan of a program that a person wants to run: where, on what, and what it may do."""

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.application.ports.running import RunSurroundings, StandingPlace
from cleveragents.application.ports.runtime import UnitOfWorkFactory
from cleveragents.application.services.plans.plan_service import PlanService, UsedAction
from cleveragents.domain.action import ResourceSpec
from cleveragents.domain.agent_presets import NO_AGENT, PRESETS, AgentPreset, preset_of
from cleveragents.domain.decision import ToolCallStatus
from cleveragents.domain.errors import (
    NothingToRunError,
    PlaceRefusedError,
    ProgramNotFoundError,
    ResourceError,
    UsageError,
)
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource_kinds import POSTGRES, SQLITE, kind_of, type_named, working
from cleveragents.domain.run_request import CHECK, CODE, Granted, RunRequest, action_of, name_of
from cleveragents.domain.secrets import Secrets


class MadeRun(Struct, frozen=True, kw_only=True):
    """A plan that is ready to be executed, and what a person is told before."""

    used: UsedAction
    preset: AgentPreset
    granted: Granted


class RunService:
    """`default_agent` is the one that the settings name for tasks, if they do."""

    def __init__(
        self,
        unit_of_work: UnitOfWorkFactory,
        plans: PlanService,
        surroundings: RunSurroundings,
        default_agent: str,
    ) -> None:
        self._unit_of_work = unit_of_work
        self._plans = plans
        self._around = surroundings
        self._default_agent = default_agent

    def make(self, request: RunRequest) -> MadeRun:
        """On any error nothing was created."""
        request = self._with_command(request)
        preset = self._preset(request)
        self._refuse_without_program(request.command[0])
        resources, below = self._resources(request)
        granted = self._granted(request, preset)
        action = action_of(request, preset, resources, granted, below)
        # What one sees in one's project is what the program is to see.
        used = self._plans.make(action, include_uncommitted=True)
        return MadeRun(used=used, preset=preset, granted=granted)

    def is_checked(self, plan_id: PlanId) -> bool:
        """Whether what was to be run at the end has run on what is there, and well."""
        with self._unit_of_work.reading() as uow:
            calls = [call for call in uow.tool_calls.of_plan(plan_id) if not call.undone]
        return (
            bool(calls)
            and calls[-1].tool == CHECK
            and (calls[-1].status is ToolCallStatus.SUCCEEDED)
        )

    def _with_command(self, request: RunRequest) -> RunRequest:
        if request.command:
            return request
        agents = ", ".join(PRESETS)
        wanted = request.agent or self._default_agent
        if not request.task.strip():
            raise NothingToRunError(
                "say what to run", "agents run -- COMMAND …, for example: agents run -- claude"
            )
        if wanted == NO_AGENT:
            raise NothingToRunError(
                "a task needs an agent that does it, and none is configured",
                f"say which once: agents config set run.agent NAME (one of {agents}); or run a"
                " program: agents run -- COMMAND …",
            )
        return replace(request, command=self._known(wanted).command(request.task))

    def _preset(self, request: RunRequest) -> AgentPreset:
        if request.agent is None:
            return preset_of(name_of(request.command[0]), None)
        return self._known(request.agent)

    def _known(self, name: str) -> AgentPreset:
        try:
            return preset_of("", name)
        except ValueError as error:
            raise UsageError(str(error), f"use one of {', '.join(PRESETS)}, or none") from None

    def _refuse_without_program(self, program: str) -> None:
        if self._around.program(program) is None:
            raise ProgramNotFoundError(program, self._around.similar_program(program))

    # --- in place -------------------------------------------------------------------------------

    def _refuse_beside(self, request: RunRequest) -> None:
        if request.resources:
            raise UsageError(
                "--in-place takes the tree that you are in, and databases, but nothing else yet",
                "leave out --resource; for a database say --db PATH",
            )

    # --- on what --------------------------------------------------------------------------------

    def _resources(self, request: RunRequest) -> tuple[tuple[ResourceSpec, ...], str]:
        """The first is what one stands in, unless another is named in its place."""
        if request.in_place:
            self._refuse_beside(request)
        given = [self._resource(text, _secrets(request)) for text in request.resources]
        below = ""
        if not any(spec.name == CODE for spec in given):
            place = self._around.place()
            self._refuse_place(place)
            type_ = "git-checkout" if place.is_repository else "fs-directory"
            here = ResourceSpec(
                name=CODE,
                type=type_named(type_),
                location=place.top,
                include=request.include,
                exclude=request.exclude,
                secrets=_secrets(request),
                in_place=request.in_place,
            )
            given, below = [here, *given], place.below
        else:
            given.sort(key=lambda spec: spec.name != CODE)
        databases = [
            replace(self._database(path, n), in_place=request.in_place)
            for n, path in enumerate(request.databases)
        ]
        return (*given, *databases), below

    def _refuse_place(self, place: StandingPlace) -> None:
        what = self._around.kind_of_place(place.top)
        if what is not None:
            raise PlaceRefusedError(place.top, what)

    def _resource(self, text: str, secrets: Secrets | None) -> ResourceSpec:
        name, separator, rest = text.partition("=")
        if not (name and separator and rest):
            raise UsageError(
                f"--resource {text!r} is not NAME=PATH",
                "name it and say where it is: --resource docs=../docs, or with its type:"
                " --resource docs=fs-directory:../docs",
            )
        _refuse_postgres(rest)
        kind, colon, path = rest.partition(":")
        if not (colon and path and kind in [known.type for known in working()]):
            path, kind = rest, self._around.type_of(rest)
        location = self._around.absolute(path)
        return ResourceSpec(name=name, type=type_named(kind), location=location, secrets=secrets)

    def _database(self, path: str, index: int) -> ResourceSpec:
        _refuse_postgres(path)
        name = "db" if index == 0 else f"db{index + 1}"
        return ResourceSpec(name=name, type=SQLITE.type, location=self._around.absolute(path))

    # --- what it may do -------------------------------------------------------------------------

    def _granted(self, request: RunRequest, preset: AgentPreset) -> Granted:
        files = [path for path in preset.files if self._around.is_there(path)]
        wanted = (*preset.variables, *request.environment) if preset.name else request.environment
        return Granted(
            network=preset.network or request.network,
            environment=tuple(dict.fromkeys(n for n in wanted if self._around.is_set(n))),
            write=(*preset.folders, *files, *request.write),
        )


def _secrets(request: RunRequest) -> Secrets | None:
    return Secrets.SKIP if request.skip_secrets else None


def _refuse_postgres(location: str) -> None:
    kind = kind_of(POSTGRES.type)
    if location.startswith(("postgres:", "postgresql:", "postgresql+")):
        raise ResourceError(
            f"{kind.type} databases cannot be worked on yet",
            f"use one of {', '.join(known.type for known in working())}",
        )
