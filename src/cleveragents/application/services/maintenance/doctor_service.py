"""Finding and mending what crashes, moves and deletions have left behind."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from cleveragents.application.ports.maintenance import (
    DatabaseHealth,
    Leftovers,
)
from cleveragents.application.ports.runtime import Runtime
from cleveragents.application.services.checkpoints.held import HeldPlan
from cleveragents.application.services.execute.plan_resume_service import PlanResumeService
from cleveragents.application.services.maintenance.store_service import StoreService
from cleveragents.application.services.sandboxes.care import SandboxCare
from cleveragents.domain.doctor import (
    Check,
    Finding,
    Leftover,
    PlanFacts,
    ProjectMove,
    database_findings,
    leftover_findings,
    lock_findings,
    moved_findings,
    pins_of_others,
    plan_findings,
    scratch_findings,
    store_findings,
    stranger_findings,
    unneeded,
)
from cleveragents.domain.errors import PlanError, PlanStateError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Plan
from cleveragents.domain.resource import PlanResource, SandboxStatus


class Diagnosis(Struct, frozen=True, kw_only=True):
    """`plans` and `checkpoints` say how much was looked at. `others` is what other data folders
    have in the same repositories: nothing is wrong with it, and it is never removed."""

    findings: tuple[Finding, ...]
    plans: int
    checkpoints: int
    others: tuple[Leftover, ...] = ()


class Treated(Struct, frozen=True, kw_only=True):
    """`error` None: it is mended."""

    finding: Finding
    error: str | None = None


class DoctorService(Struct):
    _runtime: Runtime
    _care: SandboxCare
    _leftovers: Leftovers
    _resumes: PlanResumeService
    _store: StoreService
    _database: DatabaseHealth
    _found: dict[Finding, Leftover] = field(default_factory=dict[Finding, Leftover])
    _moves: dict[Finding, ProjectMove] = field(default_factory=dict[Finding, ProjectMove])

    def examine(self, moved: Mapping[str, str] | None = None) -> Diagnosis:
        """Look at everything; nothing is changed. `moved` are folders, old and new."""
        broken = database_findings(self._database.problems())
        if broken:
            return Diagnosis(findings=tuple(broken), plans=0, checkpoints=0)
        facts = self._facts(moved or {})
        resources = [resource for item in facts for resource in item.resources]
        left = self._leftovers.found(resources)
        # Most belong to plans that need them: nobody has to ask what those hold.
        judged = self._leftovers.judged(unneeded(left, facts))
        self._found = dict(leftover_findings(judged, facts))
        strays = moved_findings(facts)
        self._moves = {finding: move for finding, move in strays if move is not None}
        checked = self._store.verify()
        lost = {item.plan.plan_id for item in facts if item.strays}
        # Without its project a plan's snapshots cannot be judged; that is told already.
        damages = {key: texts for key, texts in checked.damages.items() if key not in lost}
        findings = [
            *lock_findings(self._runtime.locks.dead()),
            *(finding for finding, _ in strays),
            *plan_findings(facts),
            *self._found,
            *scratch_findings(self._store.leftovers()),
            *stranger_findings(self._store.strangers()),
            *store_findings(damages, checked.hints),
        ]
        order = list(Check)
        findings.sort(key=lambda finding: order.index(finding.check))
        return Diagnosis(
            findings=tuple(findings),
            plans=len(facts),
            checkpoints=checked.checkpoints,
            others=tuple(pins_of_others(left, facts)),
        )

    def mend(self, diagnosis: Diagnosis) -> Sequence[Treated]:
        """Do what the findings say; one that fails does not keep the others from being mended."""
        return [self._treated(finding) for finding in diagnosis.findings if finding.mendable]

    def _treated(self, finding: Finding) -> Treated:
        try:
            self._remedies()[finding.check](finding)
        except PlanError as error:
            return Treated(finding=finding, error=f"{error.message}; {error.hint}")
        except OSError as error:
            return Treated(finding=finding, error=str(error))
        return Treated(finding=finding)

    def _remedies(self) -> Mapping[Check, Callable[[Finding], object]]:
        return {
            Check.LOCKS: self._free_lock,
            Check.ROLLBACKS: self._settle,
            Check.PLANS: self._settle,
            Check.SANDBOXES: self._mend_sandbox,
            Check.LEFTOVERS: self._remove,
            Check.STORE: lambda _: self._store.sweep(),
        }

    def _free_lock(self, finding: Finding) -> None:
        with self._runtime.locks.hold(PlanId(finding.subject), "doctor"):
            pass  # taking it over is what ends the dead owner's processes

    def _remove(self, finding: Finding) -> None:
        """Asked again: a plan may have been made while somebody thought about the answer."""
        leftover = self._found[finding]
        with self._runtime.unit_of_work.reading() as uow:
            known = [uow.plans.get(found) for found in uow.plans.starting_with(leftover.plan_id)]
        is_live = any(not plan.is_final and plan.child_of is None for plan in known)
        if is_live and not leftover.broken:
            raise PlanStateError(
                f"plan {leftover.plan_id} needs it now", "look again: agents doctor"
            )
        self._leftovers.remove(leftover)

    def _settle(self, finding: Finding) -> None:
        self._resumes.recover_crashed(PlanId(finding.subject))

    def _mend_sandbox(self, finding: Finding) -> None:
        if finding in self._moves:
            move = self._moves[finding]
            with self._runtime.locks.hold(move.plan_id, "doctor"):
                self._care.projects.follow(move)
            return
        plan_id = PlanId(finding.subject)
        with self._runtime.locks.hold(plan_id, "doctor"):
            with self._runtime.unit_of_work.reading() as uow:
                held = HeldPlan.of(uow, plan_id)
            self._care.rebuilding.rebuild(held)

    def _facts(self, moved: Mapping[str, str]) -> Sequence[PlanFacts]:
        with self._runtime.unit_of_work.reading() as uow:
            known = [(plan, uow.resources.of_plan(plan.plan_id)) for plan in uow.plans.list()]
            applied = {change.plan_id: change for change in uow.applied.kept()}
        facts = [self._fact(plan, resources, moved) for plan, resources in known]
        return [replace(item, applied=applied.get(item.plan.plan_id)) for item in facts]

    def _fact(
        self, plan: Plan, resources: Sequence[PlanResource], moved: Mapping[str, str]
    ) -> PlanFacts:
        needed = [] if plan.is_final else [r for r in resources if _is_needed(r)]
        return PlanFacts(
            plan=plan,
            resources=tuple(resources),
            owner=self._runtime.locks.owner(plan.plan_id),
            lost={
                r.name: can
                for r in needed
                if (can := self._care.rebuilding.can_be_mended(r)) is not None
            },
            strays=self._care.projects.strays(needed, moved),
        )


def _is_needed(resource: PlanResource) -> bool:
    return resource.status is not SandboxStatus.REMOVED
