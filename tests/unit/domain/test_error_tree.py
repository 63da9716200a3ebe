"""Every error says what happened and what to type next, under a code of its own."""

import re

import pytest
from every_error import ALL, made, required

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


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_an_error_has_a_message_and_says_what_to_do_next(cls: type[PlanError]) -> None:
    error = made(cls)

    assert error.message.strip()
    assert error.hint.strip()
    assert str(error) == error.message
    assert cls.__name__.endswith("Error")


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_the_message_names_everything_the_error_is_about(cls: type[PlanError]) -> None:
    error = made(cls)
    said = error.message + error.hint

    for name in required(cls):
        if name in ("matches", "available", "problems", "files", "effects"):
            assert "first" in said and "second" in said
        elif name == "seconds":
            assert "1.5" in said
        elif name not in ("message", "hint"):
            assert f"the {name}" in said


# What people fill in or look for as it is; everything else is written small.
IN_CAPITALS = {
    "ActionNotFoundError": {"YAML"},
    "ApplyConflictError": {"NAME"},
    "BudgetExhaustedError": {"NUMBER"},
    "CheckpointRequiredError": {"CHECKPOINT_ID"},
    "ConfigValueError": {"VALUE"},
    "ContextOverflowError": {"TEXT", "DECISION"},
    "CorrectionNotFoundError": {"DECISION_ID"},
    "DataDirError": {"CLEVERAGENTS_DATA_DIR"},
    "DecisionNotFoundError": {"PLAN_ID"},
    "ModelAnswerError": {"TEXT"},
    "ModelKeyMissingError": {"KEY"},
    "PlanNotFoundError": {"ACTION"},
    "SnapshotDamagedError": {"PLAN_ID"},
    "StoreFullError": {"SIZE"},
}


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_only_what_is_to_be_filled_in_is_in_capitals(cls: type[PlanError]) -> None:
    error = made(cls)
    found = re.findall(r"_*[A-Z][A-Z_]+", f"{error.message} {error.hint}")

    assert set(found) == IN_CAPITALS.get(cls.__name__, set())


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


@pytest.mark.parametrize("suggestion", [None, "file.write"])
def test_a_suggestion_is_made_only_if_there_is_one(suggestion: str | None) -> None:
    for error in (
        errors.ToolNotFoundError("x", suggestion),
        errors.ConfigKeyError("x", "here", suggestion),
    ):
        meant = "; did you mean `file.write`?" if suggestion else ""
        assert re.fullmatch(rf"unknown [a-z ]+ `x`( in here)?{re.escape(meant)}", error.message)


def test_where_there_is_no_checkpoint_the_list_says_so() -> None:
    assert "(none yet)" in errors.CheckpointRequiredError("p", []).message
