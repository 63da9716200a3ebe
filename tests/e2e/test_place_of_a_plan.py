"""A plan belongs to a place, and `latest` is the last one made of the place one stands in."""

import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from tests.e2e.test_completion import tab
from tests.support.agents import COMMAND, Agents
from tests.support.projects import Project, make_project
from tests.support.refusals import refused
from tests.support.terminals import asking
from tests.support.world import PlanHandle, World, action, write

FOLDER = {"docs": {"type": "fs-directory", "path": "."}}
DATABASE = {"db": {"type": "sqlite", "path": "app.db"}}


def another(world: World, name: str = "other") -> Project:
    return make_project(world.top / name, world.agents.environ)


def used_at(world: World, place: Path, **keys: object) -> PlanHandle:
    agents = world.agents.at(place)
    path = world.write_action(action(write("new.txt", "new"), **keys))
    return PlanHandle(agents, agents("plan", "use", path).ok().data["plan_id"])


def latest(agents: Agents, *flags: str) -> str:
    return agents("plan", "status", *flags, "latest").ok().data["plan_id"]


def test_the_latest_plan_of_one_repository_is_not_applied_from_another(world: World) -> None:
    plan = world.run(write("a.txt", "one"))
    other = another(world)
    before = world.project.fingerprint(), other.fingerprint()

    answer = world.agents.at(other.path).json("plan", "apply", "--yes", "latest")

    told = refused(answer, "no-plan-here")
    assert plan.status["name"] in told
    assert str(world.project.path) in told
    assert "--any" in told
    assert (world.project.fingerprint(), other.fingerprint()) == before


def test_after_a_plan_could_not_be_made_the_next_line_applies_nothing(world: World) -> None:
    world.run(write("a.txt", "one"))
    before = world.project.fingerprint()
    agents = world.agents.at(another(world).path)

    assert agents.json("plan", "use", "misspelt.yaml").code == 1
    refused(agents.json("plan", "apply", "--yes", "latest"), "no-plan-here")

    assert world.project.fingerprint() == before


def test_each_place_has_its_own_latest_from_every_sub_folder(world: World) -> None:
    other = another(world)
    mine = world.use(write("a.txt", "one"))
    theirs = used_at(world, other.path)

    assert latest(world.agents) == mine.id
    assert latest(world.agents.at(world.project.path / "src")) == mine.id
    assert latest(world.agents.at(world.project.path / ".git" / "hooks")) == mine.id
    assert latest(world.agents.at(other.path / "docs")) == theirs.id


def test_elsewhere_any_takes_the_last_one_that_was_made(world: World) -> None:
    world.use(write("a.txt", "one"))
    last = used_at(world, another(world).path)

    assert latest(world.agents.at(world.top), "--any") == last.id
    assert latest(world.agents, "--any") == last.id
    refused(world.agents.at(world.top)("plan", "status", "latest"), "no-plan-here")
    assert world.agents.at(world.top)("plan", "status", last.id).ok()


def test_a_link_leads_to_the_place_it_points_to(world: World) -> None:
    plan = world.use(write("a.txt", "one"))
    link = world.top / "link"
    link.symlink_to(world.project.path / "src")

    assert latest(world.agents.at(link)) == plan.id


def test_a_folder_and_the_folder_of_a_database_are_places(world: World) -> None:
    pages, data = world.top / "pages", world.top / "data"
    (pages / "deep" / "er").mkdir(parents=True)
    (data / "deep").mkdir(parents=True)
    with closing(sqlite3.connect(data / "app.db")) as database:
        database.execute("create table t (id integer)")
    step = {"name": "w", "tool": "file.write", "with": {"resource": "docs", "path": "a"}}
    step["with"] |= {"content": "1"}
    look = {"name": "q", "tool": "sql.query", "with": {"resource": "db", "sql": "select 1"}}

    folder = used_at(world, pages, resources=FOLDER, steps=[step])
    database_plan = used_at(world, data, resources=DATABASE, steps=[look])

    assert latest(world.agents.at(pages / "deep" / "er")) == folder.id
    assert latest(world.agents.at(data / "deep")) == database_plan.id
    refused(world.agents.at(world.top)("plan", "status", "latest"), "no-plan-here")


def test_the_first_resource_says_where_a_plan_belongs(world: World) -> None:
    pages = world.top / "pages"
    pages.mkdir()
    both = {
        "code": {"type": "git-checkout", "path": "."},
        "docs": {"type": "fs-directory", "path": str(pages)},
    }
    plan = world.use(write("a.txt", "one"), resources=both)

    assert latest(world.agents) == plan.id
    refused(world.agents.at(pages)("plan", "status", "latest"), "no-plan-here")


@pytest.mark.parametrize("kind", ["repository", "worktree", "submodule"])
def test_a_repository_inside_a_place_is_a_place_of_its_own(world: World, kind: str) -> None:
    inner = world.project.path / "inner"
    if kind == "repository":
        make_project(inner, world.agents.environ)
    elif kind == "worktree":
        world.project.git("worktree", "add", "-q", str(inner), "-b", "beside")
    else:
        source = str(another(world).path)
        allowed = ("-c", "protocol.file.allow=always")
        world.project.git(*allowed, "submodule", "add", "-q", source, "inner")
    outer_plan = world.use(write("a.txt", "one"))

    refused(world.agents.at(inner / "src")("plan", "status", "latest"), "no-plan-here")
    inner_plan = used_at(world, inner)
    assert latest(world.agents.at(inner / "src")) == inner_plan.id
    assert latest(world.agents) == outer_plan.id


def test_of_folders_inside_each_other_the_innermost_that_has_a_plan_counts(world: World) -> None:
    outer, inner = world.top / "outer", world.top / "outer" / "inner"
    inner.mkdir(parents=True)
    step = {"name": "w", "tool": "file.list", "with": {"resource": "docs", "path": "."}}

    first = used_at(world, inner, resources=FOLDER, steps=[step])
    second = used_at(world, outer, resources=FOLDER, steps=[step])

    assert latest(world.agents.at(inner)) == first.id
    assert latest(world.agents.at(outer)) == second.id


def test_a_repository_that_was_moved_is_a_new_place_until_the_doctor_knows(world: World) -> None:
    plan = world.use(write("a.txt", "one"))
    moved = world.top / "moved"
    world.project.path.rename(moved)
    agents = world.agents.at(moved)

    assert f"demo-1  {world.project.path}" in refused(
        agents("plan", "status", "latest"), "no-plan-here"
    )
    change = f"{world.project.path}={moved}"
    agents("doctor", "--fix", "--yes", "--moved", change).ok()
    assert latest(agents) == plan.id


def test_a_folder_that_is_gone_is_no_place(world: World) -> None:
    world.use(write("a.txt", "one"))
    gone = world.project.path / "gone"
    gone.mkdir()
    line = f"cd {gone} && rmdir {gone} && {COMMAND} --format json plan apply --yes latest"
    done = subprocess.run(
        ["sh", "-c", line], env=world.agents.environ, capture_output=True, check=False
    )
    assert (done.returncode, b"current-folder-gone" in done.stdout) == (1, True)


def test_each_data_directory_has_its_own_latest(world: World) -> None:
    world.use(write("a.txt", "one"))
    elsewhere = ("--data-dir", str(world.top / "elsewhere"))

    answer = world.agents(*elsewhere, "plan", "status", "latest")

    assert answer.error["message"] == "there is no plan yet"


def test_latest_is_the_last_one_made_also_after_the_clock_went_back(world: World) -> None:
    patch = world.top / "clock"
    patch.mkdir()
    (patch / "sitecustomize.py").write_text(
        "import time\nreal = time.time_ns\ntime.time_ns = lambda: real() - 10**18\n"
    )
    world.use(write("a.txt", "one"))
    path = world.write_action(action(write("b.txt", "two")))
    late = world.agents.having(PYTHONPATH=str(patch)).json("plan", "use", path).ok()

    assert latest(world.agents) == late.data["plan_id"]
    listed = world.agents("plan", "list").ok().data["plans"]
    assert [row["plan_id"] for row in listed][0] == late.data["plan_id"]
    assert latest(world.agents, "--any") == late.data["plan_id"]


def test_the_list_says_where_each_plan_belongs_and_which_is_latest_here(world: World) -> None:
    other = another(world)
    mine = world.use(write("a.txt", "one"))
    theirs = used_at(world, other.path)

    rows = world.agents("plan", "list").ok().data["plans"]

    assert [(row["plan_id"], row["project"], row["latest"]) for row in rows] == [
        (theirs.id, str(other.path), False),
        (mine.id, str(world.project.path), True),
    ]
    here = world.agents("plan", "list", "--here").ok().data["plans"]
    assert [row["plan_id"] for row in here] == [mine.id]
    shown = world.agents.inside("--format", "plain", "plan", "list").ok()
    first, second = shown.out.splitlines()[2:4]  # those of this place come first
    assert first.endswith("  here")
    assert second.endswith(f"  {other.path.name}")
    elsewhere = world.agents.at(world.top)("plan", "list").ok().data["plans"]
    assert not any(row["latest"] for row in elsewhere)


def test_a_shell_offers_the_latest_only_where_there_is_one(world: World) -> None:
    other = another(world)
    mine = world.run(write("a.txt", "one"))
    theirs = used_at(world, other.path)

    names = [plan.status["name"] for plan in (theirs, mine)]
    assert tab(world.agents, "agents plan status ") == ["latest", names[1]]
    assert tab(world.agents.at(world.top), "agents plan status ") == [""]
    offered = tab(world.agents.at(world.top), "agents plan status --any ")
    assert offered == ["latest", *names]
    assert tab(world.agents, "agents plan rollback latest sta") == ["start"]
    assert tab(world.agents.at(world.top), "agents plan rollback latest sta") == [""]


@pytest.mark.parametrize("word", ["apply", "rollback", "discard"])
def test_questions_and_results_name_the_project(world: World, word: str) -> None:
    plan = world.run(write("a.txt", "one"))
    more = ("start",) if word == "rollback" else ()
    if word == "discard":
        plan("cancel").ok()
    place = str(world.project.path)

    with asking(world, "plan", word, "latest", *more) as (process, terminal):
        seen = b""
        while b"[y/N]" not in seen:
            seen += os.read(terminal, 4096)
        os.write(terminal, b"n\n")
        process.communicate(timeout=60)
    assert place in seen.decode().splitlines()[-1]

    answer = world.agents("plan", word, "--yes", "latest", *more).ok()
    # Of a rollback every key is promised; elsewhere a program finds the project among the data.
    assert answer.data.get("project") == (None if word == "rollback" else place)
    assert any(place in message for message in answer.envelope["messages"])


def test_without_a_terminal_the_refusal_names_the_project_too(world: World) -> None:
    world.run(write("a.txt", "one"))
    told = refused(world.agents("plan", "apply", "latest"), "confirmation-needed", 2)
    assert str(world.project.path) in told
