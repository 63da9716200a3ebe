"""`agents rewind`: a picker at a terminal, driven by keys; elsewhere a rollback by name."""

import signal

import pytest
from tests.support.full_screens import full_screen
from tests.support.terminals import on_a_terminal
from tests.support.world import PlanHandle, World, shell, write

STEPS = (
    write("src/one.txt", "one\n", "write one"),
    shell("mkdir gen && echo a > gen/a && echo b > gen/b", "generate"),
    write("two.txt", "two\n", "write two"),
)
UP, DOWN, ENTER, ESC = "\x1b[A", "\x1b[B", "\r", "\x1b"


@pytest.fixture
def plan(world: World) -> PlanHandle:
    return world.run(*STEPS)


def test_a_step_is_picked_looked_at_and_restored(world: World, plan: PlanHandle) -> None:
    with full_screen(world, "rewind") as screen:
        shown = screen.shows("● here")
        assert len(shown) == 24
        assert "demo-1" in shown[0]
        assert [line.split()[0] for line in shown[2:6]] == [">", "2", "1", "0"]
        screen.press(DOWN + "j")
        screen.shows("> 1")
        screen.press(ENTER)
        shown = screen.shows("takes back")
        text = "\n".join(shown)
        assert "Restore 1  write one" in text
        assert "gen/" in text
        assert "- a  removed" in text
        assert "3 files" in text
        assert (plan.sandbox / "two.txt").exists(), "looking changes nothing"
        screen.press("r")
        assert screen.left() == 0
        assert screen.is_as_before
        assert "Rollback complete" in screen.drawn
    assert not (plan.sandbox / "two.txt").exists()
    assert plan.status["last_completed_step"] == 0
    world.agents("redo", "-n", "2").ok()
    assert (plan.sandbox / "two.txt").exists()


def test_what_was_undone_is_there_and_can_be_picked(world: World, plan: PlanHandle) -> None:
    world.agents("undo", "-n", "2").ok()
    with full_screen(world, "rewind") as screen:
        shown = screen.shows("undone")
        assert sum("undone" in line for line in shown) == 2
        screen.press("g" + "r")
        screen.shows("Restore")
        screen.press("r")
        assert screen.left() == 0
    assert (plan.sandbox / "two.txt").exists()


def test_a_search_finds_steps_by_the_files_they_changed(world: World, plan: PlanHandle) -> None:
    with full_screen(world, "rewind") as screen:
        screen.shows("● here")
        screen.press("/gen/b")
        shown = screen.shows("/gen/b_")
        assert [line.split()[1] for line in shown if line.startswith(">")] == ["2"]
        assert "1 of 1" in shown[-2]
        screen.press(ENTER)
        screen.shows("/gen/b   ")
        screen.press(ESC)
        screen.shows("of 4")
        screen.press("q")
        assert screen.left() == 0
        assert screen.is_as_before
    assert plan.status["last_completed_step"] == 2


@pytest.mark.parametrize("key", ["q", ESC])
def test_leaving_changes_nothing(world: World, plan: PlanHandle, key: str) -> None:
    groups = len(plan.groups)
    with full_screen(world, "rewind") as screen:
        screen.shows("● here")
        screen.press(key)
        assert screen.left() == 0
        assert screen.is_as_before
    assert len(plan.groups) == groups


@pytest.mark.parametrize("mode", ["", "/", ENTER])
def test_ctrl_c_leaves_the_terminal_as_it_was(world: World, plan: PlanHandle, mode: str) -> None:
    with full_screen(world, "rewind") as screen:
        screen.shows("● here")
        screen.press(mode)
        screen.press("\x03")
        assert screen.left() == 130
        assert screen.is_as_before
    assert plan.status["last_completed_step"] == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_so_does_a_signal(world: World, plan: PlanHandle, number: signal.Signals) -> None:
    with full_screen(world, "rewind") as screen:
        screen.shows("● here")
        screen.process.send_signal(number)
        assert screen.left() == 130
        assert screen.is_as_before
    assert plan.status["last_completed_step"] == 2


def test_the_window_may_change_its_size(world: World, plan: PlanHandle) -> None:
    with full_screen(world, "rewind") as screen:
        assert len(screen.shows("● here")) == 24
        screen.resize(20, 8)
        shown = screen.shows("/  Enter  r  q")
        assert len(shown) == 8
        assert all(len(line) <= 20 for line in shown)
        assert any(line.startswith("> 3  write two") for line in shown)
        screen.press(ENTER)
        screen.shows("r  Esc  q")
        screen.resize(120, 40)
        assert len(screen.shows("r restore this")) == 40
        screen.press("q")
        assert screen.left() == 0


def test_colours_can_be_forbidden(world: World, plan: PlanHandle) -> None:
    with full_screen(world, "rewind", NO_COLOR="1") as screen:
        screen.shows("● here")
        screen.press("q")
        assert screen.left() == 0
        assert "38;5" not in screen.drawn
    with full_screen(world, "rewind") as screen:
        screen.shows("● here")
        screen.press("q")
        assert screen.left() == 0
        assert "38;5" in screen.drawn


def test_what_cannot_be_restored_says_why(world: World, plan: PlanHandle) -> None:
    with full_screen(world, "rewind") as screen:
        screen.shows("● here")
        sandbox = plan.sandbox
        sandbox.rename(sandbox.with_name("gone"))
        screen.press(DOWN + ENTER)
        shown = screen.shows("is not at")
        assert "restore" not in shown[-1]
        screen.press("r")
        screen.press("q")
        assert screen.left() == 0


def test_without_a_terminal_it_needs_a_name_and_lists_what_there_is(
    world: World, plan: PlanHandle
) -> None:
    answer = world.agents("rewind")
    assert (answer.code, answer.error["code"]) == (2, "checkpoint-required")
    for name in ("start", "write one", "generate", "write two"):
        assert name in answer.error["message"]
    text = world.agents.process("rewind").err
    assert "write two" in text


@pytest.mark.parametrize(("name", "done"), [("1", 0), ("-1", 1), ("generate", 1), ("start", -1)])
def test_with_a_name_it_is_a_rollback(world: World, plan: PlanHandle, name: str, done: int) -> None:
    told = world.agents("rewind", "--yes", name).ok()
    assert told.envelope["command"] == "rewind"
    assert set(told.data) == {
        "plan_id", "rollback_summary", "changes_reverted", "impact", "post_rollback_state",
    }  # fmt: skip
    assert plan.status["last_completed_step"] == done


def test_a_name_is_asked_about_unless_yes_is_said(world: World, plan: PlanHandle) -> None:
    assert world.agents("rewind", "1").error["code"] == "confirmation-needed"
    assert plan.status["last_completed_step"] == 2


def test_a_terminal_that_cannot_draw_needs_a_name(world: World, plan: PlanHandle) -> None:
    code, drawn = on_a_terminal(world, "rewind", TERM="dumb")
    assert code == 2
    assert "checkpoint-required" in drawn


def test_an_applied_plan_is_refused_before_anything_is_drawn(
    world: World, plan: PlanHandle
) -> None:
    plan("apply", "--yes").ok()
    code, drawn = on_a_terminal(world, "rewind")
    assert code == 1
    assert "plan-applied" in drawn
    assert "\x1b[?1049h" not in drawn
