"""A correction leaves nothing standing that was not proven to be independent of it."""

from tests.support.corrections import correct, decisions, read, step_file
from tests.support.refusals import refused
from tests.support.world import PlanHandle, Step, World, shell, write

GREETING = write("hello.txt", "Hello\n", "write the greeting")
CHECK = shell("grep Hello hello.txt", "check it")


def look(path: str, name: str = "look", tool: str = "file.read") -> Step:
    return {"name": name, "tool": tool, "with": {"resource": "code", "path": path}}


def corrected(world: World, plan: PlanHandle, index: int, step: Step) -> None:
    """In place of that step, whatever name it has."""
    old = plan.status["progress"][index]["step"]
    file = step_file(world, {**step, "name": old})
    correct(plan, decisions(plan)[index], "--step-file", file).ok()


def outputs(plan: PlanHandle) -> dict[int, str]:
    """What the calls that count have said, by step."""
    calls = plan("artifacts").ok().data["artifacts"]
    return {c["step_index"]: c["output"] for c in calls if not c["undone"]}


# --- a command reads everything -----------------------------------------------------------------


def test_a_check_that_no_longer_holds_is_done_again_and_fails(world: World) -> None:
    plan = world.run(GREETING, CHECK)
    hi = step_file(world, write("hello.txt", "Hi\n", "write the greeting"))

    failed = correct(plan, decisions(plan)[0], "--step-file", hi)

    assert (failed.code, failed.error["code"]) == (1, "step-failed")
    assert plan.status["state"] == "errored"
    assert [item["status"] for item in plan.status["progress"]] == ["complete", "errored"]
    refused(plan("apply", "--yes"), "plan-state")
    assert not (world.project.path / "hello.txt").exists()


def test_a_check_that_still_holds_is_done_again_and_passes(world: World) -> None:
    plan = world.run(GREETING, CHECK, look("README.md"))
    before = decisions(plan)

    corrected(world, plan, 0, write("hello.txt", "Hello, world\n"))

    after = decisions(plan)
    assert outputs(plan)[1] == "Hello, world\n"
    assert before[1] != after[1]
    assert before[2] == after[2], "what is proven not to read it stays"


# --- what goes back takes along who changed it --------------------------------------------------


def test_a_change_that_would_be_lost_by_going_back_is_made_again(world: World) -> None:
    plan = world.run(write("a", "one\n"), write("b", "mine\n"), shell("cat a >> b"))
    fresh = world.run(write("a", "two\n"), write("b", "mine\n"), shell("cat a >> b"))

    corrected(world, plan, 0, write("a", "two\n"))

    assert read(plan, "b") == "mine\ntwo\n"
    assert plan.tree() == fresh.tree()


def test_a_write_that_changed_nothing_at_the_time_is_made_again(world: World) -> None:
    plan = world.run(write("a", "same\n"), write("a", "same\n", "once more"))

    corrected(world, plan, 0, write("a", "other\n"))

    assert read(plan, "a") == "same\n"


# --- what the new step does ---------------------------------------------------------------------


def test_a_look_at_what_the_new_step_changes_is_done_again(world: World) -> None:
    plan = world.run(write("a", "a\n"), look("README.md"))
    before = decisions(plan)

    corrected(world, plan, 0, write("README.md", "new\n"))

    assert outputs(plan)[1] == "new\n"
    assert decisions(plan)[1] != before[1]


# --- where files really are ---------------------------------------------------------------------


def test_what_is_read_through_a_link_is_known_by_its_real_place(world: World) -> None:
    steps = (
        shell("mkdir real && ln -s real way", "make a way"),
        write("real/x", "one\n", "write"),
        look("way/x"),
        look("way", "find", "file.list"),
    )
    plan = world.run(*steps)
    before = decisions(plan)

    corrected(world, plan, 1, write("real/x", "two\n"))

    assert outputs(plan)[2] == "two\n"
    assert decisions(plan)[3] != before[3]


def test_what_no_checkpoint_shows_is_not_proven(world: World) -> None:
    code = {"type": "git-checkout", "path": ".", "exclude": ["cache/"]}
    plan = world.run(
        write("cache/x", "one\n"), look("cache/x"), look("README.md"), resources={"code": code}
    )
    before = decisions(plan)

    corrected(world, plan, 0, write("cache/x", "two\n"))

    assert outputs(plan)[1] == "two\n"
    assert decisions(plan)[2] == before[2]
