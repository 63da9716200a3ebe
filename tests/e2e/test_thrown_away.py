"""What a plan that is over leaves goes to the trash by one rename, and is gone soon after."""

from pathlib import Path

from tests.support.world import World, shell, wait_for

FILL = "for i in $(seq 60); do mkdir -p d$i/e && echo $i > d$i/e/f; done; chmod 500 d1/e"


def _left(world: World) -> list[str]:
    found = (world.agents.data_dir / "trash").iterdir()
    return [path.name for path in found if path.name != ".lock"]


def test_nothing_of_a_discarded_plan_is_left(world: World) -> None:
    plan = world.run(shell(FILL))
    sandbox = plan.sandbox
    plan("discard", "--yes").ok()
    assert not sandbox.parent.exists()
    wait_for(lambda: not _left(world), 30)


def test_what_a_killed_command_left_in_the_trash_goes_with_the_next(world: World) -> None:
    plan = world.run(shell(FILL))
    sandbox = plan.sandbox
    thrown = world.agents.data_dir / "trash" / "1-1-code"
    # As a kill between the rename and the record leaves it.
    Path(sandbox).rename(thrown)
    world.agents("plan", "list").ok()
    wait_for(lambda: not _left(world), 30)
    plan("discard", "--yes").ok()
    assert plan.status["sandboxes"] == [] or not sandbox.exists()


def test_the_room_of_the_trash_is_told(world: World) -> None:
    world.agents("plan", "list").ok()
    thrown = world.agents.data_dir / "trash" / "1-1-code"
    thrown.mkdir()
    (thrown / "f").write_bytes(b"x" * 100_000)
    told = world.agents("store", "status").ok().data
    assert told["trash_bytes"] >= 100_000
    assert told["total_bytes"] >= told["trash_bytes"]
    wait_for(lambda: not _left(world), 30)
    assert world.agents("store", "status").ok().data["trash_bytes"] == 0
