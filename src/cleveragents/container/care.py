"""The part of the wiring that keeps plans in order: checkpoints, effects, sandboxes put right.

Each property imports what it builds, as in the container, of which this is a part (ADR 0004).
"""

from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from cleveragents.config import Settings
from cleveragents.container.later import later
from cleveragents.container.stores import StoreWiring

if TYPE_CHECKING:
    from cleveragents.application.ports.maintenance import StoreFiles
    from cleveragents.application.ports.runtime import EventSink
    from cleveragents.domain.ids import PlanId


class CareWiring(StoreWiring):
    def __init__(
        self, settings: Settings, environ: Mapping[str, str], cwd: str, events: "EventSink"
    ) -> None:
        super().__init__(settings, environ, events)
        self._cwd = cwd

    @cached_property
    def checkpoint_service(self):
        from cleveragents.application.services.checkpoints.checkpoint_service import (
            CheckpointPolicy,
            CheckpointService,
        )
        from cleveragents.application.services.checkpoints.pruning import RetentionLimits
        from cleveragents.domain.checkpoint import Trigger

        age = self._settings.checkpoint_max_age
        policy = CheckpointPolicy(
            triggers=frozenset(Trigger(name) for name in self._settings.auto_create_on),
            limits=RetentionLimits(
                max_states=self._settings.max_checkpoints_per_plan,
                max_age=timedelta(seconds=age) if age else None,
                max_total_bytes=self._settings.checkpoint_max_total_size,
            ),
        )
        return CheckpointService(self._runtime, self._snapshots, policy)

    @cached_property
    def _sandbox_care(self):
        from cleveragents.application.services.sandboxes.care import SandboxCare

        return SandboxCare(
            projects=self.project_care,
            rebuilding=self.sandbox_rebuilding,
            restarts=self._restarts,
            others=later(lambda: self._others),
        )

    @cached_property
    def _restarts(self):
        from cleveragents.application.services.sandboxes.after_restart import AfterRestart

        return AfterRestart(self.checkpoint_service, self._workspace, self._boundary, self._events)

    @cached_property
    def _others(self):
        from cleveragents.application.services.execute.others import OthersSteps

        return OthersSteps(self._runtime, self.checkpoint_service, self._snapshots)

    @cached_property
    def _boundary(self):
        from cleveragents.application.services.execute.step_boundary import StepBoundary

        return StepBoundary(self._unit_of_work, self._snapshots)

    @cached_property
    def _unfinished(self):
        from cleveragents.application.services.sandboxes.unfinished_step import UnfinishedStep

        return UnfinishedStep(
            self.checkpoint_service,
            self._sandboxes,
            self._boundary,
            self._restarts,
            later(lambda: self._others),
            self._events,
        )

    @cached_property
    def _correction_finisher(self):
        from cleveragents.application.services.corrections.correction_finisher import (
            CorrectionFinisher,
        )
        from cleveragents.application.services.rollback.rollback_files import RollbackFiles

        files = RollbackFiles(self._snapshots)
        return CorrectionFinisher(
            self._unit_of_work, self.checkpoint_service, files, self._compensations
        )

    @cached_property
    def project_care(self):
        from cleveragents.application.services.sandboxes.project_care import ProjectCare

        return ProjectCare(self._runtime, self._projects)

    @cached_property
    def _projects(self):
        from cleveragents.infrastructure.sandbox.sandboxes import ProjectLocations

        return ProjectLocations(self._adapters, self._cwd)

    @cached_property
    def sandbox_rebuilding(self):
        from cleveragents.application.services.sandboxes.rebuilding import SandboxRebuilding

        return SandboxRebuilding(self._runtime, self._sandboxes, self._snapshots)

    @cached_property
    def _compensations(self):
        from cleveragents.application.services.effects.compensations import Compensations

        # Every way back knows of compensations; only one that has effects to undo needs the tools.
        return Compensations(
            self._runtime,
            self._ledger,
            later(lambda: self.tools),
            self._end_tools,
            self._settings.tool_timeout,
        )

    def _end_tools(self, plan_id: "PlanId") -> None:
        # What they have running was started by this process: without them there is nothing.
        if "tools" in self.__dict__:
            self.tools.end(plan_id)

    @cached_property
    def _ledger(self):
        from cleveragents.application.services.effects.effect_ledger import EffectLedger

        return EffectLedger(self._runtime)

    @cached_property
    def _store_files(self) -> "StoreFiles":
        from cleveragents.infrastructure.snapshots.store.maintenance import SnapshotFiles

        return SnapshotFiles(
            self._in_data_dir("snapshots"),
            self._in_data_dir("scratch"),
            self._locks.is_busy,
            self._in_data_dir("sandboxes"),
            self._database.path,
        )
