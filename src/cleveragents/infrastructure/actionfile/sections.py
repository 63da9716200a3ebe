"""The sections of an action file: every key with its rule, its default and a sentence about it."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar, cast

from cleveragents.domain.action import (
    SCRIPTED,
    SUBPLANS,
    ActorSpec,
    MergeStrategy,
    Parameter,
    RollbackPolicy,
    Validation,
)
from cleveragents.domain.confinement import Confinement, ConfinementMeans, ConfinementMode
from cleveragents.domain.resource_kinds import ResourceKind, kind_of
from cleveragents.domain.secrets import Secrets
from cleveragents.domain.timeline_use import SANDBOX, STRATEGIES
from cleveragents.domain.tool_schema import TYPES
from cleveragents.infrastructure.actionfile.actors import ACTOR, actor_schema
from cleveragents.infrastructure.actionfile.model import (
    NO_VALUE,
    TILDE,
    JsonSchema,
    Rule,
    Section,
    SourcePlace,
    as_mapping,
    key,
    list_of,
    listed,
    mapping_of,
    reference,
    required,
)
from cleveragents.infrastructure.actionfile.resource_types import RESOURCE_TYPE, located_schema
from cleveragents.infrastructure.actionfile.values import (
    ABSOLUTE_PATH,
    ACTION_NAME,
    ANY_MAPPING,
    ARGV,
    BOOLEAN,
    CHILD_NAME,
    INSIDE_PATH,
    RESOURCE_NAME,
    STEP_NAME,
    STRING,
    TEXT,
    TOOL_NAME,
    VARIABLE,
    choice,
    number,
    one_of,
    quoted,
    whole,
)
from cleveragents.infrastructure.tools.declared_reach import PLACEHOLDER

# Longer waits overflow the system's own timers.
LONGEST_TIMEOUT = 604_800

T = TypeVar("T")


def _made(keys: type[Section], make: Callable[..., T]) -> Rule[T]:
    """The value that has the same names as the section has keys."""
    rule = keys.rule()

    def read(value: object, place: SourcePlace) -> T | None:
        section = rule.read(value, place)
        return None if section is None or section.wrong else make(**section.everything())

    return Rule(read, rule.schema)


# --- resources and policy -----------------------------------------------------------------------


class ResourceKeys(Section):
    definition = "resource"
    more_schema = located_schema()

    type = required(RESOURCE_TYPE, "What kind of thing it is.")
    path = key(TEXT, "Where it is, relative to where `plan use` runs; `~` is the home folder.")
    url = key(TEXT, "Where it is, if it is on a server; no type that works yet is.")
    include = listed(INSIDE_PATH, "Ignored paths that the sandbox needs.")
    exclude = listed(INSIDE_PATH, "What need not be captured; a rollback leaves it in place.")
    checkpointable = key(BOOLEAN, "Whether checkpoints are taken of it.", default=True)
    secrets = key(
        one_of(Secrets),
        "skip: what is called like a secret is in no checkpoint, unless git tracks it.",
    )
    strategy = key(
        choice(STRATEGIES),
        "sandbox: in a copy, until it is applied. in-place: in the user's own tree.",
        SANDBOX,
    )

    @property
    def kind(self) -> ResourceKind:
        return kind_of(self.type)

    def check(self) -> None:
        if not self.are_right("type"):
            return
        needed, other = ("url", "path") if self.kind.key == "url" else ("path", "url")
        if needed not in self.values and self.are_right(needed):
            missing = f"this key is required for {self.type}"
            self.find(NO_VALUE + TILDE if needed in self.raw else missing, needed)
        if other in self.values:
            self.find(f"is not for {self.type}; use `{needed}`", other)
        for name in ("include", "exclude", "secrets"):
            if self.values.get(name) and not self.kind.is_folder:
                self.find(f"is only for folders, not for {self.type}", name)


class PolicyKeys(Section):
    definition = "policy"

    enabled = key(BOOLEAN, "Whether checkpoints are taken.", default=True)
    require_checkpoints = key(
        BOOLEAN, "Refuse a tool that writes where no checkpoint can be made.", default=True
    )
    max_checkpoints = key(whole(least=1), "How many states can be gone back to.")


# --- confinement --------------------------------------------------------------------------------


class ConfinementKeys(Section):
    mode = key(
        one_of(ConfinementMode),
        "required: all of it or nothing runs. preferred: what the machine can do.",
    )
    by = key(
        one_of(ConfinementMeans), "By the kernel alone, or by bubblewrap.", ConfinementMeans.KERNEL
    )
    network = key(BOOLEAN, "Whether commands may use the network.", default=False)
    environment = listed(VARIABLE, "Variables of yours that commands see.")
    write = listed(ABSOLUTE_PATH, "Further places that commands may write to.")


_SEVERAL = _made(ConfinementKeys, Confinement)
CONFINEMENT_SCHEMA: JsonSchema = {
    # An editor that reads YAML 1.1 takes `off` for false.
    "anyOf": [{"enum": [False, *(mode.value for mode in ConfinementMode)]}, _SEVERAL.schema]
}


def _confinement(value: object, place: SourcePlace) -> Confinement | None:
    """A mode alone, which YAML may have read as `false` when it is `off`, or several keys."""
    if not isinstance(value, dict):
        value = {"mode": "off" if value is False else value}
    return _SEVERAL.read(cast("object", value), place)


# --- tools --------------------------------------------------------------------------------------


class ServerKeys(Section):
    definition = "server"

    command = required(ARGV, "The program and its arguments, as a list.")
    resource = key(STRING, "In whose sandbox it runs.")


class ParameterKeys(Section):
    type = key(choice(list(TYPES)), "What its values are.", "string")
    required = key(BOOLEAN, "Whether every call has to give it.", default=True)
    description = key(STRING, "A sentence for whoever calls the tool.", "")


class ToolKeys(Section):
    definition = "tool"
    more_schema = {
        "oneOf": [{"required": [key]} for key in ("command", "python", "server")],
        "dependentRequired": {"server": ["tool"], "tool": ["server"]},
    }

    description = key(STRING, "A sentence for people.", "")
    command = key(
        ARGV, "The arguments as a list; {name} is replaced by the step's value of that name."
    )
    python = key(TEXT, "A Python function, by the name of its entry point.")
    server = key(TEXT, "The MCP server that has the tool.")
    tool = key(TEXT, "The tool's name on that server.")
    parameters = key(mapping_of(ParameterKeys.rule()), "What it takes, by name.")
    resource = key(STRING, "In whose sandbox it runs; needed if there are several resources.")
    writes = key(BOOLEAN, "Whether it changes anything; a tool that does not say is assumed to.")
    read_only = key(BOOLEAN, "The opposite of `writes`.")
    checkpointable = key(
        BOOLEAN, "Whether its calls are checkpointed; as `writes` if it is not said."
    )
    write_scope = listed(
        INSIDE_PATH, "The paths or resources it writes; captured even if git ignores them."
    )
    reads = key(
        list_of(INSIDE_PATH),
        "All that it reads: paths or resources; [] for nothing. Not said: anything.",
    )
    side_effects = listed(TEXT, "Effects outside the sandboxes, which restoring files cannot undo.")
    idempotent = key(
        BOOLEAN, "Whether running it twice is the same as running it once.", default=False
    )
    compensate = key(STRING, "Another of the action's own tools, which undoes its effect outside.")
    timeout = key(number(above=0, most=LONGEST_TIMEOUT), "Seconds.")
    validation = key(one_of(Validation), "The tool judges the plan's result.")

    def does_write(self) -> bool:
        # A tool that does not say is assumed to write: a needless checkpoint costs little.
        if self.validation is not None:
            return bool(self.writes)
        return self.writes if self.writes is not None else not self.read_only

    def all_parameters(self) -> tuple[Parameter, ...]:
        """Those that the file describes, and every placeholder of the command."""
        described = self.parameters or {}
        return tuple(
            Parameter(name=name, **(described[name].everything() if name in described else {}))
            for name in dict.fromkeys((*self._placeholders(), *described))
        )

    def check(self) -> None:
        self._check_kind()
        self._check_parameters()
        self._check_writes()
        if self.reads is not None and self.validation is not None:
            text = "a validation judges everything, and is run again after every correction"
            self.find(text, "reads")

    def _check_kind(self) -> None:
        for kind in ("command", "python", "server", "tool"):
            if kind in self.raw and self.raw[kind] is None:
                self.find(NO_VALUE, kind)
        kinds = {"command", "python", "server"} & self.mentioned
        if len(kinds) != 1:
            self.find("a tool has either `command`, or `python`, or `server` with `tool`")
        elif ("server" in self.mentioned) != ("tool" in self.mentioned):
            self.find("`server` and `tool` belong together")

    def _check_parameters(self) -> None:
        if not self.are_right("command", "parameters"):
            return
        for parameter in self.parameters or () if self.command else ():
            if parameter not in self._placeholders():
                text = f"is not in `command`; write {{{parameter}}} there"
                self.find(text, "parameters", parameter)
        names = [parameter.name for parameter in self.all_parameters()]
        for position, entry in enumerate(self.reads or () if self.are_right("reads") else ()):
            for placeholder in PLACEHOLDER.findall(entry):
                if placeholder not in names:
                    meant = self.place.mistakes.meant(placeholder, names)
                    self.find(f"{quoted(placeholder)} is no parameter{meant}", "reads", position)

    def _check_writes(self) -> None:
        if self.writes is not None and self.writes == self.read_only:
            self.find("`writes` and `read_only` contradict each other", "read_only")
        elif self.validation is not None and self.writes:
            text = "a validation only looks; what it writes in a sandbox is taken back"
            self.find(text, "writes")
        elif self.write_scope and not self.does_write():
            self.find("a tool that does not write has no write_scope", "write_scope")

    def _placeholders(self) -> Sequence[str]:
        return [name for part in self.command or () for name in PLACEHOLDER.findall(part)]


# --- steps --------------------------------------------------------------------------------------


def _step(value: object, place: SourcePlace) -> "StepKeys | SpawnKeys | None":
    raw = as_mapping(value, place)
    if raw is None:
        return None
    return SpawnKeys(raw, place) if SUBPLANS in raw else StepKeys(raw, place)


STEP = Rule(_step, reference("step"))


class StepKeys(Section):
    definition = "call"

    name = key(STEP_NAME, "What the step is called; the tool's name if it is not said.")
    tool = required(TEXT, "A built-in tool or one of the action's own; see `agents tool list`.")
    arguments = key(ANY_MAPPING, "The tool's arguments.", {}, name="with")
    uses = listed(TEXT, "Names of earlier steps whose output it needs.")


class SubplanKeys(Section):
    definition = "subplan"

    name = required(CHILD_NAME, "Unique in its step.")
    description = key(TEXT, "What the child is for.")
    resources = key(
        list_of(STRING, least=1),
        "Those of the parent's resources that it works on; all if it is not said.",
    )
    depends_on = listed(STRING, "Children of the same step whose results it needs.")
    steps = required(list_of(STEP, least=1), "What the child does, in order.")


class SubplansKeys(Section):
    parallel = key(BOOLEAN, "Run side by side instead of one after the other.", default=False)
    merge_strategy = key(
        one_of(MergeStrategy),
        "How the children's results become one.",
        MergeStrategy.GIT_THREE_WAY,
    )
    max_parallel = key(whole(least=1, most=50), "How many run at once; the rest wait.", 5)
    fail_fast = key(BOOLEAN, "One that fails stops the others.", default=False)
    max_retries = key(
        whole(least=0, most=20), "How often a child that fails is put back and run again.", 2
    )
    plans = required(
        list_of(SubplanKeys.rule(), least=1),
        "The children, in the order in which their results are merged.",
    )


class SpawnKeys(Section):
    definition = "spawn"

    name = key(STEP_NAME, "What the step is called; the tool's name if it is not said.")
    subplans = required(SubplansKeys.rule(), "Child plans, each with steps of its own.")


# --- the whole file -----------------------------------------------------------------------------


class ActionKeys(Section):
    more_schema = {"anyOf": [{"required": ["steps"]}, {"required": ["actor"]}]}

    name = required(ACTION_NAME, "A short name: one line, at most 100 characters, no slashes.")
    description = required(TEXT, "What the work is about; it becomes the plan's prompt.")
    resources = required(
        mapping_of(ResourceKeys.rule(), RESOURCE_NAME, least=1),
        "What the plan may change, by name.",
    )
    rollback_policy = key(
        _made(PolicyKeys, RollbackPolicy),
        "How the plan's checkpoints are kept.",
        RollbackPolicy(),
    )
    max_retries_per_step = key(whole(least=0, most=100), "How often a failed step is tried again.")
    tools = key(mapping_of(ToolKeys.rule(), TOOL_NAME), "The action's own tools, by name.", {})
    mcp_servers = key(
        mapping_of(ServerKeys.rule(), TEXT),
        "The MCP servers whose tools are used, by name.",
        {},
    )
    actor = key(ACTOR, "Who decides the steps, if they are not written down.")
    invariants = listed(TEXT, "Sentences that stay true whatever an actor does.")
    steps = key(list_of(STEP, least=1), "What is done, in order.")
    validations = listed(StepKeys.rule(), "Arguments and order of the validations.")
    confinement = key(
        Rule(_confinement, reference("confinement")),
        "What commands may do: a mode, or several keys.",
        Confinement(),
    )

    def check(self) -> None:
        """Steps are written down, or somebody decides them; never both, never neither."""
        if not self.are_right("actor"):
            return
        actor = self.actor or ActorSpec()
        if actor.type != SCRIPTED and "steps" in self.raw:
            text = f"the actor {quoted(actor.type)} decides its own steps; leave one of the two out"
            self.find(text, "steps")
        elif actor.type == SCRIPTED and self.raw.get("steps") is None and self.are_right("steps"):
            text = NO_VALUE if "steps" in self.raw else "this key is required"
            self.find(f"{text}, or an `actor` that decides the steps", "steps")


SECTIONS: Collection[type[Section]] = (
    *(ResourceKeys, PolicyKeys, ToolKeys, ServerKeys),
    *(StepKeys, SpawnKeys, SubplanKeys),
)


def definitions() -> dict[str, Any]:
    """What the schema of the whole file refers to, by name."""
    step = {"if": {"required": [SUBPLANS]}, "then": reference("spawn"), "else": reference("call")}
    named = {section.definition: section.schema() for section in SECTIONS}
    return {**named, "actor": actor_schema(), "confinement": CONFINEMENT_SCHEMA, "step": step}
