"""Several data folders, copies of one, several databases: none takes what another one needs."""

import os
import shutil
from pathlib import Path

import pytest
from tests.support.agents import Agents
from tests.support.interrupted import Slow, ended, slow
from tests.support.refusals import refused
from tests.support.world import PlanHandle, World, action, shell, write

__all__ = ["slow"]

OLD = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def planned(world: World, agents: Agents, name: str = "b") -> PlanHandle:
    path = world.write_action(action(write(name, "1"), write(name, "2")))
    plan = PlanHandle(agents, agents("plan", "use", path).ok().data["plan_id"])
    plan.execute().ok()
    return plan


def pins(world: World) -> list[str]:
    listed = world.project.git("for-each-ref", "--format=%(refname)", "refs/cleveragents")
    return listed.splitlines()


def history_is_rewritten_and_cleaned(world: World) -> None:
    world.project.git("commit", "-q", "--amend", "--reset-author", "-m", "another")
    world.project.git("reflog", "expire", "--expire=now", "--all")
    world.project.git("gc", "-q", "--prune=now")


def still_goes_back(plan: PlanHandle) -> None:
    plan("checkpoint", "verify").ok()
    shutil.rmtree(plan.sandbox / "src")
    plan.rollback("start").ok()
    assert (plan.sandbox / "src" / "app.py").exists()
    plan.execute().ok()


@pytest.mark.parametrize("how", ["another home", "--data-dir"])
def test_the_doctor_of_one_data_folder_leaves_the_pins_of_another(world: World, how: str) -> None:
    plan = world.run(write("a", "1"))
    if how == "another home":
        shutil.copytree(world.home, world.top / "other", ignore=shutil.ignore_patterns(".clever*"))
        other = Agents(world.top / "other", world.project.path)
    else:
        other = world.agents.having(CLEVERAGENTS_DATA_DIR=str(world.top / "ci"))
    planned(world, other)
    before = pins(world)

    answer = other.json("doctor", "--fix", "--yes")

    assert answer.code == 0
    assert pins(world) == before
    (named,) = answer.data["others"]
    assert plan.id in named["name"]
    assert "another data folder" in " ".join(answer.envelope["messages"])
    history_is_rewritten_and_cleaned(world)
    still_goes_back(plan)


def test_a_pin_of_no_plan_that_this_data_folder_has_made_itself_is_removed(world: World) -> None:
    """As a kill in `plan use` leaves it."""
    world.run(write("a", "1"))
    (ours,) = pins(world)
    folder = ours.split("/plan-")[0]
    world.project.git("update-ref", f"{folder}/plan-{OLD}/base/code", "HEAD")

    answer = world.agents("doctor", "--fix", "--yes").ok()

    assert pins(world) == [ours]
    assert [item["state"] for item in answer.data["findings"]] == ["mended"]


def test_a_pin_of_a_plan_that_is_being_made_is_left_alone(world: World) -> None:
    world.run(write("a", "1"))
    (ours,) = pins(world)
    folder, _, name = ours.partition("/plan-")
    young = f"{folder}/plan-{name[:10]}{'0' * 16}/base/code"
    world.project.git("update-ref", young, "HEAD")

    world.agents("doctor", "--fix", "--yes").ok()

    assert young in pins(world)


def test_a_copy_of_a_data_folder_takes_nothing_from_the_original(world: World) -> None:
    plan, cancelled = world.run(write("a", "1")), world.run(write("b", "1"))
    shutil.copytree(world.home, world.top / "copied", symlinks=True)
    copy = Agents(world.top / "copied", world.project.path)
    newer = world.run(write("c", "1"))
    before = pins(world)

    # The copy names the sandboxes of the original, and must not work there.
    for words in (("rollback", "--yes", plan.id, "start"), ("diff", plan.id)):
        told = refused(copy("plan", *words), "sandbox-missing")
        assert "--data-dir" in told
    copy("plan", "cancel", cancelled.id).ok()
    copy("plan", "discard", "--yes", cancelled.id)
    copy("doctor", "--fix", "--yes")

    assert pins(world) == before
    history_is_rewritten_and_cleaned(world)
    for each in (plan, cancelled, newer):
        still_goes_back(each)


def test_a_data_folder_that_was_moved_still_knows_its_own(world: World) -> None:
    plan = world.run(write("a", "1"))
    moved = world.home / "moved"
    world.agents.data_dir.rename(moved)
    agents = world.agents.having(CLEVERAGENTS_DATA_DIR=str(moved))
    world.project.git("update-ref", pins(world)[0].replace(plan.id, OLD), "HEAD")

    agents("doctor", "--fix", "--yes")

    assert [pin for pin in pins(world) if OLD in pin] == []


def test_what_another_database_knows_in_the_same_folder_is_not_removed(world: World) -> None:
    plan = world.run(write("a", "1"))
    other = world.agents.having(CLEVERAGENTS_DATABASE_URL=f"sqlite:///{world.top}/other.db")
    theirs = planned(world, other)

    for agents in (other, world.agents):
        answer = agents("doctor", "--fix", "--yes")
        (named,) = answer.data["others"]
        assert {item["state"] for item in answer.data["findings"]} == {"left"}
        told = " ".join(item["problem"] for item in answer.data["findings"])
        assert "no plan of this database" in told
    planned(world, other, "c")
    world.run(write("d", "1"))

    history_is_rewritten_and_cleaned(world)
    still_goes_back(plan)
    still_goes_back(theirs)


def test_temporary_files_of_a_step_that_takes_days_stay(slow: Slow) -> None:
    process = slow.start()
    scratch = slow.world.agents.data_dir / "scratch"
    old = [path for path in scratch.iterdir() if path.is_dir()]
    assert old
    for path in old:
        os.utime(path, (0, 0))

    slow.world.run(shell("true"))
    slow.world.agents("doctor", "--fix", "--yes")

    assert all(path.exists() for path in old)
    slow.gate.touch()
    assert ended(process).code == 0
    for left in (scratch / "left", Path(f"{scratch}/left.tmp")):
        left.write_text("x")
        os.utime(left, (0, 0))
    slow.world.run(shell("true"))
    assert not (scratch / "left").exists()
