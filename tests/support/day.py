"""One day with every command: what is typed, in which order, and a name for each answer.

A checkout, a folder and a database; a plan that is run, looked at, taken back, corrected and
applied; one that fails, is told what it needs and cancelled; and what is wrong to type.
"""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

from tests.support.agents import Answer
from tests.support.world import PlanHandle, World, action, shell, write

Told = dict[str, Answer]
NOBODY = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def tell(world: World) -> Told:
    """Every command's answer, by a name that says which command and in which state."""
    told: Told = {}

    def typed(name: str, *words: str) -> Answer:
        assert name not in told, name
        told[name] = world.agents(*words)
        return told[name]

    _files(world)
    _before_any_plan(world, typed)
    plan = _a_good_plan(world, typed)
    _looking(plan, typed)
    _groups(plan, typed)
    _back_and_forth(world, plan, typed)
    _children(world, typed)
    _applied(plan, typed)
    _a_bad_plan(world, typed)
    _an_effect(world, typed)
    _every_day(world, typed)
    _all_plans(typed)
    _programs(typed)
    return told


Typed = Callable[..., Answer]


def _programs(typed: Typed) -> None:
    typed("run", "run", "--", "sh", "-c", "echo 1 > of-a-program.txt")
    typed("run, failed", "run", "--", "sh", "-c", "echo 1 > half.txt; exit 3")
    typed("run, checked", "run", "--apply-if", "false", "--", "sh", "-c", "echo 1 > c.txt")
    typed("run, applied", "run", "--yes", "--", "sh", "-c", "echo 1 > applied.txt")
    typed("run, refused", "run", "--", "no-such-program")


def _files(world: World) -> None:
    (world.top / "assets").mkdir()
    (world.top / "assets" / "one.txt").write_text("one\n")
    with closing(sqlite3.connect(world.top / "app.db")) as database:
        database.executescript(
            "create table t (id integer primary key, text); insert into t values (1, 'one');"
        )


def _resources(world: World) -> dict[str, Any]:
    return {
        "code": {"type": "git-checkout", "path": "."},
        "assets": {"type": "fs-directory", "path": str(world.top / "assets")},
        "db": {"type": "sqlite", "path": str(world.top / "app.db")},
    }


def _steps() -> list[dict[str, Any]]:
    return [
        dict(write("new.txt", "new\n", "write the page")),
        dict(shell("echo more >> README.md; rm src/old.py; mkdir hollow", "run the generator")),
        {"name": "an asset", "tool": "file.write",
         "with": {"resource": "assets", "path": "two.txt", "content": "two\n"}},
        {"name": "a row", "tool": "sql.execute",
         "with": {"resource": "db", "sql": "insert into t values (2, 'two')"}},
    ]  # fmt: skip


def _before_any_plan(world: World, typed: Typed) -> None:
    path = world.write_action(action(*_steps(), resources=_resources(world)))
    typed("action check", "action", "check", path)
    bad = world.write_action({"name": "bad", "steps": [{"tool": "file.wirte"}]}, "bad.yaml")
    typed("action check, refused", "action", "check", bad)
    typed("config list", "config", "list")
    typed("config get", "config", "get", "tool.timeout")
    typed("config set", "config", "set", "tool.timeout", "50")
    typed("config set, refused", "config", "set", "tool.timeout", "long")
    typed("config get, unknown", "config", "get", "tool.timeuot")
    typed("config unset", "config", "unset", "tool.timeout")
    typed("tool list", "tool", "list")
    typed("tool show", "tool", "show", "file.write")
    typed("tool show, unknown", "tool", "show", "file.wirte")
    typed("plan list, none", "plan", "list")
    typed("plan use, no file", "plan", "use", "nothing.yaml")
    typed("plan status, unknown", "plan", "status", NOBODY)


def _a_good_plan(world: World, typed: Typed) -> PlanHandle:
    used = typed("plan use", "plan", "use", str(world.top / "a.yaml")).ok()
    plan = PlanHandle(world.agents, used.data["plan_id"])
    typed("plan status, queued", "plan", "status", plan.id)
    typed("plan execute", "plan", "execute", plan.id).ok()
    typed("plan execute, complete", "plan", "execute", plan.id).ok()
    return plan


def _looking(plan: PlanHandle, typed: Typed) -> None:
    for word in ("status", "tree", "diff", "artifacts", "errors", "effects"):
        typed(f"plan {word}", "plan", word, plan.id).ok()
    typed("plan explain", "plan", "explain", _decision(plan)).ok()
    typed("plan show", "plan", "show", "2", "--plan", plan.id).ok()
    typed("plan resume, dry run", "plan", "resume", "--dry-run", plan.id).ok()
    typed("tool list, of a plan", "tool", "list", "--plan", plan.id).ok()


def _groups(plan: PlanHandle, typed: Typed) -> None:
    checkpoint = ("plan", "checkpoint")
    typed("plan checkpoint list", *checkpoint, "list", plan.id).ok()
    typed("plan checkpoint show", *checkpoint, "show", plan.id, "start").ok()
    typed("plan checkpoint create", *checkpoint, "create", "--label", "mine", plan.id).ok()
    typed("plan checkpoint verify", *checkpoint, "verify", plan.id).ok()
    typed("plan checkpoint diff", *checkpoint, "diff", plan.id, "start", "mine").ok()
    typed("plan checkpoint delete, refused", *checkpoint, "delete", "-y", plan.id, "mine")
    first = "decision 1: write the page"
    typed("plan checkpoint delete", *checkpoint, "delete", "-y", plan.id, first).ok()
    typed("plan checkpoint prune", *checkpoint, "prune", "-y", plan.id).ok()
    typed("plan checkpoint show, unknown", *checkpoint, "show", plan.id, "nothing")


def _back_and_forth(world: World, plan: PlanHandle, typed: Typed) -> None:
    group = plan.group("decision 2: run the generator").group_id
    rollback = ("plan", "rollback")
    typed("plan rollback, dry run", *rollback, "--dry-run", plan.id, group).ok()
    typed("plan rollback, not confirmed", *rollback, plan.id, group)
    typed("plan rollback", *rollback, "--yes", plan.id, group).ok()
    typed("plan resume", "plan", "resume", plan.id).ok()
    only = ("--only", "code:new.txt")
    typed("plan rollback, only", *rollback, "--yes", *only, plan.id, "start").ok()
    typed("plan resume, after only", "plan", "resume", plan.id).ok()
    step = world.top / "step.yaml"
    step.write_text(json.dumps(write("new.txt", "newer\n", "write the page")))
    correct = ("plan", "correct", "--mode", "revert", "--guidance", "say newer")
    correct = (*correct, "--step-file", str(step), _decision(plan))
    typed("plan correct, dry run", *correct, "--dry-run").ok()
    corrected = typed("plan correct", *correct, "--yes").ok()
    correction = corrected.data["correction_id"]
    typed("plan diff, of a correction", "plan", "diff", "--correction", correction).ok()
    typed("plan tree, with superseded", "plan", "tree", "--show-superseded", plan.id).ok()


def _every_day(world: World, typed: Typed) -> None:
    """Without a plan's name: the last one made of here."""
    row = {"resource": "db", "sql": "insert into t values (3, 'three')"}
    steps = (
        write("day/one.txt", "one\n", "write a page"),
        shell("echo a day >> README.md", "tell of it"),
        {"name": "a third row", "tool": "sql.execute", "with": row},
    )
    day = action(*steps, resources=_resources(world), name="day")
    path = world.write_action(day, "day.yaml")
    world.agents("plan", "use", path).ok()
    typed("undo, nothing", "undo")
    world.agents("plan", "execute").ok()
    typed("redo, nothing", "redo")
    typed("status", "status").ok()
    typed("diff", "diff").ok()
    typed("diff, of a step", "diff", "2").ok()
    typed("undo, dry run", "undo", "--dry-run").ok()
    typed("undo", "undo").ok()
    typed("undo, several", "undo", "-n", "2").ok()
    typed("undo, a name", "undo", "3")
    typed("log", "log").ok()
    typed("redo", "redo").ok()
    typed("rewind", "rewind", "--yes", "0").ok()
    world.agents("redo", "-n", "3").ok()
    world.agents("plan", "execute").ok()
    typed("apply", "apply", "--yes", "--branch", "day").ok()
    typed("undo, applied, dry run", "undo", "--dry-run").ok()
    typed("undo, applied", "undo", "--yes").ok()
    typed("undo, applied, twice", "undo", "--yes")
    typed("redo, applied", "redo", "--yes").ok()
    typed("discard", "discard", "--yes").ok()


def _children(world: World, typed: Typed) -> None:
    plans = [{"name": name, "steps": [write(f"{name}.md", name)]} for name in ("en", "de")]
    spawn = {"name": "both", "subplans": {"parallel": True, "max_parallel": 1, "plans": plans}}
    path = world.write_action(action(spawn, name="parent"), "parent.yaml")
    parent = world.agents("plan", "use", path).ok().data["plan_id"]
    typed("plan execute, with children", "plan", "execute", parent).ok()
    typed("plan status, with children", "plan", "status", parent).ok()
    typed("plan tree, with children", "plan", "tree", parent).ok()
    typed("plan cancel", "plan", "cancel", "--reason", "the wrong branch", parent).ok()
    typed("plan status, cancelled", "plan", "status", parent).ok()


def _applied(plan: PlanHandle, typed: Typed) -> None:
    typed("plan apply", "plan", "apply", "--yes", plan.id).ok()
    typed("plan status, applied", "plan", "status", plan.id).ok()
    typed("plan rollback, applied", "plan", "rollback", "--yes", plan.id, "start")
    typed("plan discard", "plan", "discard", "--yes", plan.id)


def _a_bad_plan(world: World, typed: Typed) -> None:
    gate = shell("test -e gate || { echo 'no gate' >&2; exit 3; }", "pass the gate")
    path = world.write_action(action(write("half.txt", "half\n"), gate, name="bad"))
    plan = world.agents("plan", "use", path).ok().data["plan_id"]
    typed("plan execute, failed", "plan", "execute", plan)
    typed("plan status, failed", "plan", "status", plan)
    typed("plan errors, failed", "plan", "errors", plan)
    typed("plan apply, failed", "plan", "apply", "--yes", plan)
    typed("plan prompt", "plan", "prompt", plan, "open the gate")


def _an_effect(world: World, typed: Typed) -> None:
    mail = {"command": ["true"], "resource": "code", "side_effects": ["sends a mail"]}
    step = {"name": "tell them", "tool": "mail", "with": {}}
    path = world.write_action(action(step, name="mailing", tools={"mail": mail}))
    plan = world.agents("plan", "use", path).ok().data["plan_id"]
    world.agents("plan", "execute", plan).ok()
    typed("plan effects, of a mail", "plan", "effects", plan).ok()


def _all_plans(typed: Typed) -> None:
    typed("plan list", "plan", "list").ok()
    typed("plan list, some", "plan", "list", "--here", "--state", "errored", "--since", "1h").ok()
    typed("plan list, refused", "plan", "list", "--since", "soon")
    typed("store status", "store", "status").ok()
    typed("store verify", "store", "verify").ok()
    typed("doctor", "doctor").ok()
    typed("prune, dry run", "prune", "--older-than", "0m", "--unapplied", "--dry-run").ok()
    typed("prune, not confirmed", "prune", "--older-than", "0m")
    typed("prune", "prune", "--older-than", "0m", "--yes").ok()
    typed("uninstall, dry run", "uninstall", "--dry-run").ok()
    typed("uninstall", "uninstall", "--yes").ok()


def _decision(plan: PlanHandle) -> str:
    tree = plan("tree").ok().data["tree"]
    return next(row["id"] for row in tree["children"] if row["type"] == "tool_invocation")
