"""The envelope: one object per command, the same for JSON and YAML, for errors as well."""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import Enum
from math import isfinite
from re import Match
from typing import Any, Protocol, TextIO, cast

from cleveragents.cli.render.blocks import Cell, CommandResult, Invocation, Status
from cleveragents.cli.render.text import UNSAFE, fits, real_unicode, write
from cleveragents.domain.errors import PlanError


class Serialise(Protocol):
    def __call__(self, envelope: dict[str, Any], *, ascii_only: bool) -> str: ...


class EnvelopeRenderer:
    """Everything goes to stdout, warnings and errors too; stderr stays quiet."""

    def __init__(self, call: Invocation, stdout: TextIO, serialise: Serialise) -> None:
        self._call = call
        self._stdout = stdout
        self._serialise = serialise

    def show(self, outcome: CommandResult) -> None:
        messages = [*outcome.messages, *outcome.warnings]
        self._write(_status(outcome), outcome.exit_code, outcome.data, messages)

    def show_error(self, error: PlanError) -> None:
        details = {"code": error.code, "message": error.message, "hint": error.hint}
        self._write("error", error.exit_code, {"error": details}, [error.message])

    def _write(
        self, status: Status, exit_code: int, data: Mapping[str, Any], messages: list[str]
    ) -> None:
        started, duration = utc(self._call.started), self._call.duration_ms
        envelope = {
            "command": self._call.command,
            "status": status,
            "exit_code": exit_code,
            "data": data,
            "timing": {"started": started, "duration_ms": duration},
            "messages": messages,
        }
        plain = plain_data(envelope)
        text = self._serialise(plain, ascii_only=False)
        if not fits(text, self._stdout):
            text = self._serialise(plain, ascii_only=True)
        write(self._stdout, text)


def to_json(envelope: dict[str, Any], *, ascii_only: bool) -> str:
    text = json.dumps(envelope, indent=2, ensure_ascii=ascii_only)
    # JSON leaves some of these as they are, but a terminal may obey them; an escape is the same
    # to a program. The line ends are the layout's own: those in strings are escaped already.
    return re.sub(UNSAFE, _escape_unless_line_end, text) + "\n"


def to_yaml(envelope: dict[str, Any], *, ascii_only: bool) -> str:
    from cleveragents.cli.render.yaml_text import dump  # noqa: PLC0415  slow to import

    return dump(envelope, ascii_only=ascii_only)


def plain_data(value: Any) -> Any:
    """`value` in the types that JSON and YAML have, every text in it encodable."""
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if isfinite(value) else None  # neither NaN nor infinity is JSON
        case Enum():
            return plain_data(value.value)
        case str():
            return real_unicode(str(value))
        case datetime():
            return utc(value)
        case Cell():
            return real_unicode(value.text)
        case _:
            return _plain_container(value)


def utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plain_container(value: Any) -> Any:
    match value:
        case Mapping():
            mapping = cast("Mapping[Any, Any]", value)
            return {real_unicode(str(key)): plain_data(item) for key, item in mapping.items()}
        case list() | tuple():
            return [plain_data(item) for item in cast("Iterable[Any]", value)]
        case set() | frozenset():
            return sorted(plain_data(item) for item in cast("Iterable[Any]", value))
        case _:
            return real_unicode(str(value))


def _status(outcome: CommandResult) -> Status:
    return "warn" if outcome.status == "ok" and outcome.warnings else outcome.status


def _escape_unless_line_end(match: Match[str]) -> str:
    return match[0] if match[0] == "\n" else f"\\u{ord(match[0]):04x}"
