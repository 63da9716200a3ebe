"""Child plans in folders, with binaries, ignored files and submodules: merged, or a conflict."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.children import child, run, spawn, text
from tests.support.trees import tree_of
from tests.support.world import PlanHandle, World, shell


def test_a_child_that_writes_into_its_parents_sandbox_is_found_out(world: World) -> None:
    plan = world.use(
        shell("echo $CLEVERAGENTS_SANDBOX_CODE > where.txt"),
        spawn(child("stray", "echo stray > $(cat where.txt)/stray.txt")),
        confinement="off",
    )
    answer = plan("execute")
    assert answer.error["code"] == "sandbox-failed"
    assert "was written to while child plans ran" in answer.error["message"]
    assert not (plan.sandbox / "stray.txt").exists()
    # No tool has failed, and still there is a group for what the plan had come to.
    assert plan.groups[-1].reason == "on_error"
    assert plan.status["error"]["checkpoint"] is not None


def folder_child(name: str, command: str) -> dict[str, Any]:
    return {
        "name": name,
        "steps": [{"tool": "shell", "with": {"resource": "box", "command": command}}],
    }


@pytest.fixture
def box(tmp_path: Path) -> Path:
    place = tmp_path / "box"
    (place / "d").mkdir(parents=True)
    (place / "d/a.txt").write_text("one\ntwo\nthree\nfour\nfive\n")
    (place / "d/b.txt").write_text("b\n")
    (place / "bin").write_bytes(b"\0\1")
    return place


def run_in_folder(world: World, box: Path, *made: dict[str, Any], **keys: Any) -> PlanHandle:
    resources = {"box": {"type": "fs-directory", "path": str(box)}}
    plan = world.use(spawn(*made, **keys), resources=resources)
    plan("execute")
    return plan


def test_in_a_folder_a_change_follows_a_file_that_another_child_moved(
    world: World, box: Path
) -> None:
    plan = run_in_folder(
        world,
        box,
        folder_child("mover", "mv d/a.txt moved.txt; rm d/b.txt"),
        folder_child("editor", "sed -i s/two/2/ d/a.txt; echo new > d/new.txt"),
        folder_child("remover", "rm -r d; mkdir e"),
    )
    assert text(plan, "moved.txt") == "one\n2\nthree\nfour\nfive\n"
    assert text(plan, "d/new.txt") == "new\n"
    assert not (plan.sandbox / "d/a.txt").exists()
    assert (plan.sandbox / "e").is_dir()


def test_conflicts_among_three_are_found_before_any_of_them_is_merged(
    world: World, box: Path
) -> None:
    made = [
        folder_child("a", "mv d/a.txt a2.txt; echo x > x; sed -i s/one/1/ a2.txt"),
        folder_child("b", "sed -i s/five/5/ d/a.txt; rm -r d/b.txt"),
        folder_child("c", "sed -i s/five/V/ d/a.txt; rm bin"),
        folder_child("d", "printf '\\0\\2' > bin; rm -r d"),
    ]
    plan = run_in_folder(world, box, *made, merge_strategy="fail_on_conflict")
    found = {c["name"]: c.get("conflicts", []) for c in plan.status["children"]}
    assert [c["kind"] for c in found["c"]] == ["rename"]
    assert {c["kind"] for c in found["d"]} <= {"delete", "create"}
    assert tree_of(plan.sandbox) == tree_of(box)

    fine = run_in_folder(world, box, *made[:2], merge_strategy="fail_on_conflict")
    assert fine.status["state"] == "complete"
    assert text(fine, "a2.txt") == "1\ntwo\nthree\nfour\n5\n"


def test_two_binary_changes_are_refused(world: World, box: Path) -> None:
    plan = run_in_folder(
        world, box, *(folder_child(n, f"printf '\\0{n}' > bin") for n in ("x", "y"))
    )
    assert "box:bin (binary)" in plan.status["error"]["message"]


def test_ignored_files_that_two_children_built_are_no_conflict(world: World) -> None:
    plan = run(
        world,
        child("a", "mkdir build; echo a > build/out"),
        child("b", "mkdir build; echo b > build/out; echo b > b.txt"),
    )
    assert plan.status["state"] == "complete"
    assert (text(plan, "build/out"), text(plan, "b.txt")) == ("a\n", "b\n")
    merges = [c["output"] for c in plan("artifacts").data["artifacts"] if c["tool"] == "subplans"]
    assert "stay as they were: code:build/out" in merges[1]


def test_an_applied_family_leaves_nothing_behind(world: World) -> None:
    fixed = world.beside / "fixed"
    plan = run(world, child("a", "echo a > a.txt"), child("b", f"test -e {fixed}"), max_retries=0)
    fixed.touch()
    plan("resume").ok()
    plan("apply", "--yes").ok()
    assert world.project.read("a.txt") == "a\n"
    assert list((world.agents.data_dir / "sandboxes").glob("*")) == []
    assert [line for line in world.project.traces() if b"/heads/" in line] == []
    assert all(c["outcome"] in ("merged", "discarded") for c in plan.status["children"])


def test_a_child_has_submodules_of_its_own(world: World) -> None:
    library = world.beside / "lib"
    library.mkdir()
    (library / "l.txt").write_text("lib\n")
    for args in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        done = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(library), *args]
        subprocess.run(done, check=True)
    allow = "-c protocol.file.allow=always"
    plan = world.use(
        shell(f"git {allow} submodule add -q {library} lib && git commit -qm sub", "add"),
        spawn(
            child("a", "cd lib && git checkout -q -b mine && git rev-parse --git-dir > ../where")
        ),
    )
    plan("execute").ok()
    head = subprocess.run(
        ["git", "-C", str(plan.sandbox / "lib"), "branch", "--show-current"],
        capture_output=True,
        check=True,
    )
    assert head.stdout.strip() != b"mine"
    assert "modules/lib" in text(plan, "where")
