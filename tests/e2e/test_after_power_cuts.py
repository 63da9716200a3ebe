"""What a power cut has left is found and mended, by the next command or by `agents doctor`."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.world import PlanHandle, World, write


def pins(world: World) -> Sequence[Path]:
    top = world.project.path / ".git" / "refs" / "cleveragents"
    return [path for path in top.rglob("*") if path.is_file()]


@pytest.mark.parametrize("left", [b"", b"\0" * 41])
def test_a_reference_of_ours_that_holds_nothing_is_made_again(world: World, left: bytes) -> None:
    plan = world.use(write("a", "1"))
    (pin,) = pins(world)
    held = pin.read_bytes()
    pin.write_bytes(left)
    found = world.agents("doctor")
    assert (found.code, [f["check"] for f in found.data["findings"]]) == (1, ["leftovers"])
    world.agents("doctor", "--fix", "--yes").ok()
    assert pin.read_bytes() == held
    world.agents("doctor").ok()
    assert world.project.git("fsck") == ""
    _goes_on(plan)
    assert pins(world) == []


def test_a_reference_of_ours_that_holds_nothing_goes_with_its_plan(world: World) -> None:
    plan = world.run(write("a", "1"))
    (pin,) = pins(world)
    pin.write_bytes(b"")
    plan("apply", "--yes").ok()
    assert pins(world) == []
    world.agents("doctor").ok()


def _goes_on(plan: PlanHandle) -> None:
    plan("execute").ok()
    plan("apply", "--yes").ok()
