"""The adapters of resources as the container has them, for the benchmarks."""

import os
import tempfile
from pathlib import Path

from cleveragents.application.plan_events import Unheard
from cleveragents.infrastructure.confinement.confiner import Confiner
from cleveragents.infrastructure.processes.own_work import OwnWork
from cleveragents.infrastructure.sandbox.registry import ResourceAdapters
from cleveragents.infrastructure.sandbox.workbench import Workbench
from cleveragents.infrastructure.sqlite.worker import DatabaseWorkers


def adapters_in(data_dir: Path) -> ResourceAdapters:
    workers = DatabaseWorkers(_own_work)
    return ResourceAdapters(
        Workbench(str(data_dir), lambda: "here", _own_work, lambda: workers, Unheard())
    )


def _own_work() -> OwnWork:
    return OwnWork(Confiner(environ=os.environ, scratch=tempfile.gettempdir()))
