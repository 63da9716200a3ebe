"""Built-in tools keep to their time and their size, whatever they are asked for."""

import sqlite3
import time
from typing import Any

import pytest
from tests.support.world import CODE, PlanHandle, World, shell

SPARSE = 2 << 30
CATASTROPHE = "(a+)+$"
# One step of SQLite's machine that takes longer than anybody has.
ENDLESS = "select instr(printf('%.*c', 20000000, 'a'), printf('%.*c', 5000000, 'a') || 'b')"


def step(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"name": tool, "tool": tool, "with": arguments}


def outputs(plan: PlanHandle) -> list[str]:
    return [call["output"] for call in plan("artifacts").ok().data["artifacts"]]


def refusal(plan: PlanHandle) -> str:
    refused = plan.execute()
    assert (refused.code, refused.error["code"]) == (1, "step-failed"), refused.envelope
    assert plan.status["state"] == "errored"
    return refused.error["message"]


def with_database(world: World) -> dict[str, Any]:
    path = world.project.path / "app.db"
    with sqlite3.connect(path) as db:
        db.execute("create table t (x)")
    db.close()
    return {"resources": {**CODE, "db": {"type": "sqlite", "path": "./app.db"}}}


# --- searching ----------------------------------------------------------------------------------


def test_a_pattern_that_never_comes_to_an_end_is_stopped_in_time(world: World) -> None:
    (world.project.path / "README.md").write_text("a" * 60 + "b\n")
    world.project.git("commit", "-qam", "a")
    plan = world.use(step("file.search", resource="code", pattern=CATASTROPHE, timeout=2))
    begun = time.monotonic()

    assert "file.search was stopped after 2 seconds" in refusal(plan)
    assert time.monotonic() - begun < 60


def test_the_time_limit_of_the_settings_holds_for_a_search_too(world: World) -> None:
    world.agents.environ["CLEVERAGENTS_TOOL_TIMEOUT"] = "2"
    (world.project.path / "README.md").write_text("a" * 60 + "b\n")
    world.project.git("commit", "-qam", "a")

    assert "file.search was stopped" in refusal(
        world.use(step("file.search", resource="code", pattern=CATASTROPHE))
    )


@pytest.mark.parametrize("pattern", ["(" * 5000 + ")" * 5000, "a{99999999999}", "("])
def test_a_pattern_that_nobody_can_read_is_told_as_such(world: World, pattern: str) -> None:
    told = refusal(world.use(step("file.search", resource="code", pattern=pattern)))

    assert "is not a regular expression" in told
    assert len(told) < 1000


def test_a_line_without_an_end_is_searched_in_pieces(world: World) -> None:
    make = "head -c 30000000 /dev/zero | tr '\\0' x > long; echo needle >> long"
    plan = world.run(
        shell(make), step("file.search", resource="code", pattern="needle", path="long")
    )

    found = outputs(plan)[-1]
    assert found.startswith("long:1:… x")
    assert "needle" in found
    assert len(found) < 5000


# --- reading ------------------------------------------------------------------------------------


def test_of_a_huge_file_the_beginning_is_read_and_the_rest_counted(world: World) -> None:
    make = f"printf 'the beginning' > huge; truncate -s {SPARSE} huge"
    plan = world.use(shell(make), step("file.read", resource="code", path="huge"), shell("rm huge"))
    plan.execute().ok()

    read = plan("artifacts").ok().data["artifacts"][1]
    assert read["output"].startswith("the beginning")
    assert read["output"].endswith(f"[{SPARSE - (1 << 20)} bytes left out]")
    assert read["values"] == {"size": SPARSE, "truncated": True}


def test_what_is_cut_is_cut_between_characters(world: World) -> None:
    world.agents.environ["CLEVERAGENTS_TOOL_OUTPUT_LIMIT"] = "2000"
    plan = world.run(
        shell("for i in $(seq 1000); do printf '€'; done > euros"),
        step("file.read", resource="code", path="euros"),
    )

    first, last = outputs(plan)[1].splitlines()
    assert first == "€" * 666
    assert last == "[1000 bytes left out]"


def test_a_list_of_very_many_files_is_cut_and_counted(world: World) -> None:
    world.agents.environ["CLEVERAGENTS_TOOL_OUTPUT_LIMIT"] = "2000"
    plan = world.run(
        shell("mkdir many; cd many; for i in $(seq 1000); do : > file-$i; done"),
        step("file.list", resource="code", path="many"),
    )

    listed = plan("artifacts").ok().data["artifacts"][1]
    assert listed["values"] == {"count": 1000, "truncated": True}
    assert listed["output"].splitlines()[-1].endswith("bytes left out]")


def test_a_huge_file_is_not_edited(world: World) -> None:
    plan = world.use(
        shell(f"truncate -s {SPARSE} huge"),
        step("file.edit", resource="code", path="huge", old="a", new="b"),
    )

    assert "larger than the 268435456 bytes that can be edited" in refusal(plan)
    plan.rollback("start").ok()


# --- databases ----------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["sql.query", "sql.execute"])
def test_sql_that_sqlite_itself_cannot_stop_is_stopped_in_time(world: World, tool: str) -> None:
    keys = with_database(world)
    plan = world.use(step(tool, resource="db", sql=ENDLESS, timeout=3), **keys)
    begun = time.monotonic()

    assert f"{tool} was stopped after 3 seconds" in refusal(plan)
    assert time.monotonic() - begun < 15
    plan.rollback("start").ok()


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("select zeroblob(200000000) as x", "bytes"),
        ("select printf('%.*c', 100000000, 'a') as x", "characters"),
        ("insert into t values (zeroblob(50000000)) returning x", "bytes"),
    ],
)
def test_of_a_huge_value_the_beginning_is_shown_and_the_rest_counted(
    world: World, sql: str, what: str
) -> None:
    tool = "sql.execute" if sql.startswith("insert") else "sql.query"
    plan = world.run(step(tool, resource="db", sql=sql, timeout=30), **with_database(world))

    values = plan("artifacts").ok().data["artifacts"][0]["values"]
    assert values["truncated"] is True
    shown = values["rows"][0][0]
    assert shown.endswith(f"{what} left out]")
    assert len(shown) < 3_000_000
