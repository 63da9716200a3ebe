"""A plan keeps so many moments to go back to, not groups; and what they take is counted."""

import pytest
from tests.support.coding_agent import use_command
from tests.support.refusals import refused
from tests.support.triggers import VARIABLE, run
from tests.support.world import PlanHandle, World, shell, write

READ = {"name": "read", "tool": "file.read", "with": {"resource": "code", "path": "README.md"}}
NOISE = "head -c 400000 /dev/urandom > noise"


def before_decisions(plan: PlanHandle) -> list[int]:
    """The steps to before which one can go back."""
    return [g.step_index for g in plan.groups if g.label.startswith("decision ")]


def sizes(plan: PlanHandle) -> list[int]:
    return [sum(row["size_bytes"] for row in group.rows) for group in plan.groups]


@pytest.mark.parametrize("triggers", ["default", ""])
def test_before_each_of_fifty_decisions_can_be_gone_back_to(world: World, triggers: str) -> None:
    if triggers != "default":
        world.agents = world.agents.having(**{VARIABLE: triggers})
    plan = world.run(*(write("a", str(index), f"s{index}") for index in range(50)))

    assert before_decisions(plan) == list(range(50))
    for index in (1, 25, 49):
        plan.rollback(f"decision {index + 1}: s{index}").ok()
        assert (plan.sandbox / "a").read_text() == str(index - 1)


def test_of_more_the_oldest_go_with_all_groups_of_their_state(world: World) -> None:
    agents = world.agents.having(CLEVERAGENTS_CHECKPOINT_MAX_PER_PLAN="4")
    plan = run(world, agents, *(write("a", str(index), f"s{index}") for index in range(9)))

    assert before_decisions(plan) == [0, 6, 7, 8]
    assert [group.label for group in plan.groups] == [
        *("start", "decision 1: s0", "before file.write a"),
        *("after file.write a", "decision 7: s6", "before file.write a"),
        *("after file.write a", "decision 8: s7", "before file.write a"),
        *("after file.write a", "decision 9: s8", "before file.write a"),
        "after file.write a",
    ]
    assert "more than 4 states" in refused(plan.rollback("decision 6: s5"), "checkpoint-not-found")


def test_steps_that_read_are_moments_too(world: World) -> None:
    agents = world.agents.having(CLEVERAGENTS_CHECKPOINT_MAX_PER_PLAN="3")
    plan = run(world, agents, write("a", "1"), *[READ] * 6)
    assert before_decisions(plan) == [0, 5, 6]


def test_the_list_says_how_many_states_there_are(world: World) -> None:
    plan = world.run(write("a", "1"), write("b", "2"))
    told = world.agents.process("plan", "checkpoint", "list", plan.id)
    assert "all 7 groups: --all" in told.out
    assert plan("checkpoint", "list").ok().data["states"] == 3


def test_one_that_fails_in_the_same_way_for_ever_does_not_pile_up_groups(world: World) -> None:
    agents = world.agents.having(CLEVERAGENTS_CHECKPOINT_MAX_PER_PLAN="5")
    plan = run(world, agents, write("a", "1"), shell("exit 3", "fail"))
    for _ in range(12):
        assert plan("resume").code == 1
    reasons = plan.reasons
    assert 1 <= reasons.count("on_error") <= 5
    assert before_decisions(plan) == [0, 1]
    plan.rollback(plan.groups[-1].group_id).ok()


# --- what they take -------------------------------------------------------------------------------


@pytest.mark.parametrize("triggers", ["default", "", "on_error", "before_step"])
def test_what_groups_take_is_told_whatever_triggers_there_are(world: World, triggers: str) -> None:
    if triggers != "default":
        world.agents = world.agents.having(**{VARIABLE: triggers})
    plan = world.run(*(shell(NOISE, f"s{index}") for index in range(3)))

    found = [size for size in sizes(plan) if size]
    assert len(found) == 3
    assert all(400_000 <= size < 420_000 for size in found)


def test_a_limit_of_bytes_is_obeyed_with_triggers_off(world: World) -> None:
    agents = world.agents.having(**{VARIABLE: "", "CLEVERAGENTS_CHECKPOINT_MAX_TOTAL_SIZE": "1MB"})
    plan = run(world, agents, *(shell(NOISE, f"s{index}") for index in range(6)))

    assert sum(sizes(plan)) <= 1_000_000
    assert before_decisions(plan) == [0, 5]
    file = world.agents.data_dir / "snapshots" / f"{plan.id}.db"
    assert file.stat().st_size < 1_600_000
    assert "more than 1000000 bytes" in plan.rollback("decision 4: s3").error["message"]


def test_what_a_failed_step_left_is_counted_where_it_is_kept(world: World) -> None:
    world.agents = world.agents.having(**{VARIABLE: ""})
    plan = world.use(shell(f"{NOISE}; exit 3", "fail"))
    assert plan.execute().code == 1
    assert plan("resume").code == 1
    kept = [group for group in plan.groups if group.reason == "before_rollback"]
    assert len(kept) == 1
    assert sum(row["size_bytes"] for row in kept[0].rows) >= 400_000


def test_what_an_agent_did_without_a_word_is_counted(world: World) -> None:
    world.agents = world.agents.having(**{VARIABLE: ""})
    argv = ["sh", "-c", f"{NOISE}; sleep 1.5; {NOISE}"]
    plan = use_command(world, argv, actor={"quiet_seconds": 0.3})
    plan.execute().ok()
    assert [size >= 400_000 for size in sizes(plan)] == [False, False, True, True]
