"""A plan that went back into the middle of a step: the step is undone before it is done again."""

from collections.abc import Callable

import pytest
from tests.support.world import PlanHandle, World, shell, write


@pytest.fixture
def half_done(world: World) -> PlanHandle:
    """Back at the moment of a failure that has its cure by now; `>>` shows what was not undone."""
    cure = world.top / "cure"
    plan = world.use(
        shell("echo first > first.txt", "first"),
        shell(f"echo half >> second.txt; rm first.txt; test -e {cure}", "second"),
        write("third.txt", "third\n", "third"),
    )
    assert plan.execute().code == 1
    plan.rollback("start").ok()
    plan.rollback("error in shell second").ok()
    assert (plan.sandbox / "second.txt").exists()
    cure.touch()
    return plan


def _nothing(_: PlanHandle) -> None:
    pass


def _a_checkpoint_by_hand(plan: PlanHandle) -> None:
    plan("checkpoint", "create", "--label", "mine").ok()


def _there_and_back(plan: PlanHandle) -> None:
    plan("checkpoint", "create", "--label", "mine").ok()
    plan.rollback("start").ok()
    plan.rollback("mine").ok()


def _a_rollback_undone(plan: PlanHandle) -> None:
    plan.rollback("start").ok()
    plan.rollback(plan.groups[-1].group_id).ok()


def _an_edit_by_hand(plan: PlanHandle) -> None:
    (plan.sandbox / "second.txt").write_text("edited\n")


@pytest.mark.parametrize(
    "between",
    [_nothing, _a_checkpoint_by_hand, _there_and_back, _a_rollback_undone, _an_edit_by_hand],
)
def test_it_is_undone_whatever_came_between(
    half_done: PlanHandle, between: Callable[[PlanHandle], None]
) -> None:
    between(half_done)
    half_done("resume").ok()
    assert (half_done.sandbox / "second.txt").read_text() == "half\n"
    assert not (half_done.sandbox / "first.txt").exists()
    assert (half_done.sandbox / "third.txt").read_text() == "third\n"


def test_a_file_that_is_brought_back_there_stays_and_the_rest_is_undone(
    half_done: PlanHandle,
) -> None:
    half_done("rollback", "--yes", "--only", "README.md", "{}", "start").ok()
    assert not (half_done.sandbox / "second.txt").exists()
    half_done("resume").ok()
    assert (half_done.sandbox / "second.txt").read_text() == "half\n"
