"""Two children that do not agree: both sides are shown, and a person decides."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.children import child, children, run, spawn, text
from tests.support.refusals import refused
from tests.support.terminals import asking
from tests.support.world import PlanHandle, World, write

LOUD = "one\ntwo\nTHREE\nfour\nfive\n"
POLITE = "one\ntwo\nplease, three\nfour\n5\n"


def writes(name: str, content: str, path: str = "t.txt") -> dict[str, Any]:
    """A child that writes the whole file, whatever is there."""
    return {"name": name, "steps": [write(path, content, name)]}


@pytest.fixture
def quarrel(world: World) -> PlanHandle:
    """Both write line 3; `polite` also changes line 5, and makes a file of its own."""
    polite = {"name": "polite", "steps": [write("t.txt", POLITE), write("p.txt", "p\n")]}
    return run(world, writes("loud", LOUD), polite, max_retries=0)


def conflict(plan: PlanHandle, name: str = "polite") -> dict[str, Any]:
    (found,) = children(plan)[name]["conflicts"]
    return found


def outcomes(plan: PlanHandle) -> dict[str, str]:
    return {name: found["outcome"] for name, found in children(plan).items()}


def merges(plan: PlanHandle) -> list[str]:
    calls = plan("artifacts").ok().data["artifacts"]
    return [call["output"] for call in calls if call["tool"] == "subplans"]


# --- told ---------------------------------------------------------------------------------------


def test_both_sides_are_shown_with_what_to_type(quarrel: PlanHandle) -> None:
    assert outcomes(quarrel) == {"loud": "merged", "polite": "conflict"}
    found = conflict(quarrel)
    assert (found["resource"], found["path"], found["kind"]) == ("code", "t.txt", "content")
    assert found["ours_by"] == "loud"
    assert found["hunks"] == [
        {"line": 3, "base": ["three"], "ours": ["THREE"], "theirs": ["please, three"]}
    ]
    assert found["choices"] == ["ours", "theirs", "edit"]
    shown = quarrel.agents.inside("plan", "status", quarrel.id).ok().out
    for line in ("Conflict: code:t.txt (content) of child polite", "THREE", "please, three"):
        assert line in shown
    for side in ("--ours", "--theirs", "--edit"):
        assert f"agents plan resume {side}\n" in shown  # it is the latest of here
        assert side in quarrel("resume", "--dry-run").ok().envelope["messages"][-1]
    ahead = quarrel("resume", "--dry-run").ok().data["conflicts"]
    assert [(item["child"], item["hunks"]) for item in ahead] == [("polite", found["hunks"])]


# --- decided ------------------------------------------------------------------------------------


def test_ours_keeps_what_is_merged_where_they_disagree_and_takes_the_rest(
    quarrel: PlanHandle,
) -> None:
    quarrel("resume", "--ours").ok()

    assert text(quarrel) == "one\ntwo\nTHREE\nfour\n5\n"
    assert text(quarrel, "p.txt") == "p\n"
    assert outcomes(quarrel) == {"loud": "merged", "polite": "merged"}
    (lost,) = children(quarrel)["polite"]["overwritten"]
    assert (lost["path"], lost["whose"], lost["lines"]) == ("t.txt", "polite", ["please, three"])


def test_theirs_takes_the_childs_and_says_what_was_overwritten(quarrel: PlanHandle) -> None:
    first = children(quarrel)["polite"]["plan_id"]

    answer = quarrel("resume", "--theirs").ok()

    assert text(quarrel) == POLITE
    (lost,) = children(quarrel)["polite"]["overwritten"]
    assert (lost["whose"], lost["lines"], lost["count"]) == ("loud", ["THREE"], 1)
    assert children(quarrel)["polite"]["plan_id"] == first, "it did not run again"
    told = "merging child polite left out code:t.txt (1 line of loud)"
    assert told in answer.envelope["messages"]
    merges = [
        c["output"] for c in quarrel("artifacts").data["artifacts"] if c["tool"] == "subplans"
    ]
    assert "overwritten: code:t.txt (1 line of loud)" in merges[-1]


def test_a_rollback_takes_a_decision_back_with_its_merge(quarrel: PlanHandle) -> None:
    quarrel("resume", "--theirs").ok()
    merged = quarrel.tree()

    quarrel.rollback("start").ok()
    quarrel.rollback("before rollback to start").ok()

    assert quarrel.tree() == merged
    assert children(quarrel)["polite"]["overwritten"]


# --- without a decision -------------------------------------------------------------------------


def test_without_a_choice_a_child_that_runs_again_does_not_overwrite_the_other(
    quarrel: PlanHandle,
) -> None:
    again = quarrel("resume")

    assert (again.code, again.error["code"]) == (1, "step-failed")
    assert "child `polite` conflicts: code:t.txt (overwrite)" in again.error["message"]
    assert "--theirs" in again.error["hint"]
    assert text(quarrel) == LOUD
    assert not (quarrel.sandbox / "p.txt").exists()
    found = conflict(quarrel)
    assert (found["kind"], found["ours_by"]) == ("overwrite", "loud")
    assert found["hunks"][0]["ours"] == ["THREE"]
    assert found["hunks"][0]["theirs"] == ["please, three"]

    quarrel("resume", "--ours").ok()
    assert text(quarrel) == "one\ntwo\nTHREE\nfour\n5\n"


def test_a_child_that_failed_and_runs_again_does_not_overwrite_what_was_merged_meanwhile(
    world: World,
) -> None:
    fixed = world.beside / "fixed"
    late = child("late", f"test -e {fixed}", "printf 'one\\ntwo\\nthree\\nfour\\n5\\n' > t.txt")
    plan = run(world, writes("loud", LOUD), late, max_retries=0)
    assert outcomes(plan) == {"loud": "merged", "late": "failed"}
    fixed.touch()

    assert plan("resume").code == 1

    assert text(plan) == LOUD
    assert conflict(plan, "late")["kind"] == "overwrite"
    plan("resume", "--theirs").ok()
    assert text(plan) == "one\ntwo\nthree\nfour\n5\n"
    (lost,) = children(plan)["late"]["overwritten"]
    assert (lost["whose"], lost["lines"]) == ("loud", ["THREE"])


def test_a_child_that_keeps_what_is_there_is_merged_without_a_word(world: World) -> None:
    adds = "grep -q THREE t.txt && sed -i '/THREE/a and more' t.txt || sed -i s/three/3/ t.txt"
    plan = run(world, child("loud", "sed -i s/three/THREE/ t.txt"), child("b", adds), max_retries=0)
    assert outcomes(plan) == {"loud": "merged", "b": "conflict"}

    plan("resume").ok()

    assert text(plan) == "one\ntwo\nTHREE\nand more\nfour\nfive\n"
    assert "overwritten" not in children(plan)["b"]


def test_a_side_where_nothing_conflicts_is_refused_and_nothing_changes(world: World) -> None:
    plan = run(world, child("a", "echo a > a.txt"), child("b", "false"), max_retries=0)
    records = world.records()

    refused(plan("resume", "--ours"), "no-conflict")
    refused(plan("resume", "--ours", "--theirs"), "usage", 2)
    refused(plan("resume", "--edit"), "usage", 2)
    assert world.records() == records


# --- all or none --------------------------------------------------------------------------------


def test_all_or_none_becomes_all_with_a_decision(world: World) -> None:
    plan = run(
        world,
        child("a", "echo a > t.txt; echo a > a.txt"),
        child("b", "echo b > t.txt; echo b > b.txt"),
        merge_strategy="fail_on_conflict",
    )
    assert outcomes(plan) == {"a": "pending", "b": "conflict"}

    plan("resume", "--theirs").ok()

    assert [text(plan, n) for n in ("t.txt", "a.txt", "b.txt")] == ["b\n", "a\n", "b\n"]
    assert children(plan)["b"]["overwritten"][0]["whose"] == "a"


# --- what is no text ----------------------------------------------------------------------------


def both(world: World, one: str, two: str, **keys: Any) -> PlanHandle:
    return run(world, child("one", one), child("two", two), max_retries=0, **keys)


@pytest.mark.parametrize(
    ("one", "two", "kind", "ours", "theirs"),
    [
        ("printf '\\0a' > bin", "printf '\\0b' > bin", "create", b"\0a", b"\0b"),
        ("rm README.md", "echo x > README.md", "delete", None, b"x\n"),
        ("echo x > README.md", "rm README.md", "delete", b"x\n", None),
    ],
)
def test_of_what_is_no_text_one_side_is_taken(
    world: World, one: str, two: str, kind: str, ours: bytes | None, theirs: bytes | None
) -> None:
    for side, wanted in (("--ours", ours), ("--theirs", theirs)):
        plan = both(world, one, two)
        found = conflict(plan, "two")
        assert found["kind"] == kind
        assert "edit" not in found["choices"]
        plan("resume", side).ok()
        file = plan.sandbox / found["path"]
        assert (file.read_bytes() if file.exists() else None) == wanted
        assert children(plan)["two"]["overwritten"][0]["path"] == found["path"]


@pytest.mark.parametrize(("side", "there"), [("--ours", "a.md"), ("--theirs", "b.md")])
def test_of_two_places_one_is_taken(world: World, side: str, there: str) -> None:
    plan = both(world, "mv README.md a.md", "mv README.md b.md")
    found = conflict(plan, "two")
    assert (found["ours"], found["theirs"]) == ("moved to a.md", "moved to b.md")

    plan("resume", side).ok()

    assert [path.name for path in plan.sandbox.glob("*.md")] == [there]


@pytest.mark.parametrize(("side", "is_folder"), [("--ours", True), ("--theirs", False)])
def test_of_a_file_and_a_folder_one_is_taken(world: World, side: str, is_folder: bool) -> None:  # noqa: FBT001 - of a table
    plan = both(world, "mkdir x; echo i > x/inner", "echo x > x")

    plan("resume", side).ok()

    assert (plan.sandbox / "x").is_dir() is is_folder


@pytest.mark.parametrize(("side", "rows"), [("--ours", ["one"]), ("--theirs", ["two"])])
def test_of_two_databases_one_is_taken(world: World, side: str, rows: list[str]) -> None:
    with closing(sqlite3.connect(world.top / "app.db")) as database:
        database.execute("create table t (x)")
        database.commit()

    def inserts(name: str) -> dict[str, Any]:
        sql = {"resource": "db", "sql": f"insert into t values ('{name}')"}
        return {"name": name, "steps": [{"tool": "sql.execute", "with": sql}]}

    db = {"db": {"type": "sqlite", "path": str(world.top / "app.db")}}
    plan = world.use(spawn(inserts("one"), inserts("two"), max_retries=0), resources=db)
    assert plan("execute").code == 1
    assert (conflict(plan, "two")["kind"], conflict(plan, "two")["ours_by"]) == ("database", "one")

    plan("resume", side).ok()

    with closing(sqlite3.connect(plan.sandbox)) as database:
        assert [x for (x,) in database.execute("select x from t")] == rows
    assert children(plan)["two"]["overwritten"][0]["path"] == "app.db"


def test_a_database_that_is_changed_again_on_top_is_told(world: World) -> None:
    with closing(sqlite3.connect(world.top / "app.db")) as database:
        database.execute("create table t (x)")
        database.commit()
    sql = "sql.execute"
    plans = [
        {"name": n, "steps": [{"tool": sql, "with": {"sql": f"insert into t values ('{n}')"}}]}
        for n in ("one", "two")
    ]
    db = {"db": {"type": "sqlite", "path": str(world.top / "app.db")}}
    plan = world.use(spawn(*plans, max_retries=0), resources=db)
    plan("execute")

    plan("resume").ok()

    assert "what became of their rows was not compared" in merges(plan)[-1]


def test_the_last_wins_and_says_over_whom(world: World) -> None:
    made = writes("a", "a\n"), writes("b", "b\n")
    plan = run(world, *made, merge_strategy="last_wins")

    assert text(plan) == "b\n"
    (lost,) = children(plan)["b"]["overwritten"]
    assert (lost["path"], lost["whose"]) == ("t.txt", "a")


def test_ignored_files_that_are_built_again_are_the_newer_ones(world: World) -> None:
    fixed = world.beside / "fixed"
    build = "mkdir -p build; cat t.txt > build/out; echo $0 >> build/out"
    plan = run(
        world,
        child("a", "sed -i s/one/1/ t.txt", build),
        child("b", f"test -e {fixed}", build),
        max_retries=0,
    )
    fixed.touch()

    plan("resume").ok()

    assert text(plan, "build/out").startswith("1\n")


def test_what_is_decided_is_about_what_was_told(world: World) -> None:
    """A third child is merged between the question and the answer, and changes the same line."""
    gate = world.beside / "gate"
    plan = run(
        world,
        writes("loud", LOUD),
        child("third", f"test -e {gate}", "sed -i s/THREE/III/ t.txt"),
        writes("polite", POLITE),
        max_retries=0,
    )
    assert outcomes(plan) == {"loud": "merged", "third": "failed", "polite": "conflict"}
    gate.touch()

    answer = plan("resume", "--theirs")

    # `third` began anew on top of `loud` and takes its line: nobody has decided about that.
    assert answer.code == 1
    assert outcomes(plan)["third"] == "conflict"


# --- edited -------------------------------------------------------------------------------------

EDITS = """#!/bin/sh
cp "$1" {seen}
sed -i '/^<<<<<<< ours/d; /^=======/d; /^>>>>>>> theirs/d' "$1"
"""


def with_editor(world: World, script: str) -> Path:
    """Gives back where the editor leaves what it was given."""
    editor, seen = world.top / "editor", world.top / "seen"
    editor.write_text(script.replace("{seen}", str(seen)))
    editor.chmod(0o755)
    world.agents.environ["EDITOR"] = str(editor)
    return seen


def at_terminal(world: World, *words: str) -> tuple[int, str]:
    with asking(world, "plan", *words) as (process, _):
        out, _ = process.communicate(timeout=60)
    return process.returncode, out.decode()


def test_both_sides_can_be_edited(world: World, quarrel: PlanHandle) -> None:
    seen = with_editor(world, EDITS)

    code, out = at_terminal(world, "resume", "--edit", quarrel.id)

    assert code == 0, out
    assert text(quarrel) == "one\ntwo\nTHREE\nplease, three\nfour\n5\n"
    assert "<<<<<<< ours\nTHREE\n=======\nplease, three\n>>>>>>> theirs\n" in seen.read_text()
    assert outcomes(quarrel) == {"loud": "merged", "polite": "merged"}
    assert "overwritten" not in children(quarrel)["polite"]


@pytest.mark.parametrize(
    ("script", "code"),
    [("#!/bin/sh\ntrue\n", "usage"), ("#!/bin/sh\nexit 1\n", "declined"), ("", "usage")],
)
def test_what_is_not_finished_changes_nothing(
    world: World, quarrel: PlanHandle, script: str, code: str
) -> None:
    with_editor(world, script)
    if not script:
        del world.agents.environ["EDITOR"]
    records, tree = world.records(), quarrel.tree()

    _, out = at_terminal(world, "resume", "--edit", quarrel.id)

    assert json.loads(out)["data"]["error"]["code"] == code
    assert (world.records(), quarrel.tree()) == (records, tree)


def test_what_is_no_text_needs_a_side_beside_the_editor(world: World) -> None:
    plan = both(world, "rm README.md; echo a > n", "echo x > README.md; echo b > n")
    with_editor(world, EDITS)
    code, out = at_terminal(world, "resume", "--edit", plan.id)
    assert (code, json.loads(out)["data"]["error"]["code"]) == (2, "usage")
    assert "code:README.md (delete) of two" in out

    code, out = at_terminal(world, "resume", "--edit", "--theirs", plan.id)

    assert code == 0, out
    assert (text(plan, "README.md"), text(plan, "n")) == ("x\n", "a\nb\n")


def test_where_all_or_none_is_merged_both_sides_can_be_edited_too(world: World) -> None:
    sides = (child("a", "echo a > n; echo a > a.txt"), child("b", "echo b > n; echo b > b.txt"))
    plan = run(world, *sides, merge_strategy="fail_on_conflict")
    seen = with_editor(world, EDITS)

    code, out = at_terminal(world, "resume", "--edit", plan.id)

    assert code == 0, out  # the one that only waited is merged first: its side is ours
    assert "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n" in seen.read_text()
    assert [text(plan, name) for name in ("n", "a.txt", "b.txt")] == ["a\nb\n", "a\n", "b\n"]
    assert outcomes(plan) == {"a": "merged", "b": "merged"}
