"""One step with what it said and what it changed, whatever the sandbox is like now."""

import hashlib
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.refusals import refused
from tests.support.trees import tree_of
from tests.support.world import PlanHandle, World, action, shell, write


@pytest.fixture
def plan(world: World) -> PlanHandle:
    (world.top / "assets").mkdir()
    (world.top / "assets" / "one.txt").write_text("one\n")
    with closing(sqlite3.connect(world.top / "app.db")) as database:
        database.executescript(
            "create table t (id integer primary key, text); insert into t values (1, 'one');"
        )
    path = world.write_action(action(*steps(), resources={
        "code": {"type": "git-checkout", "path": "."},
        "assets": {"type": "fs-directory", "path": str(world.top / "assets")},
        "db": {"type": "sqlite", "path": str(world.top / "app.db")},
    }))  # fmt: skip
    made = PlanHandle(world.agents, world.agents("plan", "use", path).ok().data["plan_id"])
    made("execute").ok()
    return made


def steps() -> list[dict[str, Any]]:
    def to_db(sql: str) -> dict[str, str]:
        return {"resource": "db", "sql": sql}

    return [
        dict(write("new.txt", "one\n", "write it")),
        dict(shell("echo two >> new.txt; rm src/old.py; echo said", "change it")),
        {"name": "an asset", "tool": "file.write",
         "with": {"resource": "assets", "path": "two.txt", "content": "two\n"}},
        {"name": "a row", "tool": "sql.execute", "with": to_db("insert into t values (2, 'two')")},
        {"name": "look", "tool": "sql.query", "with": to_db("select count(*) as n from t")},
    ]  # fmt: skip


def show(plan: PlanHandle, step: str) -> dict[str, Any]:
    return dict(plan.agents("plan", "show", step, "--plan", plan.id).ok().data)


def files(data: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {file["path"]: (file["status"], file["change"]) for file in data["files"]}


def test_a_step_is_shown_with_its_own_change_only(plan: PlanHandle) -> None:
    first, second = show(plan, "1"), show(plan, "2")
    assert files(first) == {"code:new.txt": ("added", "+1 -0")}
    assert files(second) == {
        "code:new.txt": ("modified", "+1 -0"),
        "code:src/old.py": ("deleted", files(second)["code:src/old.py"][1]),
    }
    assert "+two" in second["patch"]
    assert "+one" not in second["patch"]
    assert second["tool_calls"][0]["output"].strip() == "said"
    assert (second["step_index"], second["plan_id"]) == (1, plan.id)


def test_folders_and_databases_show_theirs(plan: PlanHandle) -> None:
    assert files(show(plan, "3")) == {"assets:two.txt": ("added", "+1 -0")}
    row = show(plan, "4")
    assert files(row) == {"db:app.db/t": ("modified", "+1 -0")}
    assert "+ (2, 'two')" in row["patch"]


def test_a_step_that_only_looks_has_changed_nothing(plan: PlanHandle) -> None:
    assert files(show(plan, "look")) == {}
    assert "no file changed" in plan.agents.inside("plan", "show", "5").ok().out


def test_the_present_of_the_sandboxes_is_neither_needed_nor_touched(plan: PlanHandle) -> None:
    before = [show(plan, str(number)) for number in range(1, 6)]
    sandboxes = {s["resource"]: Path(s["path"]) for s in plan.status["sandboxes"]}
    (sandboxes["code"] / "new.txt").write_text("by hand\n")
    dirty = tree_of(sandboxes["code"])
    assert [show(plan, str(number)) for number in range(1, 6)] == before
    assert tree_of(sandboxes["code"]) == dirty
    for path in (sandboxes["code"], sandboxes["assets"], sandboxes["db"].parent):
        shutil.rmtree(path)
    assert [show(plan, str(number)) for number in range(1, 6)] == before
    assert not any(path.exists() for path in sandboxes.values())


def test_people_read_when_and_with_what(plan: PlanHandle) -> None:
    shown = plan.agents.inside("plan", "show", "change it").ok().out
    for text in ("demo-1 step 2: shell: change it", "command:", "when:", "What it said", "Patch"):
        assert text in shown


def test_a_step_that_failed_shows_what_it_had_done_and_why(world: World) -> None:
    plan = world.use(write("a", "a\n"), shell("echo half > half; exit 3", "break"))
    plan("execute")
    data = show(plan, "2")
    assert data["tool_calls"][0]["status"] == "failed"
    assert files(data) == {"half": ("added", "+1 -0")}


def test_what_a_correction_took_back_is_still_shown(world: World) -> None:
    plan = world.run(write("a", "old\n", "say"))
    old = show(plan, "1")
    step = world.top / "step.yaml"
    step.write_text(json.dumps(write("a", "new\n", "say")))
    plan.agents("plan", "correct", "1", "-g", "new", "--step-file", str(step), "--yes").ok()
    assert "+new" in show(plan, "1")["patch"]
    again = show(plan, old["decision_id"])
    assert again["superseded"]
    assert again["patch"] == old["patch"]


def test_an_applied_plan_says_that_its_snapshots_are_gone(plan: PlanHandle) -> None:
    plan.agents("plan", "apply", "--yes", plan.id).ok()
    answer = plan.agents("plan", "show", "1", "--plan", plan.id).ok()
    assert answer.data["files"] == []
    assert answer.envelope["status"] == "warn"
    told = next(text for text in answer.envelope["messages"] if "its lines are not kept" in text)
    assert told.endswith(f"agents plan diff {plan.id}")
    said = plan.agents.inside("--format", "plain", "plan", "show", "1").ok()
    assert "code:new.txt" in said.out or "new.txt  added" in said.out  # which files, is on record
    assert "no file changed" not in said.out
    assert "damaged" not in said.err


def test_a_step_that_there_is_not_is_refused(plan: PlanHandle) -> None:
    refused(plan.agents("plan", "show", "9"), "decision-not-found")


def test_a_discarded_plan_says_that_its_lines_are_not_kept(plan: PlanHandle) -> None:
    plan.agents("plan", "discard", "--yes", plan.id).ok()
    answer = plan.agents("plan", "show", "1", "--plan", plan.id).ok()
    assert answer.data["files"] == []
    told = "its lines are not kept, as the plan is discarded"
    assert told in answer.envelope["messages"]


def test_damage_to_a_snapshot_is_named_and_other_steps_are_shown(plan: PlanHandle) -> None:
    third = show(plan, "3")
    key = hashlib.sha256(b"one\ntwo\n").digest()
    with closing(sqlite3.connect(plan.agents.data_dir / "snapshots" / f"{plan.id}.db")) as store:
        assert store.execute("DELETE FROM contents WHERE hash=?", (key,)).rowcount == 1
        store.commit()
    answer = plan.agents("plan", "show", "2", "--plan", plan.id).ok()
    assert any("what it changed in `code`" in told for told in answer.envelope["messages"])
    assert show(plan, "3") == third


def test_a_step_whose_checkpoints_are_pruned_is_shown_without_its_change(plan: PlanHandle) -> None:
    strict = plan.agents.having(CLEVERAGENTS_CHECKPOINT_MAX_PER_PLAN="2")
    strict("plan", "checkpoint", "prune", "--yes", plan.id).ok()
    answer = plan.agents("plan", "show", "2", "--plan", plan.id).ok()
    assert answer.data["tool_calls"][0]["output"].strip() == "said"
    assert any("its checkpoints are pruned" in told for told in answer.envelope["messages"])
