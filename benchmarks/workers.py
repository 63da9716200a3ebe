"""The adapters of resources as the container has them, and a checkout for them to work on."""

import os
import tempfile
from pathlib import Path

from cleveragents.application.plan_events import Unheard
from cleveragents.domain.ids import PlanId, ResourceId
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import GIT_CHECKOUT
from cleveragents.infrastructure.confinement.confiner import Confiner
from cleveragents.infrastructure.processes.forking.fork_server import ForkServer
from cleveragents.infrastructure.processes.own_work import OwnWork
from cleveragents.infrastructure.sandbox.git.repository.own_repository import make_repository
from cleveragents.infrastructure.sandbox.registry import ResourceAdapters
from cleveragents.infrastructure.sandbox.workbench import Workbench
from cleveragents.infrastructure.sqlite.worker import DatabaseWorkers

PLAN = PlanId("01ARZ3NDEKTSV4RRFFQ69G5FAV")
TREE = ResourceId("01ARZ3NDEKTSV4RRFFQ69G5FAW")
# One for all of a benchmark, as in a command.
SERVER = ForkServer()


def resource_of(project: Path, sandbox: Path, base: str) -> PlanResource:
    """The resource of a plan whose sandbox is not made yet; of the project itself, in place."""
    return PlanResource(
        resource_id=TREE,
        plan_id=PLAN,
        name="code",
        type=GIT_CHECKOUT.type,
        location=str(project),
        base=base,
        sandbox_path=str(sandbox),
        in_place=sandbox == project,
        details={"git_dir": str(project / ".git")},
    )


def checkout_of(project: Path, sandbox: Path, base: str) -> PlanResource:
    """The same with the repository of its sandbox made."""
    resource = resource_of(project, sandbox, base)
    make_repository(resource)
    return resource


def adapters_in(data_dir: Path) -> ResourceAdapters:
    workers = DatabaseWorkers(_own_work)
    return ResourceAdapters(
        Workbench(str(data_dir), lambda: "here", _own_work, lambda: workers, Unheard())
    )


def _own_work() -> OwnWork:
    return OwnWork(Confiner(environ=os.environ, scratch=tempfile.gettempdir()), SERVER)
