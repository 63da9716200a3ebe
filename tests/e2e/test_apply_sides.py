"""Where commits of the user and the plan changed the same lines: both sides are told, and one can
be taken; what is not disputed comes from both."""

import pytest
from tests.support.world import PlanHandle, World, shell

TEXT = [f"line {number}\n" for number in range(1, 13)]
# The same line, and one that nobody else touches.
OF_PLAN = "sed -i 's/^line 6$/six of the plan/; s/^line 12$/twelve of the plan/' text"
OTHERS = "rm gone; echo plan >> kept; printf 'p\\0' > binary; echo quiet > quiet"


@pytest.fixture
def plan(world: World) -> PlanHandle:
    project = world.project
    project.write("text", "".join(TEXT))
    for name in ("gone", "kept"):
        project.write(name, f"{name}\n")
    project.write("binary", b"b\0")
    project.commit("before")
    plan = world.run(shell(f"{OF_PLAN}; {OTHERS}", "change"))
    lines = [line.replace("line 6", "six of the user") for line in TEXT]
    lines[0] = "one of the user\n"
    project.write("text", "".join(lines))
    project.write("gone", "changed by the user\n")
    (project.path / "kept").unlink()
    project.write("binary", b"u\0")
    project.commit("meanwhile")
    return plan


def test_both_sides_are_told_with_what_to_type(world: World, plan: PlanHandle) -> None:
    before = world.project.fingerprint()

    error = plan("apply", "--yes").error

    assert error["code"] == "apply-conflict"
    told = " ".join(error["message"].split())
    assert "text line 6, the project: six of the user line 6, the plan: six of the plan" in told
    assert "gone the plan has it no more, the project has changed it" in told
    assert "kept the project has it no more, the plan has changed it" in told
    assert "quiet" not in told
    assert "twelve" not in told
    assert "--ours" in error["hint"]
    assert "--theirs" in error["hint"]
    assert world.project.fingerprint() == before


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_a_side_is_taken_where_it_is_disputed_and_nowhere_else(
    world: World, plan: PlanHandle, side: str
) -> None:
    project, ours = world.project, side == "ours"

    plan("apply", "--yes", f"--{side}").ok()

    lines = project.read("text").splitlines()
    assert lines[5] == ("six of the user" if ours else "six of the plan")
    assert (lines[0], lines[11]) == ("one of the user", "twelve of the plan")
    assert (project.path / "gone").exists() is ours
    assert (project.path / "kept").exists() is not ours
    assert (project.path / "binary").read_bytes() == (b"u\0" if ours else b"p\0")
    assert project.read("quiet") == "quiet\n"
    assert project.git("status", "--porcelain", "--untracked-files=no") in ("", b"")
    assert plan.status["state"] == "applied"


def test_work_that_nobody_committed_is_no_side(world: World, plan: PlanHandle) -> None:
    world.project.write("text", "not committed\n")
    before = world.project.fingerprint()

    assert plan("apply", "--yes", "--theirs").error["code"] == "apply-conflict"

    assert world.project.fingerprint() == before


def test_one_side_at_a_time(world: World, plan: PlanHandle) -> None:
    answer = plan("apply", "--yes", "--ours", "--theirs")

    assert (answer.code, "exclude each other" in answer.error["message"]) == (2, True)
