"""The services over fakes, one plan on them, and what can be said about it."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from fake_actors import ListActor, MemoryTools, OneAction, OneActor
from fake_database import MemoryDatabase
from fake_sandboxes import Files, MemoryDisk, MemorySandboxes, MemorySnapshots, SteadyProjects
from fake_tables import Tables
from fakes import CountingIds, EventLog, Faults, Killed, MemoryLocks, TickingClock

from cleveragents.application.ports.actors import Actor
from cleveragents.application.ports.runtime import Runtime, Workspace
from cleveragents.application.services.apply.apply_service import ApplyResult, ApplyService
from cleveragents.application.services.apply.keeping import ApplyKeeping
from cleveragents.application.services.checkpoints.checkpoint_service import (
    CheckpointPolicy,
    CheckpointService,
    stands_mid_step,
)
from cleveragents.application.services.checkpoints.held import HeldResources
from cleveragents.application.services.checkpoints.manual_checkpoints import ManualCheckpoints
from cleveragents.application.services.checkpoints.pruning import RetentionLimits
from cleveragents.application.services.corrections.correction_finisher import CorrectionFinisher
from cleveragents.application.services.effects.compensations import Compensations
from cleveragents.application.services.effects.effect_ledger import EffectLedger
from cleveragents.application.services.execute.others import OthersSteps
from cleveragents.application.services.execute.plan_executor import PlanExecutor
from cleveragents.application.services.execute.plan_resume_service import PlanResumeService
from cleveragents.application.services.execute.step_boundary import StepBoundary
from cleveragents.application.services.execute.step_source import ActingLimits, StepSource
from cleveragents.application.services.execute.tool_runner import RunLimits, ToolRunner
from cleveragents.application.services.plans.plan_diff_service import PlanDiffService
from cleveragents.application.services.plans.plan_queries import PlanQueries
from cleveragents.application.services.plans.plan_service import PlanService
from cleveragents.application.services.rollback.rollback_files import RollbackFiles
from cleveragents.application.services.rollback.rollback_service import RollbackService
from cleveragents.application.services.sandboxes.after_restart import AfterRestart
from cleveragents.application.services.sandboxes.care import SandboxCare
from cleveragents.application.services.sandboxes.cleanup import SandboxCleanup
from cleveragents.application.services.sandboxes.project_care import ProjectCare
from cleveragents.application.services.sandboxes.rebuilding import SandboxRebuilding
from cleveragents.application.services.sandboxes.unfinished_step import UnfinishedStep
from cleveragents.domain.action import Action, ResourceSpec, Step
from cleveragents.domain.apply import ApplyOptions
from cleveragents.domain.checkpoint import (
    DEFAULT_TRIGGERS,
    CheckpointGroup,
    RollbackResult,
    Trigger,
)
from cleveragents.domain.correction import Correction, CorrectionMode, CorrectionStatus
from cleveragents.domain.decision import Decision, ToolCall
from cleveragents.domain.effects import Effect, EffectChoice
from cleveragents.domain.ids import CorrectionId, GroupId, PlanId
from cleveragents.domain.plan import Plan
from cleveragents.domain.resource import CleanupPolicy, PlanResource
from cleveragents.domain.resource_kinds import GIT_CHECKOUT
from cleveragents.infrastructure.files.whereabouts import CurrentFolder

DEFAULT_TIMEOUT = 60.0
BASE = {"README": "hello"}
OPTIONS = ApplyOptions(message="done")


def append(line: str, resource: str | None = "code", tool: str = "append") -> Step:
    arguments = {"line": line} if resource is None else {"line": line, "resource": resource}
    return Step(name=f"add {line}", tool=tool, arguments=arguments)


def look() -> Step:
    return Step(name="look", tool="look")


def resource(name: str, **fields: Any) -> ResourceSpec:
    return ResourceSpec(name=name, type=GIT_CHECKOUT.type, location=f"/projects/{name}", **fields)


CODE, DOCS = resource("code"), resource("docs")
THREE_STEPS = (append("a"), append("b"), append("c"))
TWO_PLACES = (append("a"), append("b", "docs"), append("c"))


def after(*lines: str) -> Files:
    """What a sandbox holds once these lines were appended to a new one."""
    text = "".join(f"{line}\n" for line in lines)
    return {**BASE, "one.txt": text, "two.txt": text} if lines else dict(BASE)


class ServiceWorld:
    def __init__(
        self,
        *steps: Step,
        resources: tuple[ResourceSpec, ...] = (CODE,),
        triggers: Iterable[Trigger] = DEFAULT_TRIGGERS,
        max_states: int = 50,
        max_age: timedelta | None = None,
        max_bytes: int = 0,
        retries: int = 0,
        decider: Actor | None = None,
        **action_fields: Any,
    ) -> None:
        self.faults = Faults()
        self.clock, self.ids = TickingClock(), CountingIds()
        self.locks, self.events = MemoryLocks(), EventLog()
        self.database = MemoryDatabase(self.faults)
        self.disk = MemoryDisk()
        self.snapshots = MemorySnapshots(self.disk, self.faults)
        self.sandboxes = MemorySandboxes(self.disk, self.faults, self.snapshots)
        self.tools = MemoryTools(self.disk, self.faults)
        self.listed = ListActor()
        self.actor: Actor = decider or self.listed
        self.retries = retries
        limits = RetentionLimits(max_states=max_states, max_age=max_age, max_total_bytes=max_bytes)
        self.policy = CheckpointPolicy(triggers=frozenset(triggers), limits=limits)
        self.action = Action(
            name="demo",
            description="Do it",
            resources=resources,
            steps=steps or (THREE_STEPS if decider is None else ()),
            **action_fields,
        )
        self.restart()
        self.plan_id = self.plans.use("a.yaml", {}, include_uncommitted=False).plan.plan_id

    def restart(self) -> None:
        """A new process over what is on disk."""
        self.faults.revive()
        workspace = Workspace(sandboxes=self.sandboxes, snapshots=self.snapshots)
        runtime = self.runtime = Runtime(
            unit_of_work=self.database,
            locks=self.locks,
            clock=self.clock,
            ids=self.ids,
            events=self.events,
        )
        self.checkpoints = CheckpointService(runtime, self.snapshots, self.policy)
        self.ledger = EffectLedger(runtime)
        compensations = Compensations(
            runtime, self.ledger, self.tools, self.tools.end, DEFAULT_TIMEOUT
        )
        rebuilding = SandboxRebuilding(runtime, self.sandboxes, self.snapshots)
        projects = ProjectCare(runtime, SteadyProjects())
        boundary = StepBoundary(self.database, self.snapshots)
        restarts = AfterRestart(self.checkpoints, workspace, boundary, self.events)
        others = OthersSteps(runtime, self.checkpoints, self.snapshots)
        self.unfinished = UnfinishedStep(
            self.checkpoints, self.sandboxes, boundary, restarts, others, self.events
        )
        files = RollbackFiles(self.snapshots)
        self.finisher = CorrectionFinisher(self.database, self.checkpoints, files, compensations)
        care = SandboxCare(
            projects=projects, rebuilding=rebuilding, restarts=restarts, others=others
        )
        self.rollbacks = RollbackService(
            runtime, self.checkpoints, workspace, care, self.finisher, compensations
        )
        runner = ToolRunner(
            runtime,
            self.tools,
            self.checkpoints,
            self.ledger,
            boundary,
            RunLimits(timeout=DEFAULT_TIMEOUT, retries=self.retries),
        )
        actors = OneActor(self.actor)
        turns = StepSource(self.database, actors, ActingLimits(recoveries=2))
        executor = PlanExecutor(
            runtime,
            self.checkpoints,
            runner,
            runner,  # none of these plans has children
            self.ledger,
            turns,
        )
        self.resume = PlanResumeService(
            runtime, executor, self.rollbacks, self.unfinished, self.ledger, workspace
        )
        cleanup = SandboxCleanup(runtime, workspace, CleanupPolicy.ON_APPLY)
        # What an apply replaced is kept by those tests that ask for it.
        self.keeping = ApplyKeeping(runtime, workspace, cleanup, timedelta(0))
        self.applies = ApplyService(
            runtime, self.checkpoints, self.rollbacks, workspace, self.keeping
        )
        actions = self.action_reader = OneAction(self.action)
        self.plans = PlanService(runtime, actions, actors, self.sandboxes, cleanup)
        self.manual = ManualCheckpoints(runtime, self.checkpoints, care, self.rollbacks)
        self.queries = PlanQueries(
            self.database, self.locks, self.clock, CurrentFolder("/"), self.sandboxes
        )
        self.diffs = PlanDiffService(self.database, self.sandboxes)

    # --- doing ----------------------------------------------------------------------------------

    def run(self, choice: EffectChoice = EffectChoice.STOP) -> Plan:
        return self.resume.run(self.plan_id, choice)

    def roll_back(self, wanted: str) -> RollbackResult:
        return self.rollbacks.rollback(self.plan_id, wanted, lambda _: True)

    def apply(self) -> ApplyResult:
        return self.applies.apply(self.plan_id, OPTIONS, lambda _: True)

    def recover(self) -> Plan:
        with self.locks.hold(self.plan_id, "test"):
            return self.rollbacks.take_up(self.plan_id).plan

    def kill_at(self, number: int, work: Callable[[], object]) -> bool:
        """Do the work in a process that dies at its nth port call; False if it got through."""
        self.faults.revive()
        self.faults.kill_at = number
        try:
            work()
        except Killed:
            self.restart()
            return True
        self.restart()
        return False

    # --- looking --------------------------------------------------------------------------------

    @property
    def tables(self) -> Tables:
        return self.database.tables

    @property
    def plan(self) -> Plan:
        return self.tables.plans[self.plan_id]

    @property
    def groups(self) -> list[CheckpointGroup]:
        return sorted(self.tables.groups.values(), key=lambda group: group.position.seq)

    @property
    def reasons(self) -> list[str]:
        return [group.reason.value for group in self.groups]

    def group(self, label: str) -> CheckpointGroup:
        (found,) = [group for group in self.groups if group.label == label]
        return found

    @property
    def resources(self) -> list[PlanResource]:
        return [found for _, found in sorted(self.tables.resources.items())]

    @property
    def decisions(self) -> list[Decision]:
        """Those that still count."""
        found = sorted(self.tables.decisions.values(), key=lambda item: item.position.seq)
        return [decision for decision in found if not decision.superseded]

    @property
    def calls(self) -> list[ToolCall]:
        """Those that still count."""
        found = sorted(self.tables.tool_calls.values(), key=lambda item: item.position.seq)
        return [call for call in found if not call.undone]

    @property
    def effects(self) -> list[Effect]:
        return sorted(self.tables.effects.values(), key=lambda item: item.position.seq)

    def files(self, name: str = "code") -> Files:
        return self.disk.sandboxes[f"/sandboxes/{self.plan_id}/{name}"]

    def stands_mid_step(self, plan: Plan | None = None) -> bool:
        plan, held = plan or self.plan, HeldResources(self.resources)
        return stands_mid_step(plan, held, self.checkpoints.head_of(plan))

    def all_files(self) -> dict[str, Files]:
        return {name: dict(files) for name, files in self.disk.sandboxes.items()}

    def project(self, name: str = "code") -> Files:
        return self.disk.projects[f"/projects/{name}"]


def add_correction(world: ServiceWorld, status: CorrectionStatus, safety: GroupId | None) -> None:
    """As if the first step had been corrected, with this group to compare with."""
    correction = Correction(
        correction_id=CorrectionId(world.ids.new()),
        plan_id=world.plan_id,
        decision_id=world.decisions[1].decision_id,
        mode=CorrectionMode.REVERT,
        guidance="",
        status=status,
        safety_group=safety,
        created_at=world.clock.now(),
    )
    world.tables.corrections[correction.correction_id] = correction


def plan_of(world: ServiceWorld, tables: Tables) -> Plan:
    return tables.plans[PlanId(world.plan_id)]
