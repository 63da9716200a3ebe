"""What scripts and people ask for by options: lists, reasons, reasoning, and how a plan stands."""

from tests.support.corrections import correct, decisions, step_file
from tests.support.refusals import refused
from tests.support.world import World, shell, write


def listed(world: World, *words: str) -> list[str]:
    return [p["plan_id"] for p in world.agents("plan", "list", *words).ok().data["plans"]]


def test_a_list_has_what_was_asked_for_and_nothing_else(world: World) -> None:
    done = world.run(write("a", "b"))
    failed = world.use(shell("exit 3"), name="other")
    failed("execute")
    new = world.use(write("a", "c"))

    assert listed(world) == [new.id, failed.id, done.id]
    assert listed(world, "--state", "errored") == [failed.id]
    assert listed(world, "--state", "errored", "--state", "complete") == [failed.id, done.id]
    assert listed(world, "--state", "failed") == [failed.id]
    assert listed(world, "--state", "finished", "--state", "waiting") == [new.id, done.id]
    assert listed(world, "--phase", "strategize") == [new.id]
    assert listed(world, "--action", "other") == [failed.id]
    assert listed(world, "--action", "demo", "--phase", "execute") == [done.id]
    assert listed(world, "--since", "1h") == [new.id, failed.id, done.id]
    assert listed(world, "--since", "2999-01-01") == []
    assert listed(world, "--here", "--state", "errored") == [failed.id]
    away = world.agents.at(world.top)
    assert away("plan", "list", "--here").ok().data["plans"] == []


def test_an_empty_answer_says_that_it_is_not_all(world: World) -> None:
    world.run(write("a", "b"))

    told = world.agents.inside("plan", "list", "--state", "errored").ok().out

    assert "agents plan list" in told and "no plans yet" not in told


def test_an_age_that_is_none_is_refused(world: World) -> None:
    assert "14d" in refused(world.agents("plan", "list", "--since", "soon"), "usage", 2)


def test_why_a_plan_was_cancelled_is_kept_and_told(world: World) -> None:
    plan = world.run(write("a", "b"))

    answer = world.agents("plan", "cancel", "--reason", "  the wrong branch ", plan.id).ok()

    assert answer.data["cancel_reason"] == "the wrong branch"
    assert plan.status["cancel_reason"] == "the wrong branch"
    assert plan("errors").ok().data["cancel_reason"] == "the wrong branch"
    for word in ("status", "errors"):
        assert "the wrong branch" in world.agents.inside("plan", word, plan.id).ok().out


def test_without_a_reason_there_is_none(world: World) -> None:
    plan = world.run(write("a", "b"))
    world.agents("plan", "cancel", "--reason", " ", plan.id).ok()
    assert plan.status["cancel_reason"] is None


def test_the_envelope_of_a_failed_plan_s_status_says_error_and_the_question_is_answered(
    world: World,
) -> None:
    plan = world.use(shell("exit 3"))
    plan("execute")

    answer = plan("status")

    assert (answer.code, answer.envelope["exit_code"]) == (0, 0)
    assert (answer.envelope["status"], answer.data["state"]) == ("error", "errored")
    assert world.run(write("a", "b"))("status").ok().envelope["status"] == "ok"


def test_guidance_has_a_short_name(world: World) -> None:
    plan = world.run(write("a.txt", "a"), write("b.txt", "b"))
    wanted = decisions(plan)[0]
    world.agents("plan", "correct", "--mode", "revert", "-g", "say why", "--dry-run", wanted).ok()


def test_context_and_reasoning_are_shown_when_asked_for(world: World) -> None:
    plan = world.run(write("a.txt", "a"))
    root = plan("tree").ok().data["tree"]["id"]
    wanted = plan("tree").ok().data["tree"]["children"][0]["id"]

    plain = world.agents.inside("plan", "explain", wanted).ok().out
    asked = (
        world.agents.inside("plan", "explain", "--show-context", "--show-reasoning", wanted)
        .ok()
        .out
    )

    data = world.agents("plan", "explain", wanted).ok().data
    assert data["context"]
    assert all(key in asked for key in data["context"])
    assert "Reasoning" in asked and data["rationale"] in asked
    assert "Reasoning" not in plain and "Context" not in plain
    world.agents.inside("plan", "explain", "--show-context", root).ok()


def test_a_correction_names_its_plan(world: World) -> None:
    plan = world.run(write("a.txt", "a"), write("b.txt", "b"))
    step = step_file(world, write("a.txt", "c"))
    done = correct(plan, decisions(plan)[0], "--step-file", step).ok().data
    world.run(write("later", "x"))

    answer = world.agents("plan", "diff", "--correction", done["correction_id"]).ok()

    assert answer.data["diff_summary"]["plan"] == plan.id
    assert [file["path"] for file in answer.data["files"]] == ["a.txt"]
    newest = world.agents("plan", "diff").ok().data  # without either: the latest of here
    assert [file["path"] for file in newest["files"]] == ["later"]
