"""A sandbox that somebody deleted is made again from its snapshots, byte for byte, when asked."""

import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.histories import KnownPlan
from tests.support.refusals import refused
from tests.support.trees import Tree, tree_of
from tests.support.world import PlanHandle, World, shell, write


@pytest.fixture
def known(tmp_path: Path, template: World) -> KnownPlan:
    """A plan over a checkout, a folder and a database that is done."""
    made = KnownPlan(tmp_path / "k", template, with_code=True)
    made.plan.execute().ok()
    return made


def place_of(plan: PlanHandle) -> Path:
    """The folder of all sandboxes of a plan."""
    return plan.agents.data_dir / "sandboxes" / plan.id


def git_state(sandbox: Path) -> list[str]:
    """What git shows there: commit, branches, index, what is changed, and that all is whole."""
    asked = ("rev-parse HEAD", "symbolic-ref HEAD", "show-ref", "ls-files -s", "status -s", "fsck")
    done = [
        subprocess.run(["git", *ask.split()], cwd=sandbox, capture_output=True, check=True)
        for ask in asked
    ]
    return [one.stdout.decode() for one in done]


def everything(plan: PlanHandle) -> tuple[dict[str, Tree], list[str]]:
    """All files of all sandboxes but git's own, what is known of a first look and of layers, and
    what git says."""
    place, ours = place_of(plan), (".git", ".layers", ".index")
    trees = {path.name: tree_of(path) for path in place.iterdir() if path.suffix not in ours}
    for tree in trees.values():
        tree.pop(b".git", None)
    return trees, git_state(place / "code")


# --- what is said -------------------------------------------------------------------------------


def test_a_missing_sandbox_is_told_by_status_and_refused_with_what_helps(known: KnownPlan) -> None:
    plan = known.plan
    shutil.rmtree(place_of(plan) / "assets")

    told = {item["resource"]: item["status"] for item in plan.status["sandboxes"]}
    assert told == {"assets": "missing", "db": "ready", "code": "ready"}
    plan("checkpoint", "verify").ok()
    records = known.world.records()
    for words in (("rollback", "--yes", "{}", "start"), ("diff",), ("apply", "--yes")):
        said = refused(plan(*words), "sandbox-missing")
        assert f"agents plan resume --rebuild {plan.id}" in said
        assert "agents plan rollback --rebuild" in said
    assert known.world.records() == records
    assert not (place_of(plan) / "assets").exists()


def test_a_dry_run_makes_nothing_again(known: KnownPlan) -> None:
    shutil.rmtree(place_of(known.plan))
    assert known.plan("rollback", "--rebuild", "--dry-run", "{}", "start").code == 2
    assert known.plan("resume", "--rebuild", "--dry-run").code == 2
    assert not place_of(known.plan).exists()


# --- as it last was -----------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["resume", "doctor"])
def test_what_is_gone_is_made_again_as_it_last_was(known: KnownPlan, by: str) -> None:
    plan = known.plan
    before, status = everything(plan), plan.status
    shutil.rmtree(place_of(plan))

    if by == "resume":
        plan("resume", "--rebuild").ok()
    else:
        found = known.world.agents("doctor", "--fix", "--yes").ok().data["findings"]
        assert {(item["check"], item["state"]) for item in found} == {("sandboxes", "mended")}

    assert everything(plan) == before
    assert known.facts() == known.states[-1]
    assert plan.status["last_checkpoint_id"] == status["last_checkpoint_id"]
    assert known.world.agents("doctor").ok().data["healthy"]
    plan.rollback(plan.groups[0].group_id).ok()
    assert known.facts() == known.states[0]
    plan("resume").ok()
    assert known.facts() == known.states[-1]
    plan("apply", "--yes").ok()


@pytest.mark.parametrize("gone", ["assets", "db", "code", "code.git"])
def test_one_of_them_is_made_again_and_the_others_stay(known: KnownPlan, gone: str) -> None:
    plan = known.plan
    before = everything(plan)
    others = [path for path in place_of(plan).iterdir() if not path.name.startswith(gone[:4])]
    inodes = {path: path.stat().st_ino for path in others}
    shutil.rmtree(place_of(plan) / gone)

    plan("resume", "--rebuild").ok()

    assert everything(plan) == before
    assert {path: path.stat().st_ino for path in others} == inodes


def test_a_rollback_makes_it_again_and_goes_there_and_can_be_undone(known: KnownPlan) -> None:
    plan = known.plan
    before = everything(plan)
    shutil.rmtree(place_of(plan))

    done = plan("rollback", "--rebuild", "--yes", "{}", plan.groups[0].group_id).ok()

    assert known.facts() == known.states[0]
    assert "again from its snapshots" in done.err
    safety = plan.groups[-1]
    assert safety.reason == "before_rollback"
    plan.rollback(safety.group_id).ok()
    assert everything(plan) == before


def test_a_plan_with_steps_left_goes_on_in_the_new_sandbox(known: KnownPlan) -> None:
    plan = known.plan
    plan.rollback(plan.groups[0].group_id).ok()
    shutil.rmtree(place_of(plan))
    plan("resume", "--rebuild").ok()
    assert known.facts() == known.states[-1]


def test_times_links_modes_and_empty_folders_come_back(world: World) -> None:
    plan = world.run(
        shell("mkdir -p deep/empty; ln -s ../README.md deep/link; git tag mine"),
        shell("echo x > run; chmod 750 run; git add run; touch -d '2001-02-03 04:05:06' run"),
    )
    before, times = plan.tree(), (plan.sandbox / "run").stat().st_mtime_ns
    shutil.rmtree(plan.sandbox)
    plan("resume", "--rebuild").ok()
    assert plan.tree() == before
    assert (plan.sandbox / "run").stat().st_mtime_ns == times
    assert "mine" in git_state(plan.sandbox)[2]


def test_what_is_excluded_is_not_in_a_snapshot_and_is_told(world: World) -> None:
    code = {"code": {"type": "git-checkout", "path": ".", "exclude": ["built/"]}}
    plan = world.run(shell("mkdir built; echo x > built/x; echo y > y"), resources=code)
    shutil.rmtree(plan.sandbox)
    done = plan("resume", "--rebuild").ok()
    assert (plan.sandbox / "y").exists()
    assert not (plan.sandbox / "built").exists()
    assert "built/" in done.err


# --- there, and unusable ------------------------------------------------------------------------


@pytest.mark.parametrize("harm", ["empty", "half", "objects"])
def test_a_repository_that_cannot_be_read_is_made_again_and_the_files_stay(
    world: World, harm: str
) -> None:
    plan = world.run(shell("echo 1 > a; git add a; git commit -qm a; git branch side"))
    before, sandbox = (plan.tree(), git_state(plan.sandbox)), plan.sandbox
    (sandbox / "mine").write_text("not in any snapshot")
    repository = sandbox.with_name("code.git")
    for path in [path for path in repository.rglob("*") if path.is_file()]:
        wanted = harm == "empty" or path.parts[-3 if harm == "objects" else -1] in (
            ("index",) if harm == "half" else ("objects",)
        )
        if wanted and path.name != "alternates":
            path.chmod(0o600)
            path.write_bytes(b"")

    assert [f["check"] for f in world.agents("doctor").data["findings"]] == ["sandboxes"]
    plan("resume", "--rebuild").ok()

    assert (sandbox / "mine").read_text() == "not in any snapshot"
    (sandbox / "mine").unlink()
    assert (plan.tree(), git_state(sandbox)) == before
    plan.rollback("start").ok()


def test_a_link_in_its_place_goes_and_what_it_leads_to_stays(world: World) -> None:
    plan = world.run(write("a", "1"))
    sandbox, elsewhere = plan.sandbox, world.top / "elsewhere"
    sandbox.rename(elsewhere)
    sandbox.symlink_to(elsewhere)
    (elsewhere / "a").write_text("2")
    world.agents("doctor", "--fix", "--yes").ok()
    assert not sandbox.is_symlink()
    assert ((sandbox / "a").read_text(), (elsewhere / "a").read_text()) == ("1", "2")


def test_a_file_in_its_place_is_not_removed(world: World) -> None:
    plan = world.run(write("a", "1"))
    sandbox = plan.sandbox
    shutil.rmtree(sandbox)
    sandbox.write_text("whose is this?")
    records = world.records()
    said = refused(plan("resume", "--rebuild"), "sandbox-failed")
    assert str(sandbox) in said
    assert (sandbox.read_text(), world.records()) == ("whose is this?", records)


# --- what cannot be made again ------------------------------------------------------------------


def test_what_was_never_captured_is_refused_before_anything_changes(known: KnownPlan) -> None:
    top = known.world.top
    resources = {
        "assets": {"type": "fs-directory", "path": str(top / "assets"), "checkpointable": False},
        "code": {"type": "git-checkout", "path": str(top / "project")},
    }
    keys = {"resources": resources, "rollback_policy": {"require_checkpoints": False}}
    plan = known.world.run(write("a", "1"), **keys)
    shutil.rmtree(place_of(plan))
    records = known.world.records()
    said = refused(plan("resume", "--rebuild"), "sandbox-failed")
    assert "checkpointable" in said
    assert known.world.records() == records
    assert not place_of(plan).exists()


def test_where_the_last_state_is_damaged_the_target_of_the_rollback_is_made(world: World) -> None:
    plan = world.run(write("a", "first", "one"), write("a", "second", "two"))
    shutil.rmtree(plan.sandbox)
    store = world.agents.data_dir / "snapshots" / f"{plan.id}.db"
    with closing(sqlite3.connect(store)) as db:
        db.execute("UPDATE contents SET data = x'00' WHERE data = ?", (b"second",))
        assert db.execute("SELECT changes()").fetchone()[0]
        db.commit()
    refused(plan("resume", "--rebuild"), "snapshot-damaged")
    plan("rollback", "--rebuild", "--yes", "{}", "decision 2: two").ok()
    assert (plan.sandbox / "a").read_text() == "first"


# --- children -----------------------------------------------------------------------------------


def test_the_sandboxes_of_children_are_made_again_too(world: World) -> None:
    gate = world.beside / "gate"
    child = {"name": "en", "steps": [write("en", "1", "w"), shell(f"test -e {gate}", "wait")]}
    spawn = {"name": "docs", "subplans": {"parallel": False, "max_retries": 0, "plans": [child]}}
    plan = world.use(write("a", "1"), spawn)
    assert plan.execute().code == 1
    listed = world.agents("plan", "list", "--all").ok().data["plans"]
    inner = next(item["plan_id"] for item in listed if item["plan_id"] != plan.id)
    places = [world.agents.data_dir / "sandboxes" / one for one in (plan.id, inner)]
    before = [tree_of(place / "code") for place in places]
    assert b"en" in before[1]
    for place in places:
        shutil.rmtree(place)
    world.agents("doctor", "--fix", "--yes").ok()
    assert [tree_of(place / "code") for place in places] == before
    for place in places:
        shutil.rmtree(place)
    gate.touch()
    plan("resume", "--rebuild").ok()
    assert (plan.sandbox / "en").read_text() == "1"
