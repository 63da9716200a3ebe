"""The settings: each key with its name, its kind of value, its default and a sentence about it.

An unknown key is refused by `find_key`, a bad value by `Key.checked`; what makes a value bad is in
`values.py`.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from msgspec import Struct

from cleveragents.config.values import (
    AUTO_FORMAT,
    CLEANUPS,
    CONFINEMENTS,
    DEFAULT_TRIGGERS,
    FORMATS,
    PAGER,
    SECRETS,
    BadValueError,
    Base,
    Value,
    ValueKind,
    age_value,
    amount_value,
    closest,
    database_url_value,
    list_from_text,
    number_from_text,
    one_of,
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

T = TypeVar("T")


class ConfigProblem(Exception):  # noqa: N818 - `Error` is for the tree in domain/errors
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


class Key(Struct, kw_only=True):
    """One setting. `a_project_may_not`: a cloned repository must not decide this.

    `field` is its name in Settings; `shown` makes of a value what people may see of it.
    """

    name: str
    kind: ValueKind[Any]
    default: str | int | tuple[str, ...]
    doc: str
    variable: str = ""
    a_project_may_not: str = ""
    shown: Callable[[Value], Value] = _whole
    field: str = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.field = name

    @property
    def env(self) -> str:
        name = self.variable or self.name.upper().replace(".", "_").replace("-", "_")
        return f"CLEVERAGENTS_{name}"

    @property
    def path(self) -> Sequence[str]:
        return self.name.split(".")

    def checked(self, raw: object, base: Base, where: str) -> Value:
        """The value to use. Raises ConfigProblem naming `where`."""
        try:
            return self.kind.read(raw, base)
        except BadValueError as bad:
            problem, suggestion = bad.problem, bad.suggestion
            raise ConfigProblem("bad-value", self.name, where, problem, suggestion) from bad

    def refuse_in_project(self, where: str) -> None:
        if self.a_project_may_not:
            problem = f"a project may not {self.a_project_may_not}; set it in the global config"
            raise ConfigProblem("bad-value", self.name, where, problem)


def setting(
    name: str, kind: ValueKind[T], default: str | int | tuple[str, ...], doc: str, **more: Any
) -> T:
    """An attribute of Settings: the class has the key there, an instance its value."""
    return cast("T", Key(name=name, kind=kind, default=default, doc=doc, **more))


PATH = ValueKind("path", path_value)
DATABASE = ValueKind("sqlite:///<path>, or empty", database_url_value)
TRIGGER_NAMES = ValueKind(
    "list of trigger names", triggers_value, list_from_text, empty_is_a_value=True
)
VARIABLES = ValueKind("list of names", variables_value, list_from_text, empty_is_a_value=True)
AGE = ValueKind(
    "an age such as 30d, 12h or 90m, or seconds; 0 for no limit", age_value, number_from_text
)
KEEPING = ValueKind(
    "an age such as 7d, 12h or 90m, or seconds; 0 to keep nothing", age_value, number_from_text
)
SIZE = ValueKind(
    "a size such as 500MB or 20GB, or bytes; 0 for no limit", size_value, number_from_text
)
SECONDS = ValueKind("seconds, more than 0", seconds_value, number_from_text)
DOLLARS = ValueKind("dollars; 0 for what the action says", amount_value, number_from_text)
ADDRESS = ValueKind("https://... or http://..., or empty", web_address_value)
SECRET = ValueKind("text, or empty", text_value)


class Settings:
    """Plain values, all of them checked. `format` None: chosen by whether there is a terminal."""

    format = setting(
        "format",
        one_of(FORMATS, AUTO_FORMAT),
        AUTO_FORMAT,
        "How results are printed; auto is rich on a terminal and plain elsewhere.",
    )
    pager = setting(
        "pager",
        one_of(PAGER),
        PAGER[0],
        "Whether an answer that is longer than the terminal goes through a pager: $AGENTS_PAGER,"
        " $PAGER or less.",
    )
    data_dir = setting(
        "data-dir",
        PATH,
        "~/.cleveragents",
        "Where the database, the sandboxes and the snapshots are kept.",
        a_project_may_not="say where data is kept",
    )
    database_url = setting(
        "database.url",
        DATABASE,
        "",
        "The database; empty means an SQLite file in the data folder.",
        a_project_may_not="say where data is kept",
    )
    auto_create_on = setting(
        "sandbox.checkpoint.auto-create-on",
        TRIGGER_NAMES,
        DEFAULT_TRIGGERS,
        "When checkpoints are taken beside those of the decisions; empty switches these off.",
        variable="CHECKPOINT_AUTO_CREATE_ON",
    )
    max_checkpoints_per_plan = setting(
        "sandbox.checkpoint.max-checkpoints-per-plan",
        whole_number(2, 1_000_000, "whole number from 2"),
        50,
        "How many states a plan can be taken back to before the oldest are pruned; groups that hold"
        " the same one count once.",
        variable="CHECKPOINT_MAX_PER_PLAN",
    )
    checkpoint_max_age = setting(
        "sandbox.checkpoint.max-age",
        AGE,
        0,
        "How old a checkpoint group may get before it is pruned.",
        variable="CHECKPOINT_MAX_AGE",
    )
    checkpoint_max_total_size = setting(
        "sandbox.checkpoint.max-total-size",
        SIZE,
        0,
        "The room that the checkpoints of one plan may take before the oldest are pruned.",
        variable="CHECKPOINT_MAX_TOTAL_SIZE",
    )
    store_secrets = setting(
        "store.secrets",
        one_of(SECRETS),
        SECRETS[0],
        "Whether what is called like a secret (.env, *.pem, id_rsa) is in checkpoints; skip leaves"
        " it out, unless git tracks it.",
        a_project_may_not="say which of your secrets are stored",
    )
    sandbox_cleanup = setting(
        "sandbox.cleanup",
        one_of(CLEANUPS),
        CLEANUPS[0],
        "When sandboxes are removed; never with work that exists nowhere else.",
    )
    apply_keep = setting(
        "apply.keep",
        KEEPING,
        604_800,
        "How long what an apply has replaced is kept, so that `agents undo` can take it back.",
        a_project_may_not="say what is thrown away",
    )
    max_retries_per_step = setting(
        "execute.max-retries-per-step",
        whole_number(0, 100, "whole number from 0 to 100"),
        0,
        "How often a failed step is tried again, unless the action says otherwise.",
    )
    tool_timeout = setting(
        "tool.timeout",
        SECONDS,
        600,
        "How long one tool call may take, unless the tool says otherwise.",
    )
    tool_output_limit = setting(
        "tool.output-limit",
        whole_number(1_024, 1_073_741_824, "bytes, whole number from 1024"),
        1_048_576,
        "How much of one tool call's output is kept.",
    )
    tool_process_limit = setting(
        "tool.process-limit",
        whole_number(10, 1_000_000, "whole number from 10"),
        1_000,
        "How many processes one tool call may have at a time.",
    )
    confinement_mode = setting(
        "confinement.mode",
        one_of(CONFINEMENTS),
        CONFINEMENTS[0],
        "Whether commands are held inside; `required` here cannot be undone by an action.",
        a_project_may_not="say how commands are held inside",
    )
    confinement_environment = setting(
        "confinement.environment",
        VARIABLES,
        (),
        "Further variables of the environment that commands get to see.",
        a_project_may_not="say what commands get to see",
    )
    run_agent = setting(
        "run.agent",
        one_of(("claude", "codex", "gemini", "opencode", "aider", "none")),
        "none",
        "The coding agent that `agents run TASK` starts.",
        a_project_may_not="say which program is started",
    )
    store_max_size = setting(
        "store.max-size",
        SIZE,
        20_000_000_000,
        "The room that the snapshots of all plans may take; beyond it, steps are refused.",
        a_project_may_not="say where data is kept",
    )
    actor_max_steps = setting(
        "actor.max-steps",
        whole_number(0, 1_000_000, "whole number; 0 for what the action says"),
        0,
        "How many steps an actor may decide in one plan, whatever the action says.",
    )
    actor_max_tokens = setting(
        "actor.max-tokens",
        whole_number(0, 1_000_000_000_000, "whole number; 0 for what the action says"),
        0,
        "How many tokens a model may read and write in one plan, whatever the action says.",
    )
    actor_max_cost = setting(
        "actor.max-cost",
        DOLLARS,
        0,
        "How many dollars a model may cost in one plan, whatever the action says.",
    )
    actor_max_recoveries = setting(
        "actor.max-recoveries",
        whole_number(0, 100, "whole number from 0 to 100"),
        3,
        "How many steps in a row may fail before an actor is not asked again.",
    )
    llm_base_url = setting(
        "actor.llm.base-url",
        ADDRESS,
        "",
        "Where the models are; empty means the provider's own address.",
        a_project_may_not="say where models are",
        shown=shown_address,
    )
    llm_api_key = setting(
        "actor.llm.api-key",
        SECRET,
        "",
        "The key for the models; empty means the provider's own variable.",
        a_project_may_not="say whose key is used",
        shown=_hidden,
    )
    llm_timeout = setting(
        "actor.llm.timeout", SECONDS, 300, "How long one answer of a model may take."
    )
    llm_max_retries = setting(
        "actor.llm.max-retries",
        whole_number(0, 20, "whole number from 0 to 20"),
        4,
        "How often a model is asked again after a rate limit or a lost connection.",
    )

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Settings) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))


KEYS = tuple(key for key in vars(Settings).values() if isinstance(key, Key))


def find_key(name: str, where: str) -> Key:
    """Raises ConfigProblem with a suggestion."""
    for key in KEYS:
        if key.name == name:
            return key
    raise ConfigProblem("unknown-key", name, where, "there is no such key", _meant(name))


def _meant(name: str) -> str | None:
    """The key that this probably is: in other letters, without what stands before, or mistyped."""
    names = [key.name for key in KEYS]
    plain = name.strip().lower().replace("_", "-")
    for fits in (
        [known for known in names if known == plain],
        [known for known in names if plain and known.endswith(f".{plain}")],
    ):
        if len(fits) == 1:
            return fits[0]
    if close := closest(plain, names):
        return close
    inside = [known for known in names if plain and plain in known]
    return inside[0] if len(inside) == 1 else None


def as_text(value: Value) -> str:
    """A value as `config set` would take it."""
    if value is None:
        return AUTO_FORMAT
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)
