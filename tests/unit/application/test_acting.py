"""An actor that decides its own steps: nothing it decided is lost, asked twice, or remembered when
the plan is taken back to before it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from service_world import DEFAULT_TIMEOUT, ServiceWorld, after, append

from cleveragents.application.services.plans.prompt_service import PromptService
from cleveragents.domain.action import Action, ActorSpec, Step, ToolSpec, Validation
from cleveragents.domain.actor_protocol import (
    HEAD,
    Finished,
    Memory,
    Message,
    Proposal,
    Situation,
    StepOutcome,
    Strategy,
)
from cleveragents.domain.decision import DecisionContext, DecisionType, ToolCallStatus
from cleveragents.domain.errors import BudgetExhaustedError, PlanStateError, ToolError
from cleveragents.domain.plan import State
from cleveragents.infrastructure.actors.scripted import GivenSteps, ValidatingActor

Think = Callable[[Sequence[str]], Step | None]
SPEC = ActorSpec(type="thinker")
LINES = ("a", "b", "c")
MOST_CALLS = 400


def one_after_the_other(heard: Sequence[str]) -> Step | None:
    """The next line for each `done` that was heard."""
    number = sum(item.startswith("done") for item in heard)
    return append(LINES[number]) if number < len(LINES) else None


class Thinker:
    """Decides from what it has heard, and keeps every conversation that it was asked with."""

    def __init__(self, think: Think = one_after_the_other, strategy: str = "") -> None:
        self.think = think
        self.strategy = strategy
        self.asked: list[tuple[str, ...]] = []

    def strategize(self, situation: Situation) -> Strategy:
        if not self.strategy or HEAD in situation.state:
            return Strategy(steps=())
        said = _said(situation.state, self.strategy)
        return Strategy(steps=(), chosen=self.strategy, memory=said)

    def decide(self, situation: Situation) -> Proposal | Finished:
        known = int(situation.state.get("told", 0))
        new = [item for item in situation.guidance if item.seq > known]
        state = {**situation.state, "told": new[-1].seq if new else known}
        memory = _said(state, *(f"told {item.text}" for item in new))
        head = situation.state.get(HEAD)
        before = [item.body for item in situation.recall(head)] if head else []
        heard = (*before, *(item.body for item in memory.added))
        self.asked.append(heard)
        step = self.think(heard)
        if step is None:
            return Finished(memory=_more(memory, "finished"), summary="all done")
        return Proposal(
            step=step,
            question="What now?",
            rationale="it came to mind",
            memory=_more(memory, f"want {step.name}"),
            notes={"tokens": 7},
        )

    def observe(self, action: Action, state: Mapping[str, Any], outcome: StepOutcome) -> Memory:
        word = "done" if outcome.error is None else "failed"
        return _said(state, f"{word} {outcome.step.name}")


def _said(state: Mapping[str, Any], *bodies: str) -> Memory:
    return _more(Memory(state=state), *bodies)


def _more(memory: Memory, *bodies: str) -> Memory:
    added = list(memory.added)
    head = memory.head
    for body in bodies:
        added.append(Message.after(head, body))
        head = added[-1].key
    return Memory(state={**memory.state, HEAD: head}, added=tuple(added))


def thinking(thinker: Thinker, **fields: Any) -> ServiceWorld:
    decider = ValidatingActor(GivenSteps(thinker))
    return ServiceWorld(decider=decider, **{"actor": SPEC, **fields})


def prompts(world: ServiceWorld) -> PromptService:
    return PromptService(world.runtime, world.checkpoints, world.rollbacks, world.unfinished)


def conversation(world: ServiceWorld) -> list[str]:
    with world.database.reading() as uow:
        chain = uow.messages.chain(world.plan_id, world.plan.actor_state[HEAD])
    return [item.body for item in chain]


WHOLE = ["want add a", "done add a", "want add b", "done add b", "want add c", "done add c"]


# --- deciding -----------------------------------------------------------------------------------


def test_it_is_asked_once_for_each_step_and_once_more_to_finish() -> None:
    actor = Thinker()
    world = thinking(actor)
    world.run()

    assert world.plan.state is State.COMPLETE
    assert world.files() == after(*LINES)
    assert [list(heard) for heard in actor.asked] == [WHOLE[: 2 * n] for n in range(4)]
    assert conversation(world) == [*WHOLE, "finished"]


def test_each_step_is_on_record_with_its_decision_before_it_runs() -> None:
    world = thinking(Thinker())
    world.run()

    for decision in world.decisions[1:]:
        key = decision.decision_id
        tables = next(tables for tables in world.database.history if key in tables.decisions)
        assert not [call for call in tables.tool_calls.values() if call.decision_id == key]
        stored = tables.decisions[key]
        assert stored.decided is not None
        assert stored.decided.step == append(LINES[decision.step_index or 0])
        assert (world.plan_id, stored.decided.state[HEAD]) in tables.messages
        assert stored.context.notes == {"tokens": 7}


def test_the_steps_of_the_plan_are_those_that_were_decided() -> None:
    world = thinking(Thinker())
    world.run()

    with world.database.reading() as uow:
        assert uow.plans.get(world.plan_id).action.steps == tuple(append(x) for x in LINES)
    names = [item.step for item in world.queries.status(world.plan_id).progress]
    assert names == ["add a", "add b", "add c"]


def test_a_kill_at_any_moment_loses_nothing_and_asks_nobody_twice() -> None:
    for number in range(1, MOST_CALLS):
        actor = Thinker()
        world = thinking(actor)
        killed = world.kill_at(number, world.run)
        known = {decision.step_index for decision in world.decisions if decision.decided}
        before = len(actor.asked)
        world.run()

        assert world.files() == after(*LINES)
        assert conversation(world) == [*WHOLE, "finished"]
        again = [sum(item.startswith("want") for item in h) for h in actor.asked[before:]]
        assert known.isdisjoint(again), f"asked again, killed at {number}"
        if not killed:
            return
    pytest.fail("the work does not end")


def test_it_goes_on_from_every_checkpoint_with_what_it_knew_then() -> None:
    world = thinking(Thinker())
    world.run()
    for group in world.groups:
        actor = Thinker()
        fresh = thinking(actor)
        fresh.run()
        target = next(g for g in fresh.groups if g.label == group.label)
        fresh.roll_back(target.group_id)
        known = conversation(fresh) if HEAD in fresh.plan.actor_state else []
        whole = [*WHOLE, "finished"]
        assert known == whole[: len(known)]
        actor.asked.clear()
        fresh.run()

        # One that comes back to its end is asked nothing.
        assert bool(actor.asked) == (known != whole)

        assert fresh.files() == after(*LINES)
        assert all(list(heard) == WHOLE[: len(heard)] for heard in actor.asked)
        assert conversation(fresh) == whole


def test_it_may_say_first_how_it_means_to_go_about_it() -> None:
    world = thinking(Thinker(strategy="line by line"))
    world.run()

    strategy = world.decisions[1]
    assert strategy.type is DecisionType.STRATEGY_CHOICE
    assert strategy.chosen == "line by line"
    assert world.group("strategy").decision_id == strategy.decision_id
    assert conversation(world) == ["line by line", *WHOLE, "finished"]
    world.roll_back("strategy")
    world.run()
    assert conversation(world) == ["line by line", *WHOLE, "finished"]


def test_steps_end_where_the_limit_is() -> None:
    world = thinking(Thinker(), actor=ActorSpec(type="thinker", max_steps=2))

    with pytest.raises(BudgetExhaustedError) as refused:
        world.run()

    assert "2 of 2 steps" in refused.value.message
    assert world.plan.state is State.ERRORED
    assert world.files() == after("a", "b")


# --- failing ------------------------------------------------------------------------------------


def test_a_step_that_fails_is_taken_back_and_answered_by_the_actor() -> None:
    world = thinking(Thinker())
    world.faults.fail("wrote a file", None, None, ToolError("no", "try"))
    world.run()

    assert world.files() == after(*LINES)
    types = [decision.type for decision in world.decisions[1:]]
    assert types[:3] == ["tool_invocation", "tool_invocation", "error_recovery"]
    assert [call.status for call in world.calls].count(ToolCallStatus.FAILED) == 1
    assert conversation(world)[2:6] == ["want add b", "failed add b", "want add b", "done add b"]


def test_an_unknown_tool_is_answered_too() -> None:
    def think(heard: Sequence[str]) -> Step | None:
        step = one_after_the_other(heard)
        return step if heard or step is None else Step(name="odd", tool="odd")

    world = thinking(Thinker(think))
    world.run()

    assert world.files() == after(*LINES)
    assert conversation(world)[:2] == ["want odd", "failed odd"]
    assert world.decisions[2].type is DecisionType.ERROR_RECOVERY


def test_too_many_failures_in_a_row_fail_the_plan_which_can_be_resumed() -> None:
    world = thinking(Thinker())
    world.faults.fail("run a tool", *[ToolError("no", "try")] * 3)

    world.run()

    assert world.plan.state is State.ERRORED
    assert world.plan.last_completed_step == 1
    assert world.files() == after()
    world.run()
    assert world.plan.state is State.COMPLETE
    assert world.files() == after(*LINES)


def test_guidance_after_a_failure_is_heard_before_the_step_is_tried_again() -> None:
    actor = Thinker()
    world = thinking(actor)
    world.faults.fail("run a tool", *[ToolError("no", "try")] * 3)
    world.run()
    actor.asked.clear()

    prompts(world).prompt(world.plan_id, "use the other one")
    world.run()

    assert world.files() == after(*LINES)
    assert actor.asked[0][-2:] == ("failed add a", "told use the other one")
    assert conversation(world).count("told use the other one") == 1


# --- hearing ------------------------------------------------------------------------------------


def test_guidance_reaches_the_actor_once() -> None:
    actor = Thinker()
    world = thinking(actor)
    prompts(world).prompt(world.plan_id, "be brief")
    world.run()

    assert conversation(world) == ["told be brief", *WHOLE, "finished"]


def test_an_actor_that_had_finished_goes_on_when_it_is_told_something() -> None:
    def think(heard: Sequence[str]) -> Step | None:
        if heard[-1:] == ("told one more",):
            return append("d")
        return None if "done add d" in heard else one_after_the_other(heard)

    world = thinking(Thinker(think))
    world.run()

    prompts(world).prompt(world.plan_id, "one more")
    world.run()

    assert world.files() == after(*LINES, "d")
    assert world.plan.state is State.COMPLETE
    ending = ["finished", "told one more", "want add d", "done add d", "finished"]
    assert conversation(world) == [*WHOLE, *ending]


def test_a_script_that_has_ended_hears_nothing() -> None:
    world = ServiceWorld()
    world.run()

    with pytest.raises(PlanStateError):
        prompts(world).prompt(world.plan_id, "one more")


# --- validations --------------------------------------------------------------------------------


def validated() -> dict[str, Any]:
    tool = ToolSpec(name="judge", validation=Validation.REQUIRED, timeout=DEFAULT_TIMEOUT)
    return {"tools": (tool,), "validations": (Step(name="judge", tool="judge"),)}


def test_a_validation_that_fails_is_the_actors_business_and_runs_again_after_it() -> None:
    def think(heard: Sequence[str]) -> Step | None:
        if heard[-1:] == ("failed judge",):
            world.tools.broken.clear()
            return append("d")
        return None if "done add d" in heard else one_after_the_other(heard)

    world = thinking(Thinker(think), **validated())
    world.tools.broken.add("judge")
    world.run()

    assert world.plan.state is State.COMPLETE
    types = [decision.type.value for decision in world.decisions[4:]]
    assert types == ["validation_response", "error_recovery", "validation_response"]
    with world.database.reading() as uow:
        names = [step.name for step in uow.plans.get(world.plan_id).action.steps]
    # The validation after which the work went on keeps its place among the steps.
    assert names == ["add a", "add b", "add c", "judge", "add d"]


def test_after_a_validation_a_person_is_heard_before_the_plan_ends() -> None:
    actor = Thinker()
    world = thinking(actor, **validated())
    world.run()
    asked = len(actor.asked)

    prompts(world).prompt(world.plan_id, "sure?")
    world.run()

    assert world.plan.state is State.COMPLETE
    assert [heard[-1] for heard in actor.asked[asked:]] == ["told sure?"]
    assert [call.tool for call in world.calls[-2:]] == ["judge", "judge"]


# --- what is forgotten --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("superseded", "grouped", "expected"),
    [(False, False, True), (False, True, True), (True, True, True), (True, False, False)],
)
def test_what_was_known_around_a_decision_is_remembered_while_it_counts_or_can_count_again(
    *, superseded: bool, grouped: bool, expected: bool
) -> None:
    world = thinking(Thinker())
    world.run()
    decision = world.decisions[-1]
    assert decision.decided
    before, then = Message.after(None, "before it"), Message.after(None, "from then on")
    world.tables.messages |= {(world.plan_id, item.key): item for item in (before, then)}
    world.tables.decisions[decision.decision_id] = replace(
        decision,
        superseded=superseded,
        context=DecisionContext(actor_state={HEAD: before.key}),
        decided=replace(decision.decided, state={HEAD: then.key}),
    )
    if not grouped:
        others = [g for g in world.groups if g.decision_id != decision.decision_id]
        world.tables.groups = {group.group_id: group for group in others}

    world.checkpoints.sweep(world.plan_id)

    bodies = {item.body for item in world.tables.messages.values()}
    assert bodies & {"before it", "from then on"} == (
        {"before it", "from then on"} if expected else set()
    )


def test_messages_that_no_checkpoint_needs_go_with_the_checkpoints() -> None:
    world = thinking(Thinker(), max_states=2)
    world.run()
    world.roll_back(world.groups[0].group_id)
    for _ in range(2):
        world.run()
        bodies = [item.body for item in world.tables.messages.values()]
        # The line that was left behind has the same beginning, and is stored once.
        assert sorted(bodies) == sorted([*WHOLE, "finished"])
