"""`cleveragents.checkpoints`: what the commands do, for programs, and nothing left behind."""

import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from msgspec import Struct
from msgspec.structs import asdict
from tests.support.world import PlanHandle, World, write

from cleveragents import checkpoints, errors
from cleveragents.cli.render.envelope import plain_data
from cleveragents.container.surroundings import home_of


def as_json(record: Struct) -> dict[str, Any]:
    """As the renderer of the commands would write it."""
    return plain_data(_deep(record))


def _deep(value: Any) -> Any:
    if isinstance(value, Struct):
        return {name: _deep(inner) for name, inner in asdict(value).items()}
    return [_deep(inner) for inner in value] if isinstance(value, tuple) else value


@pytest.fixture
def plan(world: World) -> Generator[PlanHandle]:
    """One that has run, called from a process that stands in its project."""
    made = world.run(*(write(f"{name}.txt", f"{name}\n") for name in "abc"))
    with mock.patch.dict(os.environ, world.agents.environ, clear=True):
        before = Path.cwd()
        os.chdir(world.project.path)
        yield made
        os.chdir(before)


# --- the same as the commands -----------------------------------------------------------------


def test_the_rows_are_those_of_the_command(plan: PlanHandle) -> None:
    told = plan("checkpoint", "list").ok().data

    listed = as_json(checkpoints.list_checkpoints(plan.id))

    assert len(listed["checkpoints"]) == len(told["checkpoints"]) > 3
    for ours, theirs in zip(listed["checkpoints"], told["checkpoints"], strict=True):
        assert ours == {key: theirs[key] for key in ours}
    assert {key: listed[key] for key in listed} == {key: told[key] for key in listed}


def test_no_call_leaves_anything_watched(plan: PlanHandle) -> None:
    gc.disable()  # nobody has to collect garbage for it
    try:
        checkpoints.create_checkpoint(plan.id, "mine")
        checkpoints.rollback_to_checkpoint(plan.id, "start", only=["b.txt"])
        assert _queues() == 0
        checkpoints.rollback_to_checkpoint(plan.id, "start")
        assert _queues() == 0
    finally:
        gc.enable()


def _queues() -> int:
    found = 0
    for file in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found += "inotify" in str(file.readlink())
    return found


def test_one_checkpoint_is_what_the_command_shows(plan: PlanHandle) -> None:
    label = "after file.write a.txt"
    told = plan("checkpoint", "show", "{}", label).ok().data

    got = as_json(checkpoints.get_checkpoint(plan.id, label))

    inner = zip(got.pop("checkpoints"), told.pop("checkpoints"), strict=True)
    assert got == {key: told[key] for key in got}
    for ours, theirs in inner:
        assert ours == {key: theirs[key] for key in ours}


def test_one_made_from_python_is_found_by_the_command(plan: PlanHandle) -> None:
    made = checkpoints.create_checkpoint(plan.id, " mine ")

    told = plan("checkpoint", "show", "{}", "mine").ok().data
    assert (told["group_id"], told["label"]) == (made.group_id, "mine")
    assert made.reason == told["reason"]


def test_a_rollback_tells_what_the_command_tells_and_can_be_undone(
    plan: PlanHandle, world: World
) -> None:
    before = plan.tree()
    told = plan("rollback", "--dry-run", "{}", "after file.write a.txt").ok().data

    report = checkpoints.rollback_to_checkpoint(plan.id, "after file.write a.txt")

    assert as_json(report)["changes_reverted"] == told["changes_reverted"]
    assert [(gone.file, gone.action) for gone in report.changes_reverted] == [
        ("b.txt", "removed"),
        ("c.txt", "removed"),
    ]
    assert not (plan.sandbox / "b.txt").exists()
    assert (report.checkpoint, report.label) == (
        told["rollback_summary"]["checkpoint"],
        told["rollback_summary"]["label"],
    )
    assert f"{report.decisions_discarded} discarded" == told["impact"]["decisions_after_cp"]
    assert f"{report.tool_calls_undone} undone" == told["impact"]["tool_calls_after_cp"]
    assert (report.phase, report.state) == ("execute", plan.status["state"])
    assert report.checkpoints_remaining == told["post_rollback_state"]["checkpoints_remaining"]

    checkpoints.rollback_to_checkpoint(plan.id, report.undo_checkpoint_id)
    assert plan.tree() == before


def test_single_files_come_back_and_nothing_is_discarded(plan: PlanHandle) -> None:
    report = checkpoints.rollback_to_checkpoint(plan.id, "start", only=["b.txt"])

    assert (report.only, report.decisions_discarded) == (("code:b.txt",), 0)
    assert (plan.sandbox / "a.txt").exists()
    assert not (plan.sandbox / "b.txt").exists()


def test_pruning_removes_what_it_foretold(plan: PlanHandle) -> None:
    with mock.patch.dict(os.environ, CLEVERAGENTS_CHECKPOINT_MAX_PER_PLAN="2"):
        would = checkpoints.prune_checkpoints(plan.id, dry_run=True)
        counted = len(plan.groups)
        done = checkpoints.prune_checkpoints(plan.id)

    assert would.dry_run
    assert not done.dry_run
    assert would.removed == done.removed != ()
    assert len(plan.groups) == counted - len(done.removed) == len(done.kept)
    assert all(row.reason for row in (*done.kept, *done.removed))


def test_a_checkpoint_is_named_as_at_the_command_line(plan: PlanHandle) -> None:
    start = checkpoints.get_checkpoint(plan.id, "start")

    assert checkpoints.get_checkpoint(plan.id, "0") == start
    assert checkpoints.get_checkpoint(plan.id, start.group_id.lower()) == start
    assert checkpoints.get_checkpoint(plan.id, "1") == checkpoints.get_checkpoint(plan.id, "-2")


# --- which plan is meant ----------------------------------------------------------------------


def test_a_plan_is_named_by_id_name_or_place(plan: PlanHandle, world: World) -> None:
    place = world.project.path
    (place / "src").mkdir(exist_ok=True)
    names = ["latest", ".", "./src", str(place), place, place / "src", plan.id, plan.id.lower()]

    assert {checkpoints.list_checkpoints(name).plan_id for name in names} == {plan.id}


def test_a_path_means_its_own_place_wherever_one_stands(plan: PlanHandle, world: World) -> None:
    os.chdir(world.top)
    with pytest.raises(errors.NoPlanHereError):
        checkpoints.list_checkpoints("latest")
    with pytest.raises(errors.NoPlanHereError):
        checkpoints.list_checkpoints(world.beside)

    assert checkpoints.list_checkpoints(world.project.path).plan_id == plan.id
    assert checkpoints.list_checkpoints("latest", anywhere=True).plan_id == plan.id


def test_a_data_folder_is_relative_to_where_one_stands(plan: PlanHandle, world: World) -> None:
    os.chdir(world.top)
    with mock.patch.dict(os.environ, HOME=str(world.beside)):
        with pytest.raises(errors.PlanNotFoundError):
            checkpoints.list_checkpoints(plan.id)
        found = checkpoints.list_checkpoints(world.project.path, data_dir="home/.cleveragents")

    assert found.plan_id == plan.id


def test_a_config_file_can_be_named(plan: PlanHandle, world: World) -> None:
    (world.top / "one.toml").write_text("[sandbox.checkpoint]\nmax-checkpoints-per-plan = 2\n")

    would = checkpoints.prune_checkpoints(plan.id, dry_run=True, config_path=world.top / "one.toml")

    assert would.removed
    assert not checkpoints.prune_checkpoints(plan.id, dry_run=True).removed


# --- what goes wrong --------------------------------------------------------------------------


def test_every_error_of_the_tree_has_its_public_name() -> None:
    def below(kind: type[errors.PlanError]) -> Generator[type[errors.PlanError]]:
        yield kind
        for inner in kind.__subclasses__():
            yield from below(inner)

    known = [kind for kind in below(errors.PlanError) if ".domain.errors" in kind.__module__]
    assert len(known) > 60
    assert [kind for kind in known if getattr(errors, kind.__name__, None) is not kind] == []


@pytest.mark.parametrize(
    ("environ", "plan_name", "checkpoint", "expected"),
    [
        ({}, "01ARZ3NDEKTSV4RRFFQ69G5FAV", "start", errors.PlanNotFoundError),
        ({}, "latest", "nothing like it", errors.CheckpointNotFoundError),
        ({"CLEVERAGENTS_TOOL_TIMEOUT": "long"}, "latest", "start", errors.ConfigValueError),
        ({"CLEVERAGENTS_DATA_DIR": "/dev/null/x"}, "latest", "start", errors.DataDirError),
    ],
)
def test_what_goes_wrong_is_a_class_of_the_tree(
    plan: PlanHandle,
    environ: dict[str, str],
    plan_name: str,
    checkpoint: str,
    expected: type[errors.PlanError],
) -> None:
    with mock.patch.dict(os.environ, environ), pytest.raises(expected) as raised:
        checkpoints.get_checkpoint(plan_name, checkpoint)

    assert raised.value.code == expected.code
    assert raised.value.hint


def test_a_label_that_says_nothing_or_is_taken_is_refused(plan: PlanHandle) -> None:
    checkpoints.create_checkpoint(plan.id, "mine")
    before = len(plan.groups)

    with pytest.raises(errors.UsageError, match="must not be empty"):
        checkpoints.create_checkpoint(plan.id, " ")
    with pytest.raises(errors.LabelTakenError):
        checkpoints.create_checkpoint(plan.id, "mine")

    assert len(plan.groups) == before
    assert plan("checkpoint", "create", "--label", " ").error["code"] == "usage"


def test_the_home_is_that_of_the_account_where_none_is_said(tmp_path: Path) -> None:
    assert Path(home_of({}, str(tmp_path))).is_absolute()
    with pytest.raises(errors.HomeUnknownError):
        home_of({"HOME": ""}, str(tmp_path))
    assert home_of({"HOME": "there"}, str(tmp_path)) == str(tmp_path / "there")


# --- what is left behind ----------------------------------------------------------------------

GUEST = """
import gc, os, signal, sys, threading
from pathlib import Path
from cleveragents import checkpoints, errors

def heard(number, frame): pass

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGCHLD):
    signal.signal(number, heard)
os.umask(0o027)

def state():
    handlers = [signal.getsignal(number) for number in sorted(signal.valid_signals())]
    mask = os.umask(0o077); os.umask(mask)
    return (sorted(os.listdir("/proc/self/fd")), handlers, os.getcwd(), dict(os.environ), mask,
            gc.isenabled(), gc.get_threshold(), sys.excepthook, sys.unraisablehook,
            [t.name for t in threading.enumerate() if t.name != "plan-locks"])

def call(what):
    try:
        what()
    except errors.PlanError:
        pass

calls = [
    lambda: checkpoints.list_checkpoints("latest"),
    lambda: checkpoints.get_checkpoint("latest", "start"),
    lambda: checkpoints.create_checkpoint("latest", f"made {len(os.listdir('.'))} {os.times()}"),
    lambda: checkpoints.rollback_to_checkpoint("latest", "start"),
    lambda: checkpoints.prune_checkpoints("latest"),
    lambda: checkpoints.rollback_to_checkpoint("latest", "none of this name"),
]
for what in calls:
    call(what)  # what is imported and opened once is not what this is about
gc.collect()
before = state()
for number, what in enumerate(calls):
    call(what)
    gc.collect()
    assert state() == before, (number, before, state())
locks = Path(os.environ["HOME"], ".cleveragents", "locks")
assert [p.name for p in locks.iterdir() if p.stat().st_size and len(p.name) == 26] == []
"""


def test_a_call_leaves_nothing_changed_in_the_process_that_made_it(plan: PlanHandle) -> None:
    done = subprocess.run(
        [sys.executable, "-c", GUEST], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_threads_that_work_on_one_plan_never_write_at_once(plan: PlanHandle) -> None:
    def make(number: int) -> str | None:
        try:
            return checkpoints.create_checkpoint(plan.id, f"thread {number}").label
        except errors.PlanLockedError:
            return None

    with ThreadPoolExecutor(6) as pool:
        listed = [pool.submit(checkpoints.list_checkpoints, plan.id) for _ in range(6)]
        made = {label for label in pool.map(make, range(12)) if label}

    assert made
    assert all(len(answer.result().checkpoints) > 3 for answer in listed)
    assert {group.label for group in plan.groups if group.label.startswith("thread")} == made
    assert plan("checkpoint", "verify").ok().data["damaged"] == []


def test_a_call_in_a_thread_needs_no_signals(plan: PlanHandle) -> None:
    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=checkpoints.rollback_to_checkpoint, args=(plan.id, "start"))

    thread.start()
    thread.join()

    assert signal.getsignal(signal.SIGINT) is before
    assert not (plan.sandbox / "a.txt").exists()
