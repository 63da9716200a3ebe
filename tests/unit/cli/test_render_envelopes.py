"""Rendering for programs: the envelope in JSON and YAML, whatever the data is."""

import json
from datetime import datetime, timedelta, timezone
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml
from render_world import PATCH, PLAN, ROLLBACK, no_terminal, show, show_error

from cleveragents.cli.render.blocks import Cell, CommandResult
from cleveragents.domain.errors import PlanError
from cleveragents.domain.ids import PlanId

__all__ = ["no_terminal"]


def test_the_json_envelope_has_exactly_its_keys() -> None:
    screen = show("json", ROLLBACK)
    assert screen.err == ""
    assert screen.out == (
        "{\n"
        '  "command": "plan rollback",\n'
        '  "status": "warn",\n'
        '  "exit_code": 0,\n'
        '  "data": {\n'
        f'    "plan": "{PLAN}"\n'
        "  },\n"
        '  "timing": {\n'
        '    "started": "2026-11-15T12:00:00.005Z",\n'
        '    "duration_ms": 12\n'
        "  },\n"
        '  "messages": [\n'
        '    "Rollback complete",\n'
        '    "a mail was sent\\nit stays sent"\n'
        "  ]\n"
        "}\n"
    )


@pytest.mark.parametrize("format", ["json", "yaml"])
def test_an_error_is_an_envelope_on_stdout(format: str) -> None:
    screen = show_error(format, PlanError("it failed", "try again"))
    assert screen.err == ""
    envelope = yaml.safe_load(screen.out)
    assert list(envelope) == ["command", "status", "exit_code", "data", "timing", "messages"]
    assert envelope["data"] == {
        "error": {"code": "plan-error", "message": "it failed", "hint": "try again"}
    }
    assert (envelope["status"], envelope["exit_code"]) == ("error", 1)
    assert envelope["messages"] == ["it failed"]


def test_yaml_is_the_same_envelope_as_json() -> None:
    assert yaml.safe_load(show("yaml", ROLLBACK).out) == json.loads(show("json", ROLLBACK).out)


def test_yaml_keeps_order_repeats_instead_of_aliases_and_shows_patches_as_lines() -> None:
    shared = ["x"]
    text = show("yaml", CommandResult(data={"b": shared, "a": shared, "patch": PATCH})).out
    assert "data:\n  b:\n  - x\n  a:\n  - x\n  patch: " in text
    assert "&" not in text
    lines = show("yaml", CommandResult(data={"patch": "-old\n+new\n"})).out
    assert "  patch: |\n    -old\n    +new\n" in lines


@pytest.mark.parametrize(
    ("status", "warnings", "expected"),
    [("ok", [], "ok"), ("ok", ["w"], "warn"), ("error", ["w"], "error"), ("warn", [], "warn")],
)
def test_a_warning_makes_an_ok_a_warn(status: Any, warnings: list[str], expected: str) -> None:
    outcome = CommandResult(data={}, warnings=warnings, status=status, exit_code=1)
    envelope = json.loads(show("json", outcome).out)
    assert (envelope["status"], envelope["exit_code"]) == (expected, 1)


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize("format", ["json", "yaml"])
def test_data_of_any_type_becomes_plain_data(format: str) -> None:
    berlin = timezone(timedelta(hours=1))
    data = {
        "id": PlanId(PLAN),
        "state": Colour.RED,
        "when": datetime(2026, 11, 15, 13, tzinfo=berlin),
        "tuple": (1, 2.5, None, True),
        "set": {"b", "a"},
        "path": PurePosixPath("/x"),
        "cell": Cell("text", "good"),
        "nan": float("nan"),
        1: "number",
    }
    assert yaml.safe_load(show(format, CommandResult(data=data)).out)["data"] == {
        "id": PLAN,
        "state": "red",
        "when": "2026-11-15T12:00:00.000Z",
        "tuple": [1, 2.5, None, True],
        "set": ["a", "b"],
        "path": "/x",
        "cell": "text",
        "nan": None,
        "1": "number",
    }


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("format", ["json", "yaml"])
def test_an_envelope_survives_any_text_and_any_encoding(format: str, encoding: str) -> None:
    data = {"é\udcff": "日本\x9b1A \udcfe"}
    text = show(format, CommandResult(data=data), encoding=encoding).out
    assert yaml.safe_load(text)["data"] == {"é\\xff": "日本\x9b1A \\xfe"}
    assert "\x9b" not in text
    assert ("日本" in text) == (encoding == "utf-8")
