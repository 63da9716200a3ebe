"""Removing everything of ours: in every repository, and on this machine."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from cleveragents.application.ports.maintenance import OwnFiles, PlanTraces, StoreFiles
from cleveragents.application.ports.runtime import Runtime
from cleveragents.application.services.maintenance.plan_removal import PlanRemoval
from cleveragents.application.services.sandboxes.cleanup import SandboxCleanup
from cleveragents.domain.errors import DeclinedError, PlanError, PlanLockedError
from cleveragents.domain.holdings import FolderContents, PlanHoldings
from cleveragents.domain.plan import Plan
from cleveragents.domain.resource import PlanResource

_WHY = "uninstall"


class UninstallOffer(Struct, frozen=True, kw_only=True):
    """`plans` are all there are, with what each holds; `projects` where names of ours may be.

    `unreachable` are repositories that are gone from where they were: what is of ours there stays.
    `others` are names of other data folders, by repository, which stay as well. `strangers` are
    snapshots of plans that are on record nowhere here; they go with the folder that they are in.
    """

    plans: tuple[PlanHoldings, ...]
    projects: tuple[str, ...]
    unreachable: tuple[str, ...]
    others: Mapping[str, int]
    folder: FolderContents
    strangers: tuple[str, ...] = ()

    @property
    def is_precious(self) -> bool:
        return any(held.is_precious for held in self.plans)


class Uninstalled(Struct, frozen=True, kw_only=True):
    """`failed` is what could not be removed, by plan or path, with the reason."""

    offer: UninstallOffer
    failed: Mapping[str, str]
    settings_kept: bool


class UninstallService(Struct, frozen=True):
    _runtime: Runtime
    _cleanup: SandboxCleanup
    _removal: PlanRemoval
    _traces: PlanTraces
    _files: OwnFiles
    _store: StoreFiles

    def look(self) -> UninstallOffer:
        """What would be removed; nothing changes. Raises PlanLockedError while anybody works on a
        plan, and PlanStateError for an apply that was cut off."""
        with self._runtime.unit_of_work.reading() as uow:
            plans = uow.plans.list()
            resources = [r for plan in plans for r in uow.resources.of_plan(plan.plan_id)]
        self._refuse_busy(plans)
        roots = [plan for plan in plans if plan.child_of is None]
        return UninstallOffer(
            plans=tuple(self._cleanup.holdings(plan.plan_id) for plan in roots),
            projects=tuple(sorted({r.location for r in resources if r.kind.has_repository})),
            unreachable=self._unreachable(resources),
            others=self._traces.others(resources),
            folder=self._files.contents(),
            strangers=tuple(self._store.strangers(lambda: {str(p.plan_id) for p in plans})),
        )

    def uninstall(
        self,
        offer: UninstallOffer,
        confirm: Callable[[UninstallOffer], bool],
        *,
        keep_settings: bool,
    ) -> Uninstalled:
        """A plan that cannot be cleared keeps the records, without which nobody would find it."""
        if not confirm(offer):
            raise DeclinedError("the uninstalling")
        failed: dict[str, str] = {}
        for held in offer.plans:
            failed |= self._cleared(held)
        if not failed:
            failed |= self._files.remove(keep_settings=keep_settings)
        return Uninstalled(offer=offer, failed=failed, settings_kept=keep_settings)

    def _cleared(self, held: PlanHoldings) -> Mapping[str, str]:
        try:
            self._removal.clear(held.plan, _WHY)
        except (PlanError, OSError) as error:
            return {str(held.plan.plan_id): str(error)}
        return {}

    def _refuse_busy(self, plans: Sequence[Plan]) -> None:
        for plan in plans:
            owner = self._runtime.locks.owner(plan.plan_id)
            if owner is not None:
                raise PlanLockedError(plan.plan_id, owner)
            if not plan.is_final:
                plan.refuse_if_applying()

    def _unreachable(self, resources: Sequence[PlanResource]) -> tuple[str, ...]:
        found = {place for r in resources for place in self._traces.unreachable(r)}
        return tuple(sorted(found))
