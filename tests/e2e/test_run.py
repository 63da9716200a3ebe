"""`agents run` without a terminal: a plan of where one stands, its steps, what becomes of it."""

import json
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.agents import COMMAND, Answer
from tests.support.trees import tree_of
from tests.support.world import PlanHandle, World


def run(world: World, *words: str) -> Answer:
    return world.agents.process("--format", "json", "run", *words)


def sh(world: World, script: str, *options: str) -> Answer:
    return run(world, *options, "--", "sh", "-c", script)


def plan_of(world: World, answer: Answer) -> PlanHandle:
    return PlanHandle(world.agents, answer.data["plan_id"])


def steps_of(plan: PlanHandle) -> list[str]:
    return [item["step"] for item in plan.status["progress"]]


def test_a_program_works_in_a_sandbox_and_the_project_is_as_it_was(world: World) -> None:
    before = tree_of(world.project.path)

    done = sh(world, "echo hi > a.txt; echo said").ok()

    assert tree_of(world.project.path) == before
    assert done.data["name"] == "sh-1"
    assert done.data["state"] == "complete"
    assert done.data["exit_code"] == 0
    assert not done.data["applied"]
    assert done.data["files"] == [{"path": "a.txt", "change": "+1 -0", "status": "added"}]
    assert done.data["summary"] == {"files_changed": 1, "insertions": 1, "deletions": 0}
    assert done.data["next"][1] == f"agents apply {done.data['plan_id']}"
    assert steps_of(plan_of(world, done)) == ["a.txt"]


def test_what_a_program_prints_is_live_and_its_two_streams_stay_apart(world: World) -> None:
    done = world.agents.process("run", "--", "sh", "-c", "echo out; echo err >&2")

    assert done.out.startswith("out\n")
    assert "err\n" in done.err
    assert "out\n" not in done.err


def test_with_json_there_is_one_envelope_and_the_program_is_heard_on_stderr(world: World) -> None:
    done = sh(world, "echo out").ok()

    assert json.loads(done.out)["command"] == "run"
    assert "out\n" in done.err


def test_a_program_reads_our_input(world: World) -> None:
    done = subprocess.run(
        [COMMAND, "run", "--", "sh", "-c", "cat > said.txt"],
        cwd=world.project.path,
        env=world.agents.environ,
        input=b"from a pipe\n",
        capture_output=True,
        check=True,
    )

    assert b"said.txt" in done.stdout


def test_it_starts_in_the_same_sub_folder(world: World) -> None:
    place = world.project.path / "docs" / "deep"
    place.mkdir(parents=True)
    (place / "x").write_text("x")

    done = world.agents.at(place).process("--format", "json", "run", "--", "sh", "-c", "echo 1 > y")

    assert [file["path"] for file in done.ok().data["files"]] == ["docs/deep/y"]
    assert done.data["project"] == str(world.project.path)


def test_uncommitted_work_is_there_and_an_apply_leaves_the_rest_of_it(world: World) -> None:
    (world.project.path / "mine.txt").write_text("mine\n")

    done = sh(world, "cat mine.txt > copy.txt", "--yes").ok()

    assert done.data["applied"]
    assert done.data["state"] == "applied"
    assert (world.project.path / "copy.txt").read_text() == "mine\n"
    assert (world.project.path / "mine.txt").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("begin", "script", "after"),
    [
        pytest.param("a\n", "echo b >> mine.txt", "a\nb\n", id="changed"),
        pytest.param("a\n", "rm mine.txt; echo k > k", None, id="removed"),
    ],
)
def test_what_no_commit_has_is_applied_without_one(
    world: World, begin: str, script: str, after: str | None
) -> None:
    """And it is said so, of a file that only was in the working tree."""
    mine = world.project.path / "mine.txt"
    mine.write_text(begin)
    plan = plan_of(world, sh(world, script).ok())

    refused = plan("apply", "--yes")

    assert refused.error["code"] == "apply-conflict"
    assert "mine.txt" in refused.error["message"]
    assert "commits since" not in refused.error["message"]
    assert "--no-commit" in refused.error["hint"]
    assert mine.read_text() == begin
    plan("apply", "--yes", "--no-commit").ok()
    assert (mine.read_text() if mine.exists() else None) == after


def test_pauses_are_groups_and_steps_are_named_after_what_changed(world: World) -> None:
    script = "mkdir shop; echo 1 > shop/money.py; echo 1 > shop/a; sleep 5; rm shop/a"
    plan = plan_of(world, sh(world, script).ok())

    assert steps_of(plan) == ["shop/a, 1 more", "shop/a"]
    plan.rollback("1").ok()
    assert (plan.sandbox / "shop/a").exists()
    plan.rollback("0").ok()
    assert not (plan.sandbox / "shop").exists()


def test_after_a_rollback_what_is_left_is_the_result(world: World) -> None:
    plan = plan_of(world, sh(world, "echo 1 > good; sleep 5; echo 1 > bad").ok())
    plan.rollback("1").ok()

    plan("apply", "--yes").ok()

    assert (world.project.path / "good").exists()
    assert not (world.project.path / "bad").exists()


def test_a_program_that_fails_keeps_what_it_did_and_says_so(world: World) -> None:
    done = sh(world, "echo 1 > half; echo why >&2; exit 3", "--yes")
    plan = plan_of(world, done)

    assert done.code == 1
    assert done.data["exit_code"] == 3
    assert done.data["state"] == "errored"
    assert done.data["error"]["code"] == "program-failed"
    assert "exit code 3: why" in done.data["error"]["message"]
    assert not (world.project.path / "half").exists()
    assert steps_of(plan)[0] == "half"
    said = world.agents.process("status").ok().out
    for word in ("agents plan resume", "agents apply --as-it-is", "agents undo", "agents discard"):
        assert said.count(word) == 1
    assert plan("apply", "--yes").error["code"] == "plan-state"
    plan("apply", "--yes", "--as-it-is").ok()
    assert (world.project.path / "half").exists()


def test_it_is_applied_if_the_check_passes_in_the_sandbox(world: World) -> None:
    place = world.project.path / "part"
    place.mkdir()
    (place / "x").write_text("x")
    words = ("run", "--apply-if", "test -f new && test -f x", "--", "sh", "-c", "echo 1 > new")

    done = world.agents.at(place).process("--format", "json", *words)

    assert done.ok().data["applied"]
    assert (place / "new").exists()


def test_it_is_kept_if_the_check_fails(world: World) -> None:
    before = tree_of(world.project.path)

    done = sh(world, "echo 1 > new", "--apply-if", "echo 'too {bad}'; false")

    assert done.code == 1
    assert done.data["error"]["code"] == "apply-check-failed"
    assert done.data["state"] == "complete"
    assert tree_of(world.project.path) == before
    told = world.agents.process("plan", "errors", done.data["plan_id"])
    assert "too {bad}" in told.out
    plan_of(world, done)("apply", "--yes").ok()
    assert (world.project.path / "new").exists()


def test_a_program_that_fails_is_not_even_checked(world: World) -> None:
    done = sh(world, "echo 1 > new; exit 1", "--apply-if", "true")

    assert done.code == 1
    assert not (world.project.path / "new").exists()


def test_a_database_comes_along_and_goes_back(world: World) -> None:
    path = world.project.path.parent / "app.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript("create table t (x); insert into t values (1);")
    script = (
        "import os,sqlite3,time; d=sqlite3.connect(os.environ['CLEVERAGENTS_SANDBOX_DB']);"
        "d.execute('insert into t values (2)'); d.commit(); d.close(); print('in')"
    )
    done = run(world, "--db", str(path), "--", "python3", "-c", script).ok()
    plan = plan_of(world, done)

    assert rows(path) == 1
    plan.rollback("0").ok()
    again = run(world, "--db", str(path), "--yes", "--", "python3", "-c", script).ok()
    assert again.data["applied"]
    assert rows(path) == 2


def rows(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return db.execute("select count(*) from t").fetchone()[0]


def test_a_folder_without_a_repository_and_other_resources(world: World) -> None:
    place = world.top / "plain folder"
    place.mkdir()
    (place / "a").write_text("a")
    further = world.top / "further"
    further.mkdir()
    agents = world.agents.at(place)
    words = ("--resource", f"docs={further}", "--resource", f"more=fs-directory:{further}2")
    (world.top / "further2").mkdir()

    done = agents.process(
        *("--format", "json", "run", *words, "--yes", "--", "sh", "-c"),
        'echo 1 > b; echo 2 > "$CLEVERAGENTS_SANDBOX_DOCS/c"',
    )

    assert done.ok().data["project"] == str(place)
    assert (place / "b").read_text() == "1\n"
    assert (further / "c").read_text() == "2\n"


def test_a_project_that_is_a_link_is_the_project_itself(world: World) -> None:
    link = world.top / "link"
    link.symlink_to(world.project.path)

    done = world.agents.at(link).process("--format", "json", "run", "--", "sh", "-c", "echo 1 > z")

    assert done.ok().data["project"] == str(world.project.path)


def test_the_programs_own_help_is_the_programs(world: World) -> None:
    done = world.agents.process("run", "--", "sh", "-c", 'echo "$1"', "sh", "--help")

    assert done.ok().out.startswith("--help\n")


def test_two_at_once_are_two_plans(world: World) -> None:
    first = subprocess.Popen(
        [COMMAND, "run", "--", "sh", "-c", "echo 1 > one; sleep 2"],
        cwd=world.project.path,
        env=world.agents.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    second = sh(world, "echo 2 > two").ok()
    out, err = first.communicate(timeout=60)

    assert first.returncode == 0, err
    assert b"one" in out
    assert [file["path"] for file in second.data["files"]] == ["two"]


def test_a_program_that_is_allowed_nothing_has_no_network_and_no_home(world: World) -> None:
    done = world.agents.process("run", "--", "sh", "-c", "echo x > ~/here; echo ended with $?")

    assert "allowed: nothing outside of it" in done.err
    assert not (world.home / "here").exists()


def test_what_is_allowed_is_said_and_holds(world: World) -> None:
    place = world.home / "notes"
    words = ("--write", str(place), "--env", "MY_TOKEN", "--network")
    agents = world.agents.having(MY_TOKEN="t")

    done = agents.process("run", *words, "--", "sh", "-c", f'echo "$MY_TOKEN" > {place}/it').ok()

    assert f"allowed: the network, MY_TOKEN, writing {place}" in done.err
    assert (place / "it").read_text() == "t\n"
