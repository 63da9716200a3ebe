"""How an action file is described: sections of keys, each key with one rule and one sentence.

A section is declared once. It is read from that, every mistake in it is told from that, and the
JSON Schema for editors is made from that.
"""

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar, cast, overload

Loc = tuple[str | int, ...]
JsonSchema = dict[str, Any]
T = TypeVar("T")
S = TypeVar("S", bound="Section")

NO_VALUE = "has no value"
TILDE = '; in YAML, `~` means nothing, and only "~" is text'
# Looking for what was meant takes time; nobody reads more than the first mistakes of a file.
_MOST_SUGGESTIONS = 100
_MAPPING = "a mapping of keys to values"
_GIVEN: Mapping[type, str] = {
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "a mapping",
}


class Mistake(NamedTuple):
    """Something wrong, and where: keys and positions from the top of the file."""

    loc: Loc
    text: str


class Mistakes:
    """Everything that is wrong with a file."""

    def __init__(self) -> None:
        self.found: list[Mistake] = []
        self._suggestions = 0

    def add(self, text: str, *loc: str | int) -> None:
        self.found.append(Mistake(loc, text))

    def suggestion(self, given: str, names: Collection[str]) -> str | None:
        self._suggestions += 1
        if self._suggestions > _MOST_SUGGESTIONS:
            return None
        close = difflib.get_close_matches(given[:60], names, n=1)
        return close[0] if close else None

    def meant(self, given: str, names: Collection[str]) -> str:
        """`; did you mean ...?`, or nothing."""
        close = self.suggestion(given, names)
        return f"; did you mean `{close}`?" if close else ""


class SourcePlace(NamedTuple):
    """Where a value stands, and where to say what is wrong with it."""

    loc: Loc
    mistakes: Mistakes

    def at(self, *parts: str | int) -> "SourcePlace":
        return SourcePlace((*self.loc, *parts), self.mistakes)

    def wrong(self, text: str) -> None:
        self.mistakes.add(text, *self.loc)

    def wrong_type(self, wanted: str, given: object) -> None:
        if given is None:
            self.wrong(f"{NO_VALUE}; it must be {wanted}{TILDE if wanted == 'text' else ''}")
            return
        quotes = "; put it in quotes" if wanted == "text" and isinstance(given, int | float) else ""
        self.wrong(f"must be {wanted}, not {_GIVEN[type(given)]}{quotes}")


class Rule(Generic[T]):
    """What a value has to be; `schema` is what JSON Schema can say of that.

    `read` gives the value, or None after saying what is wrong. Of a list or a mapping with mistakes
    inside it gives what is right.
    """

    def __init__(self, read: Callable[[object, SourcePlace], T | None], schema: JsonSchema) -> None:
        self.read = read
        self.schema = schema


class SectionKey(Generic[T]):
    """One key of a section; as an attribute, its value or its default."""

    def __init__(
        self, rule: Rule[Any], description: str, default: T, *, name: str, required: bool
    ) -> None:
        self.rule = rule
        self.name = name
        self.required = required
        self._description = description
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name

    @overload
    def __get__(self, section: None, owner: type) -> Self: ...
    @overload
    def __get__(self, section: "Section", owner: type) -> T: ...
    def __get__(self, section: "Section | None", owner: type) -> Self | T:
        return self if section is None else self.value_in(section)

    def value_in(self, section: "Section") -> T:
        if self.required and self.name not in section.values:
            raise LookupError(f"{section.place.loc}: no {self.name}")
        return section.values.get(self.name, self._default)

    @property
    def may_be_null(self) -> bool:
        return self._default is None and not self.required

    @property
    def schema(self) -> JsonSchema:
        shown = isinstance(self._default, str | int | float) and self._default != ""
        default = {"default": self._default} if shown else {}
        return {**self.rule.schema, **default, "description": self._description}


@overload
def key(rule: Rule[T], description: str) -> SectionKey[T | None]: ...
@overload
def key(rule: Rule[T], description: str, default: T, *, name: str = "") -> SectionKey[T]: ...
def key(
    rule: Rule[Any], description: str, default: Any = None, *, name: str = ""
) -> SectionKey[Any]:
    """One that may be left out, or be null if it has no default."""
    return SectionKey(rule, description, default, name=name, required=False)


def required(rule: Rule[T], description: str) -> SectionKey[T]:
    return SectionKey(rule, description, cast("T", None), name="", required=True)


def listed(item: Rule[T], description: str) -> SectionKey[tuple[T, ...]]:
    return key(list_of(item), description, ())


class Section:
    """One mapping of the file, read key by key, so that one mistake does not hide another.

    `raw` is what is in the file, `wrong` are the keys in which something is wrong: a required key
    that is missing has no value, any other its default.
    """

    definition: ClassVar[str] = ""  # under which name editors know it; without one, it is inline
    more_schema: ClassVar[JsonSchema] = {}  # what its keys say about each other
    keys: ClassVar[Mapping[str, SectionKey[Any]]] = {}

    def __init_subclass__(cls) -> None:
        items = [
            cast("SectionKey[Any]", item)
            for item in vars(cls).values()
            if isinstance(item, SectionKey)
        ]
        cls.keys = {**cls.keys, **{item.name: item for item in items}}

    def __init__(self, raw: Mapping[str, object], place: SourcePlace) -> None:
        self.place = place
        self.raw = raw
        self.wrong: set[str] = set()
        self.values: dict[str, Any] = {}
        for key in self.keys.values():
            self._read(key)
        for name in raw:
            if name not in self.keys:
                self._refuse(name)
        self.check()

    def check(self) -> None:
        """Say what is wrong between its keys."""

    def are_right(self, *names: str) -> bool:
        return self.wrong.isdisjoint(names)

    @property
    def mentioned(self) -> Set[str]:
        """The keys in the file, and those that were meant by others."""
        return self.raw.keys() | self.wrong

    def everything(self) -> dict[str, Any]:
        """The value of each key, or its default."""
        return {name: key.value_in(self) for name, key in self.keys.items()}

    def find(self, text: str, *parts: str | int) -> None:
        self.place.at(*parts).wrong(text)

    def names_in(self, name: str) -> Sequence[str]:
        """The keys of a mapping below, also those whose values cannot be read."""
        below = self.raw.get(name)
        return list(cast("dict[str, object]", below)) if isinstance(below, dict) else []

    @classmethod
    def rule(cls) -> Rule[Self]:
        def read(value: object, place: SourcePlace) -> Self | None:
            raw = as_mapping(value, place)
            return None if raw is None else cls(raw, place)

        return Rule(read, reference(cls.definition) if cls.definition else cls.schema())

    @classmethod
    def schema(cls) -> JsonSchema:
        needed = [key.name for key in cls.keys.values() if key.required]
        return {
            "type": "object",
            "properties": {key.name: key.schema for key in cls.keys.values()},
            "additionalProperties": False,
            **({"required": needed} if needed else {}),
            **cls.more_schema,
        }

    def _read(self, key: SectionKey[Any]) -> None:
        if key.name not in self.raw:
            if key.required:
                self.wrong.add(key.name)
                self.find("this key is required", key.name)
            return
        value = self.raw[key.name]
        if value is None and key.may_be_null:
            return
        before = len(self.place.mistakes.found)
        result = key.rule.read(value, self.place.at(key.name))
        if result is not None:
            self.values[key.name] = result
        if len(self.place.mistakes.found) > before:
            self.wrong.add(key.name)

    def _refuse(self, name: str) -> None:
        close = self.place.mistakes.suggestion(name, self.keys)
        self.find(f"unknown key; did you mean `{close}`?" if close else "unknown key", name)
        if close:
            self.wrong.add(close)  # it is there, with a typing error in its name


def list_of(item: Rule[T], *, least: int = 0) -> Rule[tuple[T, ...]]:
    def read(value: object, place: SourcePlace) -> tuple[T, ...] | None:
        if not isinstance(value, list):
            place.wrong_type("a list", value)
            return None
        values = cast("list[object]", value)
        if len(values) < least:
            place.wrong("must not be empty")
        results = [item.read(one, place.at(index)) for index, one in enumerate(values)]
        return tuple(one for one in results if one is not None)

    return Rule(read, {"type": "array", "items": item.schema, **_at_least("minItems", least)})


def mapping_of(
    item: Rule[T], names: Rule[str] | None = None, *, least: int = 0
) -> Rule[Mapping[str, T]]:
    def read(value: object, place: SourcePlace) -> Mapping[str, T] | None:
        raw = as_mapping(value, place)
        if raw is None:
            return None
        if len(raw) < least:
            place.wrong("must not be empty")
        for name in raw:
            if names:
                names.read(name, place.at(name))
        results = {key: item.read(one, place.at(key)) for key, one in raw.items()}
        return {key: one for key, one in results.items() if one is not None}

    schema: JsonSchema = {"type": "object", "additionalProperties": item.schema}
    named = {"propertyNames": {"pattern": names.schema["pattern"]}} if names else {}
    return Rule(read, {**schema, **named, **_at_least("minProperties", least)})


def as_mapping(value: object, place: SourcePlace) -> Mapping[str, object] | None:
    if isinstance(value, dict):
        return cast("dict[str, object]", value)
    place.wrong_type(_MAPPING, value)
    return None


def reference(definition: str) -> JsonSchema:
    return {"$ref": f"#/$defs/{definition}"}


def _at_least(keyword: str, least: int) -> JsonSchema:
    return {keyword: least} if least else {}
