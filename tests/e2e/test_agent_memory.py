"""What an agent remembers and what is in the files are of one moment, or the group says so."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest
from tests.support.agents import COMMAND
from tests.support.coding_agent import use_command
from tests.support.world import PlanHandle, World, wait_for

# Most agents note a call when they are about to make it, and its result once their hook has let
# them go on. Started again, one takes a call without a result for one that was interrupted.
AGENT = """
import json, os, pathlib, subprocess, sys, threading, time

store = pathlib.Path(os.environ["CLEVERAGENTS_MEMORY"]) / "session.jsonl"
notes = store.read_text().splitlines() if store.exists() else []
began = [line[6:] for line in notes if line.startswith("began ")]
ended = [line[6:] for line in notes if line.startswith("ended ")]
lost = [name for name in began if name not in ended]
print(json.dumps({"ended": ended, "lost": lost, "told": os.environ["CLEVERAGENTS_GUIDANCE"]}))
sys.stdout.flush()


def note(what):
    with store.open("a") as file:
        file.write(what + "\\n")


def hook(kind, name):
    message = {"tool_name": "Write", "tool_use_id": name, "tool_input": {"path": name}}
    more = {"tool_response": "wrote " + name} if kind == "post-tool" else {}
    done = subprocess.run(["agents", "hook", kind], input=json.dumps(message | more), text=True)
    if done.returncode:
        os._exit(9)


def call(name):
    hook("pre-tool", name)
    pathlib.Path(name).write_text(name)
    once = pathlib.Path(settings.get("fails", {}).get(name, "/"))
    if not once.exists():
        once.touch()
        os._exit(9)
    time.sleep(settings.get("works", {}).get(name, 0))
    hook("post-tool", name)
    note("ended " + name)


settings = json.loads(sys.argv[1])
for size in settings.get("keeps", []):
    (store.parent / "large").write_bytes(bytes(size))
for batch in settings["calls"]:
    batch = [name for name in batch if name not in ended]
    for name in batch:
        note("began " + name)
    threads = [threading.Thread(target=call, args=[name]) for name in batch]
    for thread in threads:
        thread.start()
        time.sleep(settings.get("apart", 0.5))
    for thread in threads:
        thread.join()
    if "thinks" in settings and batch:
        time.sleep(settings["thinks"])
"""


def use(world: World, *calls: Sequence[str], **more: Any) -> PlanHandle:
    quiet = {"quiet_seconds": 0.3}
    settings = json.dumps({"calls": calls, **more})
    return use_command(world, [sys.executable, "-c", AGENT, settings], actor=quiet)


def starts(plan: PlanHandle) -> list[dict[str, Any]]:
    """What the agent knew each time that it was started, the last time last."""
    decisions = sorted(_ids(plan("tree", "--show-superseded").ok().data["tree"]))
    texts = [plan.agents("plan", "explain", one).ok().data for one in decisions]
    words = [text["rationale"] for text in texts]
    words += [call["output"] for call in plan("artifacts").ok().data["artifacts"]]
    words.append(plan.status.get("result") or "")
    lines = [line for text in words for line in text.splitlines()]
    return [json.loads(line) for line in lines if line.startswith('{"ended"')]


def _ids(node: dict[str, Any]) -> list[str]:
    return [node["id"], *(one for child in node["children"] for one in _ids(child))]


def there(plan: PlanHandle) -> set[str]:
    return {path.name for path in plan.sandbox.glob("*.txt")} - {"t.txt"}


def knows(plan: PlanHandle) -> dict[str, Any]:
    return starts(plan)[-1]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_what_is_in_the_files_is_no_call_that_was_interrupted(world: World, number: int) -> None:
    names = ["a.txt", "b.txt", "c.txt"]
    plan = use(world, *([name] for name in names))
    plan.execute().ok()
    before = there(plan)

    answer = plan.rollback(f"decision {number + 1}: Write {names[number]}").ok()
    kept = there(plan)
    assert kept == before - set(names[number:])
    assert answer.envelope["status"] == "ok"
    plan("resume").ok()

    known = knows(plan)
    assert known["ended"] == names[:number]
    assert known["lost"] == [names[number]]  # which it was about to make, and did not
    assert known["told"] == ""
    assert there(plan) == before


@pytest.mark.parametrize(
    ("wanted", "noted"),
    [("0", 0), ("1", 1), ("2", 2), ("3", 3), ("-1", 2), ("-3", 0), ("write A", 1), ("b.txt", 2)],
)
def test_a_number_or_a_name_of_a_step_leads_to_where_its_end_was_noted(
    world: World, wanted: str, noted: int
) -> None:
    names = ["a.txt", "b.txt", "c.txt"]
    plan = use(world, *([name] for name in names))
    plan.execute().ok()
    before = there(plan)

    answer = plan.rollback(wanted).ok()
    assert answer.envelope["status"] == "ok"  # nothing that it would have to be told
    assert there(plan) == before - set(names[noted:])
    plan("resume").ok()

    assert there(plan) == before
    if noted < len(names):
        assert knows(plan)["ended"] == names[:noted]
        assert knows(plan)["told"] == ""


def test_of_an_agent_that_failed_one_step_back_is_where_it_was_about_to_call(
    world: World,
) -> None:
    plan = use(world, ["a.txt"], ["b.txt"], ["c.txt"], fails={"c.txt": f"{world.beside}/once"})
    plan.execute()
    assert plan.status["state"] == "errored"

    assert plan.rollback("-1").ok().envelope["status"] == "ok"
    assert there(plan) >= {"a.txt", "b.txt"}
    assert "c.txt" not in there(plan)
    plan("resume").ok()
    assert knows(plan)["ended"] == ["a.txt", "b.txt"]
    assert there(plan) >= {"a.txt", "b.txt", "c.txt"}


def test_after_a_call_the_group_says_what_the_agent_had_not_noted_yet(world: World) -> None:
    plan = use(world, ["a.txt"], ["b.txt"])
    plan.execute().ok()
    label = "after agent.Write a.txt"

    shown = plan("checkpoint", "show", "{}", plan.group(label).group_id).ok().data
    assert "had not noted yet how it ended: Write a.txt" in json.dumps(shown)
    answer = plan.rollback(label).ok()
    assert answer.envelope["status"] == "warn"
    assert any("Write a.txt" in message for message in answer.envelope["messages"])
    plan("resume").ok()

    known = knows(plan)
    assert known["lost"] == ["a.txt"]
    assert "Write a.txt" in known["told"]  # so that it does not take it for undone
    plan("checkpoint", "verify").ok()


def test_of_calls_beside_each_other_each_is_remembered_or_told(world: World) -> None:
    """Which of the two depends on who is faster: the agent's note, or the call that waits. Where
    the note comes a little later it is both, and nothing is lost by hearing it twice."""
    plan = use(world, ["a.txt", "b.txt"])
    plan.execute().ok()
    answer = plan.rollback("decision 2: Write b.txt").ok()
    assert there(plan) >= {"a.txt"}
    is_told = any("Write a.txt" in message for message in answer.envelope["messages"])
    plan("resume").ok()
    known = knows(plan)
    assert ("Write a.txt" in known["told"]) == is_told
    assert is_told or "a.txt" in known["ended"]
    # Once it has gone on, it knows.
    assert plan.rollback(str(plan.groups[-1].group_id)).ok().envelope["status"] == "ok"


def test_a_call_that_comes_before_the_expected_one_is_not_forgotten(world: World) -> None:
    """Started anew, the agent begins with the first of two calls, where the second was decided."""
    plan = use(world, ["a.txt", "b.txt"], works={"a.txt": 1.5}, apart=0.2)
    plan.execute().ok()
    plan.rollback("decision 2: Write b.txt").ok()
    agents = plan.agents.process("--format", "json", "plan", "resume", plan.id, timeout=60)
    assert agents.ok().data["state"] == "complete"
    assert there(plan) >= {"a.txt", "b.txt"}


def test_killed_while_it_thinks_it_remembers_its_last_call(world: World) -> None:
    plan = use(world, ["a.txt"], thinks=60)
    process = subprocess.Popen(
        [str(COMMAND), "plan", "execute", plan.id],
        cwd=world.project.path,
        env=world.agents.environ,
        stdout=subprocess.DEVNULL,
    )
    wait_for(lambda: "after agent.Write a.txt" in [group.label for group in plan.groups], 120)
    wait_for(lambda: "unnoted" not in _state(world, plan), 120)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    plan("resume").ok()

    assert knows(plan) == {"ended": ["a.txt"], "lost": [], "told": ""}


def _state(world: World, plan: PlanHandle) -> str:
    query = "select actor_state_json from plans where plan_id = ?"
    with closing(sqlite3.connect(world.agents.data_dir / "cleveragents.db")) as database:
        return database.execute(query, [plan.id]).fetchone()[0]


def test_what_is_too_large_to_be_kept_is_told(world: World) -> None:
    plan = use(world, ["a.txt"], ["b.txt"], keeps=[33 << 20])
    plan.execute().ok()
    answer = plan.rollback("decision 2: Write b.txt").ok()
    assert any("too large: large" in message for message in answer.envelope["messages"])


def test_a_memory_that_is_elsewhere_is_named(world: World) -> None:
    script = f"echo remembered > {world.beside}/notes; echo 1 > a.txt"
    plan = use_command(world, ["sh", "-c", script])
    plan.execute().ok()
    answer = plan.rollback("after agent.wrote a.txt").ok()
    assert any(f"keeps in {world.beside}" in text for text in answer.envelope["messages"])
    before = plan.rollback("start").ok()  # when it had not been started yet
    assert before.envelope["status"] == "ok"
