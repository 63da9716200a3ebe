"""Child plans through the real command: run, merged, refused, rolled back."""

from typing import Any

from tests.support.world import PlanHandle, Step, World, shell


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
