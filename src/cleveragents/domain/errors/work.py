"""What can go wrong with resources, sandboxes and tools."""

from collections.abc import Sequence

from cleveragents.domain.errors.base import PlanError


class SandboxMissingError(PlanError, code="sandbox-missing"):
    def __init__(
        self, resource: str, path: str, plan_id: str, data_folder: str | None = None
    ) -> None:
        """`plan_id` is the plan that makes it again: for children the one at the top."""
        if data_folder is None:
            super().__init__(
                f"the sandbox of `{resource}` is not at {path} any more",
                f"make it again from its snapshots: `agents plan resume --rebuild {plan_id}`, or"
                " `agents plan rollback --rebuild` to go back as well; or put the folder back",
            )
        else:
            super().__init__(
                f"the sandbox of `{resource}`, {path}, is not in the data folder {data_folder}",
                "use the data folder that it is in with --data-dir, or cancel the plan in this one"
                f" with `agents plan cancel {plan_id}`",
            )


class ProjectMissingError(PlanError, code="project-missing"):
    """The user's own project, and not its sandbox."""

    def __init__(self, resource: str, location: str, seems_at: str | None = None) -> None:
        at = f"; it may be at {seems_at}, which `agents doctor --fix` goes on with"
        super().__init__(
            f"the project of `{resource}` is not at {location} any more{at if seems_at else ''}",
            f"put it back, or say where it is: agents doctor --fix --moved {location}=NEW",
        )


class BaseLostError(PlanError, code="base-lost"):
    """What a plan was made from is gone from the user's repository."""

    def __init__(self, resource: str, repository: str, commit: str, sandbox: str) -> None:
        super().__init__(
            f"{repository} does not have commit {commit} any more, from which the sandbox of"
            f" `{resource}` was made: somebody has deleted our refs below refs/cleveragents/, and"
            " git has removed what only they held",
            "nothing was changed; bring the commit back from a clone or backup with `git fetch`,"
            f" or take the plan's files out of {sandbox} by hand and end it: agents plan cancel",
        )


class SandboxError(PlanError, code="sandbox-failed"):
    """A sandbox could not be made or read."""


class RepositoryNotTrustedError(PlanError, code="repository-not-trusted"):
    """git works in no repository that belongs to somebody else, unless it is told to."""

    def __init__(self, repository: str, said: str) -> None:
        super().__init__(
            f"git does not work in {repository}: {said}",
            f"if you trust it: git config --global --add safe.directory {repository}",
        )


class FileEncodingError(PlanError, code="file-encoding"):
    """A file that git cannot read in the encoding that its attributes name."""

    def __init__(self, folder: str, path: str, encoding: str) -> None:
        super().__init__(
            f"{path} in {folder} is not valid {encoding}, which `working-tree-encoding` in"
            " .gitattributes says it is, so that git cannot take it",
            "write it in that encoding, or correct .gitattributes, in a step of its own: go back"
            " with `agents plan rollback`, or add one with `agents plan correct`",
        )


class ResourceError(PlanError, code="resource-unusable"):
    """A resource that a plan cannot work on, with what to do about it."""


class ToolError(PlanError, code="tool-failed"):
    """A tool could not do its work."""


class ToolNotFoundError(ToolError, code="tool-not-found"):
    def __init__(self, name: str, suggestion: str | None) -> None:
        meant = f"; did you mean `{suggestion}`?" if suggestion else ""
        super().__init__(f"unknown tool `{name}`{meant}", "see all tools with `agents tool list`")


class ToolArgumentError(ToolError, code="tool-arguments"):
    def __init__(self, tool: str, problem: str) -> None:
        super().__init__(f"{tool}: {problem}", "see its arguments with `agents tool list`")


class PathOutsideSandboxError(ToolError, code="path-outside-sandbox"):
    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path!r} is outside the sandbox: {reason}",
            "give a path relative to the resource, without `..`",
        )


class ToolTimeoutError(ToolError, code="tool-timeout"):
    def __init__(self, tool: str, seconds: float, until_then: str = "") -> None:
        had = f"; {until_then}" if until_then else ""
        super().__init__(
            f"{tool} was stopped after {seconds:g} seconds{had}",
            "give the step more time with `timeout`, or set tool.timeout in the config",
        )


class ToolNotStartedError(ToolError, code="tool-not-started"):
    """A command that could not be started, so that nothing at all happened."""


class ToolNotConfinedError(ToolNotStartedError, code="tool-not-confined"):
    """A command that may only run held inside, on a machine that cannot do that."""

    def __init__(self, tool: str, reason: str) -> None:
        super().__init__(
            f"{tool}: {reason}",
            "see `agents plan status`; `confinement: preferred` in the action does with less",
        )


class ToolNotEndedError(ToolError, code="tool-not-ended"):
    """Something that a step started is still there, and could write after its checkpoint."""

    def __init__(self, tool: str) -> None:
        super().__init__(
            f"{tool} could not be ended for certain: something of it may still be writing",
            "end those processes by hand, then resume the plan",
        )


class ToolLimitError(ToolError, code="tool-limit"):
    """A command that was ended because it went beyond a limit other than time."""

    def __init__(self, tool: str, what: str) -> None:
        super().__init__(
            f"{tool} {what}, and was stopped", "correct what it ran, then resume the plan"
        )


class ToolWroteError(ToolError, code="tool-wrote"):
    """A tool that is declared to read only has changed something in a sandbox."""

    _MOST = 5

    def __init__(self, tool: str, paths: Sequence[str]) -> None:
        more = len(paths) - self._MOST
        named = ", ".join(paths[: self._MOST]) + (f" and {more} more" if more > 0 else "")
        super().__init__(
            f"{tool} is declared read-only, and wrote {named}",
            "say `writes: true` in the action file, or correct what it runs",
        )


class ToolRefusedError(ToolError, code="tool-refused"):
    """A write tool that may not run because no checkpoint can be made."""
