"""Whoever runs commands for tools, as the container makes it."""

import tempfile
from collections.abc import Mapping

from cleveragents.infrastructure.confinement.confiner import Confiner
from cleveragents.infrastructure.processes.runner import ProcessRunner


def runner_with(environ: Mapping[str, str], limit: int, processes: int = 200) -> ProcessRunner:
    """Private folders of its commands are gone when these are."""
    scratch = tempfile.gettempdir()
    confiner = Confiner(environ=environ, scratch=scratch, process_limit=processes)
    return ProcessRunner(confiner, limit)
