"""Child plans through the real command: run, merged, refused, rolled back."""

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents import Answer
from tests.support.refusals import refused
from tests.support.trees import tree_of
from tests.support.world import PlanHandle, Step, World, shell, wait_for

from cleveragents.domain.ids import PlanId
from cleveragents.infrastructure.clock import SystemClock
from cleveragents.infrastructure.locks import FilePlanLocks


def child(name: str, *commands: str, **keys: Any) -> dict[str, Any]:
    return {
        "name": name,
        "steps": [shell(c, f"{name} {i}") for i, c in enumerate(commands)],
        **keys,
    }


def spawn(*children: dict[str, Any], **keys: Any) -> Step:
    return {"name": "spawn", "subplans": {"parallel": True, "plans": list(children), **keys}}


def run(world: World, *children: dict[str, Any], **keys: Any) -> PlanHandle:
    plan = world.use(
        shell("printf 'one\\ntwo\\nthree\\nfour\\nfive\\n' > t.txt"), spawn(*children, **keys)
    )
    plan("execute")
    return plan


def text(plan: PlanHandle, name: str = "t.txt") -> str:
    return (plan.sandbox / name).read_text()


def test_the_changes_of_two_children_to_one_file_come_together(world: World) -> None:
    before = world.project.fingerprint()
    plan = run(
        world,
        child("en", "sed -i s/one/ONE/ t.txt; echo new > en.txt"),
        child("de", "sed -i s/five/FIVE/ t.txt; git mv src/old.py src/moved.py; git add -A"),
    )

    assert plan.status["state"] == "complete"
    assert text(plan) == "ONE\ntwo\nthree\nfour\nFIVE\n"
    assert text(plan, "en.txt") == "new\n"
    assert not (plan.sandbox / "src/old.py").exists()
    assert text(plan, "src/moved.py") == "print('old')\n"
    assert world.project.fingerprint() == before


def test_a_child_that_conflicts_is_refused_with_its_files_and_the_others_are_merged(
    world: World,
) -> None:
    plan = run(
        world,
        child("a", "sed -i s/one/A/ t.txt"),
        child("b", "sed -i s/one/B/ t.txt; echo b > b.txt"),
        child("c", "echo c > c.txt"),
    )

    assert text(plan) == "A\ntwo\nthree\nfour\nfive\n"
    assert text(plan, "c.txt") == "c\n"
    assert not (plan.sandbox / "b.txt").exists()
    status = plan.status
    assert status["state"] == "errored"
    assert "`b` conflicts: code:t.txt (content)" in status["error"]["message"]


def test_a_rollback_to_before_the_spawn_takes_the_children_back(world: World) -> None:
    plan = run(world, child("a", "echo a > a.txt"), child("b", "echo b > b.txt"))
    done = plan.tree()

    answer = plan.rollback("start").ok()

    assert answer.data["impact"]["child_plans_invalidated"] == 2
    undo = plan.group("before rollback to start")
    plan.rollback(undo.group_id).ok()
    assert plan.tree() == done
    plan("execute").ok()
    assert plan.status["state"] == "complete"


def children(plan: PlanHandle) -> dict[str, dict[str, Any]]:
    """The children that count, by name."""
    gone = ("invalidated", "discarded")
    return {c["name"]: c for c in plan.status["children"] if c["outcome"] not in gone}


def test_resuming_runs_only_what_is_missing_on_top_of_what_is_merged(world: World) -> None:
    tally, fixed = world.beside / "tally", world.beside / "fixed"
    plan = run(
        world,
        child("good", f"echo good >> {tally}; echo g > g.txt"),
        child("bad", f"echo bad >> {tally}; cat g.txt > seen.txt || true; test -e {fixed}"),
        max_retries=1,
    )
    assert sorted(tally.read_text().split()) == ["bad", "bad", "good"]
    failed = children(plan)
    assert (failed["good"]["outcome"], failed["bad"]["outcome"]) == ("merged", "failed")
    assert "`bad` failed: shell ended with exit code 1" in plan.status["error"]["message"]

    fixed.touch()
    plan("resume").ok()

    assert sorted(tally.read_text().split()) == ["bad", "bad", "bad", "good"]
    assert text(plan, "seen.txt") == "g\n"
    assert plan.status["execution"]["child_plans"] == 2
    assert {c["outcome"] for c in plan.status["children"]} == {"merged", "discarded"}


def test_children_that_depend_on_others_see_their_results(world: World) -> None:
    plan = run(
        world,
        child("sum", "cat one.txt two.txt > sum.txt", depends_on=["one", "two"]),
        child("one", "echo 1 > one.txt"),
        child("two", "echo 2 > two.txt"),
    )
    assert text(plan, "sum.txt") == "1\n2\n"


def test_without_parallel_each_child_starts_from_what_the_one_before_made(world: World) -> None:
    plan = run(world, *(child(name, f"echo {name} >> list.txt") for name in "abc"), parallel=False)
    assert text(plan, "list.txt") == "a\nb\nc\n"
    assert [node["type"] for node in plan("tree").data["tree"]["children"]][-1] == "subplan_spawn"


def test_a_child_whose_dependency_failed_is_not_started(world: World) -> None:
    plan = run(
        world,
        child("first", "false"),
        child("second", "echo 2 > two.txt", depends_on=["first"]),
        max_retries=0,
    )
    assert "not started: second" in plan.status["error"]["message"]
    assert list(children(plan)) == ["first"]


def test_fail_fast_stops_the_others_which_go_on_later(world: World) -> None:
    tally, fixed = world.beside / "tally", world.beside / "fixed"
    plan = run(
        world,
        child("slow", f"test -e {fixed} || sleep 60; echo slow >> {tally}; echo s > s.txt"),
        child("bad", f"sleep 0.3; test -e {fixed}"),
        fail_fast=True,
        max_retries=0,
    )
    assert "child `slow` was stopped" in plan.status["error"]["message"]
    assert not tally.exists()

    fixed.touch()
    plan("resume").ok()
    assert text(plan, "s.txt") == "s\n"
    assert tally.read_text() == "slow\n"


def test_if_one_conflicts_and_none_may_then_nothing_is_merged(world: World) -> None:
    plan = run(
        world,
        child("a", "echo a > t.txt; echo a > a.txt"),
        child("b", "echo b > t.txt"),
        merge_strategy="fail_on_conflict",
    )
    assert text(plan) == "one\ntwo\nthree\nfour\nfive\n"
    assert not (plan.sandbox / "a.txt").exists()
    assert {c["name"]: c["outcome"] for c in plan.status["children"]} == {
        "a": "pending",
        "b": "conflict",
    }


def test_if_one_conflicts_and_none_may_then_earlier_waves_are_taken_back_too(world: World) -> None:
    gate, tally = world.beside / "gate", world.beside / "tally"
    late = f"test -e {gate} && echo c > c.txt || echo c > t.txt"
    plan = run(
        world,
        child("a", f"echo a >> {tally}; echo a > a.txt; rm README.md"),
        child("b", f"echo b >> {tally}; echo b > t.txt", depends_on=["a"]),
        child("c", f"echo c >> {tally}; {late}", depends_on=["a"]),
        merge_strategy="fail_on_conflict",
    )
    before = tree_of(plan.sandbox)
    assert text(plan) == "one\ntwo\nthree\nfour\nfive\n"
    assert (plan.sandbox / "README.md").exists()
    assert not (plan.sandbox / "a.txt").exists()
    outcomes = {c["name"]: c["outcome"] for c in plan.status["children"]}
    assert outcomes == {"a": "pending", "b": "pending", "c": "conflict"}
    told = plan.status["error"]["message"]
    assert "child `c` conflicts: code:t.txt" in told
    assert "child `a` is not merged" in told
    head = plan.groups[-1]
    assert (head.reason, plan.status["last_checkpoint_id"]) == ("on_error", head.head)

    plan.rollback("start").ok()
    plan.rollback("before rollback to start").ok()
    assert tree_of(plan.sandbox) == before

    gate.touch()
    plan("resume").ok()
    assert [text(plan, n) for n in ("a.txt", "t.txt", "c.txt")] == ["a\n", "b\n", "c\n"]
    assert not (plan.sandbox / "README.md").exists()
    # What was done and only not merged is not done again.
    assert sorted(tally.read_text().split()) == ["a", "b", "c", "c"]


def test_the_last_wins_or_the_first_stays(world: World) -> None:
    both = child("a", "echo a > t.txt"), child("b", "echo b > t.txt; echo b > b.txt")
    last = run(world, *both, merge_strategy="last_wins")
    assert text(last) == "b\n"
    first = run(world, *both, merge_strategy="sequential_apply")
    assert text(first) == "a\n"
    assert not (first.sandbox / "b.txt").exists()


def test_commands_on_a_child_name_the_parent(world: World) -> None:
    plan = run(world, child("a", "echo a > a.txt"), child("b", "false"), max_retries=0)
    merged, failed = children(plan)["a"]["plan_id"], children(plan)["b"]["plan_id"]
    for words in (
        ["execute"],
        ["rollback", "--yes", "{}", "start"],
        ["cancel"],
        ["apply", "--yes"],
    ):
        refused = PlanHandle(world.agents, merged)(*words)
        assert refused.code == 1
        assert refused.error["code"] == "child-settled"
        assert plan.id in refused.error["message"]
    PlanHandle(world.agents, failed)("execute")
    plan.rollback("start").ok()
    assert "taken back" in PlanHandle(world.agents, failed)("execute").error["message"]


def test_a_finished_child_cannot_be_applied_by_itself(world: World) -> None:
    fixed = world.beside / "fixed"
    plan = run(world, child("a", f"test -e {fixed}"), max_retries=0)
    fixed.touch()
    handle = PlanHandle(world.agents, children(plan)["a"]["plan_id"])
    handle("execute").ok()
    refused = handle("apply", "--yes")
    assert (refused.error["code"], refused.error["hint"]) == (
        "child-apply",
        f"agents plan apply {plan.id}",
    )
    plan("resume").ok()
    assert plan.status["children"][0]["outcome"] == "merged"


def test_cancelling_the_parent_cancels_the_children(world: World) -> None:
    plan = run(world, child("a", "echo a > a.txt"), child("b", "echo b > b.txt; false"))
    kept = plan("cancel").ok().data["sandboxes_kept"]
    assert {c["name"]: c["state"] for c in plan.status["children"]} == {
        "a": "complete",
        "b": "cancelled",
    }
    assert sorted(kept) == ["code", "demo/b code"]
    assert (Path(kept["demo/b code"]) / "b.txt").exists()
    child_id = next(c["plan_id"] for c in plan.status["children"] if c["name"] == "b")
    assert PlanHandle(world.agents, child_id)("execute").error["code"] == "plan-cancelled"


def test_lists_show_children_below_their_parent_if_asked(world: World) -> None:
    plan = run(world, child("a", "true"), child("b", "true"))
    assert [p["plan_id"] for p in world.agents("plan", "list").data["plans"]] == [plan.id]
    everyone = world.agents("plan", "list", "--all").data["plans"]
    assert [p["parent_plan_id"] for p in everyone] == [None, plan.id, plan.id]
    text = world.agents.inside("--format", "plain", "plan", "list", "--all").out
    assert "    a " in text


class Waiting:
    """Three children of which two stand until `gate` is there; each leaves a tally."""

    def __init__(self, world: World, top: Path) -> None:
        self.gate, self.tally = top / "gate", top / "tally"
        self.reached = [top / "reached-a", top / "reached-b"]
        self.world = world

        def slow(name: str, reached: Path) -> dict[str, Any]:
            wait = f"touch {reached}; while ! test -e {self.gate}; do sleep 0.05; done"
            done = f"echo {name} >> {self.tally}"
            return child(name, f"echo half > {name}.txt; {wait}; {done}; echo whole > {name}.txt")

        self.plan = world.use(
            shell("echo base > t.txt", "base"),
            spawn(
                child("quick", f"echo quick >> {self.tally}; echo q > q.txt"),
                slow("a", self.reached[0]),
                slow("b", self.reached[1]),
            ),
        )

    def start(self) -> "subprocess.Popen[bytes]":
        process = self.world.agents.start("--format", "json", "plan", "execute", self.plan.id)
        wait_for(lambda: all(path.exists() for path in self.reached))
        # Recorded, not only done: a step that is killed in between is rightly done again.
        wait_for(lambda: self.states().get("quick") == "complete")
        return process

    def states(self) -> dict[str, str]:
        return {c["name"]: c["state"] for c in self.plan.status["children"]}

    def finish(self) -> None:
        self.gate.touch()
        self.plan("resume").ok()
        assert sorted(self.tally.read_text().split()) == ["a", "b", "quick"]
        assert [text(self.plan, f"{name}.txt") for name in "qab"] == ["q\n", "whole\n", "whole\n"]
        assert {c["outcome"] for c in self.plan.status["children"]} == {"merged"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_parent_goes_on_with_its_children(
    world: World, number: signal.Signals
) -> None:
    waiting = Waiting(world, world.beside)
    process = waiting.start()
    process.send_signal(number)
    process.communicate(timeout=60)
    if number is not signal.SIGKILL:
        assert process.returncode == 130
        assert waiting.states() == {"quick": "complete", "a": "queued", "b": "queued"}
    waiting.finish()


def test_cancelling_a_plan_that_runs_elsewhere_stops_it_there(world: World) -> None:
    waiting = Waiting(world, world.beside)
    process = waiting.start()
    waiting.plan("cancel").ok()
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert waiting.plan.status["state"] == "cancelled"
    states = {c["name"]: c["state"] for c in waiting.plan.status["children"]}
    assert states == {"quick": "cancelled", "a": "cancelled", "b": "cancelled"}
    assert waiting.tally.read_text() == "quick\n"


class Loose:
    """A child that another process goes on with, while nobody works on its parent."""

    def __init__(self, world: World, top: Path) -> None:
        self.waiting = Waiting(world, top)
        parent = self.waiting.start()
        parent.send_signal(signal.SIGINT)
        parent.communicate(timeout=60)
        self.plan = self.waiting.plan
        children = self.plan.status["children"]
        self.child = PlanHandle(
            world.agents, next(c["plan_id"] for c in children if c["name"] == "a")
        )
        self.waiting.reached[0].unlink()

    def start(self) -> "subprocess.Popen[bytes]":
        world = self.waiting.world
        process = world.agents.start("--format", "json", "plan", "execute", self.child.id)
        wait_for(self.waiting.reached[0].exists)
        return process

    def take_back(self, how: str) -> Answer:
        if how == "rollback":
            return self.plan.rollback("start")
        if how == "cancel":
            return self.plan("cancel")
        spawned = next(c["decision_id"] for c in self.plan.status["children"])
        mode = ("--mode", "revert", "--guidance", "other", "--yes", "--no-execute")
        return self.plan.agents("plan", "correct", *mode, spawned)


@pytest.mark.parametrize("how", ["rollback", "correct", "cancel"])
def test_a_child_that_runs_by_itself_elsewhere_is_stopped_first(world: World, how: str) -> None:
    loose = Loose(world, world.beside)
    process = loose.start()
    loose.take_back(how).ok()
    process.communicate(timeout=60)
    assert process.returncode == 130
    loose.waiting.gate.touch()
    assert loose.child("execute").error["code"] in ("child-settled", "plan-cancelled")
    assert loose.waiting.tally.read_text() == "quick\n"


@pytest.mark.parametrize("how", ["rollback", "correct", "cancel"])
def test_a_child_that_cannot_be_stopped_is_named_with_its_owner_and_nothing_changes(
    world: World, how: str
) -> None:
    loose = Loose(world, world.beside)
    locks = FilePlanLocks(str(world.agents.data_dir / "locks"), SystemClock())
    before = world.records()
    with locks.hold(PlanId(loose.child.id), "checkpoint create"):
        told = refused(loose.take_back(how), "plan-locked", 1)
    assert loose.child.id in told
    assert "`plan checkpoint create`" in told
    assert world.records() == before


def test_a_child_that_writes_into_its_parents_sandbox_is_found_out(world: World) -> None:
    plan = world.use(
        shell("echo $CLEVERAGENTS_SANDBOX_CODE > where.txt"),
        spawn(child("stray", "echo stray > $(cat where.txt)/stray.txt")),
        confinement="off",
    )
    answer = plan("execute")
    assert answer.error["code"] == "sandbox-failed"
    assert "was written to while child plans ran" in answer.error["message"]
    assert not (plan.sandbox / "stray.txt").exists()
    # No tool has failed, and still there is a group for what the plan had come to.
    assert plan.groups[-1].reason == "on_error"
    assert plan.status["error"]["checkpoint"] is not None


def folder_child(name: str, command: str) -> dict[str, Any]:
    return {
        "name": name,
        "steps": [{"tool": "shell", "with": {"resource": "box", "command": command}}],
    }


@pytest.fixture
def box(tmp_path: Path) -> Path:
    place = tmp_path / "box"
    (place / "d").mkdir(parents=True)
    (place / "d/a.txt").write_text("one\ntwo\nthree\nfour\nfive\n")
    (place / "d/b.txt").write_text("b\n")
    (place / "bin").write_bytes(b"\0\1")
    return place


def run_in_folder(world: World, box: Path, *made: dict[str, Any], **keys: Any) -> PlanHandle:
    resources = {"box": {"type": "fs-directory", "path": str(box)}}
    plan = world.use(spawn(*made, **keys), resources=resources)
    plan("execute")
    return plan


def test_in_a_folder_a_change_follows_a_file_that_another_child_moved(
    world: World, box: Path
) -> None:
    plan = run_in_folder(
        world,
        box,
        folder_child("mover", "mv d/a.txt moved.txt; rm d/b.txt"),
        folder_child("editor", "sed -i s/two/2/ d/a.txt; echo new > d/new.txt"),
        folder_child("remover", "rm -r d; mkdir e"),
    )
    assert text(plan, "moved.txt") == "one\n2\nthree\nfour\nfive\n"
    assert text(plan, "d/new.txt") == "new\n"
    assert not (plan.sandbox / "d/a.txt").exists()
    assert (plan.sandbox / "e").is_dir()


def test_conflicts_among_three_are_found_before_any_of_them_is_merged(
    world: World, box: Path
) -> None:
    made = [
        folder_child("a", "mv d/a.txt a2.txt; echo x > x; sed -i s/one/1/ a2.txt"),
        folder_child("b", "sed -i s/five/5/ d/a.txt; rm -r d/b.txt"),
        folder_child("c", "sed -i s/five/V/ d/a.txt; rm bin"),
        folder_child("d", "printf '\\0\\2' > bin; rm -r d"),
    ]
    plan = run_in_folder(world, box, *made, merge_strategy="fail_on_conflict")
    found = {c["name"]: c.get("conflicts", []) for c in plan.status["children"]}
    assert [c["kind"] for c in found["c"]] == ["rename"]
    assert {c["kind"] for c in found["d"]} <= {"delete", "create"}
    assert tree_of(plan.sandbox) == tree_of(box)

    fine = run_in_folder(world, box, *made[:2], merge_strategy="fail_on_conflict")
    assert fine.status["state"] == "complete"
    assert text(fine, "a2.txt") == "1\ntwo\nthree\nfour\n5\n"


def test_two_binary_changes_are_refused(world: World, box: Path) -> None:
    plan = run_in_folder(
        world, box, *(folder_child(n, f"printf '\\0{n}' > bin") for n in ("x", "y"))
    )
    assert "box:bin (binary)" in plan.status["error"]["message"]


def test_ignored_files_that_two_children_built_are_no_conflict(world: World) -> None:
    plan = run(
        world,
        child("a", "mkdir build; echo a > build/out"),
        child("b", "mkdir build; echo b > build/out; echo b > b.txt"),
    )
    assert plan.status["state"] == "complete"
    assert (text(plan, "build/out"), text(plan, "b.txt")) == ("a\n", "b\n")
    merges = [c["output"] for c in plan("artifacts").data["artifacts"] if c["tool"] == "subplans"]
    assert "stay as they were: code:build/out" in merges[1]


def test_an_applied_family_leaves_nothing_behind(world: World) -> None:
    fixed = world.beside / "fixed"
    plan = run(world, child("a", "echo a > a.txt"), child("b", f"test -e {fixed}"), max_retries=0)
    fixed.touch()
    plan("resume").ok()
    plan("apply", "--yes").ok()
    assert world.project.read("a.txt") == "a\n"
    assert list((world.agents.data_dir / "sandboxes").glob("*")) == []
    assert [line for line in world.project.traces() if b"/heads/" in line] == []
    assert all(c["outcome"] in ("merged", "discarded") for c in plan.status["children"])


def test_a_child_has_submodules_of_its_own(world: World) -> None:
    library = world.beside / "lib"
    library.mkdir()
    (library / "l.txt").write_text("lib\n")
    for args in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        done = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(library), *args]
        subprocess.run(done, check=True)
    allow = "-c protocol.file.allow=always"
    plan = world.use(
        shell(f"git {allow} submodule add -q {library} lib && git commit -qm sub", "add"),
        spawn(
            child("a", "cd lib && git checkout -q -b mine && git rev-parse --git-dir > ../where")
        ),
    )
    plan("execute").ok()
    head = subprocess.run(
        ["git", "-C", str(plan.sandbox / "lib"), "branch", "--show-current"],
        capture_output=True,
        check=True,
    )
    assert head.stdout.strip() != b"mine"
    assert "modules/lib" in text(plan, "where")


def test_the_tree_shows_children_below_their_spawn(world: World) -> None:
    plan = run(world, child("a", "true"), child("b", "false"), max_retries=0)
    spawned = plan("tree").data["tree"]["children"][-1]
    assert spawned["type"] == "subplan_parallel_spawn"
    assert [(c["child"], c["outcome"]) for c in spawned["children"]] == [
        ("a", "merged"),
        ("b", "failed"),
    ]
    plain = world.agents.inside("--format", "plain", "plan", "tree", plan.id).out
    assert "b [failed]: The part b" in plain
    plan.rollback("start").ok()
    everything = plan("tree", "--show-superseded").data["tree"]["children"][-1]
    assert [c["outcome"] for c in everything["children"]] == ["invalidated", "invalidated"]
