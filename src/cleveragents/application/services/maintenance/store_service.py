"""The care for all that is stored: how much it is, whether it is whole, what is left over."""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct, field

from cleveragents.application.ports.maintenance import StoreFiles, StoreShare
from cleveragents.application.ports.runtime import Runtime
from cleveragents.application.services.apply.keeping import ApplyKeeping
from cleveragents.application.services.checkpoints.checkpoint_service import CheckpointService
from cleveragents.application.services.sandboxes.project_care import ProjectCare
from cleveragents.domain.checkpoint import CheckpointGroup
from cleveragents.domain.errors import PlanError
from cleveragents.domain.events import Working
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Plan


class PlanShare(Struct, frozen=True, kw_only=True):
    """`plan` is None for files of a plan that this database does not know."""

    share: StoreShare
    plan: Plan | None
    checkpoints: int
    sandbox_bytes: int = 0
    kept_bytes: int = 0


class StoreStatus(Struct, frozen=True, kw_only=True):
    """The limit is one for snapshots. Sandboxes of children count with the plan at the top. What is
    kept is what applies have replaced, beside what snapshots have of it."""

    location: str
    limit_bytes: int
    shares: tuple[PlanShare, ...]
    database_bytes: int = 0
    trash_bytes: int = 0

    @property
    def disk_bytes(self) -> int:
        return sum(item.share.disk_bytes for item in self.shares)

    @property
    def sandbox_bytes(self) -> int:
        return sum(item.sandbox_bytes for item in self.shares)

    @property
    def total_bytes(self) -> int:
        ours = self.disk_bytes + self.sandbox_bytes + self.database_bytes + self.trash_bytes
        return ours + self.kept_bytes

    @property
    def kept_bytes(self) -> int:
        return sum(item.kept_bytes for item in self.shares)

    @property
    def dedup(self) -> float:
        """How many bytes of content one stored byte stands for."""
        stored = sum(item.share.stored_bytes for item in self.shares)
        return sum(item.share.content_bytes for item in self.shares) / stored if stored else 1.0


class StoreCheck(Struct, frozen=True, kw_only=True):
    """`damages` by plan, each with what is wrong; `hints` what to do where nothing could be judged,
    and so nothing is known to be damaged."""

    plans: int
    checkpoints: int
    damages: Mapping[PlanId, Sequence[str]]
    hints: Mapping[PlanId, str] = field(default_factory=dict[PlanId, str])


class StoreService(Struct, frozen=True):
    _runtime: Runtime
    _files: StoreFiles
    _checkpoints: CheckpointService
    _projects: ProjectCare
    _keeping: ApplyKeeping
    _limit_bytes: int

    def status(self) -> StoreStatus:
        with self._runtime.unit_of_work.reading() as uow:
            plans = {str(plan.plan_id): plan for plan in uow.plans.list()}
            counts = {key: uow.checkpoints.count(plan.plan_id) for key, plan in plans.items()}
        self._runtime.events.emit(Working(what="measuring snapshots and sandboxes"))
        sandboxes: dict[str, int] = {}
        for key, size in self._files.sandbox_bytes().items():
            child = plans[key].child_of if key in plans else None
            root = str(child.root_id) if child else key
            sandboxes[root] = sandboxes.get(root, 0) + size
        stored = {share.plan_id: share for share in self._files.shares()}
        kept = self._keeping.sizes()
        return StoreStatus(
            location=self._files.location,
            limit_bytes=self._limit_bytes,
            shares=tuple(
                PlanShare(
                    share=stored.get(key) or _nothing_of(key),
                    plan=plans.get(key),
                    checkpoints=counts.get(key, 0),
                    sandbox_bytes=sandboxes.get(key, 0),
                    kept_bytes=kept.get(key, 0),
                )
                for key in sorted({*stored, *sandboxes, *kept})
            ),
            database_bytes=self._files.database_bytes(),
            trash_bytes=self._files.trash_bytes(),
        )

    def verify(self) -> StoreCheck:
        """Prove by hash that every checkpoint of every unfinished plan can be restored."""
        damages: dict[PlanId, Sequence[str]] = {}
        hints: dict[PlanId, str] = {}
        checked = 0
        plans = self._unfinished()
        for number, plan in enumerate(plans, 1):
            told = f"verifying {plan.name}"
            self._runtime.events.emit(Working(what=told, part=number, parts=len(plans)))
            groups = self._checkpoints.list_checkpoints(plan.plan_id)
            checked += len(groups)
            try:
                problems = self._problems(plan.plan_id, groups)
            except PlanError as error:  # one project that is gone says nothing about the others
                problems, hints[plan.plan_id] = [error.message], error.hint
            if problems:
                damages[plan.plan_id] = problems
        return StoreCheck(plans=len(plans), checkpoints=checked, damages=damages, hints=hints)

    def _problems(self, plan_id: PlanId, groups: Sequence[CheckpointGroup]) -> Sequence[str]:
        found = list(self._files.problems(plan_id))
        if found:
            return found
        # What many checkpoints share is damaged for all of them, and told once.
        damages = list(dict.fromkeys(self._checkpoints.damages(groups).values()))
        if damages:
            self._projects.refuse_lost(plan_id)  # of that they are only the sign
        return damages

    def sweep(self) -> int:
        """Remove leftovers of crashes; gives back the bytes freed."""
        return self._files.sweep()

    def leftovers(self) -> Sequence[str]:
        """What `sweep` would remove."""
        return self._files.leftovers()

    def strangers(self) -> Sequence[str]:
        """Snapshots of plans that this database does not know; they are never removed."""
        return self._files.strangers(self._known)

    def _known(self) -> Collection[str]:
        with self._runtime.unit_of_work.reading() as uow:
            return {str(plan.plan_id) for plan in uow.plans.list()}

    def _unfinished(self) -> Sequence[Plan]:
        with self._runtime.unit_of_work.reading() as uow:
            plans = [plan for plan in uow.plans.list() if not plan.is_final]
        return [plan for plan in plans if plan.child_of is None or not plan.child_of.settled]


def _nothing_of(plan_id: str) -> StoreShare:
    return StoreShare(plan_id=plan_id, disk_bytes=0, content_bytes=0, stored_bytes=0, snapshots=0)
