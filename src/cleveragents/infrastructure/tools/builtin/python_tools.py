"""The tools that are Python functions: where they come from, and a call in its own process."""

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from cleveragents.domain.decision import ToolResult
from cleveragents.domain.errors import ToolError, ToolNotStartedError
from cleveragents.domain.foreign_json import (
    NotJsonError,
    TooMuchGivenBackError,
    read_json,
)
from cleveragents.infrastructure.processes.runner import Command, ProcessRunner

GROUP = "cleveragents.tools"
_CHILD = Path(__file__).with_name("python_child.py")
_HTTP = "cleveragents.infrastructure.tools.builtin.http_child:request"
# A byte of an answer can take so many as JSON: half as many bytes, and room for its headers.
_SPELLED_OUT = 8


def entry_point_problem(name: str) -> str | None:
    """Why there is no such function, with what was probably meant."""
    known = _entry_points()
    if name in known:
        return None
    close = get_close_matches(name, known, n=1)
    there = f"there are {', '.join(sorted(known))}" if known else "no installed package has any"
    meant = f"did you mean `{close[0]}`?" if close else there
    return f"no entry point `{name}` in the group `{GROUP}`; {meant}"


def run_function(
    run: ProcessRunner, command: Command, name: str, arguments: Mapping[str, Any]
) -> ToolResult:
    """The function of an entry point."""
    problem = entry_point_problem(name)
    if problem is not None:
        raise ToolNotStartedError(
            f"{command.name}: {problem}", "install the package that has it, then resume the plan"
        )
    return _called(run, command, _entry_points()[name], arguments, most=run.output_limit)


def http_request(run: ProcessRunner, command: Command, arguments: Mapping[str, Any]) -> ToolResult:
    """In a process of its own, so that it can be stopped at any moment."""
    ours = ("timeout", "any_status")
    given = {name: value for name, value in arguments.items() if name not in ours}
    cut = {"most_bytes": run.output_limit // 2}
    found = _called(run, command, _HTTP, {**given, **cut}, most=_SPELLED_OUT * run.output_limit)
    result = cast("dict[str, Any]", found.values["result"])
    if result["status"] >= 400 and not arguments.get("any_status", False):
        raise ToolError(
            f"{command.name}: {arguments['url']} answered {result['status']} {result['reason']}",
            "correct the request, or say `any_status: true`",
        )
    body = result.pop("body")
    return ToolResult(output=body, values=result)


def _called(
    run: ProcessRunner, command: Command, target: str, arguments: Mapping[str, Any], most: int
) -> ToolResult:
    """`most` is how many bytes the result may have, as JSON."""
    call = {"target": target, "arguments": dict(arguments)}
    with tempfile.TemporaryFile() as answer:
        place = answer.fileno()
        # -P: what is in the sandbox must not take the place of a module.
        argv = [sys.executable, "-P", "-X", "utf8", str(_CHILD), str(place)]
        asked = replace(command, argv=argv, input=json.dumps(call).encode(), passed=(place,))
        raw = run.run(asked)
        data = os.pread(place, most + 1, 0)
    result = _result(command.name, data, most)
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    output = f"{raw.output}\n{text}" if raw.output else text
    return ToolResult(output=output, values={**raw.values, "result": result})


def _result(name: str, data: bytes, most: int) -> object:
    if not data:
        raise ToolError(f"{name} gave no result back", "a function that ends its process cannot")
    if len(data) > most:
        raise TooMuchGivenBackError(name, most)
    try:
        return read_json(data)
    except NotJsonError as error:
        raise ToolError(
            f"{name} gave back what is no JSON: {error}", "let it return a value"
        ) from error


def _entry_points() -> Mapping[str, str]:
    import importlib.metadata  # noqa: PLC0415 - slow, and few plans have such tools

    found = importlib.metadata.entry_points(group=GROUP)
    return {point.name: f"{point.module}:{point.attr}" for point in found}
