"""Runs programs of ours over what a step could have written, as confined as the step was.

git, SQLite and what git starts (filters, drivers) interpret bytes that are not ours: a file can
name a program to be run, or a path to be removed. So they get the view of a step, below a
supervisor, and can write only where they are told to. Unconfined code of ours may copy such bytes,
not more.
"""

import subprocess
import uuid
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from msgspec import Struct, field

from cleveragents.domain.confinement import Confinement
from cleveragents.domain.errors import ToolLimitError, ToolNotStartedError, ToolTimeoutError
from cleveragents.infrastructure.confinement.confiner import Confiner
from cleveragents.infrastructure.confinement.places import Places
from cleveragents.infrastructure.processes.forking.fork_server import ForkServer
from cleveragents.infrastructure.processes.marked import mark_of
from cleveragents.infrastructure.processes.reports import Report
from cleveragents.infrastructure.processes.running import Running
from cleveragents.infrastructure.processes.start import NotStartedError, Start
from cleveragents.infrastructure.processes.starting import started

_SECONDS = 600.0


class Work(Struct, frozen=True, kw_only=True):
    """`writable` are folders that are there; a private temporary one is always added.

    `variables` come on top of what a step of the plan would find in its environment.
    """

    argv: Sequence[str]
    folder: str
    writable: Sequence[str]
    confinement: Confinement
    plan_id: str = ""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    seconds: float = _SECONDS


class WorkResult(Struct, frozen=True, kw_only=True):
    stdout: bytes
    stderr: bytes
    code: int


class OwnWork:
    def __init__(self, confiner: Confiner, server: ForkServer) -> None:
        self._confiner = confiner
        self._server = server

    def run(self, work: Work, input: bytes = b"") -> WorkResult:
        """Raises ToolError if it could not be started or held inside, or did not end in time."""
        with self.started(work) as running:
            try:
                stdout, stderr = running.process.communicate(input, timeout=work.seconds)
            except subprocess.TimeoutExpired:
                raise ToolTimeoutError(work.argv[0], work.seconds) from None
            report = _whole(work, running.end())
        return WorkResult(stdout=stdout, stderr=stderr, code=report.code)

    @contextmanager
    def started(self, work: Work) -> Generator[Running]:
        """To be talked with over its standard streams; has ended when the block is left."""
        places = Places(folder=work.folder, writable=work.writable)
        held = self._confiner.enclosed(work.argv, work.confinement, places, is_ours=True)
        with held as enclosure, ExitStack() as stack:
            start = Start(
                name=work.argv[0],
                folder=work.folder,
                mark=mark_of(work.plan_id, uuid.uuid4().hex),
                environ={**_passed_on(enclosure.environ), **work.variables},
                stdin=subprocess.PIPE,
                stderr=subprocess.PIPE,
                most_processes=self._confiner.process_limit,
            )
            try:
                running = stack.enter_context(started(enclosure, start, self._server))
            except NotStartedError as error:
                raise ToolNotStartedError(
                    f"{work.argv[0]} could not be started inside: {error.reason}",
                    error.remedy or "see what this machine can do with `agents doctor`",
                ) from error
            yield running


def _passed_on(environ: Mapping[str, str]) -> dict[str, str]:
    """Without GIT_*: those of the caller would lead git elsewhere."""
    return {key: value for key, value in environ.items() if not key.startswith("GIT_")}


def _whole(work: Work, report: Report | None) -> Report:
    if report is None:
        raise ToolNotStartedError(
            f"{work.argv[0]} was killed from outside", "run the command again"
        )
    if report.too_many:
        raise ToolLimitError(work.argv[0], "had too many processes")
    return report
