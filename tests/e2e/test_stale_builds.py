"""What a rollback leaves in place is not taken for up to date: times fit what stays."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.world import PlanHandle, Step, World, shell

# As make does it: what is newer than the output is built again.
BUILD = (
    "mkdir -p build; for f in one two; do"
    " if [ ! -e build/$f ] || [ $f.src -nt build/$f ]; then cp $f.src build/$f; fi; done"
)
LONG_AGO = "touch -d 2001-02-03 two.src; touch -d 2002-02-03 one.src"
WHOLE = {"code": {"type": "git-checkout", "path": "."}}
EXCLUDE = {"code": {"type": "git-checkout", "path": ".", "exclude": ["build/"]}}


def version(letter: str, then: str = BUILD) -> Step:
    command = f"echo {letter} > one.src; echo {letter} > two.src; {then}; sleep 0.02"
    return shell(command, letter)


def built(plan: PlanHandle) -> dict[str, str]:
    subprocess.run(["/bin/sh", "-ec", BUILD], cwd=plan.sandbox, check=True)
    return {f.name: f.read_text().strip() for f in sorted((plan.sandbox / "build").iterdir())}


def is_old(plan: PlanHandle) -> bool:
    return (plan.sandbox / "one.src").stat().st_mtime < 10**9 * 1.1


def test_what_was_excluded_is_built_anew_and_said_to_be_old(world: World) -> None:
    plan = world.run(version("a"), version("b"), resources=EXCLUDE)
    answer = plan.rollback("after shell a").ok()
    assert answer.envelope["status"] == "warn"
    said = [text for text in answer.envelope["messages"] if "out of date" in text]
    assert len(said) == 1
    assert said[0].endswith(": build")
    assert built(plan) == {"one": "a", "two": "a"}


def test_people_are_told_in_plain_words(world: World) -> None:
    plan = world.run(version("a"), version("b"), resources=EXCLUDE)
    words = ("plan", "rollback", "--yes", plan.id, "after shell a")
    answer = world.agents.inside("--format", "plain", *words).ok()
    assert "may be out of date: build" in answer.err + answer.out


def test_a_single_file_that_comes_back_is_newer_than_what_was_made_of_the_other(
    world: World,
) -> None:
    plan = world.run(version("a"), version("b"))
    words = ("plan", "rollback", "--yes", "--only", "one.src", plan.id, "after shell a")
    world.agents(*words).ok()
    assert built(plan) == {"one": "a", "two": "b"}


@pytest.mark.parametrize("resources", [WHOLE, EXCLUDE], ids=["all of it", "nothing to exclude"])
def test_where_everything_goes_back_together_the_old_times_come_back(
    world: World, resources: dict[str, Any]
) -> None:
    plan = world.run(version("a", LONG_AGO), version("b", "true"), resources=resources)
    answer = plan.rollback("after shell a").ok()
    assert not any("out of date" in text for text in answer.envelope["messages"])
    assert is_old(plan)


def test_what_comes_back_keeps_its_order_in_time(world: World) -> None:
    """One of two restored files may be made from the other."""
    plan = world.run(version("a", LONG_AGO), version("b"), resources=EXCLUDE)
    plan.rollback("after shell a").ok()
    times = [
        (plan.sandbox / name).stat().st_mtime_ns for name in ("build/one", "two.src", "one.src")
    ]
    assert times == sorted(set(times))


def test_a_resource_that_stays_may_have_been_made_from_what_goes_back(world: World) -> None:
    out = world.top / "out"
    out.mkdir()
    place = {"type": "fs-directory", "path": str(out), "checkpointable": False}
    resources = {**WHOLE, "out": place}
    build = 'cp one.src "$CLEVERAGENTS_SANDBOX_OUT/one"'
    policy = {"require_checkpoints": False}
    plan = world.run(
        version("a", build), version("b", build), resources=resources, rollback_policy=policy
    )
    plan.rollback("after shell a").ok()
    paths = {item["resource"]: Path(item["path"]) for item in plan.status["sandboxes"]}
    source, made = paths["code"] / "one.src", paths["out"] / "one"
    assert (source.read_text(), made.read_text()) == ("a\n", "b\n")
    assert source.stat().st_mtime_ns > made.stat().st_mtime_ns


def test_a_correction_says_what_may_be_out_of_date(world: World) -> None:
    plan = world.run(version("a"), version("b"), resources=EXCLUDE)
    second = plan("tree").ok().data["tree"]["children"][1]["id"]
    words = ("plan", "correct", "--yes", "--mode", "revert", "--guidance", "no", second)
    answer = world.agents(*words).ok()
    assert any("out of date: build" in text for text in answer.envelope["messages"])
    assert built(plan) == {"one": "b", "two": "b"}
