"""What an action file means: resources, tools, policy and steps, already validated."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from cleveragents.domain.confinement import Confinement
from cleveragents.domain.resource_kinds import ResourceKind, ResourceType, kind_of
from cleveragents.domain.secrets import Secrets

JsonMap = Mapping[str, Any]


class ResourceSpec(Struct, frozen=True, kw_only=True):
    """One resource as the action names it; `location` is what its `path` or `url` says. One that
    is worked on `in_place` has no copy: the sandbox is the user's own tree (ADR 0100). Without a
    word about `secrets`, the settings say it (ADR 0105)."""

    name: str
    type: ResourceType
    location: str
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    checkpointable: bool = True
    in_place: bool = False
    secrets: Secrets | None = None

    @property
    def kind(self) -> ResourceKind:
        return kind_of(self.type)


class RollbackPolicy(Struct, frozen=True, kw_only=True):
    enabled: bool = True
    require_checkpoints: bool = True
    max_checkpoints: int | None = None


class Parameter(Struct, frozen=True, kw_only=True):
    """One argument of a tool. `type` is a JSON type name."""

    name: str
    type: str = "string"
    required: bool = True
    description: str = ""


class Validation(StrEnum):
    """What it means if a tool that checks the plan's result fails."""

    REQUIRED = "required"
    INFORMATIONAL = "informational"


class ToolSpec(Struct, frozen=True, kw_only=True):
    """What a tool declares about itself.

    An action's own tool is a `command`, a Python function (`python` is its entry point) or a tool
    of an MCP server (`server`, and its name there in `remote`). `open_ended`: it takes arguments
    beyond its parameters. `network`: it is nothing without one. `write_scope` is what it says of
    itself, for checks before a run; what holds it inside is confinement. `reads` are resources, or
    paths of its own, `{name}` standing for an argument; None means that nobody knows.
    """

    name: str
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    writes: bool = False
    checkpointable: bool = True
    write_scope: tuple[str, ...] = ()
    reads: tuple[str, ...] | None = None
    side_effects: tuple[str, ...] = ()
    idempotent: bool = False
    compensate: str | None = None
    timeout: float | None = None
    command: tuple[str, ...] = ()
    resource: str | None = None
    validation: Validation | None = None
    python: str | None = None
    server: str | None = None
    remote: str | None = None
    open_ended: bool = False
    network: bool = False

    @property
    def read_only(self) -> bool:
        return not self.writes

    @property
    def outside_effects(self) -> tuple[str, ...]:
        """What it does outside the sandboxes; who can undo an effect has one."""
        if self.side_effects or self.compensate is None:
            return self.side_effects
        return (f"what {self.compensate} undoes",)


class ServerSpec(Struct, frozen=True, kw_only=True):
    """An MCP server whose tools the action uses: how it is started, and in which resource."""

    name: str
    command: tuple[str, ...]
    resource: str


SUBPLANS = "subplans"
"""Stands where a step has the name of its tool, if it spawns child plans instead."""


class MergeStrategy(StrEnum):
    """How the results of children that ran side by side come together in the parent."""

    GIT_THREE_WAY = "git_three_way"
    SEQUENTIAL_APPLY = "sequential_apply"
    FAIL_ON_CONFLICT = "fail_on_conflict"
    LAST_WINS = "last_wins"


def step_number(index: int) -> int:
    """What people call the step of this index: they count from 1, and 0 is the start (ADR 0079)."""
    return index + 1


class Step(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One tool call of a scripted action, `arguments` being the file's `with`; or child plans.

    `uses` names earlier steps whose output it needs.
    """

    name: str
    tool: str
    arguments: JsonMap = field(default_factory=dict[str, Any])
    subplans: "Subplans | None" = None
    uses: tuple[str, ...] = ()


class Subplan(Struct, frozen=True, kw_only=True):
    """One child plan as the action declares it; `resources` are those of the parent it gets.

    Without `steps` the parent's actor decides them.
    """

    name: str
    description: str
    resources: tuple[str, ...]
    steps: tuple[Step, ...]
    depends_on: tuple[str, ...] = ()


class Subplans(Struct, frozen=True, kw_only=True):
    """The child plans of one step, in the order in which their results are merged."""

    plans: tuple[Subplan, ...]
    parallel: bool = False
    merge_strategy: MergeStrategy = MergeStrategy.GIT_THREE_WAY
    max_parallel: int = 5
    fail_fast: bool = False
    max_retries: int = 2


SCRIPTED = "scripted"
COMMAND = "command"
"""A program that works by itself."""


class ActorSpec(Struct, frozen=True, kw_only=True):
    """Who decides the steps. `tools` are patterns of those it may use; empty means all of them.

    A limit that is None is left to the settings. `options` are the actor's own.
    """

    type: str = SCRIPTED
    tools: tuple[str, ...] = ()
    max_steps: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    options: JsonMap = field(default_factory=dict[str, Any])


class TimelineUse(Struct, frozen=True, kw_only=True):
    """One use of an action file on a timeline in place: what its actor remembers is marked with
    `use_id`, it began at `first_step`, and `script` are the steps that are written down in it. They
    become steps of the timeline one by one, since those of others lie between (ADR 0104)."""

    use_id: str
    first_step: int = 0
    script: tuple[Step, ...] = ()


class Action(Struct, frozen=True, kw_only=True):
    """`validations` run when the steps are done; those of a child plan are its parent's.

    `steps` grow as an actor decides them. `invariants` are what must stay true whatever it does.
    """

    name: str
    description: str
    resources: tuple[ResourceSpec, ...]
    steps: tuple[Step, ...]
    tools: tuple[ToolSpec, ...] = ()
    rollback_policy: RollbackPolicy = RollbackPolicy()
    max_retries_per_step: int | None = None
    validations: tuple[Step, ...] = ()
    confinement: Confinement = Confinement()
    servers: tuple[ServerSpec, ...] = ()
    actor: ActorSpec = ActorSpec()
    invariants: tuple[str, ...] = ()
    use: TimelineUse | None = None

    @property
    def decides(self) -> bool:
        """Its steps are not there beforehand: each is on record when it comes to it."""
        return self.actor.type != SCRIPTED or self.use is not None

    @property
    def is_scripted(self) -> bool:
        """They are written down all the same, and nobody can be asked what else to do."""
        return self.actor.type == SCRIPTED

    @property
    def is_program(self) -> bool:
        """A person ran a program (`agents run`): what it did is kept, however it ended."""
        return self.actor.options.get("failure") == "keep"

    @property
    def in_place(self) -> bool:
        """It works in the user's own tree."""
        return any(spec.in_place for spec in self.resources)

    def validation(self, tool: str) -> Validation | None:
        """What it means if this tool fails; None for one that is no validation."""
        return next((spec.validation for spec in self.tools if spec.name == tool), None)

    def with_step(self, index: int, step: Step) -> "Action":
        """The same with another step in this place."""
        return replace(self, steps=(*self.steps[:index], step, *self.steps[index + 1 :]))

    @property
    def reading_servers(self) -> frozenset[str]:
        """The MCP servers of which no tool writes."""
        writing = {spec.server for spec in self.tools if spec.writes}
        return frozenset(server.name for server in self.servers) - writing

    def server(self, name: str) -> ServerSpec | None:
        return next((spec for spec in self.servers if spec.name == name), None)

    def resource(self, name: str) -> ResourceSpec | None:
        return next((spec for spec in self.resources if spec.name == name), None)

    def for_child(self, child: Subplan) -> "Action":
        """The action that a child plan carries out: a part of this one, with fewer resources."""
        return Action(
            name=f"{self.name}/{child.name}",
            description=child.description,
            resources=tuple(spec for spec in self.resources if spec.name in child.resources),
            steps=child.steps,
            tools=self.tools,
            rollback_policy=self.rollback_policy,
            max_retries_per_step=self.max_retries_per_step,
            confinement=self.confinement,
            servers=self.servers,
            actor=ActorSpec() if child.steps else self.actor,
            invariants=self.invariants,
        )
