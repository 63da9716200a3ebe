"""`file.search`: the search runs in a process of its own, which its time limit can end."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from cleveragents.application.ports.runtime import ToolContext
from cleveragents.domain.decision import ToolResult
from cleveragents.domain.errors import ToolError, ToolTimeoutError
from cleveragents.infrastructure.processes.own_work import Work
from cleveragents.infrastructure.processes.runner import ProcessRunner, last_lines
from cleveragents.infrastructure.tools.sandbox_paths import resolve_folder

NAME = "file.search"
_CHILD = str(Path(__file__).with_name("search_child.py"))
# Without site packages, the user's settings, and the folder it stands in, where a step writes.
_ARGV = (sys.executable, "-I", "-S", "-X", "utf8", _CHILD)


def search(
    processes: ProcessRunner,
    root: str,
    arguments: Mapping[str, Any],
    context: ToolContext,
    timeout: float,
) -> ToolResult:
    top = os.path.realpath(root)
    asked = {
        "pattern": arguments["pattern"],
        "top": top,
        "start": resolve_folder(root, arguments.get("path", ".")),
        "most_bytes": processes.output_limit,
    }
    work = Work(
        argv=_ARGV,
        folder=top,
        writable=(),
        # It needs neither the network nor any other place, whatever the steps may have.
        confinement=replace(context.confinement, network=False, environment=(), write=()),
        plan_id=context.plan_id,
        seconds=timeout,
    )
    return _told(arguments, _answer(processes, work, asked))


def _answer(processes: ProcessRunner, work: Work, asked: Mapping[str, Any]) -> dict[str, Any]:
    try:
        done = processes.own_work.run(work, json.dumps(asked).encode("ascii"))
    except ToolTimeoutError as error:
        raise ToolTimeoutError(NAME, work.seconds) from error
    except ToolError:
        processes.refuse_if_stopped(work.plan_id)
        raise
    processes.refuse_if_stopped(work.plan_id)
    if done.code != 0:
        said = last_lines(done.stderr.decode("utf-8", "backslashreplace"))
        raise ToolError(f"{NAME} broke off{said}", "search for less, or in a part of the files")
    return json.loads(done.stdout)


def _told(arguments: Mapping[str, Any], answer: Mapping[str, Any]) -> ToolResult:
    if answer.get("is_pattern"):
        raise ToolError(
            f"{NAME}: {arguments['pattern']!r:.200} is not a regular expression:"
            f" {answer['problem']}",
            "correct `pattern`",
        )
    if "problem" in answer:
        raise ToolError(f"{arguments.get('path', '.')}: {answer['problem']}", "check the path")
    lines = [*answer["lines"]]
    if answer["more"]:
        lines.append(f"… only the first {len(lines)} are shown")
    return ToolResult(output="\n".join(lines), values={"count": len(lines)})
