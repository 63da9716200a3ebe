"""Which results are unchecked once a person has brought single files back."""

from msgspec.structs import replace

from cleveragents.application.ports.runtime import UnitOfWork
from cleveragents.application.services.checkpoints.recorded_with import CommitExtras
from cleveragents.application.services.execute.run_state import deeds_of, done_steps, successes
from cleveragents.domain.correction import Unchecked
from cleveragents.domain.footprint import NO_REACH, Footprint, StepWrites, Touched, Writers, doubt
from cleveragents.domain.plan import Plan
from cleveragents.domain.selection import Selection


def brought_back(restored: Selection, why: str) -> CommitExtras:
    """No step is done again for it, so those that may have used these files are unchecked."""
    return CommitExtras(also=lambda uow, plan: _let_stand(uow, plan, restored, why))


def _let_stand(uow: UnitOfWork, plan: Plan, restored: Selection, why: str) -> None:
    calls = successes(uow.tool_calls.of_plan(plan.plan_id))
    done = set(done_steps(uow, plan, calls).values())
    deeds = deeds_of(calls)
    uow.corrections.let_stand(
        plan.plan_id,
        [
            Unchecked(decision_id=decision_id, position=plan.here, why=why)
            for decision_id, deed in deeds.items()
            if decision_id in done and _may_have_used(deed, _touched(restored))
        ],
    )


def _touched(selection: Selection) -> Touched:
    return {
        name: Footprint(paths=frozenset(paths), whole=not paths)
        for name, paths in selection.paths.items()
    }


def _may_have_used(deed: StepWrites, touched: Touched) -> bool:
    brought = replace(deed, touched=touched, reach=NO_REACH)
    if doubt(deed.reach, brought) is not None:
        return True
    return bool(Writers([brought]).behind(deed.touched, deed.reach))
