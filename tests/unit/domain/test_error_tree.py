"""Every error says what happened and what to type next, under a code of its own."""

import re
from collections.abc import Sequence

import pytest
from every_error import ALL, EVERY, Sample, named

from cleveragents.domain import errors
from cleveragents.domain.errors import PlanError, UsageError

LEAVES = [cls for cls in ALL if not any(sub in ALL for sub in cls.__subclasses__())]


def drawn() -> dict[str, str]:
    """The names and codes of the tree in the module's docstring."""
    assert errors.__doc__ is not None
    found = re.findall(r"^[│├└─ ]+ (\w+Error)\s+([a-z-]+)", errors.__doc__, re.MULTILINE)
    return {name: code for name, code in found if name != "UsageError"}


@pytest.mark.parametrize("cls", LEAVES, ids=lambda cls: cls.__name__)
def test_a_leaf_has_a_code_of_its_own(cls: type[PlanError]) -> None:
    assert "code" in vars(cls), "the code of its parent says too little"
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", cls.code)
    assert [other.__name__ for other in ALL if other.code == cls.code] == [cls.__name__]


@pytest.mark.parametrize("sample", EVERY, ids=named)
def test_an_error_has_a_message_and_says_what_to_do_next(sample: Sample) -> None:
    error = sample.error

    assert error.message.strip()
    assert error.hint.strip()
    assert str(error) == error.message
    assert sample.name.endswith("Error")


@pytest.mark.parametrize("sample", EVERY, ids=named)
def test_the_message_names_everything_the_error_is_about_and_nothing_else(sample: Sample) -> None:
    about = dict(sample.given)
    if sample.name == "ApplyConflictError" and "hint" in about:
        del about["plan_id"]  # that is what the usual hint needs it for

    for value in about.values():
        for one in _each(value):
            assert one is None or str(one) in sample.text
    assert "None" not in sample.text


def _each(value: object) -> Sequence[object]:
    if isinstance(value, dict):
        return [one for key, lines in value.items() for one in (key, *lines)]
    return value if isinstance(value, list) else [value]


def test_what_an_error_lists_can_be_asked_for() -> None:
    assert errors.ActionFileError("a.yaml", ["x", "y"]).problems == ("x", "y")
    assert "check 'my file.yaml'`" in errors.ActionFileError("my file.yaml", []).hint
    assert errors.ApplyConflictError("p", "code", ["x", "y"], "why").files == ("x", "y")
    assert errors.ApplyEditsKeptError("p", "why", ["x", "y"]).files == ("x", "y")


# What people fill in or look for as it is, in this order; everything else is written small.
IN_CAPITALS = {
    "ActionNotFoundError": ["YAML"],
    "ApplyConflictError": ["NAME"],
    "BudgetExhaustedError": ["NUMBER"],
    "ConfigValueError": ["VALUE"],
    "ContextOverflowError": ["TEXT", "DECISION", "TEXT", "DECISION"],
    "CorrectionNotFoundError": ["DECISION_ID"],
    "DataDirError": ["CLEVERAGENTS_DATA_DIR"],
    "DatabaseTooNewError": ["U"],
    "DecisionNotFoundError": ["PLAN_ID"],
    "HomeUnknownError": ["HOME", "HOME"],
    "ModelAnswerError": ["TEXT"],
    "ModelDeclinedError": ["TEXT"],
    "ModelKeyMissingError": ["KEY"],
    "PlaceRefusedError": ["PATH"],
    "NoPlanHereError": ["COMMAND", "ACTION"],
    "PlanNotFoundError": ["COMMAND", "ACTION"],
    "ProjectMissingError": ["NEW"],
    "SnapshotDamagedError": ["PLAN_ID"],
    "StoreFullError": ["SIZE"],
}


@pytest.mark.parametrize("sample", EVERY, ids=named)
def test_only_what_is_to_be_filled_in_is_in_capitals(sample: Sample) -> None:
    found = re.findall(r"_*[A-Z][A-Z_]+|\b[A-Z]\b", sample.text)

    # These say something else if they are told more.
    told_more = (
        ("ApplyConflictError", "hint"),
        ("ConfigValueError", "hint"),
        ("PlanNotFoundError", "plan_id"),
    )
    other = any(sample.name == name and sample.given.get(key) for name, key in told_more)
    assert found == ([] if other else IN_CAPITALS.get(sample.name, []))


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_usage_errors_exit_with_2_interruptions_with_130_and_all_others_with_1(
    cls: type[PlanError],
) -> None:
    expected = 2 if issubclass(cls, UsageError) else 1
    if cls.__name__.startswith("Interrupted"):
        expected = 130

    assert cls.exit_code == expected


def test_the_tree_in_the_docstring_is_the_tree_in_the_code() -> None:
    assert drawn() == {cls.__name__: cls.code for cls in ALL if cls is not UsageError}


@pytest.mark.parametrize("meant", [None, "file.write"])
def test_a_suggestion_is_made_only_if_there_is_one(meant: str | None) -> None:
    for error, told in (
        (errors.ToolNotFoundError("x", meant), "unknown tool `x`"),
        (errors.ConfigKeyError("x", "here", meant), "unknown config key `x` in here"),
        (
            errors.PathNotFoundError("code", "x", "start", meant),
            "`code` has no 'x', neither in checkpoint start nor now",
        ),
    ):
        assert error.message == (f"{told}; did you mean `{meant}`?" if meant else told)


def test_an_owner_that_seems_not_to_go_on_is_told_with_what_to_do_about_it() -> None:
    look = "look with `agents plan status p`"

    assert errors.PlanLockedError("p", "x").hint == f"wait for it, or {look}"
    assert errors.PlanLockedError("p", "x", "stop it").hint == f"stop it; {look}"


def test_what_an_interrupted_step_may_have_done_outside_is_told() -> None:
    undone = "plan p was interrupted; the running step was undone"
    doubt = "but outside it may have done this: mail; post"

    assert errors.InterruptedPlanError("p").message == undone
    assert errors.InterruptedPlanError("p", ["mail", "post"]).message == f"{undone}, {doubt}"


def test_where_there_is_no_checkpoint_the_list_says_so() -> None:
    assert errors.CheckpointRequiredError("p", []).message.endswith("There are:\n  (none yet)")
