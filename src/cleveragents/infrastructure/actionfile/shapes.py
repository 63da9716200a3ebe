"""The shape of an action file: its keys and their types, and the words for what is wrong."""

import difflib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from cleveragents.domain.action import ResourceType, Validation
from cleveragents.domain.confinement import ConfinementMeans, ConfinementMode
from cleveragents.domain.tool_schema import TYPES

# Longer waits overflow the system's own timers.
LONGEST_TIMEOUT = 604_800
# One broken line can make thousands of findings; nobody reads more than these.
MOST_FINDINGS = 50

# For editors, which know the rules below only as patterns.
NAME_PATTERN = r"^(?!\.{1,2}$)[^\s/\\](?:[^/\\\n\r\t]{0,98}[^\s/\\])?$"
ONE_LINE = r"^[^\n\r\t]*\S[^\n\r\t]*$"
INSIDE_PATTERN = r"^(?!/)(?!(.*/)?\.\.(/|$)).*\S"
ABSOLUTE_PATTERN = r"^(/|~/)(?!(.*/)?\.\.(/|$))"
VARIABLE_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """Something wrong, and where: keys and positions from the top of the file."""

    loc: tuple[str | int, ...]
    text: str


def quoted(text: str) -> str:
    """Text from a file as part of a sentence: short, and without anything a terminal obeys."""
    shown = text if len(text) <= 60 else text[:57] + "..."
    return f"`{shown}`" if shown.isprintable() else repr(shown)


def meant(given: str, names: Collection[str]) -> str:
    """`; did you mean ...?`, or nothing."""
    close = difflib.get_close_matches(given[:60], names, n=1)
    return f"; did you mean `{close[0]}`?" if close else ""


def _wrong(text: str) -> PydanticCustomError:
    return PydanticCustomError("rule", "{text}", {"text": text})


def _text(value: str) -> str:
    if not value.strip():
        raise _wrong("must not be empty")
    if "\0" in value:
        raise _wrong("must not contain a null character")
    return value


def _title(longest: int) -> Callable[[str], str]:
    def check(value: str) -> str:
        if len(value) > longest:
            raise _wrong(f"must not be longer than {longest} characters")
        if not value.isprintable():
            raise _wrong("must be one line without control characters")
        return value

    return check


def _action_name(value: str) -> str:
    if "/" in value or "\\" in value or value in {".", ".."} or value != value.strip():
        raise _wrong("must be a short name, without slashes or spaces around it")
    return value


def _inside(value: str) -> str:
    if PurePosixPath(value).is_absolute() or ".." in PurePosixPath(value).parts:
        raise _wrong("must be relative to the resource and stay inside it")
    return value


def values_of(names: type[StrEnum]) -> list[Any]:
    return [item.value for item in names if item.value != "nothing"]


def one_of(names: type[StrEnum]) -> Callable[[str], str]:
    valid = values_of(names)

    def check(value: str) -> str:
        if value not in valid:
            raise _wrong(f"{quoted(value)} is not one of {', '.join(valid)}{meant(value, valid)}")
        return value

    return check


def _variable(value: str) -> str:
    if not value.isascii() or not value.isidentifier():
        raise _wrong(f"{quoted(value)} is not the name of a variable")
    return value


def _absolute(value: str) -> str:
    if not value.startswith(("/", "~/")) or ".." in PurePosixPath(value).parts:
        raise _wrong("must be an absolute path, or one that begins with ~/")
    return value


def _parameter_type(value: str) -> str:
    if value not in TYPES:
        raise _wrong(f"{quoted(value)} is not one of {', '.join(TYPES)}{meant(value, TYPES)}")
    return value


def _argv(value: object) -> object:
    if isinstance(value, str):
        raise _wrong("must be a list of arguments, never a shell string: [python, migrate.py]")
    return value


def told(**keywords: Any) -> Any:
    """What JSON Schema can say of a rule that stands beside it; the rule itself says more."""
    return Field(json_schema_extra=keywords)


Text = Annotated[str, AfterValidator(_text), told(pattern=r"\S")]
ActionName = Annotated[
    Text, AfterValidator(_title(100)), AfterValidator(_action_name), told(pattern=NAME_PATTERN)
]
StepName = Annotated[Text, AfterValidator(_title(200)), told(maxLength=200, pattern=ONE_LINE)]
InsidePath = Annotated[Text, AfterValidator(_inside), told(pattern=INSIDE_PATTERN)]
Argv = Annotated[list[Text], Field(min_length=1), BeforeValidator(_argv)]
Section = dict[str, Any]


Variable = Annotated[Text, AfterValidator(_variable), told(pattern=VARIABLE_PATTERN)]
AbsolutePath = Annotated[Text, AfterValidator(_absolute), told(pattern=ABSOLUTE_PATTERN)]
Mode = Annotated[
    str, AfterValidator(one_of(ConfinementMode)), told(enum=values_of(ConfinementMode))
]
Means = Annotated[
    str, AfterValidator(one_of(ConfinementMeans)), told(enum=values_of(ConfinementMeans))
]
TypeName = Annotated[str, AfterValidator(one_of(ResourceType)), told(enum=values_of(ResourceType))]
Judging = Annotated[str, AfterValidator(one_of(Validation)), told(enum=values_of(Validation))]
ParameterType = Annotated[str, AfterValidator(_parameter_type), told(enum=list(TYPES))]


class Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ActionShape(Shape):
    """The top of the file; what is in the sections is checked one by one."""

    name: ActionName
    description: Text
    resources: Annotated[Section, Field(min_length=1)]
    rollback_policy: Section = {}
    max_retries_per_step: Annotated[int, Field(ge=0, le=100)] | None = None
    tools: Section = {}
    actor: Any = None
    invariants: list[Text] = []
    steps: Annotated[list[Any], Field(min_length=1)] | None = None
    validations: list[Any] = []
    confinement: object = {}
    mcp_servers: Section = {}


class ConfinementShape(Shape):
    mode: Mode | None = None
    by: Means = ConfinementMeans.KERNEL.value
    network: bool = False
    environment: list[Variable] = []
    write: list[AbsolutePath] = []


class PolicyShape(Shape):
    enabled: bool = True
    require_checkpoints: bool = True
    max_checkpoints: Annotated[int, Field(ge=1)] | None = None


class ResourceShape(Shape):
    type: TypeName
    path: Text | None = None
    url: Text | None = None
    include: list[InsidePath] = []
    exclude: list[InsidePath] = []
    checkpointable: bool = True


class ParameterShape(Shape):
    type: ParameterType = "string"
    required: bool = True
    description: str = ""


class ServerShape(Shape):
    command: Argv
    resource: str | None = None


class ToolShape(Shape):
    description: str = ""
    command: Argv | None = None
    python: Text | None = None
    server: Text | None = None
    tool: Text | None = None
    parameters: dict[str, ParameterShape] | None = None
    resource: str | None = None
    writes: bool | None = None
    read_only: bool | None = None
    checkpointable: bool | None = None
    write_scope: list[InsidePath] = []
    reads: list[InsidePath] | None = None
    side_effects: list[Text] = []
    idempotent: bool = False
    compensate: str | None = None
    timeout: Annotated[float, Field(gt=0, le=LONGEST_TIMEOUT)] | None = None
    validation: Judging | None = None


class StepShape(Shape):
    name: StepName | None = None
    tool: Text
    arguments: Section = Field(default={}, alias="with")
    uses: list[Text] = []


S = TypeVar("S", bound=Shape)


def shaped(
    model: type[S], raw: object, loc: tuple[str | int, ...], findings: list[Mistake]
) -> S | None:
    """The checked section, or None with the reasons added to `findings`."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        # One more than is shown, so that it is seen that there are more.
        details = error.errors(include_url=False)[: MOST_FINDINGS + 1]
        keys = [field.alias or name for name, field in model.model_fields.items()]
        findings += [Mistake(loc=(*loc, *d["loc"]), text=_in_words(d, keys)) for d in details]
        return None


_WANTED: Mapping[str, str] = {
    "string_type": "text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "list_type": "a list",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
}
_GIVEN: Mapping[type, str] = {
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "a mapping",
}


def _in_words(error: ErrorDetails, keys: Collection[str]) -> str:
    kind, given, context = error["type"], error["input"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return f"unknown key{meant(str(error['loc'][-1]), keys)}"
    if kind == "missing":
        return "this key is required"
    if kind == "too_short":
        return "must not be empty"
    if kind in {"greater_than", "greater_than_equal", "less_than_equal"}:
        limits = {"gt": "more than", "ge": "at least", "le": "at most"}
        return "must be " + "".join(f"{limits[key]} {context[key]:g}" for key in context)
    if kind in _WANTED:
        return _wrong_type(_WANTED[kind], given)
    return error["msg"]


NO_VALUE = "has no value"
TILDE = '; in YAML, `~` means nothing, and only "~" is text'


def _wrong_type(wanted: str, given: object) -> str:
    if given is None:
        return f"{NO_VALUE}; it must be {wanted}{TILDE if wanted == 'text' else ''}"
    quotes = "; put it in quotes" if wanted == "text" and isinstance(given, int | float) else ""
    return f"must be {wanted}, not {_GIVEN[type(given)]}{quotes}"
