"""How a person names a plan or a decision: by name, by number, by id or a part of it (ADR 0079)."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cleveragents.domain.action import step_number
from cleveragents.domain.decision import Decision, DecisionType
from cleveragents.domain.errors import (
    DecisionAmbiguousError,
    DecisionNotFoundError,
    NoPlanHereError,
    PlanAmbiguousError,
    PlanElsewhereError,
    PlanNotFoundError,
)
from cleveragents.domain.ids import ULID_LETTERS, DecisionId, PlanId, endings, id_part
from cleveragents.domain.places import PlacedPlan, latest_of, place_of
from cleveragents.domain.plan import Plan

if TYPE_CHECKING:
    from cleveragents.application.ports.runtime import UnitOfWork, UnitOfWorkFactory, Whereabouts

LATEST = "latest"
_NUMBERED = r"(?s)(.+)-([1-9][0-9]{0,8})"
_STEP = r"[1-9][0-9]{0,8}"
_ELSEWHERE = 3
_MOST_TOLD = 10


def find_plan(uow: "UnitOfWork", wanted: str, around: Sequence[str] | None) -> PlanId:
    """`around` are the folders one stands in; None if names may be of plans of any place.

    Raises PlanNotFoundError, NoPlanHereError, PlanElsewhereError or PlanAmbiguousError, rather than
    guesses.
    """
    name = wanted.strip()
    if name.lower() == LATEST:
        return _latest(uow, around)
    part = id_part(name)
    if part and len(part) == ULID_LETTERS and uow.plans.starting_with(part):
        return PlanId(part)
    numbered = re.fullmatch(_NUMBERED, name)
    exact = uow.plans.of_action(numbered[1], int(numbered[2])) if numbered else ()
    of_action = uow.plans.of_action(name)
    here = _of_here(exact, of_action, around)
    if here is None and "/" in name:
        here = _child(uow, name, around)
    if here is None and part:
        here = _by_part(uow, part)
    if here is not None:
        return here
    for plan in (*exact, *of_action):
        raise PlanElsewhereError(name, plan.name, plan.place)
    raise PlanNotFoundError(name)


def _latest(uow: "UnitOfWork", around: Sequence[str] | None) -> PlanId:
    """The last that a person has made: children are made by their parents."""
    plans = uow.plans.places()
    if not plans:
        raise PlanNotFoundError
    if around is None:
        return plans[0].plan_id
    found = latest_of(plans, around)
    if found is None:
        told = [f"{p.name}  {p.place or '-'}" for p in plans[:_ELSEWHERE]]
        raise NoPlanHereError(around[0], told, len(plans) - len(told))
    return found.plan_id


def _of_here(
    exact: Sequence[PlacedPlan], of_action: Sequence[PlacedPlan], around: Sequence[str] | None
) -> PlanId | None:
    """The plan that is shown by this name comes before one of an action whose own name ends so."""
    if around is None:
        found = next(iter((*exact, *of_action)), None)
    else:
        mine = next((plan for plan in exact if plan.place in around), None)
        found = mine or latest_of(of_action, around)
    return found.plan_id if found else None


def _child(uow: "UnitOfWork", name: str, around: Sequence[str] | None) -> PlanId | None:
    """By its own name below that of its parent; the one that counts, or else the last."""
    above, _, below = name.rpartition("/")
    parent = find_plan(uow, above, around)
    found = [child for child in uow.subplans.of_parent(parent) if child.name == below]
    counting = [child for child in found if child.counts] or found
    return counting[-1].plan_id if counting else None


def _by_part(uow: "UnitOfWork", part: str) -> PlanId | None:
    found = sorted({*uow.plans.starting_with(part), *uow.plans.ending_with(part)})
    if len(found) > 1:
        raise PlanAmbiguousError(part, _plans_told_apart(uow, found))
    return found[0] if found else None


def _plans_told_apart(uow: "UnitOfWork", plans: Sequence[PlanId]) -> Sequence[str]:
    short = endings(plans)
    lines: list[str] = []
    for plan_id in plans[:_MOST_TOLD]:
        plan, place = uow.plans.get(plan_id), place_of(uow.resources.of_plan(plan_id))
        when = plan.created_at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
        lines.append(f"{short[plan_id]}  {when}  {plan.name}  {place or '-'}")
    more = len(plans) - len(lines)
    return [*lines, f"and {more} more"] if more else lines


def find_decision(uow: "UnitOfWork", wanted: str, plan_id: PlanId | None = None) -> Decision:
    """By id of any plan; by a part of it, by the number of its step or by a part of its name those
    of `plan_id` first. Raises DecisionNotFoundError or DecisionAmbiguousError."""
    name = wanted.strip()
    part = id_part(name)
    if part and len(part) == ULID_LETTERS:
        return uow.decisions.get(DecisionId(part))
    mine = uow.decisions.of_plan(plan_id) if plan_id is not None and name else ()
    for found in (_of_step(mine, name), _with_part(mine, part), _called_so(mine, name)):
        if len(found) > 1:
            raise DecisionAmbiguousError(name, _decisions_told_apart(mine, found))
        if found:
            return found[0]
    ids = {*uow.decisions.starting_with(part), *uow.decisions.ending_with(part)} if part else ()
    others = [uow.decisions.get(decision_id) for decision_id in sorted(ids)]
    if len(others) > 1:
        raise DecisionAmbiguousError(name, _decisions_told_apart(others, others))
    if not others:
        raise DecisionNotFoundError(name)
    return others[0]


def _of_step(mine: Sequence[Decision], name: str) -> Sequence[Decision]:
    """The last one that counts for it."""
    if not re.fullmatch(_STEP, name):
        return ()
    return [d for d in mine if _is_step(d) and d.step_index == int(name) - 1][-1:]


def _is_step(decision: Decision) -> bool:
    said = decision.type is DecisionType.USER_INTERVENTION
    return decision.step_index is not None and not said and not decision.superseded


def _with_part(mine: Sequence[Decision], part: str | None) -> Sequence[Decision]:
    if part is None:
        return ()
    return [d for d in mine if d.decision_id.startswith(part) or d.decision_id.endswith(part)]


def _called_so(mine: Sequence[Decision], name: str) -> Sequence[Decision]:
    """Steps before what else was decided, and what counts before what does not; in each a whole
    name before a part of one."""
    wanted = name.casefold()
    tiers = (
        [d for d in mine if _is_step(d)],
        [d for d in mine if not d.superseded],
        mine,
    )
    for tier in tiers:
        parts = [d for d in tier if wanted in d.chosen.casefold()]
        whole = [d for d in parts if d.chosen.casefold().partition(": ")[2] == wanted]
        if parts:
            return whole or parts
    return ()


def _decisions_told_apart(among: Sequence[Decision], found: Sequence[Decision]) -> Sequence[str]:
    short = endings(decision.decision_id for decision in among)
    lines: list[str] = []
    for decision in found:
        index, gone = decision.step_index, "  (superseded)" if decision.superseded else ""
        number = "" if index is None else step_number(index)
        lines.append(f"{number:>4}  {short[decision.decision_id]}  {decision.chosen}{gone}")
    return lines


class PlanFinder:
    """What every command asks that is about one plan, before anything else."""

    def __init__(self, unit_of_work: "UnitOfWorkFactory", whereabouts: "Whereabouts") -> None:
        self._unit_of_work = unit_of_work
        self._whereabouts = whereabouts

    def find(self, wanted: str, *, anywhere: bool = False) -> PlanId:
        """The plan that a person means; `latest` of the place one stands in, or of `anywhere`.

        Raises PlanNotFoundError, NoPlanHereError or PlanAmbiguousError.
        """
        with self._unit_of_work.reading() as uow:
            return find_plan(uow, wanted, None if anywhere else self._whereabouts.around())

    def project(self, plan_id: PlanId) -> str | None:
        """Where the plan belongs, for people to see what they are about to change."""
        with self._unit_of_work.reading() as uow:
            return place_of(uow.resources.of_plan(plan_id))

    def get(self, plan_id: PlanId) -> Plan:
        with self._unit_of_work.reading() as uow:
            return uow.plans.get(plan_id)
