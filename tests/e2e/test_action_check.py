"""`agents action check`: all that `plan use` would refuse, in one go; nothing is changed."""

import sqlite3
from contextlib import closing
from typing import Any

import pytest
from tests.support.agents import Answer
from tests.support.refusals import refused
from tests.support.trees import tree_of
from tests.support.world import CODE, World, action, shell, write


def check(world: World, resources: dict[str, Any], *more: str, **keys: Any) -> Answer:
    path = world.write_action(action(shell("true"), resources=resources, **keys))
    return world.agents("action", "check", *more, path)


def problems(answer: Answer) -> list[str]:
    refused(answer, "action-invalid")
    return [line.strip() for line in answer.error["message"].splitlines()[1:]]


@pytest.fixture
def wrong(world: World) -> dict[str, dict[str, Any]]:
    """A resource of each kind of mistake that is not one of the file."""
    (world.top / "text.db").write_text("this is no database at all; " * 9)
    (world.top / "plain").mkdir()
    nowhere = str(world.top / "nowhere")
    return {
        "missing": {"type": "git-checkout", "path": nowhere},
        "plain": {"type": "git-checkout", "path": str(world.top / "plain")},
        "part": {"type": "git-checkout", "path": str(world.project.path / "src")},
        "folder": {"type": "fs-directory", "path": nowhere},
        "home": {"type": "fs-directory", "path": str(world.home)},
        "file": {"type": "fs-directory", "path": str(world.top / "text.db")},
        "database": {"type": "sqlite", "path": str(world.top / "text.db")},
    }


def test_each_resource_that_plan_use_would_refuse_is_told_with_its_line(
    world: World, wrong: dict[str, dict[str, Any]]
) -> None:
    found = problems(check(world, {**CODE, **wrong}))

    assert [text.split(": ")[1] for text in found] == [f"resources.{name}" for name in wrong]
    assert all(text.startswith("line ") for text in found)


def test_whatever_is_told_is_what_plan_use_says(
    world: World, wrong: dict[str, dict[str, Any]]
) -> None:
    for name, resource in wrong.items():
        (told,) = problems(check(world, {"code": resource}))
        path = world.write_action(action(shell("true"), resources={"code": resource}))
        answer = world.agents("plan", "use", path)
        assert answer.code == 1, name
        assert " ".join(answer.error["message"].split()) in told, name
        assert answer.error["hint"] in told, name


def test_mistakes_of_the_file_and_of_what_it_names_are_told_together(world: World) -> None:
    nowhere = {"type": "git-checkout", "path": "nowhere"}
    found = problems(check(world, {"code": nowhere}, nonsense=1, steps=[{"tool": "file.wirte"}]))
    assert any("nowhere does not exist" in text for text in found)
    assert any("nonsense" in text for text in found)
    assert any("file.wirte" in text for text in found)


def test_the_same_place_twice_and_what_is_in_a_submodule_are_told(world: World) -> None:
    again = {"type": "git-checkout", "path": str(world.project.path)}
    (told,) = problems(check(world, {**CODE, "again": again}))
    assert "`code` and `again` are the same" in told


def test_an_actor_that_could_not_be_asked_is_told(world: World) -> None:
    path = world.write_action(
        {"name": "x", "description": "x", "resources": CODE,
         "actor": {"type": "llm", "model": "openai/x"}}
    )  # fmt: skip
    used = world.agents("plan", "use", path)
    assert used.code == 1
    (told,) = problems(world.agents("action", "check", path))
    assert "actor" in told and used.error["message"] in told


def test_nothing_is_changed_whether_it_is_right_or_wrong(world: World) -> None:
    (world.top / "assets").mkdir()
    with closing(sqlite3.connect(world.top / "app.db")) as database:
        database.executescript("pragma journal_mode = wal; create table t (a)")
    good = {
        **CODE,
        "assets": {"type": "fs-directory", "path": str(world.top / "assets")},
        "db": {"type": "sqlite", "path": str(world.top / "app.db")},
    }
    world.project.write("dirty.txt", "mine")
    world.write_action(action(shell("true"), resources=good))
    data, project = tree_of(world.agents.data_dir), world.project.fingerprint()
    beside = sorted(path.name for path in world.top.iterdir())

    answer = check(world, good).ok()
    check(world, {**good, "x": {"type": "sqlite", "path": "none.db"}})

    assert any("dirty.txt" in text for text in answer.envelope["messages"])
    assert tree_of(world.agents.data_dir) == data
    assert world.project.fingerprint() == project
    assert world.project.traces() == []
    assert sorted(path.name for path in world.top.iterdir()) == beside


def test_the_resources_can_be_named_as_for_plan_use_or_left_alone(world: World) -> None:
    nowhere = {"code": {"type": "git-checkout", "path": "nowhere"}}
    place = ("--resource", f"code={world.project.path}")
    assert check(world, nowhere, *place).ok().data["resources"][0]["path"] == str(
        world.project.path
    )
    check(world, nowhere, "--file-only").ok()
    refused(check(world, nowhere, "--resource", "code"), "usage", 2)


def test_what_is_right_can_be_used(world: World) -> None:
    path = world.write_action(action(write("a", "b")))
    world.agents("action", "check", path).ok()
    world.agents("plan", "use", path).ok()
