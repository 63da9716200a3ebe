"""The dangers of working in the user's own tree, each by its number, and input that is refused."""

import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
from tests.support.agents import COMMAND, Agents
from tests.support.in_place import Place, error_of
from tests.support.projects import make_project
from tests.support.trees import tree_of
from tests.support.world import World


@pytest.fixture
def place(world: World) -> Place:
    return Place(world)


def wait_until(happened: Path, process: "subprocess.Popen[bytes]") -> None:
    while not happened.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


# --- 1: still running ---------------------------------------------------------------------------


def test_1_a_run_that_goes_on_is_named_and_now_stops_it_first(place: Place) -> None:
    before = place.state()
    running = subprocess.Popen(
        [COMMAND, "run", "--in-place", "--", "sh", "-c", "echo x > x; sleep 600"],
        cwd=place.path,
        env=place.world.agents.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )
    wait_until(place.path / "x", running)

    refused = place("undo")
    assert error_of(refused) == "plan-locked"
    assert str(running.pid) in refused.error["message"]
    assert "--now" in refused.error["hint"]
    place("rewind", "0", "--now", "--yes").ok()

    running.communicate(timeout=60)
    assert place.state() == before


def test_1_what_a_run_left_running_is_named_and_now_ends_it(place: Place) -> None:
    plan_id = place.run("echo x > x").ok().data["plan_id"]
    left = subprocess.Popen(
        ["sleep", "600"], env={**os.environ, "CLEVERAGENTS_STEP": f"{plan_id}:call"}
    )
    try:
        refused = place("undo")
        assert error_of(refused) == "still-running"
        assert f"{left.pid} (sleep)" in refused.error["message"]
        assert (place.path / "x").exists()

        place("undo", "--now").ok()
        assert left.wait(10) == -signal.SIGKILL
        assert not (place.path / "x").exists()
    finally:
        left.kill()
        left.wait()


# --- 2: git at the same time --------------------------------------------------------------------


def test_2_commits_of_the_user_while_steps_are_captured(place: Place) -> None:
    ended = threading.Event()

    def commit() -> None:
        for number in range(1000):
            if ended.is_set():
                return
            place.project.write("mine.txt", str(number))
            place.project.git("add", "mine.txt")
            place.project.git("commit", "-qm", f"mine {number}")

    user = threading.Thread(target=commit)
    user.start()
    try:
        place.world.agents.process(
            *("run", "--in-place", "--", "sh", "-c"),
            "for i in 1 2 3; do echo $i > agent.txt; sleep 0.2; done",
        ).ok()
    finally:
        ended.set()
        user.join()

    assert not (place.path / ".git/index.lock").exists()
    head = place.project.head
    place("undo", "--keep").ok()
    assert place.project.head == head
    assert place.project.git("fsck", "--strict") == ""


def test_2_a_lock_of_somebody_else_is_waited_for_and_then_refused(place: Place) -> None:
    place.run("echo x > x; git add x; git commit -qm x").ok()
    lock = place.path / ".git/index.lock"
    lock.write_text("")
    before = place.state()

    refused = place("undo")

    assert error_of(refused) == "repository-busy"
    assert str(lock) in refused.error["hint"]
    assert lock.exists()
    assert place.state() == before
    lock.unlink()
    place("undo").ok()


# --- 3: editors ---------------------------------------------------------------------------------


def test_3_a_buffer_that_is_saved_again_after_a_restore_is_a_change_by_others(
    place: Place,
) -> None:
    place.run("echo agent > text").ok()
    buffer = place.project.read("text")
    place("undo").ok()

    place.project.write(".text.swp", buffer + "typed\n").rename(place.path / "text")
    place.run("echo more > more").ok()

    assert place.rows() == ["changed by others: text", "more"]
    place("undo", "-n", "2").ok()
    assert not (place.path / "text").exists()


# --- 4: times -----------------------------------------------------------------------------------


def test_4_what_goes_back_gets_the_present_time(place: Place) -> None:
    path = place.project.write("main.c", "1")
    os.utime(path, (1, 1))
    place.run("echo 2 > main.c").ok()
    begun = time.time() - 1

    place("undo").ok()

    assert path.read_text() == "1"
    assert path.stat().st_mtime > begun


# --- 5: watches ----------------------------------------------------------------------------------


def test_5_where_nothing_can_be_watched_everything_is_compared_and_that_is_told(
    place: Place,
) -> None:
    """In a namespace that has no watches to give; nobody else's limit is touched."""
    no_watches = "echo 0 > /proc/sys/user/max_inotify_watches"
    if subprocess.run(["unshare", "-U", "-r", "sh", "-c", no_watches], check=False).returncode:
        pytest.skip("there are no user namespaces here")
    before = place.state()
    script = "echo x > x; rm README.md"
    inside = f'{no_watches}; exec "$0" run --in-place -- sh -c "{script}"'

    run = subprocess.run(
        ["unshare", "-U", "-r", "sh", "-c", inside, COMMAND],
        cwd=place.path,
        env=place.world.agents.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )

    assert "compares the whole tree, in 0." in run.stderr
    assert "raise fs.inotify.max_user_watches" in run.stderr
    assert (place.path / "x").exists()
    place("undo").ok()
    assert place.state() == before


# --- 6: room ------------------------------------------------------------------------------------


def test_6_a_tree_with_too_much_in_it_is_refused_before_anything_is_stored(place: Place) -> None:
    (place.path / "data").mkdir()
    with (place.path / "data/huge").open("wb") as file:
        file.truncate(5 * 1024**3)

    refused = place.run("true")

    assert error_of(refused) == "in-place-refused"
    assert "--exclude data/" in refused.error["hint"]
    begun = place.run("echo x > x; echo y >> data/more", "--exclude", "data/").ok()
    assert "data/" in begun.err
    told = place("undo").ok().envelope["messages"]
    assert any("no checkpoint has it: data/" in line for line in told)
    assert (place.path / "data/huge").stat().st_size == 5 * 1024**3
    assert (place.path / "data/more").read_text() == "y\n"


# --- 7: places ----------------------------------------------------------------------------------


def test_7_home_the_top_and_our_own_data_are_refused(place: Place) -> None:
    agents = place.world.agents
    for folder in (agents.home, Path("/"), agents.data_dir, agents.home.parent):
        refused = agents.at(folder)("run", "--in-place", "--", "true")
        assert error_of(refused) in ("place-refused", "in-place-refused"), folder


def test_7_a_home_that_is_a_repository_is_refused(place: Place) -> None:
    subprocess.run(["git", "init", "-q", str(place.world.home)], check=True)
    refused = place.world.agents.at(place.world.home)("run", "--in-place", "--", "true")
    assert error_of(refused) in ("place-refused", "in-place-refused")


def test_7_a_folder_above_repositories_is_refused_and_so_is_a_repository_inside(
    place: Place, tmp_path: Path
) -> None:
    above = tmp_path / "above"
    for name in ("one", "two"):
        make_project(above / name, place.world.agents.environ)
    refused = place.world.agents.at(above)("run", "--in-place", "--", "true")
    assert error_of(refused) == "in-place-refused"
    assert "one, two" in refused.error["message"]

    shutil.copytree(above / "one", place.path / "vendor/one", symlinks=True)
    refused = place.run("true")
    assert error_of(refused) == "in-place-refused"
    assert "--exclude vendor/one/" in refused.error["hint"]
    place.run("true", "--exclude", "vendor/one/").ok()


def test_7_a_bare_repository_and_a_worktree_are_refused(place: Place, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
    other = tmp_path / "tree"
    place.project.git("worktree", "add", "-q", str(other))

    for folder in (bare, other):
        refused = place.world.agents.at(folder)("run", "--in-place", "--", "true")
        assert error_of(refused) == "in-place-refused", folder
        if folder is bare:
            assert "git clone" in refused.error["hint"]


def test_7_a_tree_that_cannot_be_written_is_refused(place: Place) -> None:
    if not os.geteuid():
        pytest.skip("no mode stops root")
    place.path.chmod(0o555)
    try:
        assert error_of(place.run("true")) == "in-place-refused"
    finally:
        place.path.chmod(0o755)


# --- 8: secrets ---------------------------------------------------------------------------------


def test_8_secrets_are_in_our_store_for_nobody_else_and_can_be_left_out(place: Place) -> None:
    secret = place.project.write(".env", "KEY=1")
    place.run("echo KEY=2 > .env; echo x > x", "--exclude", ".env").ok()

    place("undo").ok()

    assert secret.read_text() == "KEY=2\n"
    data = place.world.agents.data_dir
    assert data.stat().st_mode & 0o077 == 0
    found = subprocess.run(["grep", "-rl", "KEY=", str(data)], capture_output=True, check=False)
    assert b".db" not in found.stdout.replace(b"cleveragents.db", b"")


# --- 9: what is no file -------------------------------------------------------------------------


def test_9_sockets_and_pipes_are_left_alone_and_told(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(place.path / "pipe")
    short = place.path / "s"
    monkeypatch.chdir(place.path)  # the whole path may be too long for a socket
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("s")
        begun = place.run("echo x > x").ok()
        place("undo").ok()

    assert "pipe" in begun.err
    assert short.is_socket()
    assert (place.path / "pipe").is_fifo()


def test_9_a_file_that_cannot_be_read_is_named(place: Place) -> None:
    if not os.geteuid():
        pytest.skip("no mode stops root")
    path = place.project.write("closed", "x")
    path.chmod(0)

    place.run("echo x > x").ok()
    place("undo").ok()

    assert path.stat().st_mode & 0o777 == 0


def test_9_what_is_on_another_file_system_is_told_and_captured(place: Place) -> None:
    (place.path / "there").mkdir()
    inside = (
        "mount -t tmpfs none there && echo one > there/f || exit 77; "
        """"$0" run --in-place -- sh -c 'echo two > there/f; echo n > there/new' &&"""
        ' "$0" undo && cat there/f && ls there'
    )

    done = subprocess.run(
        ["unshare", "-U", "-r", "-m", "sh", "-c", inside, COMMAND],
        cwd=place.path,
        env=place.world.agents.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("nothing can be mounted here")

    assert done.returncode == 0, done
    assert "on other file systems, and captured as they are: there" in done.stderr
    assert done.stdout.split()[-2:] == ["one", "f"]


def test_9_a_file_that_cannot_be_changed_stops_a_way_back_whole(place: Place) -> None:
    fixed = place.project.write("fixed", "one")
    place.run("echo x > x; echo two > fixed").ok()
    before = place.state()
    if subprocess.run(["chattr", "+i", str(fixed)], check=False).returncode:
        pytest.skip("this file system, or this user, makes no file unchangeable")
    try:
        refused = place("undo")
    finally:
        subprocess.run(["chattr", "-i", str(fixed)], check=True)

    assert error_of(refused) == "restore-failed"
    assert "fixed" in refused.error["message"]
    assert place.state() == before
    place("undo").ok()
    assert fixed.read_text() == "one"


# --- 11: two homes ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["checkout", "folder"])
def test_11_a_second_home_finds_the_first_ones_note(
    place: Place, tmp_path: Path, kind: str
) -> None:
    folder = place.path
    if kind == "folder":
        folder = tmp_path / "plain"
        folder.mkdir()
        (folder / "a").write_text("1")
    first = place.world.agents.at(folder)
    first("run", "--in-place", "--", "sh", "-c", "echo x > x").ok()
    home = tmp_path / "second"
    home.mkdir()
    second = Agents(home, folder)

    refused = second("run", "--in-place", "--", "sh", "-c", "echo y > y")

    assert error_of(refused) == "place-taken"
    assert str(first.data_dir) in refused.error["message"]
    assert not (folder / "y").exists()
    first("apply", "--yes").ok()
    second("run", "--in-place", "--", "sh", "-c", "echo y > y").ok()
    second("undo").ok()
    assert (folder / "x").exists()


# --- 12: the repository itself ------------------------------------------------------------------


@pytest.mark.parametrize("script", ["rm -rf .git", "rm -rf .git; git init -q", "git clean -fdxq"])
def test_12_files_come_back_whatever_becomes_of_the_repository(place: Place, script: str) -> None:
    place.project.write("untracked.txt", "mine")
    place.project.write("ignored.log", "mine too")
    place.project.write(".git/info/exclude", "*.log\n")
    before = tree_of(place.path)

    begun = place.run(f"rm -r README.md; {script}; true").ok()
    done = place("undo").ok()

    assert "if `.git` is lost" in begun.err
    now = tree_of(place.path)
    now.pop(b".cleveragents-in-place", None)  # for others, where there is no `.git` to note it in
    assert now == before
    if ".git" in script:
        assert any("the repository" in line for line in done.data["left"])
