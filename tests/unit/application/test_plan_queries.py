"""What people ask about a plan, answered from one consistent view."""

from datetime import timedelta

import pytest
from fakes import Killed
from service_world import CODE, DOCS, TWO_PLACES, ServiceWorld

from cleveragents.domain.errors import (
    DecisionNotFoundError,
    PlanNotFoundError,
    SandboxMissingError,
)
from cleveragents.domain.ids import DecisionId, PlanId


@pytest.fixture
def world() -> ServiceWorld:
    return ServiceWorld(*TWO_PLACES, resources=(CODE, DOCS))


def steps(world: ServiceWorld) -> list[str]:
    return [item.status for item in world.queries.status(world.plan_id).progress]


def test_plans_are_listed_newest_first(world: ServiceWorld) -> None:
    second = world.plans.use("b.yaml", {}, include_uncommitted=False).plan

    listed = world.queries.list()
    assert [plan.plan_id for plan in listed.plans] == [second.plan_id, world.plan_id]
    assert (listed.latest, listed.here.plans) == (None, ())  # one stands at /, where none belongs
    assert world.queries.get(world.plan_id) == world.plan


def test_progress_follows_the_steps(world: ServiceWorld) -> None:
    assert steps(world) == ["queued", "queued", "queued"]
    world.tools.broken.add("b")
    world.run()
    assert steps(world) == ["complete", "errored", "queued"]
    world.tools.broken.clear()
    world.faults.fail("run a tool", Killed())
    with pytest.raises(Killed):
        world.run()
    world.restart()
    assert steps(world) == ["complete", "processing", "queued"]
    world.run()
    assert steps(world) == ["complete"] * 3
    world.roll_back("decision 2: add b")
    assert steps(world) == ["complete", "queued", "queued"]
    world.run()
    world.apply()
    assert steps(world) == ["complete"] * 3


def test_the_status_counts_only_what_still_counts(world: ServiceWorld) -> None:
    world.run()
    status = world.queries.status(world.plan_id)
    assert (status.tool_calls, status.files_modified, status.checkpoints) == (3, 4, 10)
    assert [resource.name for resource in status.resources] == ["code", "docs"]

    world.roll_back("decision 2: add b")

    status = world.queries.status(world.plan_id)
    assert (status.tool_calls, status.files_modified) == (1, 2)
    assert status.checkpoints == 11


def test_the_time_stands_still_when_the_plan_is_done(world: ServiceWorld) -> None:
    assert world.queries.status(world.plan_id).elapsed == timedelta(0)
    world.run()
    plan = world.plan
    assert plan.started_at and plan.finished_at

    for _ in range(2):
        elapsed = world.queries.status(world.plan_id).elapsed
        assert elapsed == plan.finished_at - plan.started_at > timedelta(0)


def test_a_plan_that_works_without_a_worker_is_abandoned(world: ServiceWorld) -> None:
    world.faults.fail("run a tool", Killed())
    with pytest.raises(Killed):
        world.run()
    world.restart()

    assert world.queries.status(world.plan_id).abandoned
    with world.locks.hold(world.plan_id, "execute"):
        status = world.queries.status(world.plan_id)
        assert status.owner == "execute"
        assert not status.abandoned
    world.run()
    assert not world.queries.status(world.plan_id).abandoned


def test_each_decision_is_shown_with_the_group_stored_with_it(world: ServiceWorld) -> None:
    world.run()

    history = world.queries.history(world.plan_id)

    assert list(history.decisions) == world.decisions
    assert [history.groups[d.decision_id].label for d in history.decisions] == [
        "start",
        "decision 1: add a",
        "decision 2: add b",
        "decision 3: add c",
    ]


def test_superseded_decisions_stay_in_the_history(world: ServiceWorld) -> None:
    world.run()
    world.roll_back("start")

    decisions = world.queries.history(world.plan_id).decisions

    assert [decision.superseded for decision in decisions] == [False, True, True, True]


def test_a_decision_is_explained_with_its_calls(world: ServiceWorld) -> None:
    world.tools.broken.add("b")
    world.run()
    world.tools.broken.clear()
    world.run()
    decision = world.decisions[2]

    explained = world.queries.explain(decision.decision_id)

    assert explained.decision == decision
    assert explained.group == world.group("decision 2: add b")
    assert [call.error for call in explained.calls] == ["the tool is broken", None]


def test_failures_are_the_calls_that_failed_undone_ones_too(world: ServiceWorld) -> None:
    world.tools.broken.add("b")
    world.run()
    world.roll_back("start")

    assert len(world.queries.record(world.plan_id).calls) == 2
    (failed,) = world.queries.failures(world.plan_id).calls
    assert (failed.step_index, failed.undone) == (1, True)


def test_unknown_things_are_refused(world: ServiceWorld) -> None:
    unknown = world.ids.new()

    for ask in (
        world.queries.get,
        world.queries.status,
        world.queries.history,
        world.queries.record,
        world.queries.failures,
        world.diffs.diff,
    ):
        with pytest.raises(PlanNotFoundError):
            ask(PlanId(unknown))
    with pytest.raises(DecisionNotFoundError):
        world.queries.explain(DecisionId(unknown))


# --- diff ---------------------------------------------------------------------------------------


def test_the_diff_is_what_apply_would_change(world: ServiceWorld) -> None:
    assert {name: diff.files for name, diff in world.diffs.diff(world.plan_id).items()} == {
        "code": (),
        "docs": (),
    }
    world.run()

    diffs = world.diffs.diff(world.plan_id)

    assert [file.path for file in diffs["code"].files] == ["one.txt", "two.txt"]
    assert [file.path for file in diffs["docs"].files] == ["one.txt", "two.txt"]


def test_after_apply_the_diff_is_what_was_applied(world: ServiceWorld) -> None:
    world.run()
    world.apply()

    diffs = world.diffs.diff(world.plan_id)

    assert {name: diff.patch for name, diff in diffs.items()} == {
        "code": "commit of code",
        "docs": "commit of docs",
    }


def test_a_diff_of_a_lost_sandbox_is_refused(world: ServiceWorld) -> None:
    world.run()
    world.disk.sandboxes.clear()

    with pytest.raises(SandboxMissingError):
        world.diffs.diff(world.plan_id)
