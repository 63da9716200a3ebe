"""Three levels and twelve children over a checkout, a folder and a database, seen from the top."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.trees import Tree, tree_of
from tests.support.world import PlanHandle, Step, World


def sh(resource: str, command: str) -> Step:
    return {"tool": "shell", "with": {"resource": resource, "command": command}}


def sql(statement: str) -> Step:
    return {"tool": "sql.execute", "with": {"resource": "db", "sql": statement}}


def plan_of(name: str, *steps: Step, **keys: Any) -> dict[str, Any]:
    return {"name": name, "steps": list(steps), **keys}


def spawn(*plans: dict[str, Any], **keys: Any) -> Step:
    return {"subplans": {"parallel": True, "max_retries": 0, "plans": list(plans), **keys}}


# Twelve: six at the top, of which two have two each, and one of those has two more.
STEPS = [
    sh("code", "seq 1 9 > list.txt; echo untracked > u.txt"),
    sh("assets", "echo start > start.txt"),
    sql("create table t (name text)"),
    spawn(
        plan_of(
            "front",
            sh("code", "sed -i s/^1$/one/ list.txt"),
            spawn(
                plan_of("css", sh("code", "echo css > css.txt; mkdir hollow; chmod 600 u.txt")),
                plan_of(
                    "js",
                    spawn(
                        plan_of("lint", sh("code", "sed -i s/^3$/three/ list.txt")),
                        plan_of("pack", sh("assets", "rm start.txt; ln -s gone link")),
                        max_parallel=1,
                    ),
                    sql("insert into t values ('js')"),
                ),
            ),
        ),
        plan_of(
            "back",
            spawn(
                plan_of("api", sh("code", "sed -i s/^6$/six/ list.txt"), resources=["code"]),
                plan_of("media", sh("assets", "mkdir m; printf '\\377' > m/bin")),
                parallel=False,
            ),
            resources=["code", "assets"],
        ),
        plan_of("docs", sh("code", "sed -i s/^9$/nine/ list.txt; git mv README.md DOC.md")),
        plan_of("broken", sh("code", "echo half > half.txt; false")),
        plan_of("clash", sh("code", "sed -i s/^1$/eins/ list.txt; echo lost > lost.txt")),
        plan_of("rows", sql("insert into t values ('rows')"), sh("assets", "touch rows.txt")),
    ),
]
NAMES = ["front", "css", "js", "lint", "pack", "back", "api", "media"]
NAMES += ["docs", "broken", "clash", "rows"]


class Three:
    def __init__(self, world: World) -> None:
        self.world = world
        assets, database = world.top / "assets", world.top / "app.db"
        assets.mkdir()
        (assets / "logo").write_bytes(b"\x00logo")
        with closing(sqlite3.connect(database)) as db:
            db.executescript("create table old (x); insert into old values (1);")
        self.resources = {
            "code": {"type": "git-checkout", "path": "."},
            "assets": {"type": "fs-directory", "path": str(assets)},
            "db": {"type": "sqlite", "path": str(database)},
        }
        self.plan = world.use(*STEPS, resources=self.resources)

    def sandbox(self, name: str) -> Path:
        boxes = {box["resource"]: box["path"] for box in self.plan.status["sandboxes"]}
        return Path(boxes[name])

    def beginning(self) -> tuple[Tree, Tree, bytes]:
        """By other means: what a plan that changes nothing has in its sandboxes."""
        idle = self.world.run(sh("code", "true"), resources=self.resources)
        boxes = {box["resource"]: Path(box["path"]) for box in idle.status["sandboxes"]}
        return tree_of(boxes["code"]), tree_of(boxes["assets"]), boxes["db"].read_bytes()

    def rows(self) -> list[str]:
        with closing(sqlite3.connect(self.sandbox("db"))) as db:
            return [name for (name,) in db.execute("select name from t order by name")]

    def state(self) -> tuple[Tree, Tree, bytes]:
        return (
            tree_of(self.sandbox("code")),
            tree_of(self.sandbox("assets")),
            self.sandbox("db").read_bytes(),
        )


@pytest.fixture
def three(world: World) -> Three:
    return Three(world)


def family(children: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [found for child in children for found in (child, *family(child["children"]))]


def test_twelve_children_are_merged_or_refused_and_one_rollback_takes_all_back(
    three: Three, world: World
) -> None:
    project = world.project.fingerprint()
    answer = three.plan("execute")

    assert answer.code == 1
    assert "child `broken` failed: shell ended with exit code 1" in answer.error["message"]
    assert "child `clash` conflicts: code:list.txt (content)" in answer.error["message"]
    assert "child `rows` conflicts: db:app.db (database)" in answer.error["message"]
    assert_merged(three)
    found = family(three.plan.status["children"])
    assert sorted(child["name"] for child in found) == sorted(NAMES)
    refused = {c["name"]: c["outcome"] for c in found if c["outcome"] != "merged"}
    assert refused == {"broken": "failed", "clash": "conflict", "rows": "conflict"}
    assert three.plan.status["execution"]["child_plans"] == 12
    summary = three.plan("tree").ok().data["summary"]
    assert summary["child_plans"] == 12

    assert_rollback_is_exact(three)
    assert world.project.fingerprint() == project


def assert_merged(three: Three) -> None:
    code, assets = three.sandbox("code"), three.sandbox("assets")
    lines = ["one", "2", "three", "4", "5", "six", "7", "8", "nine"]
    assert (code / "list.txt").read_text().split() == lines
    assert (code / "hollow").is_dir()
    assert (code / "u.txt").stat().st_mode & 0o777 == 0o600
    assert (code / "DOC.md").exists()
    for name in ("half.txt", "lost.txt", "README.md"):
        assert not (code / name).exists()
    assert not (assets / "start.txt").exists()
    assert (assets / "link").is_symlink()
    assert (assets / "m/bin").read_bytes() == b"\xff"
    assert not (assets / "rows.txt").exists()
    assert three.rows() == ["js"]


def assert_rollback_is_exact(three: Three) -> None:
    merged = three.state()
    impact = three.plan.rollback("start").ok().data["impact"]
    assert impact["child_plans_invalidated"] == 12
    assert three.state() == three.beginning()
    assert three.state()[0] == three.world.replay([])[0]

    undo = three.plan.group("before rollback to start")
    three.plan.rollback(undo.group_id).ok()
    assert three.state() == merged


def test_after_a_rollback_the_same_plan_gives_the_same_result(three: Three) -> None:
    three.plan("execute")
    first = three.state()
    three.plan.rollback("start").ok()
    three.plan("execute")
    second = three.state()
    assert first[:2] == second[:2]
    assert three.rows() == ["js"]


def test_with_those_refused_corrected_by_hand_only_they_run_again(
    three: Three, world: World
) -> None:
    plan: PlanHandle = three.plan
    plan("execute")
    before = {c["name"]: c["plan_id"] for c in plan.status["children"]}
    plan("resume")
    after = {
        c["name"]: c["plan_id"] for c in plan.status["children"] if c["outcome"] != "discarded"
    }
    again = {name for name, plan_id in after.items() if before[name] != plan_id}
    assert again == {"broken", "clash", "rows"}
    # On top of what is merged now, two of the three fit: only the failing one is left.
    assert three.rows() == ["js", "rows"]
    message = plan.status["error"]["message"]
    assert "broken" in message
    assert "clash" not in message
    assert "rows" not in message
