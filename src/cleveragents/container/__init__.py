"""The wiring: builds every service by hand, once, and hands out nothing else.

Each property imports what it builds: a command pays only for the services it uses (ADR 0004).
"""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from cleveragents.container.care import CareWiring

if TYPE_CHECKING:
    from cleveragents.application.ports.runtime import ActionReader
    from cleveragents.application.services.apply.apply_service import ApplyService
    from cleveragents.application.services.checkpoints.manual_checkpoints import ManualCheckpoints
    from cleveragents.application.services.corrections.append_service import AppendService
    from cleveragents.application.services.corrections.correction_service import CorrectionService
    from cleveragents.application.services.execute.plan_executor import PlanExecutor
    from cleveragents.application.services.execute.plan_resume_service import PlanResumeService
    from cleveragents.application.services.maintenance.doctor_service import DoctorService
    from cleveragents.application.services.maintenance.store_service import StoreService
    from cleveragents.application.services.plans.plan_diff_service import PlanDiffService
    from cleveragents.application.services.plans.plan_queries import PlanQueries
    from cleveragents.application.services.plans.plan_service import PlanService
    from cleveragents.application.services.plans.prompt_service import PromptService
    from cleveragents.application.services.rollback.rollback_service import (
        RollbackService,
    )
    from cleveragents.application.services.sandboxes.cleanup import SandboxCleanup
    from cleveragents.application.services.subplans.conflicts import SubplanConflicts
    from cleveragents.application.services.subplans.sandboxes import SubplanSandboxes
    from cleveragents.application.services.subplans.subplan_service import SubplanService
    from cleveragents.domain.ids import PlanId
    from cleveragents.domain.resource import SandboxAddress


class Container(CareWiring):
    # --- services -------------------------------------------------------------------------------

    @cached_property
    def plan_service(self) -> "PlanService":
        from cleveragents.application.services.plans.plan_service import PlanService

        return PlanService(
            self._unit_of_work,
            self.actions,
            self._actors,
            self._sandboxes,
            self._locks,
            self._runtime,
            self.sandbox_cleanup,
        )

    @cached_property
    def sandbox_cleanup(self) -> "SandboxCleanup":
        from cleveragents.application.services.sandboxes.cleanup import SandboxCleanup
        from cleveragents.domain.resource import CleanupPolicy

        policy = CleanupPolicy(self._settings.sandbox_cleanup)
        return SandboxCleanup(self._unit_of_work, self._workspace, self._locks, policy)

    @cached_property
    def plan_queries(self) -> "PlanQueries":
        from cleveragents.application.services.plans.plan_queries import PlanQueries
        from cleveragents.infrastructure.files.whereabouts import CurrentFolder
        from cleveragents.infrastructure.sandbox.location import SandboxFolders

        here, places = CurrentFolder(self._cwd), SandboxFolders(self._in_data_dir("sandboxes"))
        return PlanQueries(self._unit_of_work, self._locks, self._clock, here, places)

    @cached_property
    def plan_diff_service(self) -> "PlanDiffService":
        from cleveragents.application.services.plans.plan_diff_service import PlanDiffService

        return PlanDiffService(self._unit_of_work, self._sandboxes)

    @cached_property
    def manual_checkpoints(self) -> "ManualCheckpoints":
        from cleveragents.application.services.checkpoints.manual_checkpoints import (
            ManualCheckpoints,
        )

        return ManualCheckpoints(
            self._unit_of_work, self.checkpoint_service, self.rollback_service, self._locks
        )

    @cached_property
    def rollback_service(self) -> "RollbackService":
        from cleveragents.application.services.rollback.rollback_service import RollbackService

        return RollbackService(
            self._unit_of_work,
            self.checkpoint_service,
            self._workspace,
            self._sandbox_care,
            self._correction_finisher,
            self._compensations,
            self._locks,
            self._events,
        )

    @cached_property
    def plan_resume_service(self) -> "PlanResumeService":
        from cleveragents.application.services.execute.plan_resume_service import PlanResumeService

        return PlanResumeService(
            self._unit_of_work,
            self._executor,
            self.rollback_service,
            self._unfinished,
            self._ledger,
            self._workspace,
            self._locks,
            self._events,
        )

    @cached_property
    def correction_service(self) -> "CorrectionService":
        from cleveragents.application.services.corrections.correction_service import (
            CorrectionService,
        )

        return CorrectionService(
            self._unit_of_work,
            self.rollback_service,
            self._correction_finisher,
            self.plan_resume_service,
            self.actions,
            self._locks,
            self._runtime,
        )

    @cached_property
    def append_service(self) -> "AppendService":
        from cleveragents.application.services.corrections.append_service import AppendService

        return AppendService(
            self._unit_of_work,
            self.checkpoint_service,
            self.rollback_service,
            self.actions,
            self._locks,
            self._runtime,
        )

    @cached_property
    def prompt_service(self) -> "PromptService":
        from cleveragents.application.services.plans.prompt_service import PromptService

        return PromptService(
            self._unit_of_work,
            self.checkpoint_service,
            self.rollback_service,
            self._unfinished,
            self._locks,
            self._runtime,
        )

    @cached_property
    def apply_service(self) -> "ApplyService":
        from cleveragents.application.services.apply.apply_service import ApplyService

        return ApplyService(
            self._unit_of_work,
            self.checkpoint_service,
            self.rollback_service,
            self._workspace,
            self.sandbox_cleanup,
            self._locks,
            self._clock,
        )

    @cached_property
    def store_service(self) -> "StoreService":
        from cleveragents.application.services.maintenance.store_service import StoreService
        from cleveragents.infrastructure.snapshots.store.maintenance import SnapshotFiles

        folders = (self._in_data_dir("snapshots"), self._in_data_dir("scratch"))
        files, limit = SnapshotFiles(*folders, self._locks.is_busy), self._settings.store_max_size
        groups, projects = self.checkpoint_service, self.project_care
        return StoreService(self._unit_of_work, files, groups, projects, limit)

    @cached_property
    def subplan_care(self) -> "SubplanSandboxes":
        from cleveragents.application.services.subplans.sandboxes import SubplanSandboxes

        return SubplanSandboxes(self._unit_of_work, self._sandboxes)

    @cached_property
    def doctor_service(self) -> "DoctorService":
        from cleveragents.application.services.maintenance.doctor_service import DoctorService
        from cleveragents.infrastructure.sandbox.leftovers import SandboxLeftovers

        left = SandboxLeftovers(self._adapters.bench)
        return DoctorService(
            self._unit_of_work,
            self._sandbox_care,
            left,
            self._projects,
            self._locks,
            self.plan_resume_service,
            self.store_service,
            self._database,
        )

    # --- what they are made of ------------------------------------------------------------------

    @cached_property
    def _executor(self) -> "PlanExecutor":
        from cleveragents.application.services.execute.plan_executor import PlanExecutor
        from cleveragents.application.services.execute.step_source import ActingLimits, StepSource
        from cleveragents.application.services.execute.tool_runner import RunLimits, ToolRunner

        runner = ToolRunner(
            self.tools,
            self.checkpoint_service,
            self._ledger,
            self._boundary,
            self._clock,
            self._ids,
            RunLimits(
                timeout=self._settings.tool_timeout, retries=self._settings.max_retries_per_step
            ),
        )
        limits = ActingLimits(
            recoveries=self._settings.actor_max_recoveries,
            max_steps=self._settings.actor_max_steps or None,
        )
        return PlanExecutor(
            self._unit_of_work,
            self.checkpoint_service,
            runner,
            self._subplan_service,
            self._ledger,
            StepSource(self._unit_of_work, self._actors, limits),
            self._runtime,
            self._events,
        )

    @cached_property
    def subplan_conflicts(self) -> "SubplanConflicts":
        from cleveragents.application.services.subplans.conflicts import SubplanConflicts

        return SubplanConflicts(self._unit_of_work, self._subplan_service.merger, self._locks)

    @cached_property
    def _subplan_service(self) -> "SubplanService":
        from cleveragents.application.services.subplans.merger import SubplanMerger
        from cleveragents.application.services.subplans.runner import SubplanRunner
        from cleveragents.application.services.subplans.spawner import SubplanSpawner
        from cleveragents.application.services.subplans.subplan_service import SubplanService
        from cleveragents.infrastructure.sandbox.merges import SandboxMerges

        spawner = SubplanSpawner(
            self._unit_of_work, self._workspace, self.subplan_care, self._runtime, self._events
        )
        crew = SubplanRunner(
            self._unit_of_work,
            spawner,
            self.rollback_service,
            self.tools,
            # Children run like any plan; looked up late, for that service needs this one.
            lambda plan_id, choice: self.plan_resume_service.run(plan_id, choice),
            self._events,
        )
        merges = SandboxMerges(self._adapters)
        merger = SubplanMerger(
            self._unit_of_work,
            self.checkpoint_service,
            self._unfinished,
            self._boundary,
            merges,
            self.subplan_care,
            self._runtime,
        )
        return SubplanService(
            self._unit_of_work, self.checkpoint_service, spawner, crew, merger, self._clock
        )

    @cached_property
    def actions(self) -> "ActionReader":
        from cleveragents.infrastructure.actionfile.reader import YamlActionReader

        names = {spec.name for spec in self.tools.specs(None)}
        return YamlActionReader(
            base_dir=self._cwd, builtin_names=names, check_step=self.tools.check
        )

    def _addresses(self, plan_id: "PlanId") -> "Mapping[str, SandboxAddress]":
        from cleveragents.application.services.checkpoints.held import HeldResources

        with self._unit_of_work.reading() as uow:
            found = HeldResources(uow.resources.of_plan(plan_id))
        return {resource.name: resource.address for resource in found.sandboxes}
