"""What an action file may say that works in place, and how its steps are counted on a timeline."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from cleveragents.domain.action import (
    Action,
    ActorSpec,
    ResourceSpec,
    RollbackPolicy,
    Step,
    TimelineUse,
)
from cleveragents.domain.errors import TimelineTermsError
from cleveragents.domain.ids import PlanId, ResourceId
from cleveragents.domain.plan import Plan
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import FS_DIRECTORY, GIT_CHECKOUT, SQLITE
from cleveragents.domain.timeline_use import (
    on_a_timeline,
    own_state,
    problems,
    refuse_other_terms,
    steps_ahead,
)

CODE = ResourceSpec(name="code", type=GIT_CHECKOUT.type, location="/p", in_place=True)
STEPS = tuple(Step(name=name, tool="shell") for name in "abc")
ACTION = Action(name="demo", description="d", resources=(CODE,), steps=STEPS)
PLAN = Plan(
    plan_id=PlanId("01J000000000000000000000P1"),
    action=on_a_timeline(ACTION, "use"),
    number=1,
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
)
HELD = PlanResource(
    resource_id=ResourceId("01J000000000000000000000R1"),
    plan_id=PLAN.plan_id,
    name="code",
    type=GIT_CHECKOUT.type,
    location="/p",
    base="",
    sandbox_path="/p",
    include=("target",),
    exclude=("big/", "node_modules/"),
    in_place=True,
)


def test_an_action_that_works_in_sandboxes_has_no_problem() -> None:
    policy = RollbackPolicy(enabled=False)
    assert not list(problems(replace(ACTION, resources=(), rollback_policy=policy)))
    assert not list(problems(ACTION))


NO_WAY_BACK = "in place there is no other way back than checkpoints; leave it out"


@pytest.mark.parametrize(
    ("action", "place", "why"),
    [
        (
            replace(ACTION, resources=(CODE, replace(CODE, name="db", in_place=False))),
            ("resources", "db"),
            "all resources of a plan are worked on in place, or none: what goes back together"
            " would not be together; say `strategy: in-place` here too, or nowhere",
        ),
        (
            replace(ACTION, resources=(CODE, replace(CODE, name="two", type=FS_DIRECTORY.type))),
            ("resources", "two", "strategy"),
            "a timeline is of one place, and `code` is one already; leave out one of"
            " the two, or make an action file for each",
        ),
        (
            replace(ACTION, resources=(replace(CODE, checkpointable=False),)),
            ("resources", "code", "checkpointable"),
            NO_WAY_BACK,
        ),
        (
            replace(ACTION, rollback_policy=RollbackPolicy(enabled=False)),
            ("rollback_policy", "enabled"),
            NO_WAY_BACK,
        ),
    ],
)
def test_what_does_not_go_together_is_told_with_where_it_is(
    action: Action, place: tuple[str, ...], why: str
) -> None:
    assert list(problems(action)) == [(place, why)]


def test_on_a_timeline_the_steps_of_a_file_are_yet_to_come_and_an_actor_has_none() -> None:
    use = TimelineUse(use_id="use", script=STEPS)
    assert on_a_timeline(ACTION, "use") == replace(ACTION, name="in-place", steps=(), use=use)
    decides = replace(ACTION, actor=ActorSpec(type="llm"))
    found = on_a_timeline(decides, "use")
    assert found == replace(decides, name="in-place", steps=(), use=TimelineUse(use_id="use"))


def test_a_database_in_place_is_no_second_tree() -> None:
    database = replace(CODE, name="db", type=SQLITE.type)
    assert not list(problems(replace(ACTION, resources=(CODE, database))))


def test_steps_that_are_written_down_come_to_the_timeline_one_by_one() -> None:
    action = PLAN.action

    assert action.name == "in-place"
    assert action.steps == ()
    assert action.use is not None
    assert action.use.script == STEPS
    assert action.decides
    assert action.is_scripted


def test_an_actor_that_decides_has_no_script() -> None:
    llm = on_a_timeline(replace(ACTION, actor=ActorSpec(type="llm"), steps=()), "use")

    assert llm.use is not None
    assert llm.use.script == ()
    assert not llm.is_scripted


def test_a_timeline_that_is_taken_up_notes_where_the_use_begins() -> None:
    plan = replace(PLAN, last_completed_step=4).taken_up(on_a_timeline(ACTION, "other"))

    assert plan.action.use is not None
    assert plan.action.use.first_step == 5


def test_what_is_ahead_is_what_the_memory_of_this_use_has_not_counted() -> None:
    assert steps_ahead(PLAN) == STEPS
    mine = replace(PLAN, actor_state={"use": "use", "next_step": 1}, last_completed_step=7)
    assert steps_ahead(mine) == STEPS[1:]
    pending = replace(mine, action=replace(mine.action, steps=(*STEPS * 2, *STEPS)))
    assert steps_ahead(pending) == STEPS[2:]
    others = replace(mine, actor_state={"use": "another", "next_step": 2})
    assert steps_ahead(others) == STEPS
    assert own_state(others.action, others.actor_state) == {}


def test_what_was_said_when_a_timeline_began_may_be_said_again() -> None:
    refuse_other_terms(PLAN, [HELD], [CODE])
    refuse_other_terms(PLAN, [HELD], [replace(CODE, exclude=("big/",), include=("target",))])


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (
            replace(CODE, name="app"),
            "it is of `code` (git-checkout), `db` (sqlite), and not of `app` (git-checkout)",
        ),
        (
            replace(CODE, type=FS_DIRECTORY.type),
            "it is of `code` (git-checkout), `db` (sqlite), and not of `code` (fs-directory)",
        ),
        (
            replace(CODE, exclude=("big/", "more/", "most/")),
            "exclude more/, most/ was not said when it began",
        ),
        (
            replace(CODE, include=("node_modules", "target")),
            "include node_modules was not said when it began",
        ),
    ],
)
def test_anything_else_is_refused_with_the_reason(wanted: ResourceSpec, why: str) -> None:
    database = replace(HELD, name="db", type=SQLITE.type)
    with pytest.raises(TimelineTermsError) as found:
        refuse_other_terms(PLAN, [HELD, database], [CODE, wanted])
    assert found.value.message == TimelineTermsError("in-place-1", why).message
    assert why in found.value.message
