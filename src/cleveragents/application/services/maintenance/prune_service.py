"""Cleaning up after all plans at once: what is older than a person says, goes."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct, field

from cleveragents.application.ports.maintenance import StoreFiles
from cleveragents.application.ports.runtime import (
    Runtime,
    UnitOfWork,
)
from cleveragents.application.services.apply.keeping import ApplyKeeping
from cleveragents.application.services.maintenance.plan_removal import PlanRemoval
from cleveragents.application.services.sandboxes.cleanup import SandboxCleanup
from cleveragents.domain.errors import DeclinedError, PlanError
from cleveragents.domain.events import Working
from cleveragents.domain.holdings import PlanHoldings, is_due, last_touched
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Plan

_WHY = "prune"


class PruneOffer(Struct, frozen=True, kw_only=True):
    """`due` is what would go, each with when something last `touched` it and the `sizes` on disk.

    `in_use` would, if nobody worked on it; `unapplied` are how many are as old and not over.
    """

    due: tuple[PlanHoldings, ...]
    touched: Mapping[PlanId, datetime]
    sizes: Mapping[PlanId, int]
    in_use: tuple[PlanHoldings, ...] = ()
    unapplied: int = 0

    @property
    def bytes(self) -> int:
        return sum(self.sizes.get(held.plan.plan_id, 0) for held in self.due)

    @property
    def is_precious(self) -> bool:
        return any(held.is_precious for held in self.due)


class Pruned(Struct, frozen=True, kw_only=True):
    """`failed` has the plans that could not be removed, each with the reason; the others are."""

    offer: PruneOffer
    removed: tuple[PlanHoldings, ...]
    failed: Mapping[PlanId, str] = field(default_factory=dict[PlanId, str])

    @property
    def bytes(self) -> int:
        return sum(self.offer.sizes.get(held.plan.plan_id, 0) for held in self.removed)


class PruneService(Struct, frozen=True):
    _runtime: Runtime
    _cleanup: SandboxCleanup
    _removal: PlanRemoval
    _keeping: ApplyKeeping
    _files: StoreFiles

    def look(self, age: timedelta, *, unapplied: bool) -> PruneOffer:
        """What `prune` would remove; nothing changes."""
        now = self._runtime.clock.now()
        with self._runtime.unit_of_work.reading() as uow:
            plans = uow.plans.list()
            touched = {p.plan_id: _touched(uow, p) for p in plans if p.child_of is None}
        old = [p for p in plans if p.plan_id in touched and now - touched[p.plan_id] >= age]
        due = [p for p in old if is_due(p, touched[p.plan_id], now, age, unapplied=unapplied)]
        self._runtime.events.emit(Working(what="looking at what plans hold"))
        held = [self._cleanup.holdings(plan.plan_id) for plan in due]
        return PruneOffer(
            due=tuple(item for item in held if item.owner is None),
            touched=touched,
            sizes=sizes_by_root(plans, self._files),
            in_use=tuple(item for item in held if item.owner is not None),
            unapplied=len(old) - len(due),
        )

    def prune(self, offer: PruneOffer, confirm: Callable[[PruneOffer], bool]) -> Pruned:
        """One plan after the other; one that cannot be removed does not keep the others."""
        if offer.due and not confirm(offer):
            raise DeclinedError("the clean-up")
        removed: list[PlanHoldings] = []
        failed: dict[PlanId, str] = {}
        for number, held in enumerate(offer.due, 1):
            told = f"removing {held.plan.name}"
            self._runtime.events.emit(Working(what=told, part=number, parts=len(offer.due)))
            try:
                self._removal.remove(held.plan, _WHY)
                removed.append(held)
            except (PlanError, OSError) as error:
                failed[held.plan.plan_id] = str(error)
        self._removal.forget_strays()
        self._keeping.expire()
        return Pruned(offer=offer, removed=tuple(removed), failed=failed)


def sizes_by_root(plans: Sequence[Plan], files: StoreFiles) -> Mapping[PlanId, int]:
    """What each plan takes on the disk with all of its children."""
    snapshots, sandboxes = files.snapshot_bytes(), files.sandbox_bytes()
    found: dict[PlanId, int] = {}
    for plan in plans:
        root = plan.child_of.root_id if plan.child_of else plan.plan_id
        own = snapshots.get(plan.plan_id, 0) + sandboxes.get(plan.plan_id, 0)
        found[root] = found.get(root, 0) + own
    return found


def _touched(uow: UnitOfWork, plan: Plan) -> datetime:
    """Of one that is over its end counts; for others their groups are asked."""
    groups = () if plan.is_final else tuple(uow.checkpoints.outlines(plan.plan_id))
    return last_touched(plan, groups[-1].created_at if groups else None)
