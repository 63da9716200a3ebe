"""`agents undo` after an apply: the project goes back whole or not at all, and forward again."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.agents import Answer
from tests.support.projects import Project
from tests.support.three_resources import Three
from tests.support.trees import Tree, tree_of
from tests.support.world import PlanHandle, World, shell

CHANGES = (
    "echo new > new.txt; echo 2 > src/app.py; rm src/old.py; chmod 755 README.md; "
    "printf 'more\\r\\n' >> windows.txt; rm link; ln -s README.md link; mkdir a; echo 1 > a/c"
)


def applied(world: World, *words: str) -> PlanHandle:
    plan = world.run(shell(CHANGES, "change"))
    plan("apply", "--yes", *words).ok()
    return plan


def blocked(answer: Answer) -> str:
    assert answer.code == 1, answer
    assert answer.error["code"] == "undo-blocked", answer
    return answer.error["message"]


def state(project: Project) -> tuple[Tree, str, str, str]:
    """Files, branch, index and what git says about both."""
    return (
        tree_of(project.path),
        project.git("rev-parse", "HEAD"),
        project.git("ls-files", "--stage"),
        project.git("status", "--porcelain"),
    )


def kept_in(project: Project) -> list[Path]:
    return sorted((project.path / ".git").glob("cleveragents-*"))


# --- a commit -----------------------------------------------------------------------------------


def test_undo_redo_and_undo_again_are_exact(world: World) -> None:
    before = state(world.project)
    plan = applied(world)
    after = state(world.project)
    assert after != before
    for _ in range(2):
        undone = world.agents("undo", "--yes").ok()
        assert undone.data["apply"] == "undone"
        assert "moves back" in undone.data["resources"][0]["how"]
        assert state(world.project) == before
        redone = world.agents("redo", "--yes").ok()
        assert redone.data["apply"] == "applied"
        assert state(world.project) == after
    assert plan.status["state"] == "applied"


def test_what_the_user_has_not_committed_stays(world: World) -> None:
    project = world.project
    applied(world)
    project.write("docs/mine.txt", "mine\n")
    project.write("run.sh", "#!/bin/sh\necho mine\n")
    project.write("staged.txt", "staged\n")
    project.git("add", "staged.txt")
    world.agents("undo", "--yes").ok()
    assert project.read("docs/mine.txt") == "mine\n"
    assert project.git("status", "--porcelain").splitlines() == [
        " M run.sh",
        "A  staged.txt",
        "?? docs/mine.txt",
    ]


def test_files_come_back_to_the_byte_where_git_would_change_them(world: World) -> None:
    project = world.project
    project.git("config", "core.autocrlf", "input")
    project.write("src/app.py", "print('one')\r\n").chmod(0o600)
    assert not project.git("diff", "--name-only")
    applied(world)
    world.agents("undo", "--yes").ok()
    assert (project.path / "src/app.py").read_bytes() == b"print('one')\r\n"
    assert (project.path / "src/app.py").stat().st_mode & 0o777 == 0o600


def test_folders_come_back_as_they_were(world: World) -> None:
    project = world.project
    (project.path / "src").chmod(0o700)
    before = tree_of(project.path)
    plan = world.run(shell("rm -r src; echo x > empty/x; mkdir made; echo x > made/x", "folders"))
    plan("apply", "--yes").ok()
    world.agents("undo", "--yes").ok()
    assert tree_of(project.path) == before


def test_what_was_there_before_the_apply_is_not_taken_back(world: World) -> None:
    """The user had made one of the changes already, without committing it."""
    project = world.project
    plan = world.run(shell(CHANGES, "change"))
    project.write("new.txt", "new\n")
    before = tree_of(project.path)
    plan("apply", "--yes").ok()
    world.agents("undo", "--yes").ok()
    assert tree_of(project.path) == before


def test_a_commit_that_is_pushed_is_reverted_by_another(world: World) -> None:
    project = world.project
    origin = world.top / "origin.git"
    project.git("init", "-q", "--bare", str(origin))
    project.git("remote", "add", "origin", str(origin))
    before = state(project)
    applied(world)
    project.git("push", "-q", "origin", "main")
    after = state(project)
    undone = world.agents("undo", "--yes").ok()
    assert "one more commit" in undone.data["resources"][0]["how"]
    assert "origin/main" in undone.data["resources"][0]["how"]
    files, head, index, said = state(project)
    assert (files, index, said) == (before[0], before[2], before[3])
    assert project.git("rev-parse", "HEAD^") == after[1]
    assert project.git("log", "-1", "--format=%an <%ae>") == "Uma User <uma@example.com>"
    assert project.git("log", "-1", "--format=%s").startswith('Revert "')
    # That one nobody has yet, and so it goes again.
    world.agents("redo", "--yes").ok()
    assert state(project) == after
    world.agents("undo", "--yes").ok()
    project.git("push", "-q", "origin", "main")
    redone = world.agents("redo", "--yes").ok()
    assert "one more commit" in redone.data["resources"][0]["how"]
    assert state(project)[0] == after[0]
    assert project.git("log", "-1", "--format=%s").startswith('Reapply "')
    assert head != project.head


@pytest.mark.parametrize("name", ["tag", "branch"])
def test_a_commit_that_another_name_leads_to_is_reverted(world: World, name: str) -> None:
    applied(world)
    tip = world.project.head
    world.project.git(name, "other")
    world.agents("undo", "--yes").ok()
    assert world.project.git("rev-parse", "HEAD^") == tip


def test_commits_on_top_stay_where_they_change_something_else(world: World) -> None:
    project = world.project
    before = tree_of(project.path)
    applied(world)
    project.write("mine.txt", "mine\n")
    mine = project.commit("mine")
    world.agents("undo", "--yes").ok()
    assert project.git("rev-parse", "HEAD^") == mine
    (project.path / "mine.txt").unlink()
    assert tree_of(project.path) == before


@pytest.mark.parametrize(
    ("what", "named"),
    [
        ("echo mine >> src/app.py", "code: src/app.py"),
        ("echo mine >> src/app.py; git add src/app.py", "code: src/app.py"),
        ("echo mine >> src/app.py; git commit -qam mine", "code: src/app.py"),
        ("echo mine > src/old.py", "code: src/old.py"),
        ("git switch -q -c elsewhere", "code: the branch main"),
    ],
)
def test_what_was_changed_since_is_named_and_nothing_changes(
    world: World, what: str, named: str
) -> None:
    applied(world)
    world.run_in_project(what)
    before = world.project.fingerprint()
    records = world.metadata()
    assert named in blocked(world.agents("undo", "--yes"))
    assert named in blocked(world.agents("undo", "--dry-run"))
    assert world.project.fingerprint() == before
    assert world.metadata() == records


def test_a_redo_is_refused_as_an_undo_is(world: World) -> None:
    applied(world)
    world.agents("undo", "--yes").ok()
    world.project.write("src/app.py", "mine\n")
    before = world.project.fingerprint()
    assert "src/app.py" in blocked(world.agents("redo", "--yes"))
    assert world.project.fingerprint() == before
    world.project.git("checkout", "-q", "src/app.py")
    world.project.write("other.txt", "x")
    mine = world.project.commit("other")
    world.agents("redo", "--yes").ok()
    assert world.project.git("rev-parse", "HEAD^") == mine
    assert world.project.read("src/app.py") == "2\n"


def test_a_merge_in_progress_is_refused(world: World) -> None:
    applied(world)
    (world.project.git_dir / "MERGE_HEAD").write_text(world.project.head + "\n")
    assert world.agents("undo", "--yes").error["code"] == "apply-refused"


# --- without a commit, and on a branch of its own -----------------------------------------------


def test_changes_without_a_commit_go_and_come(world: World) -> None:
    project = world.project
    project.write("run.sh", "#!/bin/sh\necho mine\n")
    before = state(project)
    applied(world, "--no-commit")
    after = state(project)
    for _ in range(2):
        world.agents("undo", "--yes").ok()
        assert state(project) == before
        world.agents("redo", "--yes").ok()
        assert state(project) == after
    project.git("add", "new.txt")
    assert "new.txt" in blocked(world.agents("undo", "--yes"))
    project.git("commit", "-qm", "new")
    assert "new.txt" in blocked(world.agents("undo", "--yes"))


def test_a_branch_goes_and_comes(world: World) -> None:
    project = world.project
    before = project.fingerprint()
    applied(world, "--branch", "result")
    commit = project.git("rev-parse", "result")
    for _ in range(2):
        undone = world.agents("undo", "--yes").ok()
        assert "goes" in undone.data["resources"][0]["how"]
        assert project.fingerprint() == before
        world.agents("redo", "--yes").ok()
        assert project.git("rev-parse", "result") == commit
    project.git("switch", "-q", "result")
    assert "the branch result" in blocked(world.agents("undo", "--yes"))
    project.write("more.txt", "x")
    project.commit("more")
    project.git("switch", "-q", "main")
    world.agents("undo", "--yes").ok()
    assert project.git("diff", "--name-only", "main", "result") == "more.txt"
    assert project.git("rev-parse", "result~2") == commit


# --- several resources --------------------------------------------------------------------------


@pytest.fixture
def three(world: World) -> Three:
    return Three(world)


def test_a_checkout_a_folder_and_a_database_go_back_together(three: Three) -> None:
    before = three.without_index()
    three.apply().ok()
    assert three.arrived()
    after = three.without_index()
    for _ in range(2):
        three.world.agents("undo", "--yes").ok()
        assert three.without_index() == before
        three.world.agents("redo", "--yes").ok()
        assert three.without_index() == after
        assert three.arrived()


def test_one_that_is_blocked_stops_all_and_all_are_named(three: Three) -> None:
    three.apply().ok()
    (three.assets / "one.txt").write_text("mine\n")
    (three.assets / "link/mine").write_text("mine\n")
    with closing(sqlite3.connect(three.database)) as db:
        db.execute("insert into t (text) values ('mine')")
        db.commit()
    three.world.project.write("src/app.py", "mine\n")
    before = three.state()
    said = blocked(three.world.agents("undo", "--yes"))
    for name in ("code: src/app.py", "assets: one.txt", "assets: link/mine", "db: app.db/t "):
        assert name in said
    assert "more" not in said  # which nobody has changed since
    assert three.state() == before


def test_a_database_that_is_locked_leaves_everything_as_it_was(three: Three) -> None:
    before = three.without_index()
    three.apply().ok()
    after = three.without_index()
    with closing(sqlite3.connect(three.database)) as db:
        db.execute("begin immediate")
        answer = three.world.agents("undo", "--yes")
    assert answer.code == 1
    assert answer.error["code"] == "apply-refused"
    assert three.without_index() == after
    three.world.agents("undo", "--yes").ok()
    assert three.without_index() == before
