"""Two processes at once, and databases, folders and streams that cannot be used."""

import os
import shutil
import sqlite3
import subprocess
import threading
import time
from contextlib import closing

import pytest
from tests.support.agents import COMMAND, Answer
from tests.support.refusals import nothing_was_created, refused
from tests.support.world import World, action, shell, write

# --- two at once --------------------------------------------------------------------------------


def test_of_two_processes_that_execute_a_plan_one_does_it_and_one_is_told(world: World) -> None:
    plan = world.use(
        shell("echo x >> log.txt; sleep 0.5", "one"), shell("echo y >> log.txt", "two")
    )
    processes = [world.agents.start("--format", "json", "plan", "execute", plan.id) for _ in "ab"]
    answers = []
    for process in processes:
        out, err = process.communicate(timeout=30)
        answers.append(Answer(argv=(), code=process.returncode, out=out.decode(), err=err.decode()))
    codes = sorted(answer.code for answer in answers)
    assert codes in ([0, 1], [0, 0])
    for answer in answers:
        if answer.code:
            refused(answer, "plan-locked")
    assert (plan.sandbox / "log.txt").read_text() == "x\ny\n"
    assert plan.reasons.count("on_tool_write_complete") == 2


def test_two_first_commands_at_once_both_work(fresh: World) -> None:
    processes = [fresh.agents.start("--format", "json", "plan", "list") for _ in "abc"]
    for process in processes:
        _, err = process.communicate(timeout=30)
        assert (process.returncode, err) == (0, b"")


@pytest.mark.parametrize("words", [("action", "check"), ("plan", "use", "--include-uncommitted")])
def test_a_first_command_leaves_no_folder_open_to_others(
    fresh: World, words: tuple[str, ...]
) -> None:
    path = fresh.write_action(action(write("a.txt", "a\n")))
    (fresh.project.path / "README.md").write_text("not committed\n")

    answer = fresh.agents(*words, path).ok()

    assert "open to other users" not in answer.err + answer.out
    data = fresh.agents.data_dir
    assert not data.exists() or data.stat().st_mode & 0o077 == 0


def test_different_plans_run_at_the_same_time(world: World) -> None:
    plans = [world.use(shell(f"echo {i} > f; sleep 0.2", "s"), write("g", "1")) for i in range(3)]
    processes = [world.agents.start("plan", "execute", plan.id) for plan in plans]
    for process in processes:
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
    for index, plan in enumerate(plans):
        assert (plan.sandbox / "f").read_text() == f"{index}\n"
        assert plan.status["state"] == "complete"


# --- the database and the data folder -----------------------------------------------------------


def test_a_database_that_is_locked_for_a_while_is_waited_for(world: World) -> None:
    plan = world.use(write("a", "1"))
    database = sqlite3.connect(
        world.agents.data_dir / "cleveragents.db", isolation_level=None, check_same_thread=False
    )
    database.execute("BEGIN IMMEDIATE")
    release = threading.Timer(2, lambda: (database.rollback(), database.close()))
    started = time.monotonic()
    release.start()
    answer = world.agents.json("plan", "execute", plan.id)
    release.join()
    assert answer.ok().data["state"] == "complete"
    assert time.monotonic() - started >= 2


def test_a_new_database_that_another_process_writes_is_waited_for(world: World) -> None:
    # Where the first commands of two processes meet: its tables made by one, not yet in WAL mode.
    file = world.agents.data_dir / "cleveragents.db"
    writer = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    writer.execute("PRAGMA journal_mode=DELETE")
    writer.execute("BEGIN IMMEDIATE")
    release = threading.Timer(1, lambda: (writer.rollback(), writer.close()))
    release.start()
    answer = world.agents.json("plan", "list")
    release.join()
    answer.ok()


def test_a_database_of_a_newer_version_is_refused_and_left_alone(world: World) -> None:
    world.use(write("a", "1"))
    file = world.agents.data_dir / "cleveragents.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA user_version = 9999")
    before, traces = world.records(), world.project.traces()
    path = world.write_action(action(write("a", "1")))
    for words in (("plan", "list"), ("plan", "use", path)):
        said = refused(world.agents(*words), "database-too-new")
        assert "9999" in said
        assert "pip install -U cleveragents" in said
    assert world.records() == before
    assert world.project.traces() == traces


@pytest.mark.parametrize(
    "content", [b"this is not a database, honestly" * 50, b"SQLite format 3\0"]
)
def test_a_file_that_is_no_database_is_refused_and_left_alone(world: World, content: bytes) -> None:
    file = world.agents.data_dir / "cleveragents.db"
    for path in world.agents.data_dir.glob("cleveragents.db*"):
        path.unlink()
    file.write_bytes(content)
    refused(world.agents("plan", "list"), "database-unusable")
    assert file.read_bytes() == content


@pytest.mark.parametrize("where", ["a file", "below a file"])
def test_a_data_dir_that_cannot_be_made_is_refused(world: World, where: str) -> None:
    file = world.top / "file"
    file.write_text("in the way")
    folder = file if where == "a file" else file / "below"
    path = world.write_action(action(write("a", "1")))
    for words in (("plan", "list"), ("plan", "use", path)):
        answer = world.agents("--data-dir", str(folder), *words)
        said = refused(answer, "data-dir-unusable")
        assert str(folder) in said
        assert "--data-dir" in said
    assert file.read_text() == "in the way"
    nothing_was_created(world)


@pytest.mark.parametrize("filled", [True, False])
def test_a_read_only_data_dir_is_refused(world: World, *, filled: bool) -> None:
    folder = world.agents.data_dir
    if not filled:
        shutil.rmtree(folder)
        folder.mkdir()
    folder.chmod(0o500)
    path = world.write_action(action(write("a", "1")))
    for words in (("plan", "list"), ("plan", "use", path)):
        answer = _without_privileges(world, *words)
        said = refused(answer, "data-dir-unusable")
        assert str(folder) in said
        assert "--data-dir" in said
    folder.chmod(0o700)
    assert world.project.traces() == []


def _without_privileges(world: World, *argv: str) -> Answer:
    """As root, nothing is read-only, until the right to override permissions is given up."""
    if os.geteuid() != 0:
        return world.agents.json(*argv)
    if shutil.which("setpriv") is None:
        pytest.skip("nothing is read-only for root")
    dropped = "setpriv --bounding-set=-all --inh-caps=-all"
    return _through_shell(world, f'exec {dropped} "$@"', *argv)


@pytest.mark.parametrize("name", ["sandboxes", "snapshots", "locks", "scratch"])
def test_a_file_in_the_way_of_one_of_our_folders_is_told(world: World, name: str) -> None:
    plan = world.use(write("a", "1"))
    folder = world.agents.data_dir / name
    if folder.is_dir():
        shutil.rmtree(folder)
    folder.write_text("in the way")
    answer = plan.execute()
    if answer.code:
        assert answer.error["code"] != "internal-error", answer.error
        assert answer.error["hint"]
    folder.unlink()
    plan.execute().ok()
    assert plan.status["state"] == "complete"


def test_a_current_folder_that_was_deleted_is_told(world: World) -> None:
    gone = world.top / "gone"
    gone.mkdir()
    script = f'cd "{gone}"; rmdir "{gone}"; exec "$@"'
    answer = _through_shell(world, script, "plan", "list")
    assert answer.code == 1
    assert "current folder" in answer.error["message"]
    assert answer.error["hint"]
    assert answer.err == ""


def _through_shell(world: World, script: str, *argv: str) -> Answer:
    done = subprocess.run(
        ["/bin/sh", "-c", script, "sh", COMMAND, "--format", "json", *argv],
        env=world.agents.environ,
        cwd=world.project.path,
        capture_output=True,
        check=False,
    )
    return Answer(
        argv=argv, code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode()
    )


def test_a_full_standard_output_is_no_traceback(world: World) -> None:
    answer = _through_shell(world, 'exec "$@" > /dev/full', "plan", "list")
    assert answer.code != 0
    assert "Traceback" not in answer.err


def test_a_closed_standard_output_is_no_traceback(world: World) -> None:
    answer = _through_shell(world, 'exec "$@" >&-', "plan", "list")
    assert "Traceback" not in answer.err
