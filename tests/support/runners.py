"""Whoever runs commands for tools, and programs of ours, as the container makes it."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from cleveragents.application.plan_events import Unheard
from cleveragents.domain.resource import SandboxAddress
from cleveragents.infrastructure.confinement.confiner import Confiner
from cleveragents.infrastructure.processes.forking.fork_server import ForkServer
from cleveragents.infrastructure.processes.own_work import OwnWork
from cleveragents.infrastructure.processes.runner import ProcessRunner
from cleveragents.infrastructure.sandbox.git.inside import GitInside
from cleveragents.infrastructure.sandbox.git.views import GitViews
from cleveragents.infrastructure.sandbox.registry import ResourceAdapters
from cleveragents.infrastructure.sandbox.workbench import Workbench
from cleveragents.infrastructure.sqlite.worker import DatabaseWorkers

_BENCHES: list[Workbench] = []
# One for all tests of a process: what they start is started by it, but for the very first command.
SERVER = ForkServer()


def runner_with(environ: Mapping[str, str], limit: int, processes: int = 200) -> ProcessRunner:
    """Private folders of its commands are gone when these are."""
    scratch = tempfile.gettempdir()
    confiner = Confiner(environ=environ, scratch=scratch, process_limit=processes)
    return ProcessRunner(confiner, SERVER, limit)


def database_workers() -> DatabaseWorkers:
    """They end with the test at the latest; private folders are gone when they are."""
    environ = {"PATH": os.environ.get("PATH", os.defpath)}
    own_work = OwnWork(Confiner(environ=environ, scratch=tempfile.gettempdir()), SERVER)
    return DatabaseWorkers(lambda: own_work)


def workbench(
    data_dir: Path | str, workers: DatabaseWorkers | None = None, limit_bytes: int = 0
) -> Workbench:
    """With the environment as it is when something is started. `workers` are closed by whoever
    has made them."""
    data = str(data_dir)
    own_work = OwnWork(Confiner(environ=os.environ, scratch=f"{data}/scratch"), SERVER)
    made = workers or database_workers()
    bench = Workbench(data, lambda: "here", lambda: own_work, lambda: made, Unheard(), limit_bytes)
    _BENCHES.append(bench)
    return bench


def stop_watching() -> None:
    """A user has 128 queues for watches: what a test has watched must not stay until somebody
    collects garbage."""
    while _BENCHES:
        _BENCHES.pop().stop_watching()


def adapters_in(data_dir: Path | str, workers: DatabaseWorkers | None = None) -> ResourceAdapters:
    return ResourceAdapters(workbench(data_dir, workers))


def in_folder(path: Path | str) -> SandboxAddress:
    """A sandbox that is a folder, and has no repository beside it."""
    return SandboxAddress(value=str(path), folder=str(path), writable=(str(path),))


def in_file(path: Path | str) -> SandboxAddress:
    """A sandbox that is a file in a folder of its own."""
    folder = str(Path(path).parent)
    return SandboxAddress(value=str(path), folder=folder, writable=(folder,))


def git_views(scratch: Path | str) -> GitViews:
    inside = git_inside(scratch)
    return GitViews(lambda: inside)


def git_inside(scratch: Path | str) -> GitInside:
    """With the environment as it is when something is started."""
    own_work = OwnWork(Confiner(environ=os.environ, scratch=str(scratch)), SERVER)
    return GitInside(own_work, str(scratch))
