"""What people call things of which a program knows the id: a plan `hello-3`, a checkpoint `2`."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from cleveragents.application.services.checkpoints.naming import timeline_of
from cleveragents.domain.errors import PlanError
from cleveragents.domain.ids import CorrectionId, DecisionId, PlanId, endings
from cleveragents.domain.places import latest_of
from cleveragents.domain.timeline import Timeline

if TYPE_CHECKING:
    from cleveragents.application.ports.runtime import UnitOfWork, UnitOfWorkFactory, Whereabouts


class SpokenName(Struct, frozen=True, kw_only=True):
    """`typed` is what a command takes in the place of the id: nothing for the latest plan of here,
    which is meant where none is named."""

    name: str
    typed: str
    is_plan: bool = False


class SpokenNames:
    def __init__(self, unit_of_work: "UnitOfWorkFactory", whereabouts: "Whereabouts") -> None:
        self._unit_of_work = unit_of_work
        self._whereabouts = whereabouts

    def of(self, ids: Collection[str]) -> Mapping[str, SpokenName]:
        """Of those that are known; the others have no other name."""
        with self._unit_of_work.reading() as uow:
            found: dict[str, SpokenName] = {}
            checkpoints = _Checkpoints(uow)
            for ulid in ids:
                name = self._plan(uow, ulid) or checkpoints.name(ulid) or _other(uow, ulid)
                if name is not None:
                    found[ulid] = name
            return found

    def _plan(self, uow: "UnitOfWork", ulid: str) -> SpokenName | None:
        try:
            plan = uow.plans.get(PlanId(ulid))
        except PlanError:
            return None
        around, placed = self._whereabouts.around(), uow.plans.places()
        latest = latest_of(placed, around)
        root = plan.child_of.root_id if plan.child_of else plan.plan_id
        place = next((item.place for item in placed if item.plan_id == root), None)
        typed = plan.name if place in around else f"--any {plan.name}"
        is_latest = latest is not None and latest.plan_id == plan.plan_id
        return SpokenName(name=plan.name, typed="" if is_latest else typed, is_plan=True)


class _Checkpoints:
    """All of a plan are read to name one of them, and once for all that are asked for."""

    def __init__(self, uow: "UnitOfWork") -> None:
        self._uow = uow
        self._names: dict[PlanId, Mapping[str, str]] = {}

    def name(self, ulid: str) -> SpokenName | None:
        plan_id = self._uow.checkpoints.owner_of(ulid)
        if plan_id is None:
            return None
        if plan_id not in self._names:
            self._names[plan_id] = checkpoint_names(timeline_of(self._uow, plan_id))
        name = self._names[plan_id].get(ulid)
        return SpokenName(name=name, typed=name) if name else None


def checkpoint_names(line: Timeline) -> Mapping[str, str]:
    """By id of a group: the number of its row, or the ending of the id."""
    groups = [group for row in line.rows for group in row.groups]
    named = dict(endings(str(group.group_id) for group in groups))
    for row in line.rows:
        if row.number is not None and row.group is not None:
            named[row.group.group_id] = str(row.number)
    # That of one resource is called by its group, which is what people go back to.
    by_part = {item.checkpoint_id: g.group_id for g in groups for item in g.checkpoints}
    return {**{part: named[group] for part, group in by_part.items()}, **named}


def _other(uow: "UnitOfWork", ulid: str) -> SpokenName | None:
    with suppress(PlanError):
        decision = uow.decisions.get(DecisionId(ulid))
        return _ending(ulid, [item.decision_id for item in uow.decisions.of_plan(decision.plan_id)])
    with suppress(PlanError):
        correction = uow.corrections.get(CorrectionId(ulid))
        made = uow.corrections.of_plan(correction.plan_id)
        return _ending(ulid, [item.correction_id for item in made])
    return None


def _ending(ulid: str, among: Sequence[str]) -> SpokenName:
    name = endings(among)[ulid]
    return SpokenName(name=name, typed=name)
