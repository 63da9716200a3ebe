"""The way back: everything together, provable, and undoable."""

from rollback_world import world
from service_world import CODE, ServiceWorld, after, append, look, plan_of
from service_world import resource as a_resource

from cleveragents.domain.checkpoint import CheckpointReason, RevertedFile, Trigger
from cleveragents.domain.effects import EffectReport
from cleveragents.domain.events import Recovered
from cleveragents.domain.plan import Phase, State

__all__ = ["world"]


# --- what it does -------------------------------------------------------------------------------


def test_every_sandbox_goes_back_to_what_it_held_at_that_moment(world: ServiceWorld) -> None:
    world.roll_back("decision 3: add c")
    assert (world.files("code"), world.files("docs")) == (after("a"), after("b"))

    world.roll_back("decision 2: add b")
    assert (world.files("code"), world.files("docs")) == (after("a"), after())

    world.roll_back("start")
    assert (world.files("code"), world.files("docs")) == (after(), after())


def test_the_plan_waits_where_the_group_was_taken(world: ServiceWorld) -> None:
    target = world.group("decision 2: add b")

    world.roll_back(target.group_id)

    plan = world.plan
    assert (plan.phase, plan.state) == (Phase.EXECUTE, State.QUEUED)
    assert plan.last_completed_step == 0
    assert plan.actor_state == {"seen": ["add a"]}
    assert plan.head == target.head
    assert plan.rollback_target is None


def test_what_came_later_no_longer_counts_but_no_row_is_lost(world: ServiceWorld) -> None:
    decisions, calls = set(world.tables.decisions), set(world.tables.tool_calls)
    groups = set(world.tables.groups)

    world.roll_back("decision 2: add b")

    assert [decision.step_index for decision in world.decisions] == [None, 0, 1]
    assert [call.step_index for call in world.calls] == [0]
    assert set(world.tables.decisions) == decisions
    assert set(world.tables.tool_calls) == calls
    assert groups < set(world.tables.groups)
    later = [group.label for group in world.groups if group.superseded]
    assert later[0] == "before append add b"
    assert later[-1] == "before rollback to decision 2: add b"


def test_the_result_says_what_was_undone(world: ServiceWorld) -> None:
    target = world.group("decision 2: add b")

    result = world.roll_back("decision 2: add b")

    assert result.plan_id == world.plan_id
    assert result.group == target
    assert result.group.group_id == target.head
    assert result.reverted == (
        RevertedFile(file="code:one.txt", action="restored"),
        RevertedFile(file="code:two.txt", action="restored"),
        RevertedFile(file="docs:one.txt", action="removed"),
        RevertedFile(file="docs:two.txt", action="removed"),
    )
    assert (result.decisions_discarded, result.tool_calls_undone) == (1, 2)
    assert (result.phase, result.state) == ("execute", "queued")
    assert result.checkpoints_remaining == len(world.groups)
    assert result.undo_group.reason is CheckpointReason.BEFORE_ROLLBACK


def test_with_one_resource_its_files_are_named_without_it() -> None:
    world = ServiceWorld(append("a"))
    world.run()

    result = world.roll_back("start")

    assert [item.file for item in result.reverted] == ["one.txt", "two.txt"]


def test_a_resources_checkpoint_that_was_named_by_its_id_is_answered_with_its_group(
    world: ServiceWorld,
) -> None:
    start = world.group("start")
    checkpoint = start.checkpoints[0].checkpoint_id
    assert checkpoint != start.group_id

    assert world.roll_back(checkpoint.lower()).group.group_id == start.group_id


def test_what_a_second_rollback_discards_is_not_counted_again(world: ServiceWorld) -> None:
    world.roll_back("decision 2: add b")

    result = world.roll_back("decision 1: add a")

    assert (result.decisions_discarded, result.tool_calls_undone) == (1, 1)


def test_effects_that_stay_outside_are_listed() -> None:
    world = ServiceWorld(append("a", tool="publish"), append("b"))
    world.run()

    assert world.roll_back("start").effects.lasting == ("step 1 (publish): the page is public",)
    assert world.roll_back("start").effects == EffectReport()


def test_effects_of_a_call_that_failed_are_listed_too() -> None:
    world = ServiceWorld(append("a", tool="publish"))
    world.tools.broken.add("a")
    world.run()

    report = world.roll_back("start").effects
    assert report.uncertain == ("step 1 (publish): the page is public: the tool is broken",)
    assert report.lasting == ()


def test_what_is_not_captured_is_named() -> None:
    world = ServiceWorld(append("a"), resources=(a_resource("code", exclude=("target/",)),))
    world.run()

    assert world.roll_back("start").excluded == ("target/",)


# --- undoing it ---------------------------------------------------------------------------------


def test_a_rollback_can_be_rolled_back(world: ServiceWorld) -> None:
    files = world.all_files()
    decisions = [decision.decision_id for decision in world.decisions]

    result = world.roll_back("start")
    world.roll_back(result.undo_group.group_id)

    assert world.all_files() == files
    assert [decision.decision_id for decision in world.decisions] == decisions
    assert [call.step_index for call in world.calls] == [0, 1, 2]
    assert world.plan.last_completed_step == 2


def test_after_going_back_another_history_can_be_written_and_left_again(
    world: ServiceWorld,
) -> None:
    first_end = world.plan.head
    world.roll_back("decision 2: add b")
    world.run()
    second_end = world.plan.head
    assert first_end and second_end and first_end != second_end

    world.roll_back(first_end)
    assert world.plan.last_completed_step == 2
    assert len(world.calls) == 3
    world.roll_back(second_end)
    assert len(world.calls) == 3
    assert (world.files("code"), world.files("docs")) == (after("a", "c"), after("b"))


def test_after_going_back_the_plan_can_be_executed_again(world: ServiceWorld) -> None:
    files = world.all_files()

    world.roll_back("decision 2: add b")
    plan = world.run()

    assert plan.state is State.COMPLETE
    assert world.all_files() == files
    assert [call.step_index for call in world.calls] == [0, 1, 2]


# --- the order of things ------------------------------------------------------------------------


def test_the_safety_group_and_the_intent_are_stored_in_one_commit(world: ServiceWorld) -> None:
    target = world.group("start")
    before = len(world.database.history)

    world.roll_back("start")

    first, *_ = world.database.history[before:]
    plan = plan_of(world, first)
    assert plan.rollback_target == target.group_id
    assert plan.safety_group is not None
    safety = first.groups[plan.safety_group]
    assert safety.reason is CheckpointReason.BEFORE_ROLLBACK
    assert plan.head == safety.head


def test_files_are_captured_before_the_intent_is_stored_and_restored_after_it(
    world: ServiceWorld,
) -> None:
    world.faults.revive()

    world.roll_back("start")

    calls = [
        call
        for call in world.faults.calls
        if call in ("verify", "capture", "commit", "restore", "keep_only")
    ]
    assert calls == [
        *["verify"] * 2,
        *["capture"] * 2,
        "commit",
        *["restore"] * 2,
        "commit",
        *["keep_only"] * 2,
    ]


def test_position_decisions_calls_and_intent_change_in_one_commit(world: ServiceWorld) -> None:
    before = len(world.database.history)

    world.roll_back("start")

    intended, rewound = world.database.history[before:]
    assert plan_of(world, intended).last_completed_step == 2
    assert not any(decision.superseded for decision in intended.decisions.values())
    assert plan_of(world, rewound).last_completed_step == -1
    assert plan_of(world, rewound).rollback_target is None
    assert sum(decision.superseded for decision in rewound.decisions.values()) == 3
    assert all(call.undone for call in rewound.tool_calls.values())


def test_the_boundary_follows_the_files(world: ServiceWorld) -> None:
    world.roll_back("decision 2: add b")
    world.restart()

    world.run()

    assert world.events.of(Recovered) == []
    assert [resource.boundary for resource in world.resources] == [
        world.snapshots.latest[resource.resource_id] for resource in world.resources
    ]


# --- what else stays right ----------------------------------------------------------------------


def test_a_resource_that_cannot_be_captured_is_left_as_it_is() -> None:
    world = ServiceWorld(
        append("a"), look(), resources=(CODE, a_resource("docs", checkpointable=False))
    )
    world.run()
    world.files("docs")["late.txt"] = "x"

    world.roll_back("start")

    assert world.files("code") == after()
    assert "late.txt" in world.files("docs")


def test_going_back_to_the_middle_of_a_step_resumes_before_that_step() -> None:
    world = ServiceWorld(append("a"), append("b"))
    world.tools.broken.add("b")
    world.run()
    half = dict(world.files())
    world.tools.broken.clear()
    world.run()
    assert world.files() == after("a", "b")

    world.roll_back("error in append add b")
    assert world.files() == half
    world.run()

    assert world.files() == after("a", "b")


def test_the_limit_of_groups_never_costs_the_target_or_the_safety_group() -> None:
    world = ServiceWorld(append("a"), append("b"), triggers=frozenset(Trigger), max_states=4)
    world.run()
    target = world.groups[1]

    result = world.roll_back(target.group_id)

    kept = set(world.tables.groups)
    assert {target.group_id, result.undo_group.group_id} <= kept
    world.roll_back(result.undo_group.group_id)
    assert world.files() == after("a", "b")
