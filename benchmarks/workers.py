"""Owns the processes in which SQLite and git run for the benchmarks, as the container has them."""

import os
import tempfile

from cleveragents.infrastructure.confinement.confiner import Confiner
from cleveragents.infrastructure.processes.own_work import OwnWork
from cleveragents.infrastructure.sandbox.git.inside import GitInside
from cleveragents.infrastructure.sandbox.git.views import GitViews
from cleveragents.infrastructure.sqlite.worker import DatabaseWorkers


def database_workers() -> DatabaseWorkers:
    return DatabaseWorkers(_own_work)


def git_views() -> GitViews:
    return GitViews(GitInside(_own_work(), tempfile.gettempdir()))


def _own_work() -> OwnWork:
    return OwnWork(Confiner(environ=os.environ, scratch=tempfile.gettempdir()))
