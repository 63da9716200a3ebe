"""A repository that was moved, given to somebody else, or robbed of our refs: said as it is."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.agents import Agents
from tests.support.refusals import refused
from tests.support.world import PlanHandle, World, shell, write


def moved(world: World, name: str = "moved") -> tuple[Path, Agents]:
    """Where the project is now, and somebody who stands beside it."""
    place = world.top / name
    world.project.path.rename(place)
    return place, world.agents.at(world.top)


# --- moved --------------------------------------------------------------------------------------


def test_a_repository_that_was_moved_is_followed_by_the_next_command(world: World) -> None:
    plan = world.run(write("a", "1", "one"), write("b", "1", "two"))
    waiting = world.use(write("c", "1"))
    place, agents = moved(world)

    done = agents("plan", "rollback", "--yes", plan.id, "decision 2: two").ok()
    assert str(place) in done.err
    agents("plan", "resume", plan.id).ok()
    agents("plan", "diff", plan.id).ok()
    agents("plan", "apply", "--yes", plan.id).ok()
    agents("plan", "execute", waiting.id).ok()
    agents("plan", "apply", "--yes", waiting.id).ok()
    assert {(place / name).read_text() for name in "abc"} == {"1"}
    assert not world.project.path.exists()
    assert agents("doctor").ok().data["healthy"]


def test_apply_follows_too_with_the_plans_of_children(world: World) -> None:
    child = {"name": "en", "steps": [write("en", "1")]}
    plan = world.run({"name": "docs", "subplans": {"plans": [child]}}, write("a", "1"))
    place, agents = moved(world)
    agents("plan", "apply", "--yes", plan.id).ok()
    assert (place / "en").read_text() == "1"


@pytest.mark.parametrize("words", [("diff",), ("apply", "--yes"), ("rollback", "--yes")])
def test_one_that_is_nowhere_to_be_seen_is_told_and_the_sandbox_is_not_blamed(
    world: World, words: tuple[str, ...]
) -> None:
    plan = world.run(write("a", "1"))
    far = world.top / "far" / "away"
    far.parent.mkdir()
    world.project.path.rename(far)
    records, last = world.records(), ("start",) if "rollback" in words else ()
    said = refused(world.agents.at(world.top)("plan", *words, plan.id, *last), "project-missing")
    assert str(world.project.path) in said
    assert "sandbox" not in said
    assert f"agents doctor --fix --moved {world.project.path}=" in said
    assert world.records() == records


@pytest.mark.parametrize("words", [("diff",), ("apply", "--yes"), ("resume",)])
def test_a_copy_is_named_and_not_taken_for_the_one_that_was_moved(
    world: World, words: tuple[str, ...]
) -> None:
    plan = world.use(write("a", "1"), shell("test -e never")) if "resume" in words else None
    plan = plan or world.run(write("a", "1"))
    plan.execute()
    copy = world.top / "backup"
    shutil.copytree(world.project.path, copy, symlinks=True)
    far = world.top / "far" / "away"
    far.parent.mkdir()
    world.project.path.rename(far)
    head = _head(copy)
    said = refused(world.agents.at(world.top)("plan", *words, plan.id), "project-missing")
    assert "diff" in words or str(copy) in said
    assert "agents doctor --fix" in said
    assert _head(copy) == head


def test_a_folder_or_database_that_is_gone_is_told_by_apply(world: World) -> None:
    place = world.top / "assets"
    place.mkdir()
    (place / "x").write_text("x")
    resources = {"assets": {"type": "fs-directory", "path": str(place)}}
    step = {"name": "w", "tool": "file.write", "with": {"path": "y", "content": "y"}}
    plan = world.run(step, resources=resources)
    place.rename(world.top / "elsewhere")
    said = refused(plan("apply", "--yes"), "project-missing")
    assert f"agents doctor --fix --moved {place}=" in said
    plan.rollback("start").ok()  # nothing of the project is needed for that


# --- somebody else's ----------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("asked", ["apply", "doctor", "use"])
def test_a_repository_of_another_owner_is_told_in_gits_own_words(world: World, asked: str) -> None:
    plan = world.run(write("a", "1", "one"), write("b", "1", "two"))
    subprocess.run(["chown", "-R", "12345", str(world.project.path)], check=True)
    if asked == "doctor":
        answer = world.agents("doctor")
        said = answer.out
        assert answer.code == 1
    else:
        words = ("apply", "--yes", plan.id) if asked == "apply" else ("use", f"{world.top}/a.yaml")
        answer = world.agents("plan", *words)
        assert answer.error["code"] == "repository-not-trusted"
        said = f"{answer.error['message']} {answer.error['hint']}"
    assert "dubious ownership" in said
    assert f"git config --global --add safe.directory {world.project.path}" in said
    assert "delete" not in said
    subprocess.run(["chown", "-R", str(os.geteuid()), str(world.project.path)], check=True)
    plan("apply", "--yes").ok()


# --- without our refs ---------------------------------------------------------------------------


def _robbed(world: World, *, gc: bool) -> None:
    """All our refs go, and with them what only they held."""
    project = world.project
    for ref in project.git("for-each-ref", "--format=%(refname)", "refs/cleveragents/").split():
        project.git("update-ref", "-d", ref)
    if gc:
        project.git("reflog", "expire", "--expire=now", "--all")
        project.git("gc", "-q", "--prune=now")


def _uncommitted(world: World) -> PlanHandle:
    """A plan whose base is a commit that only our ref holds."""
    (world.project.path / "draft").write_text("mine\n")
    action = world.write_action(
        {
            "name": "demo",
            "description": "d",
            "resources": {"code": {"type": "git-checkout", "path": "."}},
            "steps": [write("a", "1", "one"), write("draft", "2", "two")],
        }
    )
    used = world.agents("plan", "use", "--include-uncommitted", action).ok()
    plan = PlanHandle(world.agents, used.data["plan_id"])
    plan.execute().ok()
    return plan


def test_refs_that_somebody_deleted_are_made_again_as_long_as_git_has_the_commit(
    world: World,
) -> None:
    plan = _uncommitted(world)
    before = world.project.traces()
    _robbed(world, gc=False)
    plan.rollback("decision 2: two").ok()
    assert world.project.traces() == before
    world.project.git("reflog", "expire", "--expire=now", "--all")
    world.project.git("gc", "-q", "--prune=now")
    plan.rollback("start").ok()
    plan("resume").ok()


@pytest.mark.parametrize(
    "words",
    [("rollback", "--yes"), ("diff",), ("apply", "--yes"), ("resume", "--rebuild")],
)
def test_what_needs_a_commit_that_git_has_removed_is_refused_before_anything_changes(
    world: World, words: tuple[str, ...]
) -> None:
    plan = _uncommitted(world)
    _robbed(world, gc=True)
    records, files = world.records(), plan.tree()
    last = ("decision 2: two",) if "rollback" in words else ()
    said = refused(world.agents("plan", *words, plan.id, *last), "base-lost")
    assert "refs/cleveragents" in said
    assert str(plan.sandbox) in said
    assert (world.records(), plan.tree()) == (records, files)
    assert plan.status["state"] == "complete"
    assert plan("cancel").code == 0


def test_the_doctor_names_a_commit_that_git_has_removed_and_not_the_snapshots(
    world: World,
) -> None:
    plan = _uncommitted(world)
    backup = world.top / "backup"
    world.project.git("clone", "-q", "--mirror", str(world.project.path), str(backup))
    _robbed(world, gc=True)

    for words in ((), ("--fix",)):
        (found,) = world.agents("doctor", *words).data["findings"]
        assert (found["check"], found["subject"], found["state"]) == ("store", plan.id, "left")
        assert "does not have commit" in found["problem"]
        assert "git fetch" in found["remedy"]
        assert "delete" not in found["remedy"]
        assert str(plan.sandbox) in found["remedy"]
    assert world.project.traces() == []
    (damaged,) = world.agents("store", "verify").data["damaged"]
    assert "does not have commit" in damaged["problems"][0]

    refs = "+refs/cleveragents/*:refs/cleveragents/*"
    world.project.git("fetch", "-q", str(backup), refs)
    assert world.agents("doctor").ok().data["findings"] == []
    plan.rollback("start").ok()


def _head(place: Path) -> str:
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=place, capture_output=True, check=True)
    return done.stdout.decode()
