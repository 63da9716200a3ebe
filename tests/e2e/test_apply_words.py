"""What apply says when it cannot, or not quite: what is true, and what helps."""

import stat
import subprocess
from pathlib import Path

import pytest
from tests.support.refusals import refused
from tests.support.submodules import COMMIT_INSIDE, LIB, WithSubmodules
from tests.support.world import PlanHandle, World, shell, write

from cleveragents.infrastructure.sandbox.git.apply import user_commit

# Signs as git wants it from a program: a status line, and a signature on standard output.
_SIGNER = """#!/bin/sh
cat > {told}
echo "[GNUPG:] SIG_CREATED " >&2
echo "-----BEGIN PGP SIGNATURE-----"; echo; echo "made by the user's program"
echo "-----END PGP SIGNATURE-----"
"""

EDIT_INSIDE = f"cd {LIB} && echo two > lib.txt && echo new > new.txt"


# --- what is no uncommitted work ----------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("--no-commit",)])
def test_an_untracked_file_that_is_what_the_plan_made_is_in_nobodys_way(
    world: World, options: tuple[str, ...]
) -> None:
    plan = world.run(write("new/a.txt", "same\n"), write("b.txt", "1"))
    (world.project.path / "new").mkdir()
    (world.project.path / "new/a.txt").write_text("same\n")

    plan("apply", "--yes", *options).ok()

    assert world.project.read("new/a.txt") == "same\n"
    left = {"?? b.txt", "?? new/"} if options else set[str]()
    assert set(world.project.git("status", "--porcelain").splitlines()) == left


@pytest.mark.parametrize("options", [(), ("--no-commit",)])
def test_what_is_staged_and_what_the_plan_made_too_is_in_nobodys_way(
    world: World, options: tuple[str, ...]
) -> None:
    plan = world.run(write("a.txt", "same\n"), shell("echo same > src/app.py; git rm -q README.md"))
    project = world.project
    project.write("a.txt", "same\n")
    project.write("src/app.py", "same\n")
    project.git("rm", "-q", "README.md")
    project.git("add", "-A")

    plan("apply", "--yes", *options).ok()

    assert (project.read("a.txt"), project.read("src/app.py")) == ("same\n", "same\n")
    left = {"A  a.txt", "M  src/app.py", "D  README.md"} if options else set[str]()
    assert set(project.git("status", "--porcelain").splitlines()) == left


def test_what_is_staged_and_differs_is_still_a_conflict(world: World) -> None:
    plan = world.run(write("a.txt", "same\n"))
    world.project.write("a.txt", "mine\n")
    world.project.git("add", "a.txt")
    world.project.write("a.txt", "same\n")  # only the index has what would be lost
    before = world.project.fingerprint()
    assert "uncommitted work" in refused(plan("apply", "--yes"), "apply-conflict")
    assert world.project.fingerprint() == before


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("inside", [COMMIT_INSIDE, EDIT_INSIDE])
def test_what_a_submodule_has_as_the_plan_made_it_is_in_nobodys_way(
    world: World, submodules: WithSubmodules, inside: str, *, staged: bool
) -> None:
    project = WithSubmodules(world, submodules)
    plan = world.run(shell(inside))
    project.lib.write("lib.txt", "two\n")
    project.lib.write("new.txt", "new\n")
    if staged:
        project.lib.git("add", "-A")

    plan("apply", "--yes").ok()

    assert (project.lib.read("lib.txt"), project.lib.read("new.txt")) == ("two\n", "new\n")
    assert bool(project.lib.git("status", "--porcelain")) == (inside == EDIT_INSIDE)


def test_what_a_submodule_has_staged_and_differs_is_still_a_conflict(
    world: World, submodules: WithSubmodules
) -> None:
    project = WithSubmodules(world, submodules)
    plan = world.run(shell(COMMIT_INSIDE))
    project.lib.write("new.txt", "mine\n")
    project.lib.git("add", "-A")
    project.lib.write("new.txt", "new\n")
    before = project.state()
    said = refused(plan("apply", "--yes"), "apply-conflict")
    assert "uncommitted work" in said
    assert f"{LIB}/new.txt" in said
    assert project.state() == before


def test_one_that_differs_is_still_a_conflict(world: World) -> None:
    plan = world.run(write("a.txt", "same\n"))
    (world.project.path / "a.txt").write_text("mine\n")
    said = refused(plan("apply", "--yes"), "apply-conflict")
    assert "uncommitted work" in said
    assert world.project.read("a.txt") == "mine\n"


def test_a_submodule_that_the_plan_turns_into_files_is_named_as_one(
    world: World, submodules: WithSubmodules
) -> None:
    project = WithSubmodules(world, submodules)
    plan = world.run(shell(f"git rm -qf {LIB}; rm -rf {LIB}; echo file > {LIB}; git add -A"))
    before = project.state()
    said = refused(plan("apply", "--yes"), "apply-conflict")
    assert "uncommitted" not in said
    assert f"submodule {LIB}" in said
    assert "submodule deinit" in said
    assert project.state() == before


# --- encodings ----------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["tracked", "new"])
def test_a_file_that_is_not_in_the_encoding_that_it_is_said_to_be_in_is_named(
    world: World, file: str
) -> None:
    (world.project.path / ".gitattributes").write_text("*.wide working-tree-encoding=UTF-16\n")
    if file == "tracked":
        (world.project.path / "a.wide").write_text("text", encoding="utf-16")
    world.project.commit("wide")
    plan = world.run(shell("printf abc > a.wide"))
    for words in (("diff",), ("apply", "--yes")):
        said = refused(plan(*words), "file-encoding")
        assert "a.wide" in said
        assert "UTF-16" in said
        assert "working-tree-encoding" in said
        assert "git add" not in said
        assert "agents plan rollback" in said


# --- signatures ---------------------------------------------------------------------------------


def _program(world: World, text: str) -> Path:
    path = world.top / "signer"
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def _signing(world: World, program: Path | str) -> PlanHandle:
    world.project.git("config", "commit.gpgsign", "true")
    world.project.git("config", "gpg.program", str(program))
    return world.run(write("a", "1"))


@pytest.mark.parametrize("options", [(), ("--branch", "kept")])
def test_the_commit_is_signed_where_the_users_own_would_be(
    world: World, options: tuple[str, ...]
) -> None:
    told = world.top / "told"
    plan = _signing(world, _program(world, _SIGNER.format(told=told)))
    done = plan("apply", "--yes", *options).ok()
    commit = world.project.git("cat-file", "commit", "kept" if options else "HEAD")
    assert "made by the user's program" in commit
    assert told.read_text().startswith("tree ")
    assert "not signed" not in done.out + done.err
    assert world.project.git("status", "--porcelain") == ""


def test_it_is_signed_with_a_key_of_ssh(world: World) -> None:
    key = world.top / "key"
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
    subprocess.run(words, check=True)
    for name, value in (("gpg.format", "ssh"), ("user.signingkey", f"{key}.pub")):
        world.project.git("config", name, value)
    world.project.git("config", "commit.gpgsign", "true")
    world.run(write("a", "1"))("apply", "--yes").ok()
    assert "BEGIN SSH SIGNATURE" in world.project.git("cat-file", "commit", "HEAD")


@pytest.mark.parametrize("program", ["fails", "waits", "is not there"])
def test_one_that_needs_a_person_is_not_waited_for_and_that_is_told(
    world: World, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if program == "waits":  # the others are given all the time that they need
        assert user_commit._PATIENCE_SECONDS == 20.0
        monkeypatch.setattr(user_commit, "_PATIENCE_SECONDS", 2.0)
    body = {"fails": "echo no pinentry >&2; exit 2", "waits": "sleep 3600"}.get(program)
    plan = _signing(
        world, _program(world, f"#!/bin/sh\n{body}\n") if body else world.top / "nowhere"
    )
    done = plan("apply", "--yes").ok()
    said = done.out + done.err
    assert "not signed" in said
    assert "git commit --amend --no-edit -S" in said
    assert ("no signature within 2 seconds" in said) == (program == "waits")
    assert "gpgsig" not in world.project.git("cat-file", "commit", "HEAD")
    assert world.project.read("a") == "1"


def test_nothing_is_signed_or_said_where_nobody_asked_for_it(world: World) -> None:
    told = world.top / "told"
    signer = _program(world, _SIGNER.format(told=told))
    world.project.git("config", "gpg.program", str(signer))
    done = world.run(write("a", "1"))("apply", "--yes").ok()
    assert "gpgsign" not in done.out + done.err
    assert not told.exists()


# --- branches -----------------------------------------------------------------------------------


def test_the_unborn_branch_of_another_worktree_is_taken_already(world: World) -> None:
    plan = world.run(write("a", "1"))
    other = world.top / "other"
    world.project.git("worktree", "add", "-q", "--detach", str(other))
    subprocess.run(["git", "symbolic-ref", "HEAD", "refs/heads/kept"], cwd=other, check=True)
    said = refused(plan("apply", "--yes", "--branch", "kept"), "apply-refused")
    assert str(other) in said
    plan("apply", "--yes", "--branch", "free").ok()


# --- conflicts with commits ---------------------------------------------------------------------


def test_a_conflict_with_commits_is_told_as_that_and_a_branch_helps(world: World) -> None:
    plan = world.run(shell("echo plan > README.md; echo 1 > own.txt"))
    start = world.project.git("rev-parse", "HEAD")
    world.project.write("README.md", "mine\n")
    world.project.commit("mine")
    head = world.project.git("rev-parse", "HEAD")

    said = refused(plan("apply", "--yes"), "apply-conflict")
    assert "put away" not in said
    assert f"agents plan apply {plan.id} --branch NAME" in said
    assert "git merge NAME" in said

    done = plan("apply", "--yes", "--branch", "kept").ok()
    assert "git merge kept" in done.out + done.err
    assert world.project.git("rev-parse", "kept^") == start
    assert world.project.git("show", "kept:README.md") == "plan"
    assert world.project.git("rev-parse", "HEAD") == head
    assert world.project.read("README.md") == "mine\n"


def test_one_with_uncommitted_work_still_says_so(world: World) -> None:
    plan = world.run(shell("echo plan > README.md"))
    world.project.write("README.md", "mine\n")
    said = refused(plan("apply", "--yes"), "apply-conflict")
    assert "uncommitted work" in said
    assert "put away" in said
