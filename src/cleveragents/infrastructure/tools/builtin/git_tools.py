"""The tools that speak to the repository of a sandbox, through git's own command."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from cleveragents.domain.decision import ToolResult
from cleveragents.infrastructure.processes.runner import Command, ProcessRunner

Arguments = Mapping[str, Any]
# Nothing that the user or a step has configured to run on the side does.
_GIT = (
    "git",
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
    *("-c", "commit.gpgSign=false", "-c", "gc.auto=0", "-c", "color.ui=false"),
)
# For whoever has no address configured; looking does not refresh the index.
_NOBODY = {"EMAIL": "cleveragents@localhost"}
_LOOKING = {"GIT_OPTIONAL_LOCKS": "0"}


def status(run: ProcessRunner, command: Command, arguments: Arguments) -> ToolResult:
    del arguments
    flags = ("status", "--porcelain=v1", "--branch", "--untracked-files=all")
    return run.run(_git(command, flags, _LOOKING))


def diff(run: ProcessRunner, command: Command, arguments: Arguments) -> ToolResult:
    flags = ["diff", "--no-ext-diff", "--no-textconv"]
    flags += ["--cached"] if arguments.get("staged", False) else []
    # After this, nothing that a caller gives is taken for an option.
    flags += ["--end-of-options"]
    flags += [arguments["against"]] if "against" in arguments else []
    flags += ["--", *([arguments["path"]] if "path" in arguments else [])]
    return run.run(_git(command, flags, _LOOKING))


def commit(run: ProcessRunner, command: Command, arguments: Arguments) -> ToolResult:
    paths = [str(path) for path in arguments.get("paths", ["."])]
    run.run(_git(command, ["add", "--all", "--", *paths], {}))
    flags = ["commit", "--no-verify", "--quiet", f"--message={arguments['message']}"]
    flags += [f"--author={arguments['author']}"] if "author" in arguments else []
    flags += ["--allow-empty"] if arguments.get("allow_empty", False) else []
    flags += ["--only", "--", *paths] if "paths" in arguments else []
    run.run(_git(command, flags, _NOBODY))
    made = run.run(_git(command, ["log", "-1", "--format=%H %s"], _LOOKING))
    name = made.output.partition(" ")[0]
    return ToolResult(output=made.output, values={"commit": name})


GIT_TOOLS: Mapping[str, Callable[[ProcessRunner, Command, Arguments], ToolResult]] = {
    "git.status": status,
    "git.diff": diff,
    "git.commit": commit,
}


def _git(command: Command, flags: Sequence[str], variables: Mapping[str, str]) -> Command:
    return replace(command, argv=[*_GIT, *flags], variables=variables)
