"""Something to render, and a screen to render it on."""

import io
from datetime import UTC, datetime
from typing import Any

import pytest

from cleveragents.cli.render import make_renderer
from cleveragents.cli.render.blocks import (
    Branch,
    Cell,
    Code,
    CommandResult,
    Fields,
    Grid,
    Invocation,
    Tree,
)
from cleveragents.domain.errors import PlanError

PLAN = "01JCXYZ0000000000000000PAN"
STARTED = datetime(2026, 11, 15, 12, 0, 0, 5000, tzinfo=UTC)
CALL = Invocation(command="plan rollback", started=STARTED, duration_ms=12)
PATCH = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\tone\n"
SUMMARY = Fields(
    "Rollback Summary", [("plan", PLAN), ("files reverted", Cell("2", "accent"))], framed=True
)
REVERTED = Grid(
    "Changes Reverted",
    ["file", "action", "size"],
    [["src/app.py", Cell("restored", "good"), "1.2 kB"], ["日本.md", "removed", "-"]],
    framed=True,
)
DECISIONS = Tree(
    "Decisions",
    Branch(
        "prompt",
        [Branch("strategy", [Branch("old", dim=True, note="superseded")]), Branch("tool")],
    ),
)
ROLLBACK = CommandResult(
    data={"plan": PLAN},
    blocks=[SUMMARY, REVERTED, DECISIONS, Code("Patch", PATCH, "diff")],
    messages=["Rollback complete"],
    warnings=["a mail was sent\nit stays sent"],
    done=True,
)


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine that runs the tests says about colours."""
    for name in ("FORCE_COLOR", "NO_COLOR", "COLORTERM", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


class Screen:
    """Two streams with an encoding, as the operating system gives them."""

    def __init__(self, encoding: str = "utf-8") -> None:
        self._raw = io.BytesIO(), io.BytesIO()
        self.stdout = io.TextIOWrapper(self._raw[0], encoding=encoding, newline="")
        self.stderr = io.TextIOWrapper(self._raw[1], encoding=encoding, newline="")

    @property
    def out(self) -> str:
        return self._raw[0].getvalue().decode()

    @property
    def err(self) -> str:
        return self._raw[1].getvalue().decode()


def show(format: str, outcome: CommandResult, *, width: int = 80, **options: Any) -> Screen:
    screen = Screen(options.pop("encoding", "utf-8"))
    renderer = make_renderer(
        format, CALL, stdout=screen.stdout, stderr=screen.stderr, width=width, **options
    )
    renderer.show(outcome)
    return screen


def show_error(format: str, error: PlanError, *, width: int = 80, **options: Any) -> Screen:
    screen = Screen(options.pop("encoding", "utf-8"))
    renderer = make_renderer(
        format, CALL, stdout=screen.stdout, stderr=screen.stderr, width=width, **options
    )
    renderer.show_error(error)
    return screen
