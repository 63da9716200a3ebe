"""Work inside of submodules: brought into the project whole, or refused with the sandbox kept."""

import pytest
from tests.support.agents import Answer
from tests.support.submodules import (
    COMMIT_DEEP,
    COMMIT_INSIDE,
    INNER,
    LIB,
    WithSubmodules,
    git_in,
)
from tests.support.world import PlanHandle, World, action, shell


@pytest.fixture
def project(world: World, submodules: WithSubmodules) -> WithSubmodules:
    return WithSubmodules(world, submodules)


def refused(project: WithSubmodules, plan: PlanHandle, *options: str) -> Answer:
    """Nothing of the user's has changed, and the work is still there."""
    before = project.state()
    answer = plan("apply", "--yes", *options)
    assert answer.code == 1, answer
    assert project.state() == before
    assert project.traces() == []
    assert plan.sandbox.is_dir()
    assert plan.status["state"] == "constrained"
    return answer


def is_clean(project: WithSubmodules) -> bool:
    return project.project.git("status", "--porcelain", "--ignore-submodules=none") == ""


# --- in the sandbox -------------------------------------------------------------------------------


def test_a_step_finds_the_submodules_of_the_project(project: WithSubmodules) -> None:
    before = project.state()
    plan = project.world.run(shell("cat deps/lib/lib.txt deps/lib/inner/inner.txt > both"))
    assert (plan.sandbox / "both").read_text() == "one\none\n"
    assert plan("diff").data["files"] == [{"path": "both", "change": "+2 -0", "status": "added"}]
    plan("apply", "--yes").ok()
    assert project.project.read("both") == "one\none\n"
    assert project.state() | {"project": {}} == before | {"project": {}}


def test_a_submodule_that_the_project_has_not_checked_out_is_told(project: WithSubmodules) -> None:
    project.project.git("submodule", "--quiet", "deinit", "--all")
    path = project.world.write_action(action(shell("ls -A deps/lib > seen")))
    used = project.world.agents("plan", "use", path).ok()
    assert any("deps/lib is not checked out" in line for line in used.envelope["messages"])


def test_the_diff_shows_what_changed_inside(project: WithSubmodules) -> None:
    plan = project.world.run(shell(COMMIT_DEEP), shell("echo x > deps/lib/untracked"))
    shown = plan("diff").ok().data
    assert {file["path"]: file["change"] for file in shown["files"]} == {
        LIB: "+1 -1",
        INNER: "+1 -1",
        "deps/lib/untracked": "+1 -0",
        "deps/lib/inner/inner.txt": "+1 -1",
    }
    assert "+++ b/deps/lib/inner/inner.txt\n@@ -1 +1 @@\n-one\n+two\n" in shown["patch"]


# --- commits --------------------------------------------------------------------------------------


def test_commits_made_inside_arrive_with_the_commit_that_names_them(
    project: WithSubmodules,
) -> None:
    plan = project.world.run(shell(COMMIT_INSIDE), shell("echo top > top.txt"))
    made = git_in(plan.sandbox / LIB, "rev-parse", "HEAD")
    shown = plan("apply", "--yes").ok().data["files"]
    assert {file["path"] for file in shown} == {
        *("top.txt", LIB, "deps/lib/lib.txt", "deps/lib/new.txt")
    }
    assert project.link() == project.lib.head == made
    assert project.lib.git("log", "--format=%s", "-2") == "inside\nwith inner"
    assert (project.lib.read("lib.txt"), project.lib.read("new.txt")) == ("two\n", "new\n")
    assert is_clean(project)
    assert not plan.sandbox.exists()
    assert project.traces() == []
    project.whole()


def test_a_commit_deep_inside_arrives_on_every_level(project: WithSubmodules) -> None:
    plan = project.world.run(shell(COMMIT_DEEP))
    deep = git_in(plan.sandbox / INNER, "rev-parse", "HEAD")
    plan("apply", "--yes").ok()
    assert project.link() == project.lib.head
    assert project.lib.git("rev-parse", "HEAD:inner") == project.inner.head == deep
    assert project.inner.read("inner.txt") == "two\n"
    assert is_clean(project)
    project.whole()


def test_another_version_that_the_project_has_already_can_be_chosen(
    project: WithSubmodules,
) -> None:
    first = project.lib.git("rev-parse", "HEAD~1")
    project.lib.git("checkout", "-q", "--detach")
    plan = project.world.run(shell("cd deps/lib && git checkout -q HEAD~1"))
    plan("apply", "--yes").ok()
    assert project.link() == project.lib.head == first
    assert project.project.git("status", "--porcelain", "--ignore-submodules=dirty") == ""
    assert project.inner.read("inner.txt") == "one\n", "left as git leaves it"


def test_a_branch_of_the_users_is_moved_forward(project: WithSubmodules) -> None:
    project.lib.git("checkout", "-q", "main")
    plan = project.world.run(shell(COMMIT_INSIDE))
    plan("apply", "--yes").ok()
    assert project.lib.git("symbolic-ref", "HEAD") == "refs/heads/main"
    assert project.lib.git("rev-parse", "main") == project.link()
    assert is_clean(project)


def test_a_branch_of_the_users_is_never_moved_back(project: WithSubmodules) -> None:
    project.lib.git("checkout", "-q", "main")
    plan = project.world.run(shell("cd deps/lib && git checkout -q HEAD~1"))
    answer = refused(project, plan)
    assert "does not follow that of main" in answer.error["message"]
    project.lib.git("checkout", "-q", "--detach")
    plan("apply", "--yes").ok()
    assert project.link() == project.lib.head


# --- what is not committed ------------------------------------------------------------------------

LOOSE = "cd deps/lib && echo edited > lib.txt && echo new > new && rm .gitmodules; echo 3 > inner/3"


def test_uncommitted_and_untracked_files_inside_arrive_as_such(project: WithSubmodules) -> None:
    plan = project.world.run(shell(LOOSE))
    head = project.project.head
    plan("apply", "--yes").ok()
    assert project.project.head == head
    assert project.lib.git("status", "--porcelain").splitlines() == [
        *(" D .gitmodules", " M inner", " M lib.txt", "?? new")
    ]
    assert (project.lib.read("lib.txt"), project.inner.read("3")) == ("edited\n", "3\n")
    assert project.inner.git("status", "--porcelain") == "?? 3"
    assert not plan.sandbox.exists()


def test_commits_and_what_came_after_them_arrive_each_as_what_it_is(
    project: WithSubmodules,
) -> None:
    plan = project.world.run(shell(COMMIT_INSIDE), shell("echo more >> deps/lib/new.txt"))
    plan("apply", "--yes").ok()
    assert project.link() == project.lib.head
    assert project.lib.read("new.txt") == "new\nmore\n"
    assert project.lib.git("status", "--porcelain") == " M new.txt"


def test_ignored_files_inside_are_named_and_keep_the_sandbox(project: WithSubmodules) -> None:
    project.lib.write(".gitignore", "*.o\n")
    project.lib.commit("ignoring")
    project.project.commit("moved")
    plan = project.world.run(shell("echo x > deps/lib/lib.o; echo y > deps/lib/lib.txt"))
    assert "deps/lib/lib.o" in str(plan("diff").envelope["messages"])
    answer = plan("apply", "--yes").ok()
    assert answer.data["sandboxes_kept"] == {"code": str(plan.sandbox)}
    assert (plan.sandbox / "deps/lib/lib.o").exists()


# --- the user's own work --------------------------------------------------------------------------


def test_the_users_own_work_inside_that_does_not_overlap_stays(project: WithSubmodules) -> None:
    plan = project.world.run(shell(COMMIT_INSIDE))
    project.lib.write("mine", "mine\n")
    project.lib.write(".gitmodules", project.lib.read(".gitmodules") + "# mine\n")
    plan("apply", "--yes").ok()
    assert project.link() == project.lib.head
    assert project.lib.git("status", "--porcelain") == " M .gitmodules\n?? mine"


@pytest.mark.parametrize("name", ["lib.txt", "new.txt"])
def test_overlapping_work_of_the_users_inside_is_a_conflict(
    project: WithSubmodules, name: str
) -> None:
    plan = project.world.run(shell(COMMIT_INSIDE), shell("echo top > top.txt"))
    project.lib.write(name, "mine\n")
    answer = refused(project, plan)
    assert answer.error["code"] == "apply-conflict"
    assert f"deps/lib/{name}" in answer.error["message"]


def test_a_submodule_that_the_user_has_moved_is_a_conflict(project: WithSubmodules) -> None:
    plan = project.world.run(shell(COMMIT_DEEP))
    project.inner.commit("mine")
    answer = refused(project, plan)
    assert answer.error["code"] == "apply-conflict"
    assert INNER in answer.error["message"]


def test_a_merge_in_progress_inside_is_refused(project: WithSubmodules) -> None:
    plan = project.world.run(shell(COMMIT_INSIDE))
    (project.lib.git_dir / "MERGE_HEAD").write_text(project.lib.head + "\n")
    answer = refused(project, plan)
    assert "a merge is in progress" in answer.error["message"]


def test_a_submodule_that_is_gone_from_the_project_says_how_to_get_it_back(
    project: WithSubmodules,
) -> None:
    plan = project.world.run(shell(COMMIT_INSIDE))
    project.project.git("submodule", "--quiet", "deinit", "--force", LIB)
    answer = plan("apply", "--yes")
    assert answer.error["code"] == "apply-refused"
    assert "submodule update --init deps/lib" in answer.error["hint"]
    project.project.git("submodule", "--quiet", "update", "--init", "--recursive")
    plan("apply", "--yes").ok()
    assert project.link() == project.lib.head


# --- without a commit, and on a branch ------------------------------------------------------------


def test_without_a_commit_the_users_submodule_moves_and_the_project_does_not(
    project: WithSubmodules,
) -> None:
    plan = project.world.run(shell(COMMIT_INSIDE), shell("echo top > top.txt"))
    head = project.project.head
    plan("apply", "--yes", "--no-commit").ok()
    assert project.project.head == head
    assert project.lib.git("log", "-1", "--format=%s") == "inside"
    assert project.project.git("status", "--porcelain") == " M deps/lib\n?? top.txt"


def test_a_branch_names_commits_that_are_there_and_changes_no_files(
    project: WithSubmodules,
) -> None:
    plan = project.world.run(shell(COMMIT_DEEP))
    before = project.state()
    plan("apply", "--yes", "--branch", "result").ok()
    after = project.state()
    for name in ("tree", "index", "head", "config"):
        assert after["project"][name] == before["project"][name]
        assert after["lib"][name] == before["lib"][name]
    for one in (project.lib, project.inner):
        one.git("reflog", "expire", "--expire=now", "--all")
        one.git("gc", "-q", "--prune=now")
    project.whole("result")


def test_a_branch_cannot_hold_what_is_not_committed(project: WithSubmodules) -> None:
    plan = project.world.run(shell("echo edited > deps/lib/lib.txt"))
    answer = refused(project, plan, "--branch", "result")
    assert "deps/lib has uncommitted changes" in answer.error["message"]
    plan("apply", "--yes").ok()


# --- what is refused ------------------------------------------------------------------------------

STRANGE = {
    "a repository made in a folder": ("git clone -q LIBRARY more", "more"),
    "one without a commit": ("git init -q more; echo x > more/x", "more"),
    "one inside of a submodule": ("git clone -q LIBRARY deps/lib/more", "deps/lib/more"),
    "a pointer that is gone": ("rm deps/lib/.git; echo x > deps/lib/x", LIB),
    "a pointer to the user's own": ("echo 'gitdir: USERS' > deps/lib/.git", LIB),
}


@pytest.mark.parametrize(("command", "name"), STRANGE.values(), ids=list(STRANGE))
def test_a_repository_that_cannot_be_applied_is_not_left_out(
    project: WithSubmodules, command: str, name: str
) -> None:
    command = command.replace("LIBRARY", str(project.library.path))
    command = command.replace("USERS", str(project.lib.git_dir))
    plan = project.world.run(shell(f"echo top > top.txt; {command}"))
    assert name in refused(project, plan).error["message"]
