"""What is shown before a question, and that a preview does not look like a result."""

import json
import os

import pytest
from tests.support.terminals import asking
from tests.support.world import PlanHandle, World, action, shell, write


@pytest.fixture
def plan(world: World) -> PlanHandle:
    return world.run(write("new.txt", "one\ntwo\n", "write"), shell("rm src/old.py", "tidy"))


def declined(world: World, *words: str) -> str:
    """What was drawn above the question, which is answered with no."""
    with asking(world, *words) as (process, terminal):
        os.write(terminal, b"n\n")
        out, _ = process.communicate(timeout=60)
        drawn = os.read(terminal, 100_000).decode()
    assert "declined" in out.decode()
    return drawn


@pytest.mark.parametrize(
    ("words", "target"),
    [
        ((), "one commit on branch main; what you have not committed stays as it is"),
        (("--no-commit",), "into the working tree, without a commit"),
        (("--branch", "side"), "one commit on the new branch side"),
    ],
)
def test_apply_shows_files_and_target_before_its_question(
    world: World, plan: PlanHandle, words: tuple[str, ...], target: str
) -> None:
    before = world.project.git("rev-parse", "HEAD")
    drawn = declined(world, "plan", "apply", *words, plan.id)
    for text in ("Preview: what an apply would do", target, "new.txt", "+2 -0", "src/old.py"):
        assert text in drawn, drawn
    assert drawn.index("new.txt") < drawn.index("Apply 2 changed files to")
    assert str(world.project.path) in drawn
    assert world.project.git("rev-parse", "HEAD") == before


def test_apply_tells_what_it_leaves_out(world: World) -> None:
    (world.project.path / ".gitignore").write_text("*.log\n")
    world.project.commit("ignore logs")
    plan = world.run(write("new.txt", "one\n"), shell("echo x > build.log", "log"))
    drawn = declined(world, "plan", "apply", plan.id)
    assert "apply does not take these ignored files of code: build.log" in drawn


def test_no_preview_has_a_tick_or_the_title_of_a_result(world: World, plan: PlanHandle) -> None:
    for words in (("rollback", plan.id, "start"), ("apply", plan.id)):
        drawn = declined(world, "plan", *words)
        assert "Preview: what a" in drawn
        assert "✓" not in drawn
        assert "Changes Reverted" not in drawn
        assert "Rollback Summary" not in drawn
        assert "╭" not in drawn, "a frame is for what was done"
    look = plan.agents.inside("plan", "rollback", "--dry-run", plan.id, "start").ok()
    assert "Preview: what a rollback would do" in look.out


def test_correct_shows_the_step_that_takes_the_place_before_it_asks(world: World) -> None:
    plan = world.run(write("new.txt", "one\n", "say it"))
    step = world.top / "step.yaml"
    step.write_text(json.dumps(write("new.txt", "other words\n", "say it better")))
    decision = _decision(plan)
    words = (
        "plan",
        "correct",
        "--mode",
        "revert",
        "--guidance",
        "better",
        "--step-file",
        str(step),
    )
    drawn = declined(world, *words, decision)
    look = plan.agents.inside(*words, decision, "--dry-run").ok().out
    for shown in (drawn, look):
        assert "Preview: what a correction would do" in shown
        assert "The step that would take its place" in shown
        assert "- name: say it\n" in shown.replace("\r", "")
        assert "+ name: say it better" in shown
        assert "other words" in shown
    data = plan.agents(*words, decision, "--dry-run").ok().data
    assert data["replacement"]["name"] == "say it better"


def test_a_rollback_of_many_files_is_summed_up_and_json_has_them_all(world: World) -> None:
    path = world.write_action(
        action(shell("mkdir gen; for n in $(seq 30); do echo $n > gen/$n; done", "generate"))
    )
    plan = PlanHandle(world.agents, world.agents("plan", "use", path).ok().data["plan_id"])
    plan("execute").ok()
    look = ("plan", "rollback", "--dry-run", plan.id, "start")
    shown = plan.agents.inside(*look).ok().out
    assert "gen/" in shown
    assert "30 removed" in shown
    assert "gen/17" not in shown
    assert len(plan.agents(*look).ok().data["changes_reverted"]) == 30


def _decision(plan: PlanHandle) -> str:
    tree = plan("tree").ok().data["tree"]
    return next(row["id"] for row in tree["children"] if row["type"] == "tool_invocation")
