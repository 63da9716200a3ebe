"""What a look at the sandboxes finds, and what becomes of it: paths, boundaries, changes."""

import pytest
from service_world import CODE, DOCS, TWO_PLACES, ServiceWorld, append

from cleveragents.application.services.checkpoints.held import HeldResources
from cleveragents.application.services.checkpoints.recorded_with import NO_EXTRAS
from cleveragents.domain.checkpoint import CheckpointMoment, CheckpointReason, Trigger
from cleveragents.domain.errors import LabelIsNumberError, UsageError

MOMENT = CheckpointMoment(
    reason=CheckpointReason.COMPLETE, source="", label="late", decision_id=None, step_index=2
)


@pytest.fixture
def world() -> ServiceWorld:
    made = ServiceWorld(*TWO_PLACES, resources=(CODE, DOCS))
    made.run()
    return made


def test_what_was_written_since_the_last_boundary_is_named_with_its_resource(
    world: ServiceWorld,
) -> None:
    held = HeldResources(world.resources)
    assert world.checkpoints.written(held) == []

    world.files("docs")["new.txt"] = "new"
    del world.files("code")["one.txt"]

    assert world.checkpoints.written(held) == ["code:one.txt", "docs:new.txt"]


def test_of_one_resource_the_path_alone_is_named() -> None:
    world = ServiceWorld(append("a"))
    world.run()
    world.files()["new.txt"] = "new"

    assert world.checkpoints.written(HeldResources(world.resources)) == ["new.txt"]


def test_what_was_written_late_is_part_of_the_plan_that_is_complete(world: ServiceWorld) -> None:
    world.files()["late.txt"] = "from something that ran on"

    plan = world.checkpoints.complete(world.plan, HeldResources(world.resources), MOMENT, NO_EXTRAS)

    last = world.groups[-1]
    code = last.state_of(world.resources[0].resource_id)
    assert (plan.head, last.label) == (last.head, "late")
    assert code is not None
    assert world.resources[0].boundary == code.snapshot == code.boundary


def test_progress_in_the_middle_of_a_step_is_no_look_at_the_sandboxes(world: ServiceWorld) -> None:
    held = HeldResources(world.resources)
    moment = CheckpointMoment(
        reason=CheckpointReason.BEFORE_STEP,
        source="",
        label="before",
        decision_id=None,
        step_index=2,
        mid_step=True,
    )

    world.checkpoints.auto_create_if_configured(Trigger.BEFORE_STEP, world.plan, held, moment)

    assert held.last_capture is None


def test_the_history_says_what_each_step_changed(world: ServiceWorld) -> None:
    rows = world.checkpoints.timeline(world.plan_id).rows

    assert [[change.path for change in row.changes] for row in rows] == [
        [],
        ["code:one.txt", "code:two.txt"],
        ["docs:one.txt", "docs:two.txt"],
        ["code:one.txt", "code:two.txt"],
    ]


def test_a_label_that_says_nothing_is_refused(world: ServiceWorld) -> None:
    with pytest.raises(UsageError) as caught:
        world.manual.create(world.plan_id, "  ")

    assert caught.value.message == "the label of a checkpoint must not be empty"
    assert caught.value.hint == (
        "give it a name to go back to it by, for example 'before the migration'"
    )


def test_a_label_that_would_be_taken_for_a_step_is_refused_by_name(world: ServiceWorld) -> None:
    with pytest.raises(LabelIsNumberError, match=r"^'-1' would be taken for a step"):
        world.manual.create(world.plan_id, "-1")
