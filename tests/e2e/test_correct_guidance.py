"""Telling a plan more: guidance for what comes, and child plans that carry it out."""

from tests.support.agents import Answer
from tests.support.corrections import SIX, correct, decisions, read, step_file
from tests.support.refusals import refused
from tests.support.world import PlanHandle, World, shell, write

# --- telling ------------------------------------------------------------------------------------


def test_a_failed_plan_is_told_and_goes_on(world: World) -> None:
    plan = world.use(SIX[0], shell(f"test -e '{world.top}/go'", "wait"), SIX[5])
    assert plan.execute().code == 1
    failed = plan.agents("plan", "prompt", plan.id, "it needs the file go")
    assert (failed.code, failed.error["code"]) == (1, "step-failed")
    (world.top / "go").write_text("")

    answer = plan.agents("plan", "prompt", plan.id, "--guidance", "now it is there").ok()

    assert answer.data["status"]["state"] == "complete"
    told = plan.agents("plan", "explain", answer.data["decision_id"]).ok().data
    assert (told["type"], told["chosen"]) == ("user_intervention", "now it is there")
    assert told["checkpoint"] is not None
    refused(plan.agents("plan", "prompt", plan.id, "more"), "plan-state")
    refused(plan.agents("plan", "prompt", plan.id), "usage", 2)


def test_a_plan_that_has_not_begun_is_told_for_later(world: World) -> None:
    plan = world.use(SIX[0])

    plan.agents("plan", "prompt", "--no-execute", plan.id, "mind the gap").ok()
    assert plan.status["state"] == "queued"

    plan.execute().ok()
    told = plan.agents("plan", "explain", decisions(plan)[0]).ok().data
    assert told["context"]["guidance"] == ["mind the gap"]


# --- adding -------------------------------------------------------------------------------------


def append(plan: PlanHandle, decision: str, *more: str) -> Answer:
    words = ("--mode", "append", "--guidance", "and a licence", *more, decision)
    return plan.agents("plan", "correct", *words)


def test_a_child_plan_is_added_and_everything_else_stays(world: World) -> None:
    plan = world.run(*SIX)
    before, tree = decisions(plan), plan.tree()
    file = step_file(world, [write("LICENCE", "free\n"), shell("cp LICENCE COPYING")])

    answer = append(plan, before[1], "--step-file", file).ok()

    assert answer.data["status"]["state"] == "complete"
    assert answer.data["status"]["execution"]["child_plans"] == 1
    assert {k: v for k, v in plan.tree().items() if k in tree} == tree
    assert read(plan, "COPYING") == "free\n"
    assert {k: v for k, v in decisions(plan).items() if k in before} == before
    made = plan.agents("plan", "explain", answer.data["intervention_id"]).ok().data
    assert (made["parent_id"], made["chosen"]) == (before[1], "and a licence")

    plan.rollback("decision 6: write five").ok()
    plan.execute().ok()
    assert plan.tree() == tree


def test_what_is_added_can_be_taken_back_by_correcting_it(world: World) -> None:
    plan = world.run(*SIX)
    tree = plan.tree()
    file = step_file(world, write("LICENCE", "free\n"))
    done = append(plan, decisions(plan)[1], "--step-file", file).ok().data

    correct(plan, done["intervention_id"], guidance="no licence after all").ok()

    assert plan.tree() == tree
    assert plan.status["state"] == "complete"


def test_what_cannot_be_added_is_refused_and_nothing_changes(world: World) -> None:
    plan = world.run(*SIX)
    records = world.records()
    decision = decisions(plan)[1]

    refused(append(plan, decision), "correction-refused")
    refused(append(plan, decision, "--dry-run"), "usage", 2)
    for steps in ([], [{"tool": "shel"}], {"tool": "file.write"}, "text"):
        bad = append(plan, decision, "--step-file", step_file(world, steps))
        refused(bad, "step-file-invalid")
    assert world.records() == records
    waiting = world.use(SIX[0])
    root = waiting("tree").ok().data["tree"]["id"]
    refused(append(waiting, root, "--step-file", step_file(world, SIX[0])), "correction-refused")


def test_advice_that_no_step_can_hear_is_told_as_such(world: World) -> None:
    plan = world.run(write("a.txt", "one"))
    decision = plan("tree").ok().data["tree"]["children"][0]["id"]
    words = ("plan", "correct", "--mode", "revert", "--guidance", "say two", "--yes", decision)
    answer = world.agents(*words).ok()
    assert answer.envelope["status"] == "warn"
    assert "--step-file" in " ".join(answer.envelope["messages"])
