"""Whoever runs commands for tools, and programs of ours, as the container makes it."""

import os
import tempfile
from collections.abc import Mapping

from cleveragents.infrastructure.confinement.confiner import Confiner
from cleveragents.infrastructure.processes.own_work import OwnWork
from cleveragents.infrastructure.processes.runner import ProcessRunner
from cleveragents.infrastructure.sqlite.worker import DatabaseWorkers


def runner_with(environ: Mapping[str, str], limit: int, processes: int = 200) -> ProcessRunner:
    """Private folders of its commands are gone when these are."""
    scratch = tempfile.gettempdir()
    confiner = Confiner(environ=environ, scratch=scratch, process_limit=processes)
    return ProcessRunner(confiner, limit)


def database_workers() -> DatabaseWorkers:
    """They end with the test at the latest; private folders are gone when they are."""
    environ = {"PATH": os.environ.get("PATH", os.defpath)}
    return DatabaseWorkers(OwnWork(Confiner(environ=environ, scratch=tempfile.gettempdir())))
