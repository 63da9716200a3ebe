"""`agents doctor`: says what it found, mends it if asked, and never touches unapplied work."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.support.agents import Agents, Answer
from tests.support.projects import Project
from tests.support.refusals import refused
from tests.support.trees import tree_of
from tests.support.world import PlanHandle, World, shell, wait_for, write


def examine(world: World, *words: str) -> tuple[Answer, list[Mapping[str, Any]]]:
    answer = world.agents("doctor", *words)
    return answer, answer.data["findings"]


def examine_at(agents: Agents, *words: str) -> tuple[Answer, list[Mapping[str, Any]]]:
    answer = agents("doctor", *words)
    return answer, answer.data["findings"]


def states(findings: list[Mapping[str, Any]]) -> dict[str, str]:
    return {item["check"]: item["state"] for item in findings}


def killed(world: World) -> PlanHandle:
    """A plan whose process was killed in the middle of its second step."""
    plan = world.use(write("a", "1", "one"), shell("echo half > half; touch up; sleep 60", "two"))
    running = world.agents.start("plan", "execute", plan.id)
    wait_for(lambda: bool(plan.status["sandboxes"]) and (plan.sandbox / "up").exists())
    running.kill()
    running.wait(10)
    return plan


def test_a_healthy_world_is_told_so(world: World) -> None:
    world.run(write("a", "1"))
    applied = world.run(write("b", "1"))
    applied("apply", "--yes").ok()
    kept = world.run(write("c", "1"))
    kept("cancel").ok()
    before = world.records()

    for words in ((), ("--fix", "--yes")):
        answer, findings = examine(world, *words)
        assert (answer.code, findings, answer.data["healthy"]) == (0, [], True), findings
    assert world.records() == before
    assert tree_of(kept.sandbox)
    plain = world.agents.inside("doctor", "--format", "plain")
    assert "everything is in order" in plain.out + plain.err


def test_a_plan_whose_process_died_waits_to_be_resumed_again(world: World) -> None:
    plan = killed(world)
    before, files = world.records(), plan.tree()

    answer, findings = examine(world)

    assert (answer.code, answer.envelope["status"]) == (1, "warn")
    assert states(findings) == {"locks": "can be mended", "plans": "can be mended"}
    assert all(item["subject"] == plan.id for item in findings)
    assert (world.records(), plan.tree()) == (before, files)
    refused(world.agents("doctor", "--fix"), "confirmation-needed", 2)
    assert world.records() == before

    answer, findings = examine(world, "--fix", "--yes")
    assert (answer.code, states(findings)) == (0, {"locks": "mended", "plans": "mended"})
    assert plan.status["state"] == "queued"
    assert not (plan.sandbox / "half").exists()
    assert examine(world)[1] == []


def test_an_unfinished_rollback_is_finished(world: World) -> None:
    plan = world.run(write("a", "1", "one"), write("b", "2", "two"))
    target = plan.group("decision 2: two")
    safety = plan.groups[-1].group_id
    with closing(sqlite3.connect(world.agents.data_dir / "cleveragents.db")) as database:
        sql = "UPDATE plans SET rollback_target = ?, safety_group = ? WHERE plan_id = ?"
        database.execute(sql, (target.group_id, safety, plan.id))
        database.commit()

    answer, findings = examine(world, "--fix", "--yes")

    assert (answer.code, states(findings)) == (0, {"rollbacks": "mended"})
    assert not (plan.sandbox / "b").exists()
    assert plan.status["last_checkpoint_id"] == target.head


def test_an_unfinished_apply_is_named_with_its_command_and_left(world: World) -> None:
    plan = world.run(write("a", "1"))
    with closing(sqlite3.connect(world.agents.data_dir / "cleveragents.db")) as database:
        sql = "UPDATE plans SET phase = 'apply', state = 'processing' WHERE plan_id = ?"
        database.execute(sql, (plan.id,))
        database.commit()

    answer, findings = examine(world, "--fix", "--yes")

    assert (answer.code, states(findings)) == (1, {"applies": "left"})
    assert findings[0]["remedy"] == f"agents plan apply {plan.id}"


def test_a_sandbox_that_is_gone_or_replaced_is_made_again_and_nothing_is_removed(
    world: World,
) -> None:
    gone, linked = world.run(write("a", "1")), world.run(write("b", "1"))
    elsewhere = world.top / "elsewhere"
    shutil.rmtree(gone.sandbox)
    linked.sandbox.rename(elsewhere)
    linked.sandbox.symlink_to(elsewhere)
    before, refs = world.records(), world.project.traces()

    answer, findings = examine(world)
    assert (answer.code, {item["state"] for item in findings}) == (1, {"can be mended"})
    assert (world.records(), world.project.traces()) == (before, refs)

    answer, findings = examine(world, "--fix", "--yes")
    assert answer.code == 0
    assert {(item["check"], item["subject"], item["state"]) for item in findings} == {
        ("sandboxes", gone.id, "mended"),
        ("sandboxes", linked.id, "mended"),
    }
    assert ((gone.sandbox / "a").exists(), (linked.sandbox / "b").exists()) == (True, True)
    assert (elsewhere / "b").exists()
    assert world.project.traces() == refs


def test_a_repository_that_was_moved_is_found_and_its_plans_go_on_there(world: World) -> None:
    plan = world.run(write("a", "1"), shell("git add a"))
    waiting, sandbox = world.use(write("b", "1")), plan.sandbox
    moved = world.top / "moved"
    world.project.path.rename(moved)
    agents = world.agents.at(world.top)
    before = world.records()

    answer, findings = examine_at(agents)
    assert (answer.code, {f["state"] for f in findings}) == (1, {"can be mended"})
    assert {f["subject"] for f in findings} == {plan.id, waiting.id}
    assert all("is not at" in f["problem"] and str(moved) in f["remedy"] for f in findings)
    assert world.records() == before

    answer, findings = examine_at(agents, "--fix", "--yes")
    assert (answer.code, {f["state"] for f in findings}) == (0, {"mended"})
    subprocess.run(["git", "log", "-1"], cwd=sandbox, check=True, capture_output=True)
    agents("plan", "rollback", "--yes", plan.id, "start").ok()
    for plan_id in (plan.id, waiting.id):
        agents("plan", "execute", plan_id).ok()
        agents("plan", "apply", "--yes", plan_id).ok()
    assert {(moved / name).read_text() for name in "ab"} == {"1"}
    assert not world.project.path.exists()
    assert examine_at(agents)[1] == []


def test_whoever_stands_in_a_moved_repository_shows_where_it_is(world: World) -> None:
    world.run(write("a", "1"))
    moved = world.top / "far" / "away"
    moved.parent.mkdir()
    world.project.path.rename(moved)
    assert states(examine_at(world.agents.at(world.top))[1]) == {"sandboxes": "left"}
    assert states(examine_at(world.agents.at(moved / "src"))[1]) == {"sandboxes": "can be mended"}


def test_a_place_that_is_told_is_taken_for_what_is_below_it_too(world: World) -> None:
    box, far = world.project.path.parent / "group" / "box", world.top / "far"
    box.mkdir(parents=True)
    (box / "f").write_text("1\n")
    plan = world.use(
        {"tool": "file.write", "with": {"resource": "box", "path": "f", "content": "2"}},
        resources={"box": {"type": "fs-directory", "path": str(box)}},
    )
    plan("execute").ok()
    box.parent.rename(far)

    (finding,) = examine(world)[1]
    assert (finding["state"], f"--moved {box}=NEW" in finding["remedy"]) == ("left", True)
    answer, findings = examine(world, "--fix", "--yes", "--moved", f"{box.parent}={far}")
    assert (answer.code, states(findings)) == (0, {"sandboxes": "mended"})
    plan("apply", "--yes").ok()
    assert (far / "box" / "f").read_text() == "2"


def test_a_place_that_is_told_and_is_another_repository_is_not_taken(world: World) -> None:
    world.run(write("a", "1"))
    old = world.project.path
    old.rename(world.top / "far")
    (other := world.top / "other").mkdir()
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    (world.top / "x" / "y").mkdir(parents=True)
    before = world.records()
    agents = world.agents.at(world.top / "x" / "y")
    shutil.move(world.top / "far", world.top / "x" / "far")

    answer, findings = examine_at(agents, "--fix", "--yes", "--moved", f"{old}={other}")
    assert (answer.code, states(findings)) == (1, {"sandboxes": "left"})
    for bad in ("nonsense", "=new", "old="):
        refused(agents("doctor", "--moved", bad), "usage", 2)
    assert world.records() == before


def test_children_follow_the_project_of_their_parent(world: World) -> None:
    child = {"name": "c", "steps": [shell("echo c > c.txt; test -e go || exit 1")]}
    plan = world.use({"name": "split", "subplans": {"plans": [child], "max_retries": 0}})
    plan("execute")
    moved = world.top / "moved"
    world.project.path.rename(moved)
    agents = world.agents.at(world.top)
    answer, _ = examine_at(agents, "--fix", "--yes")
    assert answer.code == 0
    (below,) = agents("plan", "status", plan.id).data["children"]
    sandbox = Path(agents("plan", "status", below["plan_id"]).data["sandboxes"][0]["path"])
    subprocess.run(["git", "log", "-1"], cwd=sandbox, check=True, capture_output=True)


def test_what_belongs_to_no_plan_is_removed_and_what_is_the_users_stays(world: World) -> None:
    plan = world.run(write("a", "1"))
    data, project = world.agents.data_dir, world.project
    other = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    project.git("worktree", "add", "-q", "-b", "mine", str(world.top / "mine"))
    known = project.traces()
    project.git("branch", f"cleveragents/plan-{other}")
    project.git("update-ref", pin_of(world, other), "HEAD")
    scratch = data / "scratch" / "left.tmp"
    scratch.write_bytes(b"x")
    os.utime(scratch, (0, 0))
    files = plan.tree()

    answer, findings = examine(world)
    assert answer.code == 1
    assert {item["state"] for item in findings} == {"can be mended"}, findings

    answer, findings = examine(world, "--fix", "--yes")
    assert (answer.code, {item["state"] for item in findings}) == (0, {"mended"}), findings
    assert examine(world)[1] == []
    assert not scratch.exists()
    assert project.traces() == known
    assert project.git("rev-parse", "mine", f"cleveragents/plan-{other}")
    assert (world.top / "mine" / "README.md").exists()
    assert plan.tree() == files


def pin_of(world: World, plan_id: str) -> str:
    """What this data folder would have called the pin of such a plan."""
    (ours, *_) = world.project.git(
        "for-each-ref", "--format=%(refname)", "refs/cleveragents"
    ).split()
    return f"{ours.split('/plan-')[0]}/plan-{plan_id}/base/code"


def test_sandboxes_and_snapshots_of_an_unknown_plan_are_told_and_stay(world: World) -> None:
    """They come after their plan is on record, so that another database must know it."""
    plan = world.run(write("a", "1"))
    data, other = world.agents.data_dir, "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    sandbox = _copied(plan, data / "sandboxes" / other / "code")
    shutil.copytree(f"{sandbox}.git", sandbox.parent / "alone.git", symlinks=True)
    snapshots = data / "snapshots" / f"{other}.db"
    snapshots.write_bytes(b"")

    answer, findings = examine(world, "--fix", "--yes")

    assert (answer.code, {item["state"] for item in findings}) == (1, {"left"}), findings
    for kept in (sandbox, sandbox.parent / "alone.git", snapshots):
        assert kept.exists()
        assert any(item["remedy"].endswith(f"{kept}") for item in findings), kept


def _copied(plan: PlanHandle, place: Path) -> Path:
    """The sandbox of a plan over again, with its repository."""
    place.parent.mkdir(exist_ok=True)
    shutil.copytree(plan.sandbox, place, symlinks=True)
    shutil.copytree(f"{plan.sandbox}.git", f"{place}.git", symlinks=True)
    (place / ".git").write_text(f"gitdir: ../{place.name}.git\n")
    return place


def test_work_of_an_unknown_plan_is_never_removed(world: World) -> None:
    plan = world.run(write("a", "1"))
    other = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    lost = world.agents.data_dir / "sandboxes" / other / "docs"
    lost.mkdir(parents=True)
    (lost / "thesis.txt").write_text("the only copy")
    project = world.project
    project.git("checkout", "-q", "--detach")
    project.write("only here", "x")
    pin = pin_of(world, other)
    project.git("update-ref", pin, project.commit())
    project.git("checkout", "-q", "main")
    committed = Project(_copied(plan, lost.with_name("committed")), world.agents.environ)
    committed.commit()
    tagged = Project(_copied(plan, lost.with_name("tagged")), world.agents.environ)
    tagged.git("tag", "mine", tagged.commit())
    tagged.git("reset", "-q", "--hard", "HEAD^")
    edited = _copied(plan, lost.with_name("edited"))
    alone = _copied(plan, lost.with_name("alone"))
    Project(alone, world.agents.environ).commit()
    shutil.rmtree(alone)

    answer, findings = examine(world, "--fix", "--yes")

    assert answer.code == 1
    assert {item["state"] for item in findings} == {"left"}
    assert any(f"rm -r {lost}" in item["remedy"] for item in findings)
    assert any("update-ref -d" in item["remedy"] for item in findings)
    assert (lost / "thesis.txt").read_text() == "the only copy"
    assert project.git("rev-parse", "--verify", pin)
    for kept in (committed.path, tagged.path, edited, Path(f"{alone}.git")):
        assert any(item["remedy"].endswith(f"rm -r {kept}") for item in findings), kept
        assert kept.exists()


def test_what_an_interrupted_clean_up_of_an_applied_plan_left_is_removed(world: World) -> None:
    plan = world.keep_nothing().run(write("a", "1"))
    pin = pin_of(world, plan.id)
    plan("apply", "--yes").ok()
    world.project.git("update-ref", pin, "HEAD~1")

    answer, findings = examine(world, "--fix", "--yes")

    assert (answer.code, states(findings)) == (0, {"leftovers": "mended"})
    assert world.project.traces() == []


def test_a_damaged_snapshot_and_a_damaged_database_are_told(world: World) -> None:
    plan = world.run(write("a", "1"))
    with closing(sqlite3.connect(_snapshots(world, plan))) as database:
        database.execute("UPDATE contents SET data = x'00' WHERE size = 1")
        database.commit()
    answer, findings = examine(world)
    assert (answer.code, set(states(findings))) == (1, {"store"})
    assert f"agents plan checkpoint verify {plan.id}" in findings[0]["remedy"]

    with closing(sqlite3.connect(world.agents.data_dir / "cleveragents.db")) as database:
        database.execute("PRAGMA foreign_keys = OFF")
        database.execute("DELETE FROM plan_resources")
        database.commit()
    answer, findings = examine(world, "--fix", "--yes")
    assert (answer.code, set(states(findings))) == (1, {"database"})
    assert "is gone" in findings[0]["problem"]


def test_a_database_that_is_no_database_is_told(world: World) -> None:
    world.run(write("a", "1"))
    for suffix in ("-wal", "-shm"):
        (world.agents.data_dir / f"cleveragents.db{suffix}").unlink(missing_ok=True)
    (world.agents.data_dir / "cleveragents.db").write_bytes(b"no database" * 500)

    answer = world.agents("doctor")

    assert answer.code == 1
    assert answer.data["findings"][0]["check"] == "database"


def test_what_cannot_be_mended_is_told_and_the_rest_is_mended(world: World) -> None:
    plan = killed(world)
    sandbox = plan.sandbox
    shutil.rmtree(sandbox)
    sandbox.write_text("in its place")

    answer, findings = examine(world, "--fix", "--yes")

    assert answer.code == 1
    assert states(findings) == {"locks": "mended", "plans": "left", "sandboxes": "left"}
    shown = next(item for item in findings if item["check"] == "plans")
    assert "is not at" in shown["remedy"]


def _snapshots(world: World, plan: PlanHandle) -> Path:
    return world.agents.data_dir / "snapshots" / f"{plan.id}.db"
