"""What a tool says that it writes is captured, wherever that is and whether git ignores it."""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from tests.support.world import World

SCRIPT = """\
import os, sqlite3, sys
with sqlite3.connect(os.environ["CLEVERAGENTS_SANDBOX_DB"]) as database:
    database.execute("create table login (name)")
    database.execute("insert into login values (?)", (sys.argv[1],))
open("built.log", "w").write("ignored by git\\n")
"""


def test_a_tool_of_one_resource_that_writes_another_is_captured_and_taken_back_in_both(
    world: World,
) -> None:
    database = world.top / "app.db"
    with closing(sqlite3.connect(database)) as made:
        made.execute("create table old (x)")
    tool = {
        "command": [sys.executable, "-c", SCRIPT, "{who}"],
        "resource": "code",
        "writes": True,
        "write_scope": ["db"],
    }
    plan = world.run(
        {"name": "migrate", "tool": "migrate", "with": {"who": "uma"}},
        resources={
            "code": {"type": "git-checkout", "path": "."},
            "db": {"type": "sqlite", "path": str(database)},
        },
        tools={"migrate": tool},
    )
    paths = {item["resource"]: Path(item["path"]) for item in plan.status["sandboxes"]}
    (after,) = [group for group in plan.groups if group.reason == "on_tool_write_complete"]
    assert {row["checkpoint_type"] for row in after.rows} == {
        "git-checkout",
        "sqlite",
        "plan-state",
    }
    assert (after.source, after.step_index) == ("migrate", 0)

    plan.rollback("start").ok()
    assert tables(paths["db"]) == ["old"]
    assert not (paths["code"] / "built.log").exists()

    plan.rollback(after.group_id).ok()
    assert tables(paths["db"]) == ["login", "old"]
    assert (paths["code"] / "built.log").read_text() == "ignored by git\n"


def tables(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        found = database.execute("select name from sqlite_master where type = 'table' order by 1")
        return [name for (name,) in found]
