"""What is on record of an apply that can be taken back."""

from msgspec.structs import replace
from uow_values import FULL_APPLIED, OTHER_PLAN, PLAN, fill

from cleveragents.domain.applied import ApplySide
from cleveragents.infrastructure.database.unit_of_work import SqlUnitOfWorkFactory


def test_what_is_kept_of_an_apply_comes_back_whole_and_is_replaced(
    database: SqlUnitOfWorkFactory,
) -> None:
    fill(database)
    with database() as uow:
        uow.applied.put(replace(FULL_APPLIED, side=ApplySide.BEFORE, heading=None, freed=False))
        uow.applied.put(FULL_APPLIED)
        uow.commit()

    with database.reading() as uow:
        assert uow.applied.find(PLAN) == FULL_APPLIED
        assert uow.applied.find(OTHER_PLAN) is None
        assert list(uow.applied.kept()) == [FULL_APPLIED]
