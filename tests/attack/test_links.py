"""Links in every folder that a step can write: none of our commands goes where they lead."""

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.outside import nothing_happens
from tests.support.world import PlanHandle, World

REQUIRED = {"mode": "required"}
# $OUT is a folder of the user's with a file, a folder and a database in it.
PLANTED = {
    "code": {
        "a file": "ln -sf $OUT/file README.md",
        "a folder": "rm -r src; ln -s $OUT/folder src",
        "a new name": "ln -s $OUT/folder new; ln -s $OUT/file also; ln -s $OUT/gone dangling",
        "a chain": "ln -s $OUT one; mkdir two; ln -s ../one/folder two/three",
        "the way to the repository": "rm .git; ln -s $PROJECT/.git .git",
        "another repository": "echo gitdir: $PROJECT/.git > .git",
        "a repository inside": "mkdir sub; ln -s $PROJECT/.git sub/.git",
        "ignored": "echo build/ >> .gitignore; ln -s $OUT/folder build",
        "attributes": "ln -s $OUT/file .gitattributes; ln -sf $OUT/file .gitignore",
        "modules": "ln -s $OUT/file .gitmodules",
        "temporary files of ours": "for n in README.md .git; do ln -s $OUT/file"
        " $n.cleveragents-tmp; done",
    },
    "assets": {
        "a file": "ln -sf $OUT/file one.txt",
        "a folder": "rm -r deep; ln -s $OUT/folder deep",
        "all of it": "rm -r -- *; ln -s $OUT deep; ln -s $OUT/file one.txt; ln -s / root",
        "a name that leads up": "ln -s ../../.. up; ln -s .. parent",
    },
    "db": {
        "the database": "rm app.db; ln -s $OUT/app.db app.db",
        "the database as a folder": "rm app.db; ln -s $OUT app.db",
        "the log": "ln -s $OUT/file app.db-wal",
        "the journal": "ln -s $OUT/file app.db-journal",
        "shared memory": "ln -s $OUT/file app.db-shm",
        "a journal to be made": "ln -s $OUT/gone app.db-journal; ln -s $OUT/gone app.db-wal",
    },
    "private": {
        "temporary files": "ln -s $OUT $TMPDIR/out; ln -s $OUT/file $TMPDIR/file;"
        " mkdir $TMPDIR/shut; ln -s $OUT $TMPDIR/shut/out; chmod 0 $TMPDIR/shut",
    },
}
CASES = [(resource, name) for resource, ways in PLANTED.items() for name in ways]


@pytest.fixture
def out(world: World) -> Path:
    place = world.top / "out"
    (place / "folder").mkdir(parents=True)
    (place / "folder/inner").write_text("theirs\n")
    (place / "file").write_text("theirs\n")
    with closing(sqlite3.connect(place / "app.db")) as db:
        db.executescript("create table theirs (x); insert into theirs values (1)")
    return place


@pytest.fixture
def resources(world: World) -> Mapping[str, Any]:
    assets, database = world.top / "assets", world.top / "app.db"
    (assets / "deep").mkdir(parents=True)
    (assets / "one.txt").write_text("one\n")
    (assets / "deep/two.txt").write_text("two\n")
    with closing(sqlite3.connect(database)) as db:
        db.executescript("create table t (x); insert into t values (1)")
    return {
        "code": {"type": "git-checkout", "path": "."},
        "assets": {"type": "fs-directory", "path": str(assets)},
        "db": {"type": "sqlite", "path": str(database)},
    }


def planting(world: World, out: Path, resource: str, command: str) -> Mapping[str, Any]:
    told = f"OUT='{out}'; PROJECT='{world.project.path}'; {command}"
    into = "code" if resource == "private" else resource
    return {"name": "plant", "tool": "shell", "with": {"resource": into, "command": told}}


def every_command(plan: PlanHandle) -> None:
    """Whatever they answer; most of them have to look at what was planted."""
    start = plan.groups[0].group_id
    for words in (("checkpoint", "create"), ("diff",), ("checkpoint", "verify"), ("status",)):
        plan(*words)
    plan.rollback(start)
    back = plan.groups[-1].group_id
    plan.rollback(back)
    plan("resume")
    plan.agents("doctor")
    plan.agents("store", "verify")


@pytest.mark.parametrize(("resource", "way"), CASES)
def test_no_command_follows_a_link_that_a_step_planted(
    world: World, out: Path, resources: Mapping[str, Any], resource: str, way: str
) -> None:
    step = planting(world, out, resource, PLANTED[resource][way])
    plan = world.use(step, resources=resources, confinement=REQUIRED)
    git = world.project.path / ".git"
    theirs = (out, world.project.path, world.top / "assets", git / "hooks")
    before = world.project.fingerprint()
    with nothing_happens(*theirs):
        plan.execute()
        planted = plan.tree()
        every_command(plan)
        assert plan.tree() == planted
    assert world.project.fingerprint() == before
    with nothing_happens(out):
        plan("apply", "--yes", "{}")
    assert os.lstat(out / "file").st_nlink == 1
