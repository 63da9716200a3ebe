"""What is to be started, and why it was not."""

import subprocess
from collections.abc import Mapping
from typing import IO

from msgspec import Struct

from cleveragents.domain.scarcity import scarcity_by_number
from cleveragents.infrastructure.processes.reports import NotHeld, NotRun, read_report


class Start(Struct, frozen=True, kw_only=True):
    """`name` is for messages; `mark` is what its processes carry; `passed` are open files that it
    gets beside the usual three. `controls`: what it prints to is the terminal that controls it."""

    name: str
    folder: str
    mark: str
    environ: Mapping[str, str]
    stdin: int | IO[bytes]
    stderr: int
    most_processes: int
    passed: tuple[int, ...] = ()
    stdout: int = subprocess.PIPE
    controls: bool = False


class NotStartedError(Exception):
    """`reason` in words; `held` False: it could not be held inside. Nothing runs. `remedy` is what
    helps, if it is that there is no more of something."""

    def __init__(
        self, reason: str, *, held: bool = True, at: str | None = None, remedy: str = ""
    ) -> None:
        super().__init__(reason)
        self.remedy = remedy
        self.reason = reason
        self.held = held
        self.at = at


def problem(error: Exception, told: bytes) -> NotStartedError:
    said = read_report(told)
    if isinstance(said, NotHeld):
        return NotStartedError(said.reason, held=False)
    number = said.errno if isinstance(said, NotRun) else getattr(error, "errno", None)
    if scarce := scarcity_by_number(number):
        return NotStartedError(scarce.message, remedy=scarce.hint)
    if isinstance(said, NotRun):
        return NotStartedError(said.reason)
    at = error.filename if isinstance(error, OSError) else None
    return NotStartedError(getattr(error, "strerror", None) or str(error), at=at)
