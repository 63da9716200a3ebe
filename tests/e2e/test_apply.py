"""The user's own project: untouched until apply, and then changed whole or not at all."""

import re

import pytest
from tests.support.projects import USER, Project
from tests.support.trees import Tree, tree_of
from tests.support.world import PlanHandle, World, shell, wait_for, write

CHANGES = (
    "echo new > new.txt; echo 2 > src/app.py; rm src/old.py; chmod 755 README.md; "
    "printf 'more\\r\\n' >> windows.txt; rm link; ln -s README.md link; echo no > x.log"
)


@pytest.fixture
def plan(world: World) -> PlanHandle:
    return world.run(shell(CHANGES, "change"))


def expected(world: World) -> Tree:
    """What the user's tree must be afterwards: replayed, without what git ignores."""
    wanted = world.replay([CHANGES])[-1]
    del wanted[b"x.log"]
    return wanted


def of_git(world: World) -> Tree:
    """The user's tree without the ignored file and the empty folder that were there before."""
    tree = tree_of(world.project.path)
    return {path: entry for path, entry in tree.items() if path not in (b"debug.log", b"empty")}


# --- before apply -------------------------------------------------------------------------------


def test_nothing_before_apply_touches_the_users_project(world: World) -> None:
    project = world.project
    project.write("stashed.txt", "s")
    project.git("stash", "push", "-q", "--include-untracked")
    project.write("staged.txt", "staged\n")
    project.git("add", "staged.txt")
    project.write("README.md", "# in work\n")
    project.write("untracked.txt", "u")
    before = project.fingerprint()
    plan = world.use(
        shell(CHANGES + "; git add -A; git commit -qm sneaky; git stash list", "git too"),
        shell("git rm -q --cached README.md; git checkout -q --detach; echo 3 > three", "more"),
        write("last.txt", "x", "last"),
    )
    plan.execute().ok()
    label = plan.groups[0].group_id
    for words in (
        ("plan", "status", plan.id),
        ("plan", "diff", plan.id),
        ("plan", "tree", plan.id),
        ("plan", "checkpoint", "verify", plan.id),
        ("plan", "checkpoint", "create", "--label", "mine", plan.id),
        ("plan", "rollback", "--yes", plan.id, label),
        ("plan", "resume", plan.id),
        ("plan", "rollback", "--yes", plan.id, "mine"),
        ("plan", "checkpoint", "delete", "--yes", plan.id, label),
        ("plan", "cancel", plan.id),
    ):
        world.agents(*words).ok()
    assert project.fingerprint() == before


@pytest.mark.parametrize(
    "command",
    [
        "echo x > README.md; git stash -q",
        "git config user.name Somebody",
        "git branch -q -f other HEAD^",
        "git tag -f v1 HEAD^",
        "git gc -q --prune=now",
    ],
)
def test_git_commands_of_a_step_do_not_reach_what_is_the_users(world: World, command: str) -> None:
    world.project.git("branch", "other")
    world.project.git("tag", "v1")
    before = world.project.fingerprint()
    plan = world.run(shell(command, "git"))
    assert world.project.fingerprint() == before
    plan.rollback("start").ok()
    assert world.project.fingerprint() == before


def test_a_rollback_takes_back_what_git_commands_did_to_the_sandboxes_repository(
    world: World,
) -> None:
    name = world.project.git("config", "user.name")
    plan = world.run(
        shell("echo x > README.md; git stash -q; git tag mine; git branch mine", "git"),
        shell("git config user.name Somebody; git reflog expire --expire=now HEAD; git gc", "gc"),
    )
    look = "git stash list; git tag; git branch --list mine; git config user.name"
    sandbox = Project(plan.sandbox, world.agents.environ)
    after = sandbox.git("-c", f"alias.look=!{look}", "look")
    assert after.splitlines()[1:] == ["mine", "  mine", "Somebody"]
    plan.rollback("start").ok()
    assert sandbox.git("-c", f"alias.look=!{look}", "look") == name
    plan.execute().ok()
    assert sandbox.git("-c", f"alias.look=!{look}", "look") == after


def test_a_plan_leaves_only_its_own_refs_and_cancel_keeps_the_work(world: World) -> None:
    plan = world.run(write("a", "1"))
    (trace,) = world.project.traces()
    pin = rf"refs/cleveragents/[0-9a-f]{{16}}/plan-{plan.id}/base/code {world.project.head}"
    assert re.fullmatch(pin.encode(), trace)
    plan("cancel").ok()
    assert (plan.sandbox / "a").read_text() == "1"


def test_a_plan_that_never_ran_leaves_nothing_behind_when_it_is_cancelled(world: World) -> None:
    world.use(write("a", "1"))("cancel").ok()
    assert world.project.traces() == []


def test_uncommitted_work_is_mentioned_and_left_out_unless_asked_for(world: World) -> None:
    world.project.write("README.md", "# in work\n")
    world.project.write("untracked.txt", "u")
    path = world.write_action({**_action(), "steps": [shell("cat README.md > seen.txt")]})
    plain = world.agents("plan", "use", path).ok()
    assert plain.envelope["status"] == "warn"
    assert any("--include-uncommitted" in text for text in plain.envelope["messages"])
    left_out = PlanHandle(world.agents, plain.data["plan_id"])
    left_out.execute().ok()
    assert (left_out.sandbox / "seen.txt").read_text() == "# project\n"
    before = world.project.fingerprint()
    answer = world.agents("plan", "use", path, "--include-uncommitted").ok()
    taken = PlanHandle(world.agents, answer.data["plan_id"])
    taken.execute().ok()
    assert (taken.sandbox / "seen.txt").read_text() == "# in work\n"
    assert (taken.sandbox / "untracked.txt").read_text() == "u"
    assert world.project.fingerprint() == before


def _action() -> dict[str, object]:
    resources = {"code": {"type": "git-checkout", "path": "."}}
    return {"name": "demo", "description": "d", "resources": resources}


# --- apply --------------------------------------------------------------------------------------


def test_apply_makes_one_commit_by_the_user_on_the_current_branch(
    world: World, plan: PlanHandle
) -> None:
    project, old = world.project, world.project.head
    wanted = expected(world)
    answer = world.agents.json("plan", "apply", "--yes", plan.id).ok()
    assert project.git("rev-parse", "HEAD^") == old
    assert project.git("symbolic-ref", "HEAD") == "refs/heads/main"
    name, email = USER
    assert project.git("log", "-1", "--format=%an %ae %cn %ce") == f"{name} {email} {name} {email}"
    assert project.git("log", "-1", "--format=%s").startswith("demo-1: ")
    assert plan.id in project.git("log", "-1", "--format=%b")
    assert of_git(world) == wanted
    assert project.git("status", "--porcelain") == ""
    assert project.read("debug.log") == "ignored\n"
    assert answer.data["state"] == "applied"
    assert answer.data["results"] == [{"resource": "code", "ref": project.head}]
    assert plan.status["state"] == "applied"


def test_apply_cleans_up_what_the_plan_had_in_the_repository(world: World) -> None:
    plan = world.keep_nothing().run(write("a.txt", "1\n"))
    sandbox = plan.sandbox
    plan("apply", "--yes").ok()
    assert not sandbox.exists()
    assert world.project.traces() == []


def test_a_sandbox_with_ignored_files_that_exist_nowhere_else_is_kept(
    world: World, plan: PlanHandle
) -> None:
    answer = plan("apply", "--yes").ok()
    assert answer.envelope["status"] == "warn"
    assert (plan.sandbox / "x.log").read_text() == "no\n"


def test_no_commit_leaves_the_changes_in_the_working_tree(world: World, plan: PlanHandle) -> None:
    old, wanted = world.project.head, expected(world)
    plan("apply", "--yes", "--no-commit").ok()
    assert world.project.head == old
    assert of_git(world) == wanted
    assert plan.status["state"] == "applied"


def test_branch_puts_the_commit_on_a_new_branch_and_touches_nothing_else(
    world: World, plan: PlanHandle
) -> None:
    project = world.project
    project.write("README.md", "# in work, and changed by the plan too\n")
    before = project.fingerprint()
    plan("apply", "--yes", "--branch", "agents/result").ok()
    after = project.fingerprint()
    refs = [ref for ref in project.refs() if not ref.startswith(b"refs/heads/agents/result ")]
    assert {**after, "refs": refs} == before
    assert project.git("rev-parse", "agents/result^") == project.head
    assert project.git("show", "agents/result:new.txt") == "new"


@pytest.mark.parametrize("branch", ["main", "-x", "a..b", "main/below"])
def test_a_branch_that_cannot_be_made_is_refused_and_can_be_tried_again(
    world: World, plan: PlanHandle, branch: str
) -> None:
    before = world.project.fingerprint()
    answer = world.agents("plan", "apply", "--yes", f"--branch={branch}", plan.id)
    assert (answer.code, answer.error["code"]) == (1, "apply-refused")
    assert world.project.fingerprint() == before
    plan("apply", "--yes", "--branch", "fine").ok()


def test_a_conflict_leaves_the_project_as_it_was_and_names_the_files(
    world: World, plan: PlanHandle
) -> None:
    project = world.project
    project.write("src/app.py", "print('the user was faster')\n")
    project.commit("meanwhile")
    before = project.fingerprint()
    answer = world.agents.json("plan", "apply", "--yes", plan.id)
    assert (answer.code, answer.error["code"]) == (1, "apply-conflict")
    assert "src/app.py" in answer.error["message"]
    assert "new.txt" not in answer.error["message"]
    assert project.fingerprint() == before
    assert (plan.status["phase"], plan.status["state"]) == ("apply", "constrained")
    said = world.agents("--format", "plain", "plan", "status").ok().out
    assert "src/app.py" in said
    assert "\\n" not in said
    assert "--branch NAME" in said
    assert "next: agents plan apply" not in said  # which would be refused again
    plan.rollback("start").ok()  # constrained is not the end
    assert plan.status["state"] == "queued"


def test_work_of_the_user_that_overlaps_is_a_conflict_until_it_is_put_away(
    world: World, plan: PlanHandle
) -> None:
    project = world.project
    project.write("src/app.py", "print('not committed')\n")
    project.write("new.txt", "mine, untracked\n")
    before = project.fingerprint()
    answer = plan("apply", "--yes")
    assert (answer.code, answer.error["code"]) == (1, "apply-conflict")
    assert "src/app.py" in answer.error["message"]
    assert "new.txt" in answer.error["message"]
    assert project.fingerprint() == before
    project.git("stash", "push", "-q", "--include-untracked")
    plan("apply", "--yes").ok()
    assert project.read("src/app.py") == "2\n"


def test_uncommitted_work_that_does_not_overlap_stays_as_it_is(
    world: World, plan: PlanHandle
) -> None:
    project = world.project
    project.write("data.bin", b"in work")
    project.write("staged.txt", "staged\n")
    project.git("add", "staged.txt")
    project.write("untracked.txt", "u")
    plan("apply", "--yes").ok()
    assert project.git("status", "--porcelain").splitlines() == [
        " M data.bin",
        "A  staged.txt",
        "?? untracked.txt",
    ]
    assert project.git("diff", "--name-only", "HEAD^", "HEAD").splitlines() == [
        "README.md",
        "link",
        "new.txt",
        "src/app.py",
        "src/old.py",
        "windows.txt",
    ]


def test_a_project_that_moved_on_elsewhere_is_merged(world: World, plan: PlanHandle) -> None:
    world.project.write("meanwhile.txt", "m")
    moved = world.project.commit("meanwhile")
    plan("apply", "--yes").ok()
    assert world.project.git("rev-parse", "HEAD^") == moved
    assert world.project.read("meanwhile.txt") == "m"
    assert world.project.read("new.txt") == "new\n"


def test_apply_needs_all_steps_done(world: World) -> None:
    plan = world.use(write("a", "1"))
    answer = plan("apply", "--yes")
    assert (answer.code, answer.error["code"]) == (1, "plan-state")
    assert answer.error["hint"] == f"agents plan execute {plan.id}"


def test_apply_without_a_terminal_needs_yes_and_changes_nothing_without(
    world: World, plan: PlanHandle
) -> None:
    before, records = world.project.fingerprint(), plan.status
    answer = plan("apply")
    assert (answer.code, answer.error["code"]) == (2, "confirmation-needed")
    assert world.project.fingerprint() == before
    assert plan.status == records


def test_an_applied_plan_stays_applied(world: World, plan: PlanHandle) -> None:
    plan("apply", "--yes").ok()
    head = world.project.head
    for words in (("apply", "--yes"), ("execute",), ("resume",), ("cancel",)):
        answer = plan(*words)
        assert (answer.code, answer.error["code"]) == (1, "plan-applied"), words
    assert world.project.head == head
    assert plan("diff").ok().data["diff_summary"]["files_changed"] == 6


def test_a_user_without_an_identity_is_told_how_to_get_one(world: World, plan: PlanHandle) -> None:
    (world.home / ".gitconfig").unlink()
    before = world.project.fingerprint()
    answer = plan("apply", "--yes")
    assert (answer.code, answer.error["code"]) == (1, "apply-refused")
    assert "git config --global user.name" in answer.error["hint"]
    assert world.project.fingerprint() == before


def test_hooks_and_filters_of_the_user_do_not_run_or_bend_bytes(world: World) -> None:
    project = world.project
    for name in ("pre-commit", "commit-msg", "post-checkout", "reference-transaction"):
        hook = project.git_dir / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {world.top}/hooked\nexit 1\n")
        hook.chmod(0o755)
    project.git("config", "core.autocrlf", "input")
    plan = world.run(shell("printf 'a\\r\\nb\\r\\n' > crlf.txt", "crlf"))
    plan.rollback("start").ok()
    plan("resume").ok()
    assert (plan.sandbox / "crlf.txt").read_bytes() == b"a\r\nb\r\n"
    plan("apply", "--yes").ok()
    assert not (world.top / "hooked").exists()


def test_an_apply_that_was_killed_is_finished_by_the_next_one(world: World) -> None:
    plan = world.run(shell("for i in $(seq 1 300); do echo $i > f$i.txt; done", "many"))
    old = world.project.head
    process = world.agents.start("plan", "apply", "--yes", plan.id)
    lock = world.agents.data_dir / "locks" / plan.id
    wait_for(lambda: process.poll() is not None or b"apply" in lock.read_bytes())
    process.kill()
    process.wait()
    again = plan("apply", "--yes")
    assert again.code == 0 or again.error["code"] == "plan-applied"
    assert world.project.git("rev-parse", "HEAD^") == old
    assert world.project.git("status", "--porcelain") == ""
    names = world.project.git("diff", "--name-only", "HEAD^", "HEAD").splitlines()
    assert len(names) == 300
    assert plan.status["state"] == "applied"
