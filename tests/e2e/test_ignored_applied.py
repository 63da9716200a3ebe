"""`apply --with-ignored`: what changed in ignored folders reaches the project, all or nothing."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from tests.support.agents import Answer
from tests.support.world import PlanHandle, World, shell

from cleveragents.infrastructure.confinement.machine import Machine
from cleveragents.infrastructure.sandbox.folder.apply.carry_out import CarryOut

pytestmark = pytest.mark.skipif(
    not Machine(os.environ["PATH"]).read_only_view,
    reason="this kernel has no view of its own for a command",
)

COMMANDS = (
    "echo new > node_modules/new.js; chmod 600 node_modules/new.js",
    "echo more >> node_modules/left/index.js",
    "rm -r node_modules/right",
    "rm -r node_modules/deep; mkdir node_modules/deep; echo 1 > node_modules/deep/x",
    "rm node_modules/.bin/left; ln -s ../new.js node_modules/.bin/left",
    "rm -r node_modules/folder; echo file > node_modules/folder",
    "rm node_modules/file; mkdir -p node_modules/file/a/b; echo 2 > node_modules/file/a/b/c",
    "rm -r node_modules/linked; ln -s left node_modules/linked",
    "rm node_modules/alias; mkdir node_modules/alias; echo 3 > node_modules/alias/in",
    "mkdir node_modules/empty; chmod 700 node_modules/.bin; chmod 755 node_modules/tool",
    "ln node_modules/new.js node_modules/same.js; touch node_modules/untouched/index.js",
    "rm -r node_modules/gone; mkdir node_modules/gone; rmdir node_modules/gone",
    "mkdir -p dist/js; echo built > dist/js/app.js; echo KEY=1 > .env",
)


@pytest.fixture
def furnished(world: World) -> World:
    top = world.project.path
    (top / ".gitignore").write_text("node_modules/\ndist/\n.env\n")
    world.project.git("add", "-A")
    world.project.git("commit", "-qm", "ignored")
    modules = top / "node_modules"
    folders = ("left", "right", "deep/inner", "folder/sub", "linked", "untouched", "gone/deep")
    for name in folders:
        (modules / name).mkdir(parents=True)
        (modules / name / "index.js").write_text(f"// {name}\n")
    (modules / ".bin").mkdir()
    (modules / ".bin/left").symlink_to("../left/index.js")
    (modules / "alias").symlink_to("left")
    (modules / "file").write_text("file\n")
    (modules / "tool").write_text("#!/bin/sh\n")
    return world


def state(top: Path) -> dict[str, object]:
    """Kinds, modes, contents and links of all that is there; no times."""
    found: dict[str, object] = {}
    for path in sorted([top, *top.rglob("*")]):
        if ".git" in path.parts:
            continue
        mode = path.lstat().st_mode
        content = path.read_bytes() if stat.S_ISREG(mode) else b""
        target = str(path.readlink()) if stat.S_ISLNK(mode) else ""
        found[str(path.relative_to(top))] = (mode, content, target)
    return found


def apply(plan: PlanHandle, *words: str) -> Answer:
    return plan("apply", "--yes", *words)


def refusal(answer: Answer, code: str) -> dict[str, str]:
    assert (answer.code, answer.error["code"]) == (1, code)
    return answer.error


def test_the_users_folder_becomes_what_the_steps_have_made_of_it(furnished: World) -> None:
    """The truth by other means: the same commands, where nothing is a layer."""
    world, top = furnished, furnished.project.path
    truth = world.top / "truth"
    subprocess.run(["cp", "-a", str(top), str(truth)], check=True)
    for command in COMMANDS:
        subprocess.run(["/bin/sh", "-c", command], cwd=truth, check=True)
    untouched = (top / "node_modules/untouched/index.js").lstat()
    plan = world.run(*(shell(command, f"step {n}") for n, command in enumerate(COMMANDS)))

    done = apply(plan, "--with-ignored", "node_modules", "--with-ignored", "./dist/").ok()

    assert state(top / "node_modules") == state(truth / "node_modules")
    assert state(top / "dist") == state(truth / "dist")
    assert not (top / ".env").exists()
    after = (top / "node_modules/untouched/index.js").lstat()
    assert (after.st_ino, after.st_mtime_ns) == (untouched.st_ino, untouched.st_mtime_ns)
    assert [row["path"] for row in done.data["left_out"]] == [".env"]
    assert [row["path"] for row in done.data["brought"]] == [
        "node_modules (10 written, 5 removed)",
        "dist (1 written)",
    ]
    assert "with what was changed in these ignored paths of code" in done.out
    assert not [*(top / ".git").glob("cleveragents-*")]
    assert world.project.git("status", "--porcelain") == ""


def test_nothing_stays_in_a_sandbox_of_which_all_was_brought(furnished: World) -> None:
    world, top = furnished, furnished.project.path
    plan = world.run(shell("echo 1 > own.txt; rm -r node_modules/left; echo 1 > .env", "change"))
    sandbox = plan.sandbox
    done = apply(plan, "--with-ignored", ".").ok()
    assert done.data["left_out"] == []
    assert done.data["sandboxes_kept"] == {}
    assert not sandbox.exists()
    assert (top / ".env").read_text() == "1\n" and (top / "own.txt").exists()
    assert not (top / "node_modules/left").exists()


def test_one_path_of_a_folder_can_be_brought_alone(furnished: World) -> None:
    world, top = furnished, furnished.project.path
    steps = shell(
        "mkdir -p node_modules/a/b; echo 1 > node_modules/a/b/c; echo 2 > node_modules/a/d;"
        " rm -r node_modules/deep node_modules/left",
        "change",
    )
    plan = world.run(steps)
    absolute = str(top / "node_modules/deep/inner")
    apply(plan, "--with-ignored", "node_modules/a/b", "--with-ignored", absolute).ok()
    assert (top / "node_modules/a/b/c").read_text() == "1\n"
    assert not (top / "node_modules/a/d").exists()
    assert (top / "node_modules/deep").exists() and not (top / "node_modules/deep/inner").exists()
    assert (top / "node_modules/left/index.js").exists()


@pytest.mark.parametrize(
    ("meanwhile", "named"),
    [
        ("echo mine > node_modules/left/index.js", "node_modules/left/index.js"),
        ("touch -d 2001-01-01 node_modules/left/index.js", "node_modules/left/index.js"),
        ("echo mine > node_modules/right/mine.js", "node_modules/right/mine.js"),
        ("echo mine > node_modules/deep/mine.js", "node_modules/deep/mine.js"),
        ("echo mine > node_modules/new.js", "node_modules/new.js"),
        ("rm -r node_modules", "node_modules"),
        ("rm -r node_modules/deep; mkfifo node_modules/deep", "node_modules/deep"),
        ("mkdir dist; echo mine > dist/app.js", "dist/app.js"),
    ],
)
def test_what_the_user_has_changed_meanwhile_is_refused_by_name(
    furnished: World, meanwhile: str, named: str
) -> None:
    world, top = furnished, furnished.project.path
    plan = world.run(
        shell(
            "echo 1 >> node_modules/left/index.js; rm -r node_modules/right;"
            " rm -r node_modules/deep; mkdir node_modules/deep; echo 2 > node_modules/new.js;"
            " mkdir dist; echo 3 > dist/app.js; echo 4 > own.txt",
            "change",
        )
    )
    subprocess.run(["/bin/sh", "-c", meanwhile], cwd=top, check=True)
    before = state(top)
    words = ("--with-ignored", "node_modules", "--with-ignored", "dist")
    refused = refusal(apply(plan, *words), "apply-conflict")
    assert [line.strip("- ") for line in refused["message"].splitlines()[1:]] == [named]
    assert f"the plan's own version is in {plan.sandbox}" in refused["hint"]
    assert state(top) == before
    apply(plan).ok()
    assert (top / "own.txt").exists()


def test_a_path_of_which_nothing_changed_is_refused_and_the_plan_can_still_be_applied(
    furnished: World,
) -> None:
    world, top = furnished, furnished.project.path
    plan = world.run(shell("echo 1 > own.txt; rm node_modules/tool", "change"))
    for path in ("dist", "own.txt", "../elsewhere", "/etc", ".git", "node_modules/left"):
        refused = refusal(apply(plan, "--with-ignored", path), "nothing-ignored")
        assert path in refused["message"]
        assert "node_modules/ (1 removed)" in refused["hint"]
    assert not (top / "own.txt").exists()
    assert apply(plan, "--branch", "b", "--with-ignored", "node_modules").code == 2
    apply(plan, "--with-ignored", "node_modules").ok()
    assert (top / "own.txt").exists() and not (top / "node_modules/tool").exists()


def test_a_failed_apply_puts_ignored_folders_back_and_the_next_one_brings_them(
    furnished: World,
) -> None:
    world, top = furnished, furnished.project.path
    plan = world.run(shell(f"{'; '.join(COMMANDS)}; echo 1 > own.txt", "change"))
    before = state(top / "node_modules")
    # Where git would have to write: the files are all ready by then, and the ignored ones in place.
    lock = top / ".git/refs/heads/main.lock"
    lock.touch()
    refused = apply(plan, "--with-ignored", "node_modules")
    assert refused.code == 1
    assert state(top / "node_modules") == before
    assert not (top / "own.txt").exists()
    lock.unlink()
    apply(plan, "--with-ignored", "node_modules").ok()
    assert (top / "node_modules/new.js").read_text() == "new\n"
    assert not (top / "node_modules/right").exists()


def test_ignored_folders_that_cannot_be_changed_are_as_they_were_and_brought_the_next_time(
    furnished: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = furnished.project.path
    plan = furnished.run(shell("rm node_modules/tool; echo 1 > own.txt", "change"))
    before = state(top)

    def failing(_work: CarryOut) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(CarryOut, "run", failing)
        refused = apply(plan, "--with-ignored", "node_modules")
    assert refused.code == 1
    assert "could not be changed and is as it was" in refused.error["message"]
    assert state(top) == before
    apply(plan, "--with-ignored", "node_modules").ok()
    assert (top / "own.txt").exists() and not (top / "node_modules/tool").exists()


def test_diff_says_how_ignored_folders_can_be_brought(furnished: World) -> None:
    plan = furnished.run(shell("rm -r node_modules/left", "change"))
    told = plan("diff").ok()
    assert "--with-ignored PATH" in told.out
    done = apply(plan).ok()
    assert done.data["brought"] == []
    assert (furnished.project.path / "node_modules/left").exists()


def test_what_was_copied_instead_of_a_layer_is_brought_too(furnished: World) -> None:
    world, top = furnished, furnished.project.path
    (top / ".env").write_text("KEY=0\n")
    code = {"code": {"type": "git-checkout", "path": ".", "include": [".env", "node_modules"]}}
    steps = shell("echo KEY=1 > .env; rm -r node_modules/left; touch node_modules/new", "change")
    plan = world.run(steps, resources=code)
    apply(plan, "--with-ignored", ".env", "--with-ignored", "node_modules").ok()
    assert (top / ".env").read_text() == "KEY=1\n"
    assert (top / "node_modules/new").exists() and not (top / "node_modules/left").exists()
    shutil.rmtree(top / "node_modules")
