"""`agents run --in-place`: one timeline of the user's own tree, and what a way back spares."""

import os
import stat
import subprocess
from pathlib import Path

import pytest
from tests.support.agents import COMMAND
from tests.support.in_place import Place, error_of
from tests.support.world import World, wait_for

_WORK = (
    "echo two > README.md; echo new > new.txt; mkdir -p deep/er; echo x > deep/er/x; chmod 755"
    " new.txt; ln -s new.txt a-link; mkdir nothing; git add -A; git commit -qm agent"
)


@pytest.fixture
def place(world: World) -> Place:
    return Place(world)


# --- the whole way ------------------------------------------------------------------------------


def test_a_program_works_in_the_tree_itself_and_undo_and_redo_are_exact(place: Place) -> None:
    before = place.state()

    done = place.run(_WORK).ok()

    after = place.state()
    assert after != before
    assert done.data["in_place"] is True
    assert done.data["next"][2] == "agents undo"
    place("undo").ok()
    assert place.state() == before
    place("redo").ok()
    assert place.state() == after


def test_nothing_is_copied_and_nothing_of_ours_is_in_the_way(place: Place) -> None:
    place.run("echo x > new.txt").ok()

    assert not list((place.world.agents.data_dir / "sandboxes").iterdir())
    assert place.project.git("status", "--short") == "?? new.txt"


def test_later_runs_go_on_with_the_same_timeline(place: Place) -> None:
    states = [place.state()]
    for name in ("one", "two", "three"):
        place.run(f"echo {name} > {name}.txt").ok()
        states.append(place.state())

    assert len(place("plan", "list").ok().data["plans"]) == 1
    for wanted in reversed(states[:-1]):
        place("undo").ok()
        assert place.state() == wanted
    for wanted in states[1:]:
        place("redo").ok()
        assert place.state() == wanted


def test_the_words_work_from_any_folder_below(place: Place) -> None:
    before = place.state()
    place.run("mkdir -p sub; echo x > sub/x").ok()
    below = place.world.agents.at(place.path / "sub")

    assert "sub" in below.inside("log").ok().out
    assert below("diff").ok().data["diff_summary"]["files_changed"] == 1
    assert below("status").ok().data["sandboxes"][0]["strategy"] == "in-place"
    place.world.agents.at(place.path)("rewind", "0", "--yes").ok()

    assert place.state() == before


def test_a_sandbox_plan_made_since_does_not_hide_the_timeline(place: Place) -> None:
    place.run("echo one > one.txt").ok()
    place("run", "--", "true").ok()
    place.run("echo two > two.txt").ok()

    place("undo").ok()

    assert (place.path / "one.txt").exists()
    assert not (place.path / "two.txt").exists()


def test_a_folder_without_a_repository_is_worked_on_too(place: Place, tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "a").write_text("1")
    agents = place.world.agents.at(folder)

    agents("run", "--in-place", "--", "sh", "-c", "echo 2 > a; echo b > b").ok()
    agents("undo").ok()

    assert [(p.name, p.read_text()) for p in folder.iterdir() if p.name[0] != "."] == [("a", "1")]
    agents("apply", "--yes").ok()
    assert [path.name for path in folder.iterdir()] == ["a"]


def test_apply_means_done_and_touches_nothing(place: Place) -> None:
    place.run(_WORK).ok()
    place("undo").ok()
    before = place.state()

    place("apply", "--yes").ok()

    assert place.state() == before
    assert place.project.git("for-each-ref", "refs/cleveragents") == ""
    assert not (place.path / ".git/cleveragents-in-place").exists()
    assert error_of(place("undo")) == "timeline-closed"
    place.run("true").ok()
    assert len(place("plan", "list").ok().data["plans"]) == 2


@pytest.mark.parametrize(
    "words", [("discard", "--yes"), ("plan", "cancel"), ("doctor", "--fix"), ("uninstall", "--yes")]
)
def test_no_command_ever_removes_the_tree(place: Place, words: tuple[str, ...]) -> None:
    place.run(_WORK).ok()
    before = place.state()

    place(*words).ok()

    assert place.state() == before


# --- what belongs to a group: the rows of the table -----------------------------------------------


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("echo x >> README.md; rm -rf docs; mkdir a; chmod 700 a", id="files"),
        pytest.param("echo KEY=2 > .env; echo .env > .git/info/exclude", id="ignored"),
        pytest.param("echo x > s; git add s", id="index"),
        pytest.param("git switch -qc other; git commit -q --allow-empty -m x", id="branches"),
        pytest.param("git checkout -q --detach; git commit -q --allow-empty -m x", id="detached"),
        pytest.param("git tag light; git tag -am annotated heavy", id="tags"),
        pytest.param("echo x >> README.md; git stash -q; echo y > y; git stash -qu", id="stash"),
        pytest.param("git branch gone; git branch -D gone", id="no move"),
        pytest.param("git commit -q --amend -m other; git gc -q --prune=now", id="amended"),
    ],
)
def test_what_belongs_to_a_group_goes_back_and_forth(place: Place, script: str) -> None:
    before = place.state()
    place.run(f"echo begin > begin.txt; {script}").ok()
    after = place.state()

    place("undo").ok()
    assert place.state() == before
    place("redo").ok()
    assert place.state() == after


def test_objects_that_only_a_group_needs_outlive_gc(place: Place) -> None:
    place.project.git("tag", "-am", "annotated", "heavy")
    place.project.git("branch", "side")
    place.run("git commit -q --allow-empty -m x").ok()
    after = place.state()
    place.run("git tag -d heavy; git branch -D side; git reset -q --hard HEAD~1").ok()
    place.project.git("reflog", "expire", "--expire=now", "--all")
    place.project.git("gc", "-q", "--prune=now")

    place("undo").ok()

    assert place.state() == after


def test_remotes_settings_hooks_and_logs_are_never_touched(place: Place) -> None:
    place.run(
        "echo x > x; git config my.key 1; git update-ref refs/remotes/origin/main HEAD;"
        " echo '#!/bin/sh' > .git/hooks/pre-push; git commit -q --allow-empty -m x"
    ).ok()
    log = place.project.git("reflog")

    done = place("undo").ok()

    assert place.project.git("config", "my.key") == "1"
    assert place.project.git("rev-parse", "refs/remotes/origin/main")
    assert (place.path / ".git/hooks/pre-push").exists()
    # What git itself noted stays, and it notes this too.
    assert len(place.project.git("reflog").splitlines()) == len(log.splitlines()) + 1
    assert any("settings or hooks" in warning for warning in done.envelope["messages"])


def test_a_merge_in_progress_goes_back_and_forth(place: Place) -> None:
    git = place.project.git
    git("switch", "-qc", "theirs")
    place.project.write("README.md", "theirs\n")
    place.project.commit()
    git("switch", "-q", "-")
    place.project.write("README.md", "ours\n")
    place.project.commit()
    before = place.state()
    place.run("git merge theirs; true").ok()
    assert (place.path / ".git/MERGE_HEAD").exists()
    after = place.state()

    place("undo").ok()
    assert place.state() == before
    assert not (place.path / ".git/MERGE_HEAD").exists()
    place("redo").ok()
    assert place.state() == after
    assert (place.path / ".git/MERGE_HEAD").exists()


def test_a_run_may_begin_in_the_middle_of_a_rebase(place: Place) -> None:
    git = place.project.git
    place.project.write("README.md", "a\n")
    place.project.commit()
    place.project.write("README.md", "b\n")
    place.project.commit()
    git("-c", "sequence.editor=sed -i 1s/pick/edit/", "rebase", "-i", "HEAD~1")
    before = place.state()

    place.run("echo more > more.txt; git add more.txt; git commit -q --amend --no-edit").ok()
    place("undo").ok()

    assert place.state() == before
    git("rebase", "--continue")


def test_what_did_not_change_is_the_same_file_and_what_did_keeps_its_attributes(
    place: Place,
) -> None:
    kept, other = place.path / "README.md", place.project.write("other.txt", "1")
    os.setxattr(other, "user.note", b"mine")
    inode = kept.stat().st_ino

    place.run("echo 2 > other.txt").ok()
    place("undo").ok()

    assert kept.stat().st_ino == inode
    assert other.read_text() == "1"
    assert os.getxattr(other, "user.note") == b"mine"


def test_many_files_are_replaced_and_never_written_where_they_are(place: Place) -> None:
    for number in range(40):
        place.project.write(f"many/{number}", "first")
    place.run("for f in many/*; do echo second > $f; done").ok()
    somebody = (place.path / "many/7").open()

    place("undo").ok()

    assert somebody.read() == "second\n"
    somebody.close()
    assert {p.read_text() for p in (place.path / "many").iterdir()} == {"first"}


def test_a_link_in_the_place_of_a_folder_is_never_followed(place: Place, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    place.project.write("dir/a", "1")
    before = place.state()
    place.run(f"rm -r dir; ln -s {outside} dir").ok()

    place("undo").ok()

    assert place.state() == before
    assert not list(outside.iterdir())


def test_lock_files_that_went_back_name_what_to_run(place: Place) -> None:
    place.project.write("web/package-lock.json", "{}")
    place.run("echo '{1}' > web/package-lock.json").ok()

    done = place("undo").ok()

    assert "web/package-lock.json went back: npm ci" in done.envelope["messages"]


def test_modes_are_brought_back_without_a_new_file(place: Place) -> None:
    path = place.project.write("tool.sh", "echo")
    path.chmod(0o755)
    inode = path.stat().st_ino
    place.run("chmod 600 tool.sh").ok()

    place("undo").ok()

    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert path.stat().st_ino == inode


def test_a_program_that_fails_keeps_what_it_did_as_a_step(place: Place) -> None:
    before = place.state()

    done = place.run("echo half > half.txt; exit 3")

    assert done.code == 1
    assert done.data["exit_code"] == 3
    assert place.project.read("half.txt") == "half\n"
    place("undo").ok()
    assert place.state() == before


def test_the_program_can_write_only_in_the_tree(place: Place) -> None:
    outside = place.world.home / "outside.txt"

    place.run(f"echo x > inside.txt; echo x > {outside}; true").ok()

    assert (place.path / "inside.txt").exists()
    assert not outside.exists()


def test_the_installed_command_does_it_too(place: Place) -> None:
    """As people run it, in processes of their own."""
    before = place.state()
    agents = place.world.agents

    agents.process("run", "--in-place", "--", "sh", "-c", _WORK).ok()
    done = agents.process("undo").ok()

    assert place.state() == before
    assert f"Undone, in {place.path}" in done.out
    subprocess.run(["git", "-C", str(place.path), "fsck", "--strict"], check=True)


def test_what_a_killed_program_left_can_be_undone_though_no_step_has_it(world: World) -> None:
    place = Place(world)
    before = place.tree()
    running = subprocess.Popen(
        [COMMAND, "run", "--in-place", "--", "sh", "-c", "echo half > half; sleep 60"],
        cwd=place.path,
        env=world.agents.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for((place.path / "half").exists)
    running.kill()
    running.wait()

    asked = place("undo")
    assert error_of(asked) == "changed-by-others"
    assert "half" in asked.error["message"]
    place("undo", "--yes").ok()
    assert place.tree() == before
    place("redo", "--yes").ok()
    assert (place.path / "half").read_text() == "half\n"


def test_what_others_did_at_the_start_can_be_undone(world: World) -> None:
    place = Place(world)
    place.run("echo x > x").ok()
    place("undo").ok()
    before = place.tree()
    (place.path / "README.md").write_text("my own hour of work\n")

    assert error_of(place("undo")) == "changed-by-others"
    assert (place.path / "README.md").read_text() == "my own hour of work\n"
    place("undo", "--yes").ok()
    assert place.tree() == before


def test_a_question_says_whose_files_go_back(world: World) -> None:
    place = Place(world)
    plan = place.run("echo x > x").ok().data["plan_id"]

    asked = place("plan", "rollback", plan, "0")

    assert error_of(asked) == "confirmation-needed"
    assert "sandbox" not in asked.error["message"]
    assert str(place.path) in asked.error["message"]


def test_a_closed_timeline_is_said_to_be_closed(world: World) -> None:
    place = Place(world)
    place.run("echo x > x").ok()
    place("apply", "--yes").ok()

    said = place("undo")

    assert error_of(said) == "timeline-closed"
    assert "was closed" in said.error["message"]
    assert "agents run --in-place" in said.error["hint"]
