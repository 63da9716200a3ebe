"""Owns the wiring: builds every service by hand, once, and hands out nothing else."""

from collections.abc import Mapping
from functools import cached_property

from cleveragents.application.ports import ActionReader, EventSink
from cleveragents.application.services.apply_service import ApplyService
from cleveragents.application.services.checkpoint_service import (
    CheckpointPolicy,
    CheckpointService,
)
from cleveragents.application.services.manual_checkpoints import ManualCheckpoints
from cleveragents.application.services.plan_executor import PlanExecutor
from cleveragents.application.services.plan_queries import PlanQueries
from cleveragents.application.services.plan_resume_service import PlanResumeService
from cleveragents.application.services.plan_service import PlanService
from cleveragents.application.services.rollback_service import RollbackService
from cleveragents.application.services.tool_runner import ToolRunner
from cleveragents.config import Settings
from cleveragents.domain.checkpoint import Trigger
from cleveragents.infrastructure.actors.scripted import ScriptedActor
from cleveragents.infrastructure.clock import SystemClock, UlidSource
from cleveragents.infrastructure.database.engine import Database
from cleveragents.infrastructure.database.unit_of_work import SqlUnitOfWorkFactory
from cleveragents.infrastructure.locks import FilePlanLocks
from cleveragents.infrastructure.sandbox.checkpoint_manager import CheckpointManager
from cleveragents.infrastructure.sandbox.sandboxes import SandboxRegistry
from cleveragents.infrastructure.tools.processes import ProcessRunner
from cleveragents.infrastructure.tools.toolbox import BUILT_IN, ToolBox

_SQLITE = "sqlite:///"


class Container:
    def __init__(
        self, settings: Settings, environ: Mapping[str, str], cwd: str, events: EventSink
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._cwd = cwd
        self._events = events
        self._clock = SystemClock()
        self._ids = UlidSource()

    # --- services -------------------------------------------------------------------------------

    @cached_property
    def plan_service(self) -> PlanService:
        return PlanService(
            self._unit_of_work, self._actions, self._sandboxes, self._locks, self._ids, self._clock
        )

    @cached_property
    def plan_queries(self) -> PlanQueries:
        return PlanQueries(self._unit_of_work, self._sandboxes, self._locks, self._clock)

    @cached_property
    def checkpoint_service(self) -> CheckpointService:
        policy = CheckpointPolicy(
            triggers=frozenset(Trigger(name) for name in self._settings.auto_create_on),
            max_groups=self._settings.max_checkpoints_per_plan,
        )
        return CheckpointService(
            self._unit_of_work, self._snapshots, self._ids, self._clock, self._events, policy
        )

    @cached_property
    def manual_checkpoints(self) -> ManualCheckpoints:
        return ManualCheckpoints(
            self._unit_of_work, self.checkpoint_service, self.rollback_service, self._locks
        )

    @cached_property
    def rollback_service(self) -> RollbackService:
        return RollbackService(
            self._unit_of_work,
            self.checkpoint_service,
            self._snapshots,
            self._sandboxes,
            self._locks,
            self._events,
        )

    @cached_property
    def plan_resume_service(self) -> PlanResumeService:
        return PlanResumeService(
            self._unit_of_work,
            self._executor,
            self.rollback_service,
            (self._sandboxes, self._snapshots),
            self._locks,
            self._events,
        )

    @cached_property
    def apply_service(self) -> ApplyService:
        return ApplyService(
            self._unit_of_work,
            self.checkpoint_service,
            self.rollback_service,
            (self._sandboxes, self._snapshots),
            self._locks,
            self._clock,
        )

    @cached_property
    def tools(self) -> ToolBox:
        return ToolBox(ProcessRunner(self._environ, self._settings.tool_output_limit))

    # --- what they are made of ------------------------------------------------------------------

    @cached_property
    def _executor(self) -> PlanExecutor:
        runner = ToolRunner(
            self.tools,
            self.checkpoint_service,
            self._ids,
            self._clock,
            self._settings.tool_timeout,
        )
        return PlanExecutor(
            self._unit_of_work,
            self.checkpoint_service,
            runner,
            ScriptedActor(),
            (self._clock, self._ids),
            self._events,
        )

    @cached_property
    def _unit_of_work(self) -> SqlUnitOfWorkFactory:
        url = self._settings.database_url
        path = url.removeprefix(_SQLITE) if url else self._in_data_dir("cleveragents.db")
        return SqlUnitOfWorkFactory(Database(path))

    @cached_property
    def _actions(self) -> ActionReader:
        # PyYAML and pydantic together cost more than a whole `plan status`.
        from cleveragents.infrastructure.actionfile import YamlActionReader  # noqa: PLC0415

        names = {spec.name for spec in BUILT_IN}
        return YamlActionReader(
            base_dir=self._cwd, builtin_names=names, check_step=self.tools.check
        )

    @cached_property
    def _sandboxes(self) -> SandboxRegistry:
        return SandboxRegistry(self._in_data_dir("sandboxes"), self._in_data_dir("scratch"))

    @cached_property
    def _snapshots(self) -> CheckpointManager:
        return CheckpointManager(self._in_data_dir("snapshots"), self._in_data_dir("scratch"))

    @cached_property
    def _locks(self) -> FilePlanLocks:
        return FilePlanLocks(self._in_data_dir("locks"), self._clock)

    def _in_data_dir(self, name: str) -> str:
        return f"{self._settings.data_dir}/{name}"
