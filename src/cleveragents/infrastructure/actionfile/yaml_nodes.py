"""YAML text as JSON-like values, and the lines they stand on. Nothing in a file can run.

Read event by event, since limits have to hold while a file is read: a composer builds every level
and every value first, and forgets what it has found when the text breaks off (ADR 0074).
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, cast

import yaml

Scalar = str | int | float | bool | None

# Dates, `yes` and `off` are text, as they are for whoever wrote them.
_NULLS = ("", "~", "null", "Null", "NULL")
_BOOLEANS = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_WHOLE = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


def core_value(text: str) -> tuple[Scalar, str | None]:
    """What an unquoted scalar means, and what is wrong with it."""
    if text in _NULLS:
        return None, None
    if text in _BOOLEANS:
        return _BOOLEANS[text], None
    if _NOT_FINITE.fullmatch(text):
        return text, "must be a finite number; put it in quotes if it is text"
    number = _number(text)
    if number is None:
        return text, None
    if not math.isfinite(number) or (isinstance(number, int) and abs(number) >= 2**63):
        return text, "this number is too large; put it in quotes if it is text"
    return number, None


def _number(text: str) -> int | float | None:
    # Python refuses to convert thousands of digits; as a float they are infinite, so too large.
    if _WHOLE.fullmatch(text):
        return int(text) if len(text) < 100 else math.inf
    if _BASED.fullmatch(text):
        return int(text, 0) if len(text) < 100 else math.inf
    return float(text) if _FLOAT.fullmatch(text) else None


# Limits on what a file means once its aliases are written out: a few hundred bytes of aliases can
# stand for gigabytes. They are far above any file that a person writes.
MAX_VALUES = 100_000
MAX_CHARACTERS = 4 * 1024 * 1024
MAX_DEPTH = 64

Loc = tuple[str | int, ...]

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TEXT_TAGS = (None, "!", "tag:yaml.org,2002:str")
_LIST_TAGS = (None, "!", "tag:yaml.org,2002:seq")
_MAPPING_TAGS = (None, "!", "tag:yaml.org,2002:map")
_SURROGATE = re.compile("[\ud800-\udfff]")
_FORBIDDEN = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Lines(NamedTuple):
    """The line of a value, or of its key, and the lines of what is in it.

    `values`, `characters` and `depth` measure it with all aliases written out.
    """

    line: int
    parts: "Mapping[str | int, Lines]" = {}
    values: int = 1
    characters: int = 0
    depth: int = 1


class Node(NamedTuple):
    value: Any
    lines: Lines


class YamlProblem(NamedTuple):
    """`line` 0: it is not in the file."""

    line: int
    text: str
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.text
        column = f", column {self.column}" if self.column else ""
        return f"line {self.line}{column}: {self.text}"


class YamlProblemError(Exception):
    """Text that cannot be read to its end, with all that was found up to there."""

    def __init__(self, problems: Sequence[YamlProblem]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


class Document(NamedTuple):
    value: Any
    lines: Lines
    problems: tuple[YamlProblem, ...]


def parse_yaml(text: str, loader: Any = _LOADER) -> Document:
    """Raises YamlProblemError."""
    if bad := _FORBIDDEN.search(text):
        line = text.count("\n", 0, bad.start()) + 1
        name = f"U+{ord(bad.group()):04X}"
        raise YamlProblemError(
            [YamlProblem(line=line, text=f"the character {name} is not allowed")]
        )
    builder = _Builder(text, loader)
    root = builder.document()
    return Document(root.value, root.lines, tuple(builder.problems))


def line_of(lines: Lines, loc: Loc) -> int:
    """The line of what `loc` leads to, or of the last thing on the way that is there."""
    for part in loc:
        if part not in lines.parts:
            break
        lines = lines.parts[part]
    return lines.line


def path_text(loc: Loc) -> str:
    """`steps[0].with.path`; a key that is not a simple word is in quotes."""
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if _is_simple(part) else "." + json.dumps(part[:60])
    return text.removeprefix(".")


def _is_simple(key: str) -> bool:
    return re.fullmatch(r"[\w-]{1,60}", key) is not None


class _Builder:
    def __init__(self, text: str, loader: Any) -> None:
        self._text = text
        self._made = 0
        parse = cast("Callable[..., Iterator[Any]]", yaml.parse)  # pyright: ignore[reportUnknownMemberType] - its stub leaves the stream open
        self._events = parse(text, Loader=loader)
        self._anchors: dict[str, Node | None] = {}
        self.problems: list[YamlProblem] = []

    def document(self) -> Node:
        self._next()
        start = self._next()
        if isinstance(start, yaml.StreamEndEvent):
            self._stop(1, "the file is empty")
        root = self._node(self._next(), ())
        self._next()
        extra = self._next()
        if not isinstance(extra, yaml.StreamEndEvent):
            self._stop(_line(extra), "a second document starts here; a file holds one action")
        return root

    def _next(self) -> Any:
        try:
            return next(self._events)
        except yaml.MarkedYAMLError as error:
            self._stop_at(error)
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            self._stop(1, f"not valid YAML: {' '.join(str(error).split())}")

    def _node(self, event: Any, loc: Loc) -> Node:
        if isinstance(event, yaml.AliasEvent):
            return self._aliased(event)
        if len(loc) >= MAX_DEPTH:
            self._stop(_line(event), f"nested more than {MAX_DEPTH} levels deep")
        self._made += 1
        if self._made > MAX_VALUES:
            self._stop(_line(event), f"more than {MAX_VALUES} values")
        anchor: str | None = event.anchor
        if anchor is not None:
            self._anchors[anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event, loc)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self._sequence(event, loc)
        else:
            node = self._mapping(event, loc)
        if anchor is not None:
            self._anchors[anchor] = node
        return node

    def _aliased(self, event: Any) -> Node:
        if event.anchor not in self._anchors:
            self._stop(_line(event), f"`*{event.anchor}`: there is no `&{event.anchor}` before it")
        node = self._anchors[event.anchor]
        if node is None:
            self._stop(_line(event), f"`*{event.anchor}` contains itself")
        return node

    def _scalar(self, event: Any, loc: Loc) -> Node:
        value: Scalar = event.value
        self._check_tag(event, _TEXT_TAGS, loc)
        if _SURROGATE.search(event.value):
            self._report(_line(event), loc, "half of a surrogate pair is not text")
        if event.tag is None and event.implicit[0]:
            value, problem = core_value(event.value)
            if problem:
                self._report(_line(event), loc, problem)
        return Node(value, Lines(_line(event), characters=len(event.value)))

    def _sequence(self, event: Any, loc: Loc) -> Node:
        self._check_tag(event, _LIST_TAGS, loc)
        items: list[Node] = []
        while not isinstance(following := self._next(), yaml.SequenceEndEvent):
            items.append(self._node(following, (*loc, len(items))))
        lines = [item.lines for item in items]
        measured = self._measured(event, lines, dict(enumerate(lines)))
        return Node([item.value for item in items], measured)

    def _mapping(self, event: Any, loc: Loc) -> Node:
        self._check_tag(event, _MAPPING_TAGS, loc)
        values: dict[str, Any] = {}
        parts: dict[str | int, Lines] = {}
        everything: list[Lines] = []
        while not isinstance(following := self._next(), yaml.MappingEndEvent):
            key = self._node(following, (*loc, ""))
            name = key.value if isinstance(key.value, str) else ""
            child = (*loc, name)
            self._check_key(key.value, _line(following), child, parts.get(name))
            node = self._node(self._next(), child)
            everything += (key.lines, node.lines)
            if isinstance(key.value, str):
                values.setdefault(name, node.value)
                parts.setdefault(name, node.lines._replace(line=_line(following)))
        return Node(values, self._measured(event, everything, parts))

    def _check_key(self, key: object, line: int, loc: Loc, earlier: Lines | None) -> None:
        if not isinstance(key, str):
            shown = key if isinstance(key, int | float) else "this key"
            self._report(line, loc[:-1], f"a key must be text; put {shown} in quotes")
        elif key == "<<":
            self._report(line, loc, "merge keys are not supported; write the keys out")
        elif earlier is not None:
            self._report(line, loc, f"duplicate key; it is already on line {earlier.line}")

    def _check_tag(self, event: Any, allowed: Sequence[str | None], loc: Loc) -> None:
        if event.tag not in allowed:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")[:80]
            self._report(_line(event), loc, f"the tag {tag!r} is not allowed")

    def _measured(
        self, event: Any, everything: Sequence[Lines], parts: Mapping[str | int, Lines]
    ) -> Lines:
        lines = Lines(
            line=_line(event),
            parts=parts,
            values=1 + sum(part.values for part in everything),
            characters=sum(part.characters for part in everything),
            depth=1 + max((part.depth for part in everything), default=0),
        )
        if lines.depth > MAX_DEPTH:
            self._stop(lines.line, f"nested more than {MAX_DEPTH} levels deep")
        if lines.values > MAX_VALUES or lines.characters > MAX_CHARACTERS:
            self._stop(lines.line, "too large once its aliases are written out")
        return lines

    def _report(self, line: int, loc: Loc, text: str) -> None:
        where = path_text(loc)
        self.problems.append(YamlProblem(line=line, text=f"{where}: {text}" if where else text))

    def _stop_at(self, error: yaml.MarkedYAMLError) -> NoReturn:
        mark = error.problem_mark or error.context_mark
        if mark is None:
            self._stop(1, f"not valid YAML: {error.problem}")
        line = self._text.split("\n")[mark.line : mark.line + 1]
        if line and "\t" in line[0][: len(line[0]) - len(line[0].lstrip())]:
            reason = "a tab cannot indent; use spaces"
        else:
            context = f" {error.context}" if error.context else ""
            begin = error.context_mark
            since = f" that begins on line {begin.line + 1}" if context and begin else ""
            reason = f"not valid YAML: {error.problem}{context}{since}"
        problem = YamlProblem(line=mark.line + 1, column=mark.column + 1, text=reason)
        raise YamlProblemError([*self.problems, problem]) from error

    def _stop(self, line: int, text: str) -> NoReturn:
        raise YamlProblemError([*self.problems, YamlProblem(line=line, text=text)])


def _line(event: Any) -> int:
    return event.start_mark.line + 1
