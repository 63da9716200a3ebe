"""A program to run in a plan of its own, as a person asked for it; and the action that it becomes.

The action is one that an action file could say, so that all else goes as it always does.
"""

import re

from msgspec import Struct

from cleveragents.domain.action import (
    COMMAND,
    Action,
    ActorSpec,
    Parameter,
    ResourceSpec,
    Step,
    ToolSpec,
    Validation,
)
from cleveragents.domain.agent_presets import AgentPreset
from cleveragents.domain.confinement import Confinement
from cleveragents.domain.in_place import ACTION

CODE = "code"
NO_LIMIT_SECONDS = 30 * 24 * 3600.0
_MOST_STEPS = 10_000
_MOST_OF_A_TIMELINE = 1_000_000
_LONGEST_NAME = 40
_LONGEST_DESCRIPTION = 200


class RunRequest(Struct, frozen=True, kw_only=True):
    """`agent` is whose preset it gets, if not that of the program's name. `databases` and
    `resources` are as they were typed. Without a `command` there is a `task` for the agent that the
    settings name. `check` is run in the sandbox at the end. `in_place`: in the user's own tree;
    `include` and `exclude` say which ignored folders checkpoints have, and what they have not;
    `skip_secrets`: nor what is called like a secret."""

    command: tuple[str, ...] = ()
    task: str = ""
    agent: str | None = None
    databases: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    network: bool = False
    write: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    timeout: float | None = None
    check: str | None = None
    in_place: bool = False
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    skip_secrets: bool = False


class Granted(Struct, frozen=True, kw_only=True):
    """What the program may do beside working in its sandboxes. All of `write` is there, or can be
    made; `environment` are the variables that are set."""

    network: bool = False
    environment: tuple[str, ...] = ()
    write: tuple[str, ...] = ()

    @property
    def in_words(self) -> str:
        parts = ["the network"] if self.network else []
        parts += self.environment
        parts += [f"writing {path}" for path in self.write]
        return ", ".join(parts)


CHECK = "check"
# Its failure is told, and nobody is asked to mend it. It starts where the program did.
_CHECK = ToolSpec(
    name=CHECK,
    description="What `--apply-if` runs.",
    parameters=(Parameter(name="folder"), Parameter(name="command")),
    writes=True,
    command=("sh", "-c", 'cd -- "$1" && exec sh -c "$2"', "sh", "{folder}", "{command}"),
    resource=CODE,
    validation=Validation.INFORMATIONAL,
)


def action_of(
    request: RunRequest,
    preset: AgentPreset,
    resources: tuple[ResourceSpec, ...],
    granted: Granted,
    below: str,
) -> Action:
    """`below` is where in the first resource the program starts."""
    options: dict[str, object] = {
        "command": list(request.command),
        "timeout": request.timeout or NO_LIMIT_SECONDS,
        "failure": "keep",
    }
    if preset.name:
        options["agent"] = preset.name
    if below:
        options["folder"] = below
    return Action(
        name=ACTION if request.in_place else name_of(request.command[0]),
        description=request.task or described(request.command),
        resources=resources,
        steps=(),
        tools=() if request.check is None else (_CHECK,),
        validations=() if request.check is None else (_checking(request.check, below),),
        confinement=Confinement(
            network=granted.network, environment=granted.environment, write=granted.write
        ),
        actor=ActorSpec(type=COMMAND, max_steps=_most_steps(request), options=options),
    )


def _most_steps(request: RunRequest) -> int:
    """A timeline in place is one plan for all programs that ever work in it."""
    return _MOST_OF_A_TIMELINE if request.in_place else _MOST_STEPS


def _checking(command: str, below: str) -> Step:
    arguments = {"folder": below or ".", "command": command}
    return Step(name=_line(command), tool=CHECK, arguments=arguments)


def name_of(program: str) -> str:
    """What the plan is called: as the program, without where it is and what names cannot have."""
    base = program.rstrip("/").rpartition("/")[2]
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", base).strip("-.")
    return plain[:_LONGEST_NAME] or "run"


def described(command: tuple[str, ...]) -> str:
    return _line(" ".join(_quoted(word) for word in command))


def _line(text: str) -> str:
    line = " ".join(text.encode("utf-8", "backslashreplace").decode().split())
    return line if len(line) <= _LONGEST_DESCRIPTION else f"{line[: _LONGEST_DESCRIPTION - 1]}…"


def _quoted(word: str) -> str:
    """As one would type it; for people to read."""
    if word and re.fullmatch(r"[\w@%+=:,./-]+", word):
        return word
    return "'" + word.replace("'", "'\\''") + "'"
