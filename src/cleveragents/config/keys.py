"""The keys of the configuration: their names, defaults, and what each of them accepts."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from cleveragents.config.values import (
    AUTO_FORMAT,
    CLEANUPS,
    CONFINEMENTS,
    DEFAULT_TRIGGERS,
    FORMATS,
    BadValueError,
    Base,
    Value,
    age_value,
    amount_value,
    cleanup_value,
    closest,
    confinement_value,
    database_url_value,
    format_value,
    list_from_text,
    number_from_text,
    path_value,
    seconds_value,
    shown_address,
    size_value,
    text_value,
    triggers_value,
    variables_value,
    web_address_value,
    whole_number,
)


class ConfigProblem(Exception):  # noqa: N818 - `Error` is for the tree in domain/errors.py
    """A setting or config file that cannot be used.

    `kind` is `unknown-key`, `bad-value` or `bad-file`; `suggestion` is the name probably meant.
    The command line turns this into its own errors, which live above this package.
    """

    def __init__(
        self, kind: str, key: str, where: str, problem: str, suggestion: str | None = None
    ) -> None:
        meant = f"; did you mean `{suggestion}`?" if suggestion else ""
        super().__init__(f"`{key}` in {where}: {problem}{meant}" if key else f"{where}: {problem}")
        self.kind = kind
        self.key = key
        self.where = where
        self.problem = problem
        self.suggestion = suggestion


def _whole(value: Value) -> Value:
    return value


def _hidden(value: Value) -> Value:
    return "(set, not shown)" if value else value


class Key(Struct, frozen=True, kw_only=True):
    """One setting. `read` checks a value as TOML has it; `from_text` makes such a value of text.

    `in_project` False: a cloned repository must not say where our data goes. `shown` is what people
    may see of a value.
    """

    name: str
    field: str
    kind: str
    default: str | int | tuple[str, ...]
    env: str
    doc: str
    read: Callable[[object, Base], Value]
    from_text: Callable[[str], object] = str
    in_project: bool = True
    project_may_not: str = "where data is kept"
    shown: Callable[[Value], Value] = _whole
    empty_is_a_value: bool = False

    @property
    def path(self) -> Sequence[str]:
        return self.name.split(".")

    def checked(self, raw: object, base: Base, where: str) -> Value:
        """The value to use. Raises ConfigProblem naming `where`."""
        try:
            return self.read(raw, base)
        except BadValueError as bad:
            problem, suggestion = bad.problem, bad.suggestion
            raise ConfigProblem("bad-value", self.name, where, problem, suggestion) from bad

    def refuse_in_project(self, where: str) -> None:
        if not self.in_project:
            problem = f"a project may not say {self.project_may_not}; set it in the global config"
            raise ConfigProblem("bad-value", self.name, where, problem)


def find_key(name: str, where: str) -> Key:
    """Raises ConfigProblem with a suggestion."""
    for key in KEYS:
        if key.name == name:
            return key
    suggestion = closest(name, [key.name for key in KEYS])
    raise ConfigProblem("unknown-key", name, where, "there is no such key", suggestion)


def shown(key: Key, value: Value) -> Value:
    """The value as people may see it."""
    return key.shown(value)


def as_text(value: Value) -> str:
    """A value as `config set` would take it."""
    if value is None:
        return AUTO_FORMAT
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


KEYS = (
    Key(
        name="format",
        field="format",
        kind="one of " + ", ".join((*FORMATS, AUTO_FORMAT)),
        default=AUTO_FORMAT,
        env="CLEVERAGENTS_FORMAT",
        doc="How results are printed; auto is rich on a terminal and plain elsewhere.",
        read=format_value,
    ),
    Key(
        name="data-dir",
        field="data_dir",
        kind="path",
        default="~/.cleveragents",
        env="CLEVERAGENTS_DATA_DIR",
        doc="Where the database, the sandboxes and the snapshots are kept.",
        read=path_value,
        in_project=False,
    ),
    Key(
        name="database.url",
        field="database_url",
        kind="sqlite:///<path>, or empty",
        default="",
        env="CLEVERAGENTS_DATABASE_URL",
        doc="The database; empty means an SQLite file in the data folder.",
        read=database_url_value,
        in_project=False,
    ),
    Key(
        name="sandbox.checkpoint.auto-create-on",
        field="auto_create_on",
        kind="list of trigger names",
        default=DEFAULT_TRIGGERS,
        env="CLEVERAGENTS_CHECKPOINT_AUTO_CREATE_ON",
        doc="When checkpoints are taken beside those of the decisions; empty switches these off.",
        read=triggers_value,
        from_text=list_from_text,
        empty_is_a_value=True,
    ),
    Key(
        name="sandbox.checkpoint.max-checkpoints-per-plan",
        field="max_checkpoints_per_plan",
        kind="whole number from 2",
        default=50,
        env="CLEVERAGENTS_CHECKPOINT_MAX_PER_PLAN",
        doc="How many states a plan can be taken back to before the oldest are pruned; groups"
        " that hold the same one count once.",
        read=whole_number(2, 1_000_000),
        from_text=number_from_text,
    ),
    Key(
        name="sandbox.checkpoint.max-age",
        field="checkpoint_max_age",
        kind="an age such as 30d, 12h or 90m, or seconds; 0 for no limit",
        default=0,
        env="CLEVERAGENTS_CHECKPOINT_MAX_AGE",
        doc="How old a checkpoint group may get before it is pruned.",
        read=age_value,
        from_text=number_from_text,
    ),
    Key(
        name="sandbox.checkpoint.max-total-size",
        field="checkpoint_max_total_size",
        kind="a size such as 500MB or 20GB, or bytes; 0 for no limit",
        default=0,
        env="CLEVERAGENTS_CHECKPOINT_MAX_TOTAL_SIZE",
        doc="The room that the checkpoints of one plan may take before the oldest are pruned.",
        read=size_value,
        from_text=number_from_text,
    ),
    Key(
        name="sandbox.cleanup",
        field="sandbox_cleanup",
        kind="one of " + ", ".join(CLEANUPS),
        default=CLEANUPS[0],
        env="CLEVERAGENTS_SANDBOX_CLEANUP",
        doc="When sandboxes are removed; never with work that exists nowhere else.",
        read=cleanup_value,
    ),
    Key(
        name="execute.max-retries-per-step",
        field="max_retries_per_step",
        kind="whole number from 0 to 100",
        default=0,
        env="CLEVERAGENTS_EXECUTE_MAX_RETRIES_PER_STEP",
        doc="How often a failed step is tried again, unless the action says otherwise.",
        read=whole_number(0, 100),
        from_text=number_from_text,
    ),
    Key(
        name="tool.timeout",
        field="tool_timeout",
        kind="seconds, more than 0",
        default=600,
        env="CLEVERAGENTS_TOOL_TIMEOUT",
        doc="How long one tool call may take, unless the tool says otherwise.",
        read=seconds_value,
        from_text=number_from_text,
    ),
    Key(
        name="tool.output-limit",
        field="tool_output_limit",
        kind="bytes, whole number from 1024",
        default=1_048_576,
        env="CLEVERAGENTS_TOOL_OUTPUT_LIMIT",
        doc="How much of one tool call's output is kept.",
        read=whole_number(1024, 1_073_741_824),
        from_text=number_from_text,
    ),
    Key(
        name="tool.process-limit",
        field="tool_process_limit",
        kind="whole number from 10",
        default=1000,
        env="CLEVERAGENTS_TOOL_PROCESS_LIMIT",
        doc="How many processes one tool call may have at a time.",
        read=whole_number(10, 1_000_000),
        from_text=number_from_text,
    ),
    Key(
        name="confinement.mode",
        field="confinement_mode",
        kind="one of " + ", ".join(CONFINEMENTS),
        default=CONFINEMENTS[0],
        env="CLEVERAGENTS_CONFINEMENT_MODE",
        doc="Whether commands are held inside; `required` here cannot be undone by an action.",
        read=confinement_value,
        in_project=False,
        project_may_not="how commands are held inside",
    ),
    Key(
        name="confinement.environment",
        field="confinement_environment",
        kind="list of names",
        default=(),
        env="CLEVERAGENTS_CONFINEMENT_ENVIRONMENT",
        doc="Further variables of the environment that commands get to see.",
        read=variables_value,
        from_text=list_from_text,
        empty_is_a_value=True,
        in_project=False,
        project_may_not="what commands get to see",
    ),
    Key(
        name="store.max-size",
        field="store_max_size",
        kind="a size such as 500MB or 20GB, or bytes; 0 for no limit",
        default=20_000_000_000,
        env="CLEVERAGENTS_STORE_MAX_SIZE",
        doc="The room that the snapshots of all plans may take; beyond it, steps are refused.",
        read=size_value,
        from_text=number_from_text,
        in_project=False,
    ),
    Key(
        name="actor.max-steps",
        field="actor_max_steps",
        kind="whole number; 0 for what the action says",
        default=0,
        env="CLEVERAGENTS_ACTOR_MAX_STEPS",
        doc="How many steps an actor may decide in one plan, whatever the action says.",
        read=whole_number(0, 1_000_000),
        from_text=number_from_text,
    ),
    Key(
        name="actor.max-tokens",
        field="actor_max_tokens",
        kind="whole number; 0 for what the action says",
        default=0,
        env="CLEVERAGENTS_ACTOR_MAX_TOKENS",
        doc="How many tokens a model may read and write in one plan, whatever the action says.",
        read=whole_number(0, 10**12),
        from_text=number_from_text,
    ),
    Key(
        name="actor.max-cost",
        field="actor_max_cost",
        kind="dollars; 0 for what the action says",
        default=0,
        env="CLEVERAGENTS_ACTOR_MAX_COST",
        doc="How many dollars a model may cost in one plan, whatever the action says.",
        read=amount_value,
        from_text=number_from_text,
    ),
    Key(
        name="actor.max-recoveries",
        field="actor_max_recoveries",
        kind="whole number from 0 to 100",
        default=3,
        env="CLEVERAGENTS_ACTOR_MAX_RECOVERIES",
        doc="How many steps in a row may fail before an actor is not asked again.",
        read=whole_number(0, 100),
        from_text=number_from_text,
    ),
    Key(
        name="actor.llm.base-url",
        field="llm_base_url",
        kind="https://... or http://..., or empty",
        default="",
        env="CLEVERAGENTS_ACTOR_LLM_BASE_URL",
        doc="Where the models are; empty means the provider's own address.",
        read=web_address_value,
        shown=shown_address,
        in_project=False,
        project_may_not="where models are",
    ),
    Key(
        name="actor.llm.api-key",
        field="llm_api_key",
        kind="text, or empty",
        default="",
        env="CLEVERAGENTS_ACTOR_LLM_API_KEY",
        doc="The key for the models; empty means the provider's own variable.",
        read=text_value,
        in_project=False,
        project_may_not="whose key is used",
        shown=_hidden,
    ),
    Key(
        name="actor.llm.timeout",
        field="llm_timeout",
        kind="seconds, more than 0",
        default=300,
        env="CLEVERAGENTS_ACTOR_LLM_TIMEOUT",
        doc="How long one answer of a model may take.",
        read=seconds_value,
        from_text=number_from_text,
    ),
    Key(
        name="actor.llm.max-retries",
        field="llm_max_retries",
        kind="whole number from 0 to 20",
        default=4,
        env="CLEVERAGENTS_ACTOR_LLM_MAX_RETRIES",
        doc="How often a model is asked again after a rate limit or a lost connection.",
        read=whole_number(0, 20),
        from_text=number_from_text,
    ),
)
