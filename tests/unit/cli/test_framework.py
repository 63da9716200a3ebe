"""The command framework: commands load late, and every error becomes one of ours with a hint."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from cleveragents.cli.framework import (
    FORMATS,
    AgentsCommand,
    LazyGroup,
    chosen_format,
    command_name,
    examples,
    scan_format,
    to_plan_error,
)

SEEN: list[tuple[str, str | None]] = []


@click.command(
    cls=AgentsCommand, epilog=examples("agents plan rollback PLAN CHECKPOINT --yes", "# undo it")
)
@click.argument("plan_id")
@click.pass_context
def rollback(ctx: click.Context, plan_id: str) -> None:
    """Go back to a checkpoint."""
    SEEN.append((command_name(ctx), chosen_format(ctx)))


plan = LazyGroup(
    "plan",
    lazy={
        "rollback": (f"{__name__}:rollback", "Go back to a checkpoint."),
        "broken": ("cleveragents.does_not_exist:command", "Help without an import."),
        "odd": (f"{__name__}:SEEN", "Not a command."),
    },
)


@plan.command("near", hidden=False)
def near() -> None:
    """Defined in place."""


@plan.command("secret", hidden=True)
def secret() -> None:
    """Never listed."""


root = LazyGroup("agents", lazy={"plan": (f"{__name__}:plan", "Plans: make, run, take back.")})


@pytest.fixture(autouse=True)
def _forget() -> None:
    SEEN.clear()


def run(*argv: str) -> tuple[str, str | None]:
    root.main(list(argv), prog_name="agents", standalone_mode=False)
    return SEEN[-1]


def refused(*argv: str) -> click.ClickException:
    with pytest.raises(click.ClickException) as caught:
        root.main(list(argv), prog_name="agents", standalone_mode=False)
    return caught.value


def help_of(*argv: str) -> str:
    return CliRunner().invoke(root, [*argv, "--help"], prog_name="agents").output


@pytest.mark.parametrize(
    "argv",
    [
        ("--format", "json", "plan", "rollback", "X"),
        ("plan", "--format", "json", "rollback", "X"),
        ("plan", "rollback", "--format", "json", "X"),
        ("plan", "rollback", "X", "--format=JSON"),
        ("--format", "yaml", "plan", "rollback", "X", "--format", "json"),
    ],
)
def test_the_format_is_accepted_anywhere_and_the_last_one_wins(argv: tuple[str, ...]) -> None:
    assert run(*argv) == ("plan rollback", "json")


def test_without_the_option_no_format_was_chosen() -> None:
    assert run("plan", "rollback", "X") == ("plan rollback", None)


def test_help_lists_commands_with_their_help_without_importing_them() -> None:
    text = help_of("plan")
    assert "  rollback  Go back to a checkpoint.\n" in text
    assert "  broken    Help without an import.\n" in text
    assert "  near      Defined in place\n" in text
    assert "secret" not in text


def test_commands_are_listed_in_the_order_they_were_given() -> None:
    text = help_of("plan")
    assert text.index("rollback") < text.index("broken") < text.index("near")


def test_examples_are_shown_verbatim() -> None:
    assert help_of("plan", "rollback").endswith(
        "\nExamples:\n  agents plan rollback PLAN CHECKPOINT --yes\n  # undo it\n"
    )


def test_another_epilog_is_shown_as_click_shows_it() -> None:
    group = LazyGroup("g", epilog="See the manual.")
    command = AgentsCommand("c", epilog="See the manual.")
    for item in (group, command):
        assert "  See the manual.\n" in CliRunner().invoke(item, ["--help"]).output


def test_an_unknown_command_suggests_the_nearest_one() -> None:
    assert to_plan_error(refused("plan", "rolback")).message == (
        "no such command `rolback`; did you mean `rollback`?"
    )


def test_an_unknown_command_like_no_other_lists_what_there_is() -> None:
    assert to_plan_error(refused("xyz")).message == "no such command `xyz`; there are: plan"


def test_an_unknown_option_in_place_of_a_command_is_an_option_error() -> None:
    assert "--nope" in to_plan_error(refused("plan", "--nope")).message


def test_a_target_that_is_no_command_is_a_programming_error() -> None:
    with pytest.raises(TypeError, match="is not a click command"):
        root.main(["plan", "odd"], prog_name="agents", standalone_mode=False)


def test_a_usage_error_names_the_help_to_read() -> None:
    error = to_plan_error(refused("plan", "rollback"))
    assert error.message == "missing argument 'PLAN_ID'"
    assert error.hint == "see `agents plan rollback --help`"
    assert (error.code, error.exit_code) == ("usage", 2)


def test_a_group_without_a_command_says_which_there_are() -> None:
    error = to_plan_error(refused("plan"))
    assert error.message == (
        "say which command of `agents plan` to run: rollback, broken, odd, near, secret"
    )


def test_an_error_without_a_context_points_to_the_program() -> None:
    error = to_plan_error(click.ClickException("ID is odd."))
    assert (error.message, error.hint) == ("ID is odd", "see `agents --help`")


def test_no_context_is_no_command() -> None:
    assert command_name(None) == ""


@pytest.mark.parametrize(
    ("argv", "environ", "expected"),
    [
        (["plan", "--format", "json"], {}, "json"),
        (["--format=yaml", "plan"], {}, "yaml"),
        (["--format", "json", "x", "--format", "plain"], {}, "plain"),
        (["--", "--format", "json"], {}, None),
        (["--format"], {}, None),
        (["--format", "jsno"], {}, None),
        ([], {"CLEVERAGENTS_FORMAT": "json"}, "json"),
        (["--format", "rich"], {"CLEVERAGENTS_FORMAT": "json"}, "rich"),
        (["--format", "jsno"], {"CLEVERAGENTS_FORMAT": "json"}, "json"),
    ],
)
def test_the_format_is_found_without_parsing(
    argv: list[str], environ: dict[str, str], expected: str | None
) -> None:
    assert scan_format(argv, environ) == expected


def test_the_help_costs_click_and_nothing_else() -> None:
    heavy = "rich json yaml dataclasses difflib cleveragents.domain cleveragents.cli.render"
    program = (
        "import sys, click; before = set(sys.modules); import cleveragents.cli.framework;"
        f"print([m for m in '{heavy}'.split() if m in set(sys.modules) - before])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_every_format_is_offered_in_the_help() -> None:
    assert f"[{'|'.join(FORMATS)}]" in help_of("plan", "rollback")
