"""The command `agents`, run as people run it: in a new HOME, with a clean environment."""

import contextlib
import gc
import io
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

import yaml

COMMAND = Path(sys.executable).with_name("agents")
# Coverage finds its settings by these in the processes that we start.
_KEPT = ("PATH", "TMPDIR", "COVERAGE_")


def clean_environment(home: Path) -> dict[str, str]:
    """Nothing of the developer's own settings, and nothing that points git elsewhere."""
    kept = {key: value for key, value in os.environ.items() if key.startswith(_KEPT)}
    return {**kept, "HOME": str(home), "LANG": "C.UTF-8", "TERM": "dumb", "COLUMNS": "120"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one command line came to."""

    argv: tuple[str, ...]
    code: int
    out: str
    err: str

    @property
    def envelope(self) -> dict[str, Any]:
        assert self.out, f"{self.argv} printed nothing: {self.err}"
        return json.loads(self.out)

    @property
    def data(self) -> dict[str, Any]:
        return self.envelope["data"]

    @property
    def error(self) -> dict[str, str]:
        return self.data["error"]

    @property
    def as_yaml(self) -> dict[str, Any]:
        return yaml.safe_load(self.out)

    def ok(self) -> "Answer":
        assert self.code == 0, self
        return self


class Agents:
    """One home and one current folder. Calling it answers in JSON, in this process."""

    def __init__(self, home: Path, cwd: Path, extra: Mapping[str, str] | None = None) -> None:
        self.home = home
        self.cwd = cwd
        self.environ = {**clean_environment(home), **(extra or {})}

    @property
    def data_dir(self) -> Path:
        return self.home / ".cleveragents"

    def at(self, cwd: Path) -> "Agents":
        """The same home seen from another folder."""
        return Agents(self.home, cwd, self.environ)

    def having(self, **extra: str) -> "Agents":
        """The same with more in the environment."""
        return Agents(self.home, self.cwd, {**self.environ, **extra})

    def __call__(self, *argv: str) -> Answer:
        return self.inside("--format", "json", *argv)

    # --- in this process ------------------------------------------------------------------------

    def inside(self, *argv: str) -> Answer:
        """Fast: nothing is started, and everything global is put back."""
        from cleveragents.cli.main import run

        out, err = _Captured(), _Captured()
        with (
            self._disguised(argv),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = run(argv)
        gc.collect(1)  # connections to the database end with the objects that hold them
        return Answer(argv=argv, code=code, out=out.text, err=err.text)

    @contextlib.contextmanager
    def _disguised(self, argv: tuple[str, ...]) -> Generator[None]:
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        handlers = {number: signal.getsignal(number) for number in numbers}
        with (
            mock.patch.dict(os.environ, self.environ, clear=True),
            mock.patch.object(sys, "argv", ["agents", *argv]),
            mock.patch.object(sys, "stdin", io.StringIO()),
            contextlib.chdir(self.cwd),
        ):
            yield
        for number, handler in handlers.items():
            signal.signal(number, handler)

    # --- as processes of their own --------------------------------------------------------------

    def process(self, *argv: str, timeout: float = 60) -> Answer:
        done = subprocess.run(
            [COMMAND, *argv],
            cwd=self.cwd,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
        return Answer(
            argv=argv,
            code=done.returncode,
            out=done.stdout.decode(),
            err=done.stderr.decode(),
        )

    def json(self, *argv: str) -> Answer:
        return self.process("--format", "json", *argv)

    def start(self, *argv: str) -> "subprocess.Popen[bytes]":
        """Leaves it running; the caller waits for it or kills it.

        Not measured: an interruption within coverage's own code leaves its lock held for ever.
        """
        environ = {k: v for k, v in self.environ.items() if not k.startswith("COVERAGE_")}
        return subprocess.Popen(
            [COMMAND, *argv],
            cwd=self.cwd,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    # --- as forks of this process -----------------------------------------------------------------

    def fork(self, *argv: str) -> "Forked":
        """A process of its own like any other, but without the start of an interpreter."""
        gc.collect()  # connections of earlier commands end here, not in the child
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            self._be_the_fork(argv, writing)
        os.close(writing)
        return Forked(pid=child, pipe=reading, argv=argv)

    def _be_the_fork(self, argv: tuple[str, ...], pipe: int) -> NoReturn:
        gc.freeze()  # what was open in the parent is the parent's: it must not be closed from here
        sys.settrace(None)  # as little as coverage's own records
        code, out, err = 1, "", ""
        try:
            answer = self(*argv)
            code, out, err = answer.code, answer.out, answer.err
        except BaseException:  # noqa: BLE001 - told to the parent, which fails
            err = traceback.format_exc()
        finally:
            with os.fdopen(pipe, "w") as told:
                json.dump([code, out, err], told)
            os._exit(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forked:
    """A command at work in a fork."""

    pid: int
    pipe: int
    argv: tuple[str, ...]

    def answer(self) -> Answer:
        """Waits for it."""
        with os.fdopen(self.pipe) as told:
            text = told.read()
        os.waitpid(self.pid, 0)
        code, out, err = json.loads(text)
        return Answer(argv=self.argv, code=code, out=out, err=err)


class _Captured(io.TextIOWrapper):
    def __init__(self) -> None:
        self._bytes = io.BytesIO()
        super().__init__(self._bytes, encoding="utf-8", write_through=True)

    @property
    def text(self) -> str:
        return self._bytes.getvalue().decode()
