"""Git over what a step could have written: run by a shell that is held inside as steps are.

git starts programs that settings, attributes and files of the sandbox name together (filters,
drivers), and follows what it finds in a repository. So it can write only in a room of its own and
where it is told to. One shell runs all commands of a piece of work: to start it takes longer than
several of them.
"""

import os
import select
import shlex
import tempfile
import time
import uuid
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from cleveragents.domain.confinement import Confinement
from cleveragents.domain.errors import SandboxError, ToolError
from cleveragents.domain.scarcity import Resource
from cleveragents.infrastructure.files.data_folder import make_private
from cleveragents.infrastructure.processes.denials import denied_hint, denied_lines
from cleveragents.infrastructure.processes.own_work import OwnWork, Work
from cleveragents.infrastructure.processes.running import Running
from cleveragents.infrastructure.sandbox.git.command import (
    OFFLINE,
    GitCall,
    GitResult,
    ours_for_git,
)
from cleveragents.infrastructure.sandbox.location import remove_sandbox

_SHELL = "/bin/sh"
_SECONDS = 600.0
_CHUNK = 1 << 18
# For the supervisor to see that the shell has ended; if it does not, it is made to.
_PATIENCE_SECONDS = 5.0
# Where the user's own settings of git are. A step does not see all of these variables.
_SETTINGS_PLACES = ("HOME", "XDG_CONFIG_HOME")


class View(Struct, frozen=True, kw_only=True):
    """Whose confinement holds, where git stands, where it may write beside its room, and how long
    each command may take."""

    confinement: Confinement
    plan_id: str
    folder: str
    writable: Sequence[str] = ()
    seconds: float = _SECONDS


class GitUnansweredError(SandboxError):
    """A git command that was killed, or did not end in time."""


class InsideSession:
    """Until its block is left. Nothing is made or started before it is asked for."""

    def __init__(self, own_work: OwnWork, view: View, scratch: str, ending: ExitStack) -> None:
        self._scratch, self._ending = scratch, ending
        self._shell = _Shell(own_work, view, self, ending)

    @cached_property
    def told(self) -> Path:
        """A folder for what git is to read; it cannot be written inside."""
        make_private(self._scratch)
        folder = Path(tempfile.mkdtemp(prefix="git-", dir=self._scratch))
        self._ending.callback(remove_sandbox, Path(self._scratch), folder)
        return folder

    @cached_property
    def room(self) -> Path:
        """A folder for indexes, objects and files. What a program left in it is not to be trusted,
        not even while it is looked at."""
        folder = self.told / "room"
        folder.mkdir(mode=0o700)
        return folder

    def start(self, call: GitCall) -> GitResult:
        """Raises SandboxError if it cannot be held inside, or does not end."""
        return self._shell.run(call)


class GitInside:
    def __init__(self, own_work: OwnWork, scratch_dir: str) -> None:
        self._own_work = own_work
        self._scratch = scratch_dir

    @contextmanager
    def opened(self, view: View) -> Generator[InsideSession]:
        with ExitStack() as ending:
            yield InsideSession(self._own_work, view, self._scratch, ending)


class _Shell:
    """Told on its standard input what to run."""

    def __init__(
        self, own_work: OwnWork, view: View, inside: InsideSession, ending: ExitStack
    ) -> None:
        self._own_work, self._view = own_work, view
        self._inside, self._ending = inside, ending
        self._running: Running | None = None
        self._is_idle = False

    def run(self, call: GitCall) -> GitResult:
        running = self._running or self._begin()
        mark = uuid.uuid4().hex.encode()
        file = self._inside.told / "input"
        if isinstance(call.input, bytes) and call.input:
            file.write_bytes(call.input)
        told = call.input if isinstance(call.input, Path) else file if call.input else os.devnull
        answers = _CommandAnswers(running, mark, self._view.seconds)
        self._is_idle = False
        try:
            answers.ask(_line(call, str(told), mark))
        except OSError as error:
            raise self._gone(running, answers) from error
        if answers.code is None:
            raise self._gone(running, answers)
        self._is_idle = True
        return GitResult(
            stdout=answers.stdout,
            stderr=answers.stderr,
            code=answers.code,
            hint=self._hint(answers) if answers.code else "",
        )

    def _begin(self) -> Running:
        view = self._view
        work = Work(
            argv=[_SHELL],
            folder=view.folder,
            writable=[str(self._inside.room), *view.writable],
            confinement=view.confinement,
            plan_id=view.plan_id,
            variables={**ours_for_git(), **_places(), **OFFLINE},
        )
        try:
            self._running = self._ending.enter_context(self._own_work.started(work))
        except ToolError as error:
            raise SandboxError(error.message, error.hint) from error
        self._ending.callback(self._let_end, self._running)
        return self._running

    def _let_end(self, running: Running) -> None:
        """One that has nothing more to run ends by itself; any other is about to be ended."""
        assert running.process.stdin is not None
        with suppress(OSError):
            running.process.stdin.close()
        if self._is_idle:
            report = select.poll()
            report.register(running.report, select.POLLIN)
            report.poll(_PATIENCE_SECONDS * 1000)

    def _gone(self, running: Running, answers: "_CommandAnswers") -> SandboxError:
        report = running.end()
        many = report is not None and report.too_many
        if "fork" in answers.complaint:  # all that a shell says of it, each in its own words
            scarce = Resource.PROCESSES.lacking
            return SandboxError(
                f"git over the sandbox {self._view.folder} could not be started:"
                f" {scarce.message} ({answers.complaint})",
                scarce.hint,
            )
        why = "had too many processes" if many else "was killed or took too long"
        return GitUnansweredError(
            f"git over the sandbox {self._view.folder} {why}",
            "look for a filter or driver in your git configuration that does not end",
        )

    def _hint(self, answers: "_CommandAnswers") -> str:
        text = answers.stderr.decode("utf-8", "backslashreplace")
        denied = denied_lines(text)
        return denied_hint(self._view.confinement, denied) if denied else ""


class _CommandAnswers:
    """What one command wrote, up to the mark that says that it has ended."""

    def __init__(self, running: Running, mark: bytes, seconds: float) -> None:
        self._seconds = seconds
        process = running.process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._stdin = process.stdin
        self._texts = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
        self._out, self._err = self._texts
        self._mark = b"\n" + mark
        self.stdout, self.stderr = b"", b""
        self.code: int | None = None

    def ask(self, line: bytes) -> None:
        """Leaves `code` None if the shell came to its end instead. Raises OSError."""
        self._stdin.write(line)
        self._stdin.flush()
        deadline = time.monotonic() + self._seconds
        streams, waiting = select.poll(), set(self._texts)
        for stream in waiting:
            streams.register(stream, select.POLLIN)
        while waiting:
            left = deadline - time.monotonic()
            ready = [stream for stream, _ in streams.poll(max(0.0, left) * 1000)]
            for stream in ready:
                chunk = os.read(stream, _CHUNK)
                if not chunk:
                    self._read_rest(waiting - {stream})
                    return
                if self._is_whole(stream, chunk):
                    streams.unregister(stream)
                    waiting.discard(stream)
            if not ready:
                return
        self._take()

    def _read_rest(self, streams: set[int]) -> None:
        """Of a shell that is gone: why may be on the other stream."""
        for stream in streams:
            rest = select.poll()
            rest.register(stream, select.POLLIN)
            while rest.poll(_PATIENCE_SECONDS * 1000):
                chunk = os.read(stream, _CHUNK)
                if not chunk:
                    break
                self._texts[stream] += chunk

    @property
    def complaint(self) -> str:
        """What the shell itself said last."""
        lines = bytes(self._texts[self._err]).decode("utf-8", "backslashreplace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def _is_whole(self, stream: int, chunk: bytes) -> bool:
        text = self._texts[stream]
        seen = max(0, len(text) - len(self._mark) - 8)
        text += chunk
        place = text.find(self._mark, seen)
        return place >= 0 and text.find(b"\n", place + 1) >= 0

    def _take(self) -> None:
        out, _, rest = bytes(self._texts[self._out]).rpartition(self._mark)
        self.stdout, self.stderr = out, bytes(self._texts[self._err]).rpartition(self._mark)[0]
        with suppress(ValueError):
            self.code = int(rest.partition(b"\n")[0])


def _line(call: GitCall, told: str, mark: bytes) -> bytes:
    """The command, and then its mark: on a line of its own, on both streams."""
    words = [f"{key}={shlex.quote(value)}" for key, value in call.env.items()]
    words += [*map(shlex.quote, call.argv), f"<{shlex.quote(told)}"]
    end = f"printf '\\n%s %s\\n' {mark.decode()} $?; printf '\\n%s\\n' {mark.decode()} >&2\n"
    return os.fsencode(f"{' '.join(words)}; {end}")


def _places() -> Mapping[str, str]:
    return {name: os.environ[name] for name in _SETTINGS_PLACES if name in os.environ}
