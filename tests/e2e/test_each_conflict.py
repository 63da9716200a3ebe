"""Files that a child conflicts over are decided each by itself."""

from typing import Any

import pytest
from tests.e2e.test_child_conflicts import (
    EDITS,
    at_terminal,
    both,
    children,
    outcomes,
    text,
    with_editor,
)
from tests.support.refusals import refused
from tests.support.world import PlanHandle, World, write


def three_files(world: World, **keys: Any) -> PlanHandle:
    ways = [" ".join(f"mkdir -p docs; echo {who} > {path};" for path in ("a", "docs/b", "docs/c"))
            for who in ("one", "two")]  # fmt: skip
    return both(world, *ways, **keys)


@pytest.mark.parametrize(
    ("words", "there"),
    [
        (["--ours-for", "a", "--theirs-for", "docs"], ["one", "two", "two"]),
        (["--theirs", "--ours-for", "docs/b"], ["two", "one", "two"]),
        (["--ours", "--theirs-for", "docs/", "--ours-for", "docs/c"], ["one", "two", "one"]),
        (["--theirs-for", "code:a", "--theirs-for", "docs/b", "--ours"], ["two", "two", "one"]),
    ],
)
def test_each_file_has_a_side_of_its_own(world: World, words: list[str], there: list[str]) -> None:
    plan = three_files(world)
    plan("resume", *words).ok()
    assert [text(plan, path).strip() for path in ("a", "docs/b", "docs/c")] == there
    assert outcomes(plan) == {"one": "merged", "two": "merged"}
    lost = {loss["path"]: loss["whose"] for loss in children(plan)["two"]["overwritten"]}
    whose = {"one": "two", "two": "one"}
    paths = ("a", "docs/b", "docs/c")
    assert lost == {path: whose[side] for path, side in zip(paths, there, strict=True)}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--ours-for", "a"], "nothing is said about code:docs/b, code:docs/c"),
        (["--ours-for", "nothing", "--theirs"], "no conflict is about 'nothing'"),
        (["--ours-for", "", "--theirs"], "no conflict is about ''"),
        (["--ours-for", "a", "--theirs-for", "a", "--ours"], "code:a is named twice"),
    ],
)
def test_what_is_not_said_clearly_is_refused_and_nothing_changes(
    world: World, words: list[str], said: str
) -> None:
    plan = three_files(world)
    records, tree = world.records(), plan.tree()
    assert said in refused(plan("resume", *words), "usage", 2)
    assert (world.records(), plan.tree()) == (records, tree)


def test_a_side_for_a_file_where_there_is_no_conflict_is_refused(world: World) -> None:
    plan = world.run(write("a.txt", "a"))
    refused(plan("resume", "--ours-for", "a.txt"), "no-conflict")


def test_one_file_can_be_edited_and_the_others_have_a_side(world: World) -> None:
    plan = three_files(world)
    with_editor(world, EDITS)
    code, out = at_terminal(world, "resume", "--theirs", "--edit-for", "docs/c", plan.id)
    assert code == 0, out
    assert [text(plan, path) for path in ("a", "docs/b")] == ["two\n", "two\n"]
    assert text(plan, "docs/c") == "one\ntwo\n"
