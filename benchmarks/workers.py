"""Owns the processes in which SQLite runs for the benchmarks, as the container makes them."""

import os
import tempfile

from cleveragents.infrastructure.confinement.confiner import Confiner
from cleveragents.infrastructure.processes.own_work import OwnWork
from cleveragents.infrastructure.sqlite.worker import DatabaseWorkers


def database_workers() -> DatabaseWorkers:
    confiner = Confiner(environ=os.environ, scratch=tempfile.gettempdir())
    return DatabaseWorkers(OwnWork(confiner))
