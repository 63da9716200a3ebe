"""Which results are unchecked once a person has brought single files back."""

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.application.ports.runtime import UnitOfWork
from cleveragents.application.services.execute.run_state import deeds_of, done_steps, successes
from cleveragents.domain.correction import Unchecked
from cleveragents.domain.footprint import NO_REACH, Footprint, StepWrites, Touched, Writers, doubt
from cleveragents.domain.plan import Plan
from cleveragents.domain.selection import Selection


class BroughtBack(Struct, frozen=True, kw_only=True):
    """Files that came back, and from where, in words."""

    files: Selection
    why: str


def let_stand(uow: UnitOfWork, plan: Plan, restored: BroughtBack) -> None:
    """No step is done again for it, so those that may have used these files are unchecked."""
    touched = _touched(restored.files)
    calls = successes(uow.tool_calls.of_plan(plan.plan_id))
    done = set(done_steps(uow, plan, calls).values())
    deeds = deeds_of(calls)
    uow.corrections.let_stand(
        plan.plan_id,
        [
            Unchecked(decision_id=decision_id, position=plan.here, why=restored.why)
            for decision_id, deed in deeds.items()
            if decision_id in done and _may_have_used(deed, touched)
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
