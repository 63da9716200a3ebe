"""Running a command for a tool: held inside, for a limited time, output and crowd."""

import os
import subprocess
import tempfile
import threading
import uuid
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import IO, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from cleveragents.domain.confinement import Confinement, ConfinementMeans, Enforcement, Guarantee
from cleveragents.domain.decision import ToolResult
from cleveragents.domain.errors import (
    ToolError,
    ToolLimitError,
    ToolNotConfinedError,
    ToolNotStartedError,
)
from cleveragents.domain.resource import SandboxAddress
from cleveragents.infrastructure.confinement.confiner import Confiner
from cleveragents.infrastructure.confinement.covers import (
    Cover,
    marks_below,
    seen_at,
)
from cleveragents.infrastructure.confinement.enclosure import Enclosure
from cleveragents.infrastructure.confinement.places import Places, places_of_step
from cleveragents.infrastructure.processes.denials import denied_hint, denied_lines
from cleveragents.infrastructure.processes.forking.fork_server import ForkServer
from cleveragents.infrastructure.processes.marked import end_processes, mark_of
from cleveragents.infrastructure.processes.own_work import OwnWork
from cleveragents.infrastructure.processes.reports import Report
from cleveragents.infrastructure.processes.running import Limits, Running, told_of_changed
from cleveragents.infrastructure.processes.start import NotStartedError, Start
from cleveragents.infrastructure.processes.starting import started
from cleveragents.infrastructure.terminal.relays import ProgramEnds

# Output beyond what is kept is read and dropped; without an end it would only burn time.
_PRINTED_AT_LEAST = 64 << 20
_PRINTED_PER_KEPT = 64
# Programs that put away for later what they have read: not where they are only to read.
_QUIET = {"GIT_OPTIONAL_LOCKS": "0", "PYTHONDONTWRITEBYTECODE": "1"}


class Command(Struct, frozen=True, kw_only=True):
    """What to run; `name` is the tool's, for messages. One that `talks` is written to and read;
    others find `input` on their standard input. `passed` are open files that it gets. What is
    `read_only` may not write in the sandboxes, where that can be enforced. `ends` are its streams,
    if somebody relays them."""

    name: str
    argv: Sequence[str]
    folder: str
    sandboxes: Mapping[str, SandboxAddress]
    timeout: float
    plan_id: str = ""
    confinement: Confinement = Confinement()
    talks: bool = False
    read_only: bool = False
    input: bytes = b""
    passed: tuple[int, ...] = ()
    ends: ProgramEnds | None = None
    variables: Mapping[str, str] = field(default_factory=dict[str, str])


class CoverMaking(Protocol):
    """Who knows of which projects the sandboxes are."""

    def opened(
        self, plan_id: str, sandboxes: Sequence[str], *, read_only: bool
    ) -> AbstractContextManager[Sequence[Cover]]: ...


class ProcessRunner:
    """`views`: without, every sandbox is seen where it is."""

    def __init__(
        self,
        confiner: Confiner,
        server: ForkServer,
        output_limit: int,
        views: CoverMaking | None = None,
    ) -> None:
        self._confiner = confiner
        self._server = server
        self._views = views
        self.output_limit = output_limit
        self._process_limit = confiner.process_limit
        self._lock = threading.Lock()
        self._stopped: set[str] = set()

    def stop(self, plan_id: str) -> None:
        """Kill what runs for the plan; whoever waits for it is told by a KeyboardInterrupt."""
        with self._lock:
            self._stopped.add(plan_id)
        end_processes(mark_of(plan_id, ""))

    def allow(self, plan_id: str) -> None:
        with self._lock:
            self._stopped.discard(plan_id)

    def refuse_if_stopped(self, plan_id: str) -> None:
        if plan_id in self._stopped:
            raise KeyboardInterrupt

    @property
    def own_work(self) -> OwnWork:
        """For programs of ours that look at what steps wrote."""
        return OwnWork(self._confiner, self._server)

    def enforcement(self, asked: Confinement) -> Enforcement:
        return self._confiner.enforcement(asked)

    def is_held_to_reading(self, asked: Confinement) -> bool:
        """Whether what is `read_only` cannot change anything in the sandboxes, modes included."""
        return Guarantee.ATTRIBUTES in self.enforcement(asked).enforced

    def denied(self, asked: Confinement, text: str) -> list[str]:
        """The lines that speak of a refusal, if there is anything that refuses."""
        return denied_lines(text) if self.is_held(asked) else []

    def is_held(self, asked: Confinement) -> bool:
        return self.enforcement(asked).by is not ConfinementMeans.NOTHING

    def run(self, command: Command) -> ToolResult:
        """Wait for the command to end; whatever it left running is ended too."""
        limits = self.limits(command.timeout)
        with self.started(command, limits) as running:
            tail = running.collect(limits)
            report = running.end()
        self.refuse_if_stopped(command.plan_id)
        result = self._result(command, tail.text, report)
        if moved := running.changed_below():
            values = {**result.values, "changed_by_others": moved}
            return replace(result, output=f"{result.output}{told_of_changed(moved)}", values=values)
        return result

    @contextmanager
    def started(self, command: Command, limits: Limits) -> Generator[Running]:
        """Running until the block is left, and then certainly no more."""
        self._refuse_unconfined(command)
        with ExitStack() as stack:
            places = _places(command).under(stack.enter_context(self._covers(command)))
            held = self._confiner.enclosed(command.argv, command.confinement, places)
            enclosure, stdin = stack.enter_context(held), stack.enter_context(_stdin(command))
            start = Start(
                name=command.name,
                folder=command.folder,
                mark=mark_of(command.plan_id, uuid.uuid4().hex),
                environ=_environment(command, enclosure),
                stdin=stdin if command.ends is None else command.ends.stdin,
                stdout=subprocess.PIPE if command.ends is None else command.ends.stdout,
                stderr=_stderr(command),
                most_processes=limits.processes,
                passed=command.passed,
                controls=command.ends is not None and command.ends.controls,
            )
            # Before it begins: what somebody changes from then on is to be told.
            below = marks_below(places.covers)
            try:
                running = stack.enter_context(started(enclosure, start, self._server))
            except NotStartedError as error:
                raise _not_started(command, error) from error
            running.below = below
            if command.plan_id in self._stopped:  # just now, when there was nothing to end
                running.end()
            yield running

    @contextmanager
    def _covers(self, command: Command) -> Generator[Sequence[Cover]]:
        if self._views is None or not self._confiner.can_cover(command.confinement):
            yield ()
            return
        sandboxes = [address.value for address in command.sandboxes.values()]
        with self._views.opened(command.plan_id, sandboxes, read_only=command.read_only) as covers:
            yield covers

    def limits(self, seconds: float) -> Limits:
        return Limits(
            kept=self.output_limit,
            printed=max(_PRINTED_AT_LEAST, _PRINTED_PER_KEPT * self.output_limit),
            processes=self._process_limit,
            seconds=seconds,
        )

    def _refuse_unconfined(self, command: Command) -> None:
        refusal = self.enforcement(command.confinement).refusal
        if refusal is not None:
            raise ToolNotConfinedError(command.name, refusal)

    def _result(self, command: Command, text: str, report: Report | None) -> ToolResult:
        denied = self.denied(command.confinement, text)
        if report is None:
            raise ToolError(
                f"{command.name} was killed from outside{last_lines(text)}", "resume the plan"
            )
        if report.too_many:
            limit = f"had more than {self._process_limit} processes"
            raise ToolLimitError(command.name, limit)
        if report.code != 0:
            hint = "correct what it ran, then resume the plan or roll it back"
            raise ToolError(
                f"{command.name} ended with exit code {report.code}{last_lines(text)}",
                denied_hint(command.confinement, denied) if denied else hint,
            )
        values: dict[str, object] = {"exit_code": report.code}
        if report.left:
            values["ended_processes"] = report.left
        if denied:
            values["denied"] = denied
        return ToolResult(output=text, values=values)


def _stderr(command: Command) -> int:
    if command.ends is not None:
        return command.ends.stderr
    return subprocess.PIPE if command.talks else subprocess.STDOUT


@contextmanager
def _stdin(command: Command) -> Generator[int | IO[bytes]]:
    if command.talks or not command.input:
        yield subprocess.PIPE if command.talks else subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(command.input)
        file.seek(0)
        yield file


def _places(command: Command) -> Places:
    folders = (folder for address in command.sandboxes.values() for folder in address.writable)
    return places_of_step(command.folder, folders, read_only=command.read_only)


def _environment(command: Command, enclosure: Enclosure) -> dict[str, str]:
    # Without GIT_*: a GIT_DIR of the caller would lead git out of the sandbox.
    kept = {k: v for k, v in enclosure.environ.items() if not k.startswith("GIT_")}
    # Nor may git look above a sandbox that has no repository: a home folder often is one.
    seen = {
        name: seen_at(enclosure.covers, address.value)
        for name, address in command.sandboxes.items()
    }
    tops = {os.path.dirname(path) for path in seen.values()}
    kept["GIT_CEILING_DIRECTORIES"] = os.pathsep.join(sorted(tops))
    kept["PWD"] = seen_at(enclosure.covers, command.folder)
    sandboxes = {f"CLEVERAGENTS_SANDBOX_{_variable(name)}": path for name, path in seen.items()}
    quiet = _QUIET if command.read_only else {}
    return kept | sandboxes | quiet | dict(command.variables)


def _not_started(command: Command, error: NotStartedError) -> ToolError:
    if error.remedy:
        return ToolNotStartedError(
            f"{command.name} could not be started: {error.reason}", error.remedy
        )
    if not error.held:
        return ToolNotStartedError(
            f"{command.name} could not be held inside: {error.reason}",
            "see `agents plan status`; `confinement: off` runs it without",
        )
    if error.at == command.folder:
        return ToolNotStartedError(
            f"{command.name} could not be started: its folder {command.folder}: {error.reason}",
            "see what is wrong with `agents doctor`",
        )
    return ToolNotStartedError(
        f"{command.name} could not be started: {command.argv[0]}: {error.reason}",
        "check the command in the action file",
    )


def _variable(name: str) -> str:
    return name.upper().replace("-", "_")


def last_lines(text: str) -> str:
    """For a message: the end of what was printed, if anything was."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return ": " + " | ".join(lines[-3:]) if lines else ""
