"""The wiring: builds every service by hand, once, and hands out nothing else.

Each property imports what it builds: a command pays only for the services it uses (ADR 0004). What
that is, its last line says; only a circle or a port is annotated.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from cleveragents.container.later import later
from cleveragents.container.looking import LookingWiring

if TYPE_CHECKING:
    from cleveragents.application.ports.actors import ActionReader
    from cleveragents.application.services.execute.plan_resume_service import PlanResumeService
    from cleveragents.domain.ids import PlanId
    from cleveragents.domain.resource import PlanResource, SandboxAddress


class Container(LookingWiring):
    # --- services -------------------------------------------------------------------------------

    @cached_property
    def plan_service(self):
        from cleveragents.application.services.plans.plan_service import PlanService

        return PlanService(
            self._runtime, self.actions, self._actors, self._sandboxes, self.sandbox_cleanup
        )

    @cached_property
    def run_service(self):
        from cleveragents.application.services.run.run_service import RunService
        from cleveragents.infrastructure.surroundings.this_machine import ThisMachine

        self.data_folder.prepare()  # before anything is put into it
        around = ThisMachine(self._here, self._environ, self._cwd, self._settings.data_dir)
        default = self._settings.run_agent
        return RunService(self._unit_of_work, self.plan_service, around, default)

    @cached_property
    def sandbox_cleanup(self):
        from cleveragents.application.services.sandboxes.cleanup import SandboxCleanup
        from cleveragents.domain.resource import CleanupPolicy

        policy = CleanupPolicy(self._settings.sandbox_cleanup)
        return SandboxCleanup(self._runtime, self._workspace, policy)

    @cached_property
    def action_check(self):
        from cleveragents.application.services.plans.action_check import ActionCheck

        return ActionCheck(
            self.actions, self._actors, self._sandboxes, self._ids, self._unit_of_work
        )

    @cached_property
    def discarding(self):
        from cleveragents.application.services.sandboxes.discarding import Discarding

        return Discarding(self.sandbox_cleanup, self.plan_service, self._locks)

    @cached_property
    def manual_checkpoints(self):
        from cleveragents.application.services.checkpoints.manual_checkpoints import (
            ManualCheckpoints,
        )

        self._adapters.bench.look_once()
        rollbacks = later(lambda: self.rollback_service)
        return ManualCheckpoints(
            self._runtime, self.checkpoint_service, self._sandbox_care, rollbacks
        )

    @cached_property
    def rollback_service(self):
        from cleveragents.application.services.rollback.rollback_service import RollbackService

        return RollbackService(
            self._runtime,
            self.checkpoint_service,
            self._workspace,
            self._sandbox_care,
            later(lambda: self._correction_finisher),
            self._compensations,
        )

    @cached_property
    def undo_service(self):
        from cleveragents.application.services.rollback.undo_service import UndoService

        return UndoService(self._unit_of_work, self.rollback_service, self.checkpoint_service)

    @cached_property
    def plan_resume_service(self) -> "PlanResumeService":
        from cleveragents.application.services.execute.plan_resume_service import PlanResumeService

        return PlanResumeService(
            self._runtime,
            self._executor,
            self.rollback_service,
            self._unfinished,
            self._ledger,
            self._workspace,
        )

    @cached_property
    def correction_service(self):
        from cleveragents.application.services.corrections.correction_service import (
            CorrectionService,
        )

        return CorrectionService(
            self._runtime,
            self.rollback_service,
            self._correction_finisher,
            self.plan_resume_service,
            self.actions,
        )

    @cached_property
    def append_service(self):
        from cleveragents.application.services.corrections.append_service import AppendService

        return AppendService(
            self._runtime, self.checkpoint_service, self.rollback_service, self.actions
        )

    @cached_property
    def prompt_service(self):
        from cleveragents.application.services.plans.prompt_service import PromptService

        return PromptService(
            self._runtime, self.checkpoint_service, self.rollback_service, self._unfinished
        )

    @cached_property
    def apply_service(self):
        from cleveragents.application.services.apply.apply_service import ApplyService

        return ApplyService(
            self._runtime,
            self.checkpoint_service,
            self.rollback_service,
            self._workspace,
            self.apply_keeping,
        )

    @cached_property
    def apply_keeping(self):
        from cleveragents.application.services.apply.keeping import ApplyKeeping

        keep_for = timedelta(seconds=self._settings.apply_keep)
        return ApplyKeeping(self._runtime, self._workspace, self.sandbox_cleanup, keep_for)

    @cached_property
    def apply_moves(self):
        from cleveragents.application.services.apply.moves import ApplyMoves

        return ApplyMoves(self._runtime, self._workspace)

    @cached_property
    def store_service(self):
        from cleveragents.application.services.maintenance.store_service import StoreService

        return StoreService(
            self._runtime,
            self._store_files,
            self.checkpoint_service,
            self.project_care,
            later(lambda: self.apply_keeping),
            self._settings.store_max_size,
        )

    @cached_property
    def subplan_care(self):
        from cleveragents.application.services.subplans.sandboxes import SubplanSandboxes

        return SubplanSandboxes(self._unit_of_work, self._sandboxes)

    @cached_property
    def doctor_service(self):
        from cleveragents.application.services.maintenance.doctor_service import DoctorService
        from cleveragents.infrastructure.sandbox.leftovers import SandboxLeftovers

        return DoctorService(
            self._runtime,
            self._sandbox_care,
            SandboxLeftovers(self._adapters.bench),
            self.plan_resume_service,
            self.store_service,
            self._database,
        )

    @cached_property
    def prune_service(self):
        from cleveragents.application.services.maintenance.prune_service import PruneService

        return PruneService(
            self._runtime,
            self.sandbox_cleanup,
            self._plan_removal,
            self.apply_keeping,
            self._store_files,
        )

    @cached_property
    def uninstall_service(self):
        from cleveragents.application.services.maintenance.uninstall_service import UninstallService
        from cleveragents.infrastructure.files.installed.own_files import InstalledFiles
        from cleveragents.infrastructure.sandbox.traces import RepositoryTraces

        files = InstalledFiles(self._settings.data_dir, self._database.path, self.close_files)
        return UninstallService(
            self._runtime,
            self.sandbox_cleanup,
            self._plan_removal,
            RepositoryTraces(self._adapters.bench),
            files,
            self._store_files,
        )

    # --- what they are made of ------------------------------------------------------------------

    @cached_property
    def _executor(self):
        from cleveragents.application.services.execute.plan_executor import PlanExecutor
        from cleveragents.application.services.execute.step_source import ActingLimits, StepSource
        from cleveragents.application.services.execute.tool_runner import RunLimits, ToolRunner

        runner = ToolRunner(
            self._runtime,
            self.tools,
            self.checkpoint_service,
            self._ledger,
            self._boundary,
            RunLimits(
                timeout=self._settings.tool_timeout, retries=self._settings.max_retries_per_step
            ),
        )
        limits = ActingLimits(
            recoveries=self._settings.actor_max_recoveries,
            max_steps=self._settings.actor_max_steps or None,
        )
        return PlanExecutor(
            self._runtime,
            self.checkpoint_service,
            runner,
            self._subplan_service,
            self._ledger,
            StepSource(self._unit_of_work, self._actors, limits),
        )

    @cached_property
    def subplan_conflicts(self):
        from cleveragents.application.services.subplans.subplan_service import SubplanConflicts

        return SubplanConflicts(self._runtime, self._subplan_service.merger)

    @cached_property
    def _subplan_service(self):
        from cleveragents.application.services.subplans.merger import SubplanMerger
        from cleveragents.application.services.subplans.runner import SubplanRunner
        from cleveragents.application.services.subplans.spawner import SubplanSpawner
        from cleveragents.application.services.subplans.subplan_service import SubplanService
        from cleveragents.infrastructure.sandbox.sandboxes import SandboxMerges

        spawner = SubplanSpawner(self._runtime, self._workspace, self.subplan_care)
        crew = SubplanRunner(
            self._unit_of_work,
            spawner,
            self.rollback_service,
            self.tools,
            # Children run like any plan; looked up late, for that service needs this one.
            lambda plan_id, choice: self.plan_resume_service.run(plan_id, choice),
            self._events,
        )
        merger = SubplanMerger(
            self._runtime,
            self.checkpoint_service,
            self._unfinished,
            self._boundary,
            SandboxMerges(self._adapters),
            self.subplan_care,
        )
        return SubplanService(self._runtime, self.checkpoint_service, spawner, crew, merger)

    @cached_property
    def actions(self) -> "ActionReader":
        from cleveragents.infrastructure.actionfile.reader import YamlActionReader

        names = {spec.name for spec in self.tools.specs(None)}
        return YamlActionReader(
            base_dir=self._cwd, builtin_names=names, check_step=self.tools.check
        )

    def _addresses(self, plan_id: "PlanId") -> "Mapping[str, SandboxAddress]":
        return {resource.name: resource.address for resource in self._sandboxed(plan_id)}

    def _sandboxed(self, plan_id: "PlanId") -> "Sequence[PlanResource]":
        from cleveragents.application.services.checkpoints.held import HeldResources

        with self._unit_of_work.reading() as uow:
            return HeldResources(uow.resources.of_plan(plan_id)).sandboxes

    @cached_property
    def _plan_removal(self):
        from cleveragents.application.services.maintenance.plan_removal import PlanRemoval
        from cleveragents.infrastructure.database.plan_records import SqlPlanRecords
        from cleveragents.infrastructure.sandbox.traces import RepositoryTraces

        return PlanRemoval(
            self._runtime,
            self.sandbox_cleanup,
            self.plan_service,
            RepositoryTraces(self._adapters.bench),
            SqlPlanRecords(self._database, self._leases),
        )
