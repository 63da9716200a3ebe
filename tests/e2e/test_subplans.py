"""Child plans through the real command: run, merged, refused, rolled back."""

from tests.support.children import child, children, run, text
from tests.support.trees import tree_of
from tests.support.world import PlanHandle, World


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


def test_lists_show_children_below_their_parent_if_asked(world: World) -> None:
    plan = run(world, child("a", "true"), child("b", "true"))
    assert [p["plan_id"] for p in world.agents("plan", "list").data["plans"]] == [plan.id]
    everyone = world.agents("plan", "list", "--all").data["plans"]
    assert [p["parent_plan_id"] for p in everyone] == [None, plan.id, plan.id]
    text = world.agents.inside("--format", "plain", "plan", "list", "--all").out
    assert "    a " in text


def test_the_tree_shows_children_below_their_spawn(world: World) -> None:
    plan = run(world, child("a", "true"), child("b", "false"), max_retries=0)
    spawned = plan("tree").data["tree"]["children"][-1]
    assert spawned["type"] == "subplan_parallel_spawn"
    assert [(c["child"], c["outcome"]) for c in spawned["children"]] == [
        ("a", "merged"),
        ("b", "failed"),
    ]
    plain = world.agents.inside("--format", "plain", "plan", "tree", plan.id).out
    assert "b, failed: The part b" in plain
    plan.rollback("start").ok()
    everything = plan("tree", "--show-superseded").data["tree"]["children"][-1]
    assert [c["outcome"] for c in everything["children"]] == ["invalidated", "invalidated"]
