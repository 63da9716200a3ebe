"""What errors say in the cases that differ: one or many, none or some, with a remedy or without."""

import pytest

from cleveragents.domain import errors
from cleveragents.domain.errors import PlanError
from cleveragents.domain.errors.actors import ProgramFailedError, RepositoryBusyError
from cleveragents.domain.errors.work import ToolTimeoutError, ToolWroteError


def test_a_class_that_says_no_code_or_exit_code_has_those_of_the_one_above_it() -> None:
    class OwnError(PlanError, code="own", exit_code=7): ...

    class BelowError(OwnError): ...

    class OtherError(OwnError, code="other"): ...

    assert [(cls.code, cls.exit_code) for cls in (OwnError, BelowError, OtherError)] == [
        ("own", 7),
        ("own", 7),
        ("other", 7),
    ]


def test_how_many_changes_there_are_is_told_where_more_were_wanted() -> None:
    one = errors.NothingToUndoError("p", 1)
    two = errors.NothingToRedoError("p", 2)

    assert one.message == "plan p has 1 change to undo, and not more"
    assert "`agents undo --plan p -n 1`" in one.hint
    assert two.message == "plan p has 2 changes to redo, and not more"
    assert "`agents redo --plan p -n 2`" in two.hint


def test_where_there_is_nothing_to_undo_or_redo_it_is_told_what_else_can_be_done() -> None:
    undo, redo = errors.NothingToUndoError("p", 0), errors.NothingToRedoError("p", 0)

    assert undo.message == (
        "there is nothing to undo in plan p: its files are as they were at its start"
    )
    assert undo.hint == (
        "see where it stands with `agents log p`, or go forward again with `agents redo --plan p`"
    )
    assert redo.message == (
        "there is nothing to redo in plan p: nothing was undone since the last thing that was done"
    )
    assert redo.hint == (
        "what was left behind before that is in `agents log --all p`; go to it"
        " with `agents rewind --plan p <CHECKPOINT_ID>`"
    )


def test_what_is_in_the_way_or_differs_can_be_asked_for() -> None:
    assert errors.MoveBlockedError("p", ["a", "b"]).names == ("a", "b")
    assert errors.ApplyConflictError("p", "code", ["x"], "why", sides={"x": ["<"]}).sides == {
        "x": ["<"]
    }
    assert errors.ApplyConflictError("p", "code", ["x"], "why").sides == {}


def test_a_command_that_can_stop_the_owner_says_so_first() -> None:
    error = errors.PlanLockedError("p", "x")
    usual = error.hint

    assert error.stoppable() is error
    assert error.hint == f"stop it first by adding --now, or {usual}"


@pytest.mark.parametrize(("remedy", "before"), [("mend it", "mend it; or "), ("", "")])
def test_a_remedy_comes_before_what_can_be_typed_anyway(remedy: str, before: str) -> None:
    error = ProgramFailedError("p", "it failed", remedy)

    assert error.hint == before + ProgramFailedError.usual("p")


def test_a_lock_of_gits_can_be_removed_by_what_is_told() -> None:
    assert RepositoryBusyError("/r", "/my r/index.lock").hint.endswith("rm '/my r/index.lock'")


@pytest.mark.parametrize(("more", "end"), [(0, ""), (3, "\n  and 3 more: `agents plan list`")])
def test_plans_of_elsewhere_are_listed_and_the_rest_counted(more: int, end: str) -> None:
    assert errors.NoPlanHereError("/here", ["one"], more).message.endswith(f":\n  one{end}")


@pytest.mark.parametrize(
    ("changed", "told"),
    [(["a", "b"], ": there is a, b"), ([], ", or go without --with-ignored")],
)
def test_ignored_paths_that_have_changed_are_named(changed: list[str], told: str) -> None:
    hint = errors.NothingIgnoredError(["x"], changed).hint

    assert hint == f"name a path below the project where something was{told}"


@pytest.mark.parametrize(("until_then", "end"), [("it printed x", "; it printed x"), ("", "")])
def test_what_a_tool_had_done_until_its_time_was_over_is_told(until_then: str, end: str) -> None:
    told = ToolTimeoutError("shell", 1.5, until_then).message

    assert told == f"shell was stopped after 1.5 seconds{end}"


@pytest.mark.parametrize(
    ("paths", "named"),
    [
        ("a", "a"),
        ("abcde", "a, b, c, d, e"),
        ("abcdef", "a, b, c, d, e and 1 more"),
        ("abcdefg", "a, b, c, d, e and 2 more"),
    ],
)
def test_of_what_a_tool_wrote_the_first_are_named_and_the_rest_counted(
    paths: str, named: str
) -> None:
    told = ToolWroteError("look", list(paths)).message

    assert told == f"look is declared read-only, and wrote {named}"
