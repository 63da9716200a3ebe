"""`agents uninstall`: everything of ours goes, in every repository; nothing of the user's does."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.support.agents import Agents, Answer
from tests.support.projects import make_project
from tests.support.refusals import refused
from tests.support.terminals import asked, asking
from tests.support.world import CODE, PlanHandle, World, shell, wait_for, write


def uninstall(world: World, *more: str) -> Answer:
    return world.agents("uninstall", "--yes", *more)


def told(answer: Answer) -> str:
    return "\n".join(answer.envelope["messages"])


def used(world: World, agents: Agents, content: str) -> PlanHandle:
    """A plan by another home, of the project that the world has."""
    path = world.write_action({"name": "other", "description": "x", "resources": CODE,
                               "steps": [write("x", content)]}, "other.yaml")  # fmt: skip
    return PlanHandle(agents, agents("plan", "use", path).ok().data["plan_id"])


def test_nothing_of_ours_stays_and_everything_of_the_user_s_does(world: World) -> None:
    second = make_project(world.top / "second", world.agents.environ)
    world.project.git("branch", "mine")
    world.project.git("tag", "v1")
    world.project.write("untracked.txt", "mine")
    plans = [
        world.run(write("a.txt", "a")),
        world.run(
            write("b.txt", "b"), resources={"code": {**CODE["code"], "path": str(second.path)}}
        ),
    ]
    applied = world.run(write("c.txt", "c"))
    world.agents("plan", "apply", "--yes", "--no-commit", applied.id).ok()
    world.agents("config", "set", "--project", "tool.timeout", "5").ok()
    before = world.project.fingerprint(), second.fingerprint()
    assert world.project.traces() and second.traces()

    shown = world.agents("uninstall", "--dry-run").ok()
    assert {plan["plan_id"] for plan in shown.data["plans"]} == {applied.id, *(p.id for p in plans)}
    assert shown.data["repositories"] == sorted([str(world.project.path), str(second.path)])
    assert plans[0].sandbox.is_dir()

    answer = uninstall(world).ok()

    assert not world.agents.data_dir.exists()
    assert (world.project.traces(), second.traces()) == ([], [])
    assert (world.project.fingerprint(), second.fingerprint()) == before
    assert "pip uninstall cleveragents" in told(answer)
    assert world.agents("plan", "list").ok().data["plans"] == []  # a new beginning


def test_while_a_plan_runs_it_is_refused_and_the_plan_is_named(world: World) -> None:
    plan = world.use(shell(f"touch {world.beside}/begun; sleep 60", "wait"))
    running = world.agents.start("plan", "execute", plan.id)
    wait_for((world.beside / "begun").exists)
    try:
        assert plan.id in refused(uninstall(world), "plan-locked")
        assert plan.status["state"] == "processing"
    finally:
        running.terminate()
        running.wait(60)


def test_an_apply_that_was_cut_off_has_to_be_finished_first(world: World) -> None:
    plan = world.run(write("a", "b"))
    with closing(sqlite3.connect(world.agents.data_dir / "cleveragents.db")) as database:
        database.execute("UPDATE plans SET phase = 'apply', state = 'processing'")
        database.commit()
    assert "plan apply" in refused(uninstall(world), "plan-state")
    assert plan.sandbox.is_dir()


def test_a_repository_that_is_gone_is_told_with_what_to_type_there(world: World) -> None:
    world.run(write("a", "b"))
    world.project.path.rename(world.top / "moved")

    answer = world.agents.at(world.top)("uninstall", "--yes").ok()

    assert answer.data["unreachable"] == [str(world.project.path / ".git")]
    assert "git update-ref --stdin" in told(answer)
    assert not world.agents.data_dir.exists()


def test_what_other_data_folders_have_in_the_repository_stays(world: World) -> None:
    other_home = world.top / "other-home"
    other_home.mkdir()
    other = Agents(other_home, world.project.path)
    plan = used(world, other, "theirs")
    plan.execute().ok()
    world.run(write("a", "b"))

    answer = uninstall(world).ok()

    assert "another data folder" in told(answer)
    assert all(plan.id.encode() in trace for trace in world.project.traces())
    plan("checkpoint", "verify").ok()


def test_files_in_the_data_folder_that_are_not_ours_stay_and_are_told(world: World) -> None:
    world.run(write("a", "b"))
    mine = world.agents.data_dir / "notes.txt"
    mine.write_text("mine")

    answer = uninstall(world).ok()

    assert answer.data["left"] == [str(mine)]
    assert [path.name for path in world.agents.data_dir.iterdir()] == ["notes.txt"]


def test_the_settings_can_be_kept(world: World) -> None:
    world.agents("config", "set", "tool.timeout", "7").ok()
    world.run(write("a", "b"))

    uninstall(world, "--keep-config").ok()

    assert [path.name for path in world.agents.data_dir.iterdir()] == ["config.toml"]


def test_snapshots_of_plans_that_nobody_knows_are_told_before_they_go(world: World) -> None:
    world.run(write("a", "b"))
    stranger = world.agents.data_dir / "snapshots" / "01ARZ3NDEKTSV4RRFFQ69G5FAV.db"
    stranger.write_bytes(b"x")
    assert str(stranger) in told(world.agents("uninstall", "--dry-run").ok())


def test_a_database_elsewhere_goes_too(world: World) -> None:
    database = world.top / "elsewhere" / "x.db"
    agents = world.agents.having(CLEVERAGENTS_DATABASE_URL=f"sqlite:///{database}")
    used(world, agents, "x")
    assert database.exists()

    agents("uninstall", "--yes").ok()

    assert list(database.parent.iterdir()) == []
    assert world.project.traces() == []


def test_read_only_folders_of_a_sandbox_do_not_stay(world: World) -> None:
    world.run(shell("mkdir -p deep/er && touch deep/er/file && chmod 500 deep/er deep"))
    uninstall(world).ok()
    assert not world.agents.data_dir.exists()


def test_it_asks_with_what_would_be_lost_and_a_no_changes_nothing(world: World) -> None:
    plan = world.run(write("new.txt", "b"))
    refused(world.agents("uninstall"), "confirmation-needed", 2)

    with asking(world, "uninstall") as (process, terminal):
        shown = asked(terminal, b"]:").decode()
        os.write(terminal, b"n\n")
        process.communicate(timeout=60)

    assert "new.txt" in shown and "1 unapplied file" in shown
    assert plan.sandbox.is_dir()


def test_where_nothing_was_ever_made_it_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    Agents(home, tmp_path)("uninstall", "--yes").ok()
    assert list(home.iterdir()) == []
