"""Owns the keys of the configuration: their names, defaults, and what each of them accepts."""

import math
import os
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

FORMATS = ("rich", "color", "table", "plain", "json", "yaml")
AUTO_FORMAT = "auto"
# The domain has these names too; it may not be imported from here, so a test compares the two.
DEFAULT_TRIGGERS = ("on_tool_write", "on_tool_write_complete", "on_subplan_spawn", "on_error")
TRIGGERS = (*DEFAULT_TRIGGERS, "before_step", "after_step", "after_subplan", "before_apply")
CLEANUPS = ("on_apply", "on_terminal", "manual")
TRIGGER_ALIASES = {
    "before_tool_execute": "on_tool_write",
    "after_tool_execute": "on_tool_write_complete",
}
# Longer waits overflow the system's own timers.
LONGEST_TIMEOUT = 604_800

Value = str | int | float | tuple[str, ...] | None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """What a path in a value is relative to: `~` is `home`, anything else is in `folder`."""

    home: Path
    folder: Path

    def absolute(self, text: str) -> str:
        if text == "~" or text.startswith("~/"):
            text = f"{self.home}/{text[2:]}"
        return os.path.normpath(self.folder / text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One setting. `read` checks a value as TOML has it; `from_text` makes such a value of text.

    `in_project` False: a cloned repository must not say where our data goes.
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
    empty_is_a_value: bool = False

    @property
    def path(self) -> Sequence[str]:
        return self.name.split(".")

    def checked(self, raw: object, base: Base, where: str) -> Value:
        """The value to use. Raises ConfigProblem naming `where`."""
        try:
            return self.read(raw, base)
        except _BadValueError as bad:
            problem, suggestion = bad.problem, bad.suggestion
            raise ConfigProblem("bad-value", self.name, where, problem, suggestion) from bad

    def refuse_in_project(self, where: str) -> None:
        if not self.in_project:
            problem = "a project may not say where data is kept; set it in the global config"
            raise ConfigProblem("bad-value", self.name, where, problem)


def find_key(name: str, where: str) -> Key:
    """Raises ConfigProblem with a suggestion."""
    for key in KEYS:
        if key.name == name:
            return key
    suggestion = closest(name, [key.name for key in KEYS])
    raise ConfigProblem("unknown-key", name, where, "there is no such key", suggestion)


def as_text(value: Value) -> str:
    """A value as `config set` would take it."""
    if value is None:
        return AUTO_FORMAT
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def closest(name: str, names: Collection[str]) -> str | None:
    import difflib  # noqa: PLC0415 - only a mistake needs it, and every command loads this module

    return next(iter(difflib.get_close_matches(name[:80], names, n=1)), None)


_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,3})?) ?([kKmMgGtT][bB])", re.ASCII)
_PERIODS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LONGEST_AGE = 10**12
_AGE = re.compile(r"(\d{1,6}) ?([smhdw])", re.ASCII)


class _BadValueError(Exception):
    def __init__(self, problem: str, suggestion: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.suggestion = suggestion


def _format(raw: object, base: Base) -> Value:
    del base
    text = _text(raw)
    if text == AUTO_FORMAT:
        return None
    if text not in FORMATS:
        valid = ", ".join((*FORMATS, AUTO_FORMAT))
        raise _BadValueError(f"{text!r} is not one of {valid}", closest(text, FORMATS))
    return text


def _cleanup(raw: object, base: Base) -> Value:
    del base
    text = _text(raw)
    if text not in CLEANUPS:
        valid = ", ".join(CLEANUPS)
        raise _BadValueError(f"{text!r} is not one of {valid}", closest(text, CLEANUPS))
    return text


def _path(raw: object, base: Base) -> Value:
    text = _text(raw)
    if not text or "\0" in text:
        raise _BadValueError("must be a path")
    return base.absolute(text)


def _database_url(raw: object, base: Base) -> Value:
    text = _text(raw)
    if not text:
        return ""
    # The text is not repeated: an address of another kind may hold a password.
    if not text.startswith("sqlite:///"):
        raise _BadValueError("only sqlite is supported by this version: sqlite:///<path>")
    file = text.removeprefix("sqlite:///")
    if not file or file.startswith(":") or "?" in file or "\0" in file:
        raise _BadValueError("must name a file, without options: sqlite:///<path>")
    return f"sqlite:///{base.absolute(file)}"


def _triggers(raw: object, base: Base) -> Value:
    del base
    items = cast("Sequence[object]", raw) if isinstance(raw, list | tuple) else [None]
    if not all(isinstance(item, str) for item in items):
        raise _BadValueError('must be a list of trigger names, for example ["on_error"]')
    return tuple(dict.fromkeys(_trigger(str(item)) for item in items))


def _trigger(name: str) -> str:
    known = TRIGGER_ALIASES.get(name, name)
    if known not in TRIGGERS:
        valid = (*TRIGGERS, *TRIGGER_ALIASES)
        problem = f"{name!r} is not a trigger; valid names are {', '.join(valid)}"
        raise _BadValueError(problem, closest(name, valid))
    return known


def _whole(lowest: int, highest: int) -> Callable[[object, Base], Value]:
    def read(raw: object, base: Base) -> Value:
        del base
        if not isinstance(raw, int) or isinstance(raw, bool) or not lowest <= raw <= highest:
            raise _BadValueError(f"must be a whole number from {lowest} to {highest}")
        return raw

    return read


def _size(raw: object, base: Base) -> Value:
    del base
    if isinstance(raw, int) and not isinstance(raw, bool) and raw >= 0:
        return raw
    match = _SIZE.fullmatch(raw.strip()) if isinstance(raw, str) else None
    if match is None:
        raise _BadValueError("must be a size such as 500MB or 20GB, or a number of bytes")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def _age(raw: object, base: Base) -> Value:
    del base
    if isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw <= _LONGEST_AGE:
        return raw
    match = _AGE.fullmatch(raw.strip()) if isinstance(raw, str) else None
    if match is None:
        raise _BadValueError("must be an age such as 30d, 12h or 90m, or a number of seconds")
    return int(match[1]) * _PERIODS[match[2]]


def _seconds(raw: object, base: Base) -> Value:
    del base
    number = raw if isinstance(raw, int | float) and not isinstance(raw, bool) else math.nan
    if not 0 < number <= LONGEST_TIMEOUT:
        raise _BadValueError(
            f"must be a number of seconds, more than 0 and at most {LONGEST_TIMEOUT}"
        )
    return float(number)


def _text(raw: object) -> str:
    if not isinstance(raw, str):
        raise _BadValueError("must be text")
    return raw


def _number_from_text(text: str) -> object:
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


def _list_from_text(text: str) -> object:
    inner = text.strip().removeprefix("[").removesuffix("]")
    items = [item.strip(" \t\"'") for item in inner.split(",")]
    return [item for item in items if item]


KEYS = (
    Key(
        name="format",
        field="format",
        kind="one of " + ", ".join((*FORMATS, AUTO_FORMAT)),
        default=AUTO_FORMAT,
        env="CLEVERAGENTS_FORMAT",
        doc="How results are printed; auto is rich on a terminal and plain elsewhere.",
        read=_format,
    ),
    Key(
        name="data-dir",
        field="data_dir",
        kind="path",
        default="~/.cleveragents",
        env="CLEVERAGENTS_DATA_DIR",
        doc="Where the database, the sandboxes and the snapshots are kept.",
        read=_path,
        in_project=False,
    ),
    Key(
        name="database.url",
        field="database_url",
        kind="sqlite:///<path>, or empty",
        default="",
        env="CLEVERAGENTS_DATABASE_URL",
        doc="The database; empty means an SQLite file in the data folder.",
        read=_database_url,
        in_project=False,
    ),
    Key(
        name="sandbox.checkpoint.auto-create-on",
        field="auto_create_on",
        kind="list of trigger names",
        default=DEFAULT_TRIGGERS,
        env="CLEVERAGENTS_CHECKPOINT_AUTO_CREATE_ON",
        doc="When checkpoints are taken beside those of the decisions; empty switches these off.",
        read=_triggers,
        from_text=_list_from_text,
        empty_is_a_value=True,
    ),
    Key(
        name="sandbox.checkpoint.max-checkpoints-per-plan",
        field="max_checkpoints_per_plan",
        kind="whole number from 2",
        default=50,
        env="CLEVERAGENTS_CHECKPOINT_MAX_PER_PLAN",
        doc="How many checkpoint groups a plan keeps before the oldest are pruned.",
        read=_whole(2, 1_000_000),
        from_text=_number_from_text,
    ),
    Key(
        name="sandbox.checkpoint.max-age",
        field="checkpoint_max_age",
        kind="an age such as 30d, 12h or 90m, or seconds; 0 for no limit",
        default=0,
        env="CLEVERAGENTS_CHECKPOINT_MAX_AGE",
        doc="How old a checkpoint group may get before it is pruned.",
        read=_age,
        from_text=_number_from_text,
    ),
    Key(
        name="sandbox.checkpoint.max-total-size",
        field="checkpoint_max_total_size",
        kind="a size such as 500MB or 20GB, or bytes; 0 for no limit",
        default=0,
        env="CLEVERAGENTS_CHECKPOINT_MAX_TOTAL_SIZE",
        doc="The room that the checkpoints of one plan may take before the oldest are pruned.",
        read=_size,
        from_text=_number_from_text,
    ),
    Key(
        name="sandbox.cleanup",
        field="sandbox_cleanup",
        kind="one of " + ", ".join(CLEANUPS),
        default=CLEANUPS[0],
        env="CLEVERAGENTS_SANDBOX_CLEANUP",
        doc="When sandboxes are removed; never with work that exists nowhere else.",
        read=_cleanup,
    ),
    Key(
        name="execute.max-retries-per-step",
        field="max_retries_per_step",
        kind="whole number from 0 to 100",
        default=0,
        env="CLEVERAGENTS_EXECUTE_MAX_RETRIES_PER_STEP",
        doc="How often a failed step is tried again, unless the action says otherwise.",
        read=_whole(0, 100),
        from_text=_number_from_text,
    ),
    Key(
        name="tool.timeout",
        field="tool_timeout",
        kind="seconds, more than 0",
        default=600,
        env="CLEVERAGENTS_TOOL_TIMEOUT",
        doc="How long one tool call may take, unless the tool says otherwise.",
        read=_seconds,
        from_text=_number_from_text,
    ),
    Key(
        name="tool.output-limit",
        field="tool_output_limit",
        kind="bytes, whole number from 1024",
        default=1_048_576,
        env="CLEVERAGENTS_TOOL_OUTPUT_LIMIT",
        doc="How much of one tool call's output is kept.",
        read=_whole(1024, 1_073_741_824),
        from_text=_number_from_text,
    ),
    Key(
        name="store.max-size",
        field="store_max_size",
        kind="a size such as 500MB or 20GB, or bytes; 0 for no limit",
        default=20_000_000_000,
        env="CLEVERAGENTS_STORE_MAX_SIZE",
        doc="The room that the snapshots of all plans may take; beyond it, steps are refused.",
        read=_size,
        from_text=_number_from_text,
        in_project=False,
    ),
)
