"""`agents undo` and `agents redo`: one change back, and forward again, through the command."""

from pathlib import Path

import pytest
from tests.support.agents import Answer
from tests.support.histories import KnownPlan
from tests.support.terminals import on_a_terminal
from tests.support.trees import Tree
from tests.support.world import World, shell, wait_for, write

STEPS = (
    write("one.txt", "one\n", "write one"),
    shell("true", "look at it"),
    shell("mkdir deep && mv one.txt deep/one.txt && echo two > two.txt", "move it"),
)


class Trail:
    """A plan of three steps, the second of which changes nothing, with its trees."""

    def __init__(self, world: World) -> None:
        self.agents = world.agents
        self.plan = world.use(*STEPS)
        self.plan.execute().ok()
        self.last = self.plan.tree()
        self.plan.rollback("2").ok()
        self.first = self.plan.tree()
        self.plan.rollback("0").ok()
        self.start = self.plan.tree()
        self.plan.rollback(self.plan.groups[-2].group_id).ok()
        self.plan.execute().ok()

    def goes(self, *words: str) -> Tree:
        self.agents(*words).ok()
        return self.plan.tree()


@pytest.fixture
def trail(world: World) -> Trail:
    return Trail(world)


def refused(answer: Answer, code: str) -> str:
    assert answer.code in (1, 2), answer
    error = answer.data["error"]
    assert error["code"] == code
    return f"{error['message']} | {error['hint']}"


def test_undo_goes_to_the_state_before_the_last_step_that_changed_something(trail: Trail) -> None:
    assert trail.plan.tree() == trail.last
    assert trail.goes("undo") == trail.first
    assert trail.plan.status["last_completed_step"] == 1
    assert trail.goes("undo") == trail.start
    assert trail.goes("redo") == trail.first
    assert trail.goes("redo") == trail.last


def test_several_at_once_are_one_rollback(trail: Trail) -> None:
    before = len(trail.plan.groups)
    assert trail.goes("undo", "-n", "2") == trail.start
    assert len(trail.plan.groups) == before + 1
    assert trail.goes("redo", "-n", "2") == trail.last


def test_the_answer_says_what_was_done_and_how_to_take_it_back(trail: Trail) -> None:
    told = trail.agents("undo").ok()

    assert told.envelope["command"] == "undo"
    assert told.data["steps"] == [{"number": 3, "name": "move it"}]
    assert {item["file"] for item in told.data["changes_reverted"]} >= {"two.txt", "one.txt"}
    assert told.data["rollback_summary"]["plan"] == trail.plan.id
    assert (told.data["undo_left"], told.data["redo_left"]) == (1, 1)
    text = trail.agents.process("redo").out
    assert "step 3: move it" in text
    assert "take it back: agents undo\n" in text


def test_nothing_to_undo_and_nothing_to_redo_say_what_to_type(trail: Trail) -> None:
    assert "agents log --all" in refused(trail.agents("redo"), "nothing-to-redo")
    assert "agents undo --plan" in refused(trail.agents("undo", "-n", "5"), "nothing-to-undo")
    trail.agents("undo", "-n", "2").ok()
    assert "agents redo" in refused(trail.agents("undo"), "nothing-to-undo")
    assert trail.plan.tree() == trail.start


def test_a_new_step_ends_what_can_be_redone_and_loses_nothing(trail: Trail) -> None:
    trail.agents("undo", "-n", "2").ok()
    trail.plan.execute().ok()

    refused(trail.agents("redo"), "nothing-to-redo")
    left = [g for g in trail.plan.groups if g.reason == "before_rollback"][-1]
    trail.agents("rewind", "--yes", left.group_id).ok()
    assert trail.plan.tree() == trail.last


def test_a_dry_run_changes_nothing(trail: Trail) -> None:
    groups = len(trail.plan.groups)
    told = trail.agents("undo", "--dry-run").ok()

    assert told.data["dry_run"] is True
    assert trail.plan.tree() == trail.last
    assert len(trail.plan.groups) == groups


def test_a_name_is_refused_with_what_may_have_been_meant(trail: Trail) -> None:
    told = refused(trail.agents("undo", "3"), "usage")
    assert "agents undo -n 3" in told
    assert "agents rewind 3" in told


def test_what_somebody_did_in_the_sandbox_is_undone_first(trail: Trail) -> None:
    (trail.plan.sandbox / "by-hand.txt").write_text("mine\n")
    edited = trail.plan.tree()

    assert trail.goes("undo") == trail.last
    assert trail.goes("redo") == edited


def test_it_works_from_a_folder_below(world: World, trail: Trail) -> None:
    below = world.project.path / "deep" / "er"
    below.mkdir(parents=True)
    trail.agents.at(below)("undo").ok()
    assert trail.plan.tree() == trail.first


def test_an_applied_plan_that_keeps_nothing_is_refused(world: World, trail: Trail) -> None:
    world.keep_nothing()
    trail.plan("apply", "--yes").ok()
    assert "git revert" in refused(trail.agents("undo"), "apply-not-kept")
    assert "git revert" in refused(trail.agents("redo"), "apply-not-kept")


def test_there_may_be_no_plan_here(world: World, tmp_path: Path) -> None:
    refused(world.agents("undo"), "plan-not-found")
    world.run(*STEPS)
    for word in ("undo", "redo", "log", "status", "diff", "rewind", "apply", "discard"):
        refused(world.agents.at(tmp_path)(word), "no-plan-here")


def test_a_plan_that_was_never_run_has_nothing_to_undo(world: World) -> None:
    world.use(*STEPS)
    assert "agents plan execute" in refused(world.agents("undo"), "nothing-to-undo")
    refused(world.agents("redo"), "nothing-to-redo")


def test_a_half_done_step_is_undone_first(tmp_path: Path, template: World) -> None:
    known = KnownPlan(tmp_path / "k", template)
    known.shut(shut=True)
    assert known.plan.execute().code == 1
    assert known.facts() == known.half_done

    agents = known.plan.agents
    agents("undo", "--plan", known.plan.id).ok()
    assert known.facts() == known.states[2]
    agents("redo", "--plan", known.plan.id).ok()
    assert known.facts() == known.half_done


def test_databases_are_told_by_table(tmp_path: Path, template: World) -> None:
    known = KnownPlan(tmp_path / "k", template)
    known.plan.execute().ok()
    agents = known.plan.agents
    seen = [known.facts()]
    tables: list[str] = []
    while (told := agents("undo", "--plan", known.plan.id)).code == 0:
        seen.append(known.facts())
        tables += [item["table"] for item in told.data["tables"]]

    assert seen[-1] == known.states[0]
    assert "db:app.db/items" in tables
    for facts in seen[-2::-1]:
        agents("redo", "--plan", known.plan.id).ok()
        assert known.facts() == facts


def test_a_correction_and_what_came_of_it_are_changes_of_their_own(trail: Trail) -> None:
    """Back through the step that was done again, the correction, and the step before it."""
    words = ("--mode", "revert", "--guidance", "other", "--yes", "3")
    trail.agents("plan", "correct", *words).ok()
    assert trail.plan.status["attempt"] == 2
    assert trail.plan.tree() == trail.last

    assert trail.goes("undo") == trail.first
    assert trail.plan.status["attempt"] == 2
    assert trail.goes("undo") == trail.last
    assert trail.plan.status["attempt"] == 1
    assert trail.goes("undo") == trail.first
    assert trail.goes("redo") == trail.last
    assert trail.goes("redo") == trail.first
    assert trail.goes("redo") == trail.last
    assert trail.plan.status["attempt"] == 2


def test_single_files_brought_back_are_a_change_of_their_own(trail: Trail) -> None:
    trail.plan("rollback", "--yes", "--only", "two.txt", "{}", "0").ok()
    restored = trail.plan.tree()
    assert restored != trail.last

    assert trail.goes("undo") == trail.last
    assert trail.goes("redo") == restored


def test_child_plans_go_with_their_step(world: World) -> None:
    plans = [{"name": name, "steps": [write(f"{name}.txt", name)]} for name in ("en", "de")]
    plan = world.run(write("a.txt", "a"), {"name": "both", "subplans": {"plans": plans}})
    after = plan.tree()

    told = world.agents("undo").ok()
    assert told.data["impact"]["child_plans_invalidated"] == 2
    assert b"en.txt" not in plan.tree()
    world.agents("redo").ok()
    assert plan.tree() == after


def test_undo_outlives_pruning(trail: Trail) -> None:
    for group in trail.plan.groups[1:]:
        trail.agents("plan", "checkpoint", "delete", "--yes", trail.plan.id, group.group_id)

    assert trail.goes("undo") == trail.start
    assert trail.goes("redo") == trail.last


def test_nothing_is_asked_at_a_terminal(world: World, trail: Trail) -> None:
    code, drawn = on_a_terminal(world, "undo")
    assert (code, trail.plan.tree()) == (0, trail.first)
    assert "?" not in drawn.replace("\x1b[?", "")


def test_the_plan_of_another_place_is_named(world: World, trail: Trail, tmp_path: Path) -> None:
    elsewhere = trail.agents.at(tmp_path)
    elsewhere("undo", "--any", "--plan", "demo-1").ok()
    assert trail.plan.tree() == trail.first
    text = elsewhere.process("redo", "--any", "--plan", "demo-1").out
    assert "take it back: agents undo --any --plan demo-1" in text


def test_log_marks_what_was_undone(trail: Trail) -> None:
    trail.agents("undo", "-n", "2").ok()
    text = trail.agents.process("log").out
    rows = [line for line in text.splitlines() if line.startswith("  ")]

    assert [line.split()[-1] for line in rows[1:]] == ["undone", "undone", "undone", "here"]
    assert "move it" in rows[1]
    assert "before going back" not in "\n".join(rows)


def test_the_short_words_answer_as_the_long_ones(trail: Trail) -> None:
    pairs = {
        ("log",): ("plan", "checkpoint", "list"),
        ("diff",): ("plan", "diff"),
        ("diff", "3"): ("plan", "show", "3"),
        ("status",): ("plan", "status"),
    }
    for short, long in pairs.items():
        one, two = trail.agents(*short).ok(), trail.agents(*long).ok()
        assert one.data == two.data, short
        assert one.envelope["command"] == short[0]


def test_apply_and_discard_are_those_of_the_plan(world: World, trail: Trail) -> None:
    assert trail.agents("apply", "--yes").ok().envelope["command"] == "apply"
    assert (world.project.path / "two.txt").read_text() == "two\n"
    told = trail.agents("discard", "--yes").ok()
    assert told.envelope["command"] == "discard"
    assert told.data["plan_id"] == trail.plan.id


def test_a_plan_that_runs_is_refused_with_who_runs_it(world: World) -> None:
    gate = world.beside / "gate"
    wait = f"touch {world.beside}/begun; while ! test -e {gate}; do sleep 0.05; done"
    plan = world.use(write("a.txt", "a"), shell(wait, "wait"))
    running = world.agents.start("plan", "execute", plan.id)
    try:
        wait_for(lambda: (world.beside / "begun").exists())
        told = refused(world.agents("undo"), "plan-locked")
        assert "execute" in told
        assert str(running.pid) in told
    finally:
        gate.touch()
        assert running.wait(30) == 0
    world.agents("undo").ok()


def test_a_compensation_needs_a_yes(world: World) -> None:
    outside = world.beside / "outside"
    script = f"touch {outside}; echo made > made.txt"
    send = {"command": ["sh", "-c", script], "resource": "code", "writes": True,
            "side_effects": ["makes a file"], "compensate": "unsend"}  # fmt: skip
    unsend = {"command": ["rm", str(outside)], "resource": "code", "writes": True}
    plan = world.run({"name": "both", "tool": "send", "with": {}},
                     tools={"send": send, "unsend": unsend})  # fmt: skip
    refused(world.agents("undo"), "confirmation-needed")
    assert outside.exists()
    assert b"made.txt" in plan.tree()

    told = world.agents("undo", "--yes").ok()
    assert not outside.exists()
    assert b"made.txt" not in plan.tree()
    assert told.envelope["status"] in ("ok", "warn")


def test_what_is_left_of_a_program_after_an_undo_is_applied(world: World) -> None:
    script = "echo one > one.txt; sleep 5; echo two > two.txt"
    world.agents("run", "--keep", "--", "sh", "-c", script).ok()
    told = world.agents("undo").ok()
    assert any("there: agents apply 01" in text for text in told.envelope["messages"])

    world.agents("apply", "--yes").ok()
    assert (world.project.path / "one.txt").exists()
    assert not (world.project.path / "two.txt").exists()


def test_what_was_redone_to_its_end_is_applied_as_if_nothing_had_been(world: World) -> None:
    world.agents("run", "--keep", "--", "sh", "-c", "echo one > one.txt").ok()
    for _ in range(2):
        assert world.agents("undo").ok().data["undo_left"] == 0
        told = world.agents("redo").ok()
        assert any("project: agents apply" in text for text in told.envelope["messages"])
    world.agents("apply", "--yes").ok()
    assert (world.project.path / "one.txt").read_text() == "one\n"


def test_written_down_steps_that_were_redone_are_applied_too(trail: Trail) -> None:
    trail.agents("undo").ok()
    assert "agents plan execute" in refused(trail.agents("apply", "--yes"), "plan-state")
    trail.agents("redo").ok()
    trail.agents("apply", "--yes").ok()
