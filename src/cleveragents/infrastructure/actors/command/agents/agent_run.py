"""One start of a known agent: what is there to put its hooks in with, and what came of it."""

import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from msgspec import Struct, field

from cleveragents.infrastructure.processes.running import Running

Talk = Callable[[Sequence[str]], AbstractContextManager[Running]]
HOOK_SECONDS = 600


class AgentRun(Struct, frozen=True, kw_only=True):
    """`folder` is there for this run alone, `memory` goes back with the plan; the agent may write
    in both. `top` is the sandbox, and `project` what that is one of. `session` is the conversation
    it had before, if any, and `fresh` a name for a new one. `hook` is the command `agents hook`.
    `talk` starts a program as confined as the agent, to be written to and read."""

    argv: Sequence[str]
    folder: str
    memory: str
    top: str
    project: str
    session: str
    fresh: str
    hook: Sequence[str]
    environ: Mapping[str, str]
    talk: Talk

    @property
    def program(self) -> str:
        return self.argv[0]

    @property
    def arguments(self) -> Sequence[str]:
        return self.argv[1:]

    def hook_line(self, kind: str) -> str:
        """For a shell."""
        return shlex.join([*self.hook, kind])

    def says(self, *options: str) -> bool:
        """Whether the person has said one of these."""
        return any(word.partition("=")[0] in options for word in self.arguments)

    def write(self, name: str, text: str, mode: int = 0o600) -> str:
        """A file in the folder of this run; gives back its path."""
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with open(number, "w", encoding="utf-8") as file:
            file.write(text)
        return path


class Injection(Struct, frozen=True, kw_only=True):
    """The command line to start instead, and further variables."""

    argv: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict[str, str])


def json_object(text: str) -> dict[str, Any]:
    """Of settings that somebody else wrote; what is no object has nothing to add to."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType] - it is JSON


def with_hooks(settings: Mapping[str, Any], hooks: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """The settings with ours after those that are there."""
    known = settings.get("hooks")
    there: dict[str, Any] = dict(known) if isinstance(known, dict) else {}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - it is JSON
    for event, ours in hooks.items():
        before = there.get(event)
        there[event] = [*before, *ours] if isinstance(before, list) else list(ours)  # pyright: ignore[reportUnknownVariableType] - it is JSON
    return {**settings, "hooks": there}
