"""What the checkout wrote is not read again for a diff or an apply; no change is missed for it."""

from pathlib import Path

import pytest
from tests.support.world import PlanHandle, World, shell

# Of the same length, in whatever second, and with the time that it had.
HIDDEN = "t=$(stat -c %y old.txt); printf 'two\n' > old.txt; touch -d \"$t\" old.txt"


@pytest.fixture
def hidden(world: World) -> PlanHandle:
    project = world.project
    (project.path / "old.txt").write_text("one\n")
    (project.path / "same.txt").write_text("as it was\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "two files")
    return world.run(shell(HIDDEN), shell("touch same.txt", "touched"))


def index_of(plan: PlanHandle) -> Path:
    return plan.sandbox.with_name("code.index")


def changed(plan: PlanHandle) -> list[str]:
    return [file["path"] for file in plan("diff").ok().data["files"]]


def test_a_change_that_size_and_time_do_not_tell_is_shown_and_applied(
    world: World, hidden: PlanHandle
) -> None:
    assert index_of(hidden).exists()
    assert changed(hidden) == ["old.txt"]
    hidden("apply", "--yes").ok()
    assert (world.project.path / "old.txt").read_text() == "two\n"
    assert not index_of(hidden).exists()


@pytest.mark.parametrize("harm", ["gone", "empty", "damaged", "a link"])
def test_without_the_first_index_everything_is_read(hidden: PlanHandle, harm: str) -> None:
    index = index_of(hidden)
    data = index.read_bytes()
    index.unlink()
    if harm == "a link":
        index.symlink_to(hidden.sandbox / "old.txt")
    elif harm != "gone":
        index.write_bytes(data[:40] + b"?" + data[41:] if harm == "damaged" else b"")
    assert changed(hidden) == ["old.txt"]


def test_what_went_back_is_no_change_any_more(hidden: PlanHandle) -> None:
    last, first = hidden.groups[-1].group_id, hidden.groups[0].group_id
    hidden.rollback(first).ok()
    assert changed(hidden) == []
    hidden.rollback(last).ok()
    assert changed(hidden) == ["old.txt"]


def test_a_sandbox_that_was_made_again_is_read(hidden: PlanHandle) -> None:
    """Its files are others by now, whatever the first index says."""
    for path in hidden.sandbox.iterdir():
        if path.is_file() and not path.is_symlink() and path.name != ".git":
            mode, content = path.stat().st_mode, path.read_bytes()
            path.unlink()
            path.write_bytes(content)
            path.chmod(mode)
    assert changed(hidden) == ["old.txt"]


@pytest.mark.parametrize("setting", ["core.ignoreStat=true", "index.skipHash=true"])
def test_no_setting_makes_git_believe_without_a_look(world: World, setting: str) -> None:
    project = world.project
    project.git("config", *setting.split("="))
    (project.path / "old.txt").write_text("one\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "a file")
    plan = world.run(shell(HIDDEN), shell("rm run.sh"))
    assert changed(plan) == ["old.txt", "run.sh"]
