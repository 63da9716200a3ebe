"""Owns running a command for a tool: in its own process group, for a limited time and output."""

import ctypes
import os
import signal
import subprocess
import tempfile
import threading
import uuid
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from cleveragents.domain.decision import ToolResult
from cleveragents.domain.errors import ToolError, ToolNotStartedError, ToolTimeoutError
from cleveragents.infrastructure.marked_processes import (
    MARK,
    end_processes,
    mark_of,
)

_GRACE_SECONDS = 2.0
_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1
_PRCTL = getattr(ctypes.CDLL(None), "prctl", None)  # looked up here: a child must not load anything


@dataclass(frozen=True, slots=True)
class Command:
    """What to run; `name` is the tool's, for messages."""

    name: str
    argv: Sequence[str]
    folder: str
    sandboxes: Mapping[str, str]
    timeout: float
    plan_id: str = ""


class ProcessRunner:
    def __init__(self, environ: Mapping[str, str], output_limit: int) -> None:
        self._environ = environ
        self._output_limit = output_limit
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

    def run(self, command: Command) -> ToolResult:
        """Wait for the command to end; whatever it left running is ended too."""
        # A file, not a pipe: a process that it leaves in the background cannot keep us waiting.
        mark = mark_of(command.plan_id, uuid.uuid4().hex)
        with tempfile.TemporaryFile() as output:
            code = self._wait(command, mark, output)
            self.refuse_if_stopped(command.plan_id)
            text = self._text(output)
        if code != 0:
            raise ToolError(
                f"{command.name} ended with exit code {code}{_tail(text)}",
                "correct what it ran, then resume the plan or roll it back",
            )
        return ToolResult(output=text, values={"exit_code": code})

    def _wait(self, command: Command, mark: str, output: IO[bytes]) -> int:
        process: subprocess.Popen[bytes] | None = None
        try:
            with _signals_held_back():  # a process that we do not know of would go on
                process = self._start(command, mark, output)
            if command.plan_id in self._stopped:  # just now, when there was no process to end
                _end_group(process)
            return process.wait(timeout=command.timeout)
        except subprocess.TimeoutExpired:
            raise ToolTimeoutError(command.name, command.timeout) from None
        finally:
            with _signals_held_back():
                if process is not None:
                    _end_group(process)
                end_processes(mark)  # also what left the group

    def _start(self, command: Command, mark: str, output: IO[bytes]) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                command.argv,
                cwd=command.folder,
                env=self._environment(command) | {MARK: mark},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_begin_child,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ToolNotStartedError(
                f"{command.name} could not be started: {command.argv[0]}: {reason}",
                "check the command in the action file",
            ) from error

    def _environment(self, command: Command) -> dict[str, str]:
        # Without GIT_*: a GIT_DIR of the caller would lead git out of the sandbox.
        kept = {k: v for k, v in self._environ.items() if not k.startswith("GIT_")}
        # Nor may git look above a sandbox that has no repository: a home folder often is one.
        tops = {os.path.dirname(path) for path in command.sandboxes.values()}
        kept["GIT_CEILING_DIRECTORIES"] = os.pathsep.join(sorted(tops))
        return kept | {
            f"CLEVERAGENTS_SANDBOX_{_variable(name)}": path
            for name, path in command.sandboxes.items()
        }

    def _text(self, output: IO[bytes]) -> str:
        size = output.seek(0, os.SEEK_END)
        skipped = max(0, size - self._output_limit)
        output.seek(skipped)
        text = output.read(self._output_limit).decode("utf-8", "backslashreplace")
        return f"[{skipped} bytes left out]\n{text}" if skipped else text


@contextmanager
def _signals_held_back() -> Generator[None]:
    """An interruption that comes now is felt at the end of the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTIONS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_child() -> None:
    """For a new child, before it becomes its program: be killed when we are, even by SIGKILL."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPTIONS)
    if _PRCTL is not None:
        _PRCTL(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _variable(name: str) -> str:
    return name.upper().replace("-", "_")


def _tail(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return ": " + " | ".join(lines[-3:]) if lines else ""


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Whatever outlives a step could write after its checkpoint, so nothing may."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        except PermissionError:
            break
        if process.poll() is None:
            try:
                process.wait(timeout=_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                continue
    process.wait()
