"""A project of any type, a plan on it and a child of that, handled by what adapters promise."""

import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from tests.support.runners import database_workers, workbench
from tests.support.trees import tree_of

from cleveragents.domain.action import ResourceSpec
from cleveragents.domain.apply import ApplyOptions, PreparedApply
from cleveragents.domain.ids import PlanId, ResourceId
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import ResourceType
from cleveragents.infrastructure.sandbox.checkpoint_manager import CheckpointManager
from cleveragents.infrastructure.sandbox.registry import ResourceAdapters
from cleveragents.infrastructure.sandbox.sandboxes import (
    ProjectLocations,
    SandboxesByType,
    SandboxMerges,
)

PLAN = PlanId("01J00000000000000000000001")
CHILD = PlanId("01J00000000000000000000002")
NAME = "thing"
_FIRST, _SECOND = ResourceId("01J0000000000000000000000A"), ResourceId("01J0000000000000000000000B")


class Case(Struct, frozen=True, kw_only=True):
    """How one of the type is made at a place, changed there to a state with a number, looked at,
    and how the snapshots in a folder are damaged. The state is what apply brings to the project:
    what it is beside that, an index or a head, is the type's own matter."""

    make: Callable[[Path], None]
    change: Callable[[Path, int], None]
    state: Callable[[Path], object]
    damage: Callable[[Path], None]


class ResourceWorld:
    """`adapters` and all that asks them are as a new process has them after `new_process`."""

    def __init__(self, top: Path, type_: str) -> None:
        self.top = top
        self.case, self.type = CASES[type_], ResourceType(type_)
        self.location = top / "my project" / "thing"
        self.location.parent.mkdir(parents=True)
        self.case.make(self.location)
        self.workers = database_workers()
        self.new_process()

    def new_process(self) -> None:
        adapters = ResourceAdapters(workbench(self.top / "data", self.workers))
        self.adapters = adapters
        self.sandboxes = SandboxesByType(adapters)
        self.snapshots = CheckpointManager(adapters)
        self.merges = SandboxMerges(adapters)
        self.projects = ProjectLocations(adapters, str(self.top))

    def close(self) -> None:
        self.workers.close()
        self.snapshots.close()

    # --- the plan -------------------------------------------------------------------------------

    def planned(self) -> PlanResource:
        spec = ResourceSpec(name=NAME, type=self.type, location=str(self.location))
        found = self.sandboxes.inspect(spec, PLAN, include_uncommitted=False)
        return PlanResource(
            resource_id=_FIRST,
            plan_id=PLAN,
            name=NAME,
            type=self.type,
            location=found.location,
            base=found.base,
            sandbox_path=self.sandboxes.path_for(PLAN, NAME, self.type, found.location),
            details=found.details,
        )

    def ready(self) -> PlanResource:
        """A plan with a sandbox and its first snapshot."""
        resource = self.planned()
        self.sandboxes.create(resource)
        return resource.ready(self.snapshots.capture(resource).ref)

    def child_of(self, parent: PlanResource) -> PlanResource:
        path = self.sandboxes.path_for(CHILD, NAME, self.type, parent.location)
        return replace(
            parent.child_of(PLAN),
            resource_id=_SECOND,
            plan_id=CHILD,
            sandbox_path=path,
            branched_at=parent.boundary,
        )

    def branched(self, parent: PlanResource) -> PlanResource:
        child = self.child_of(parent)
        return child.ready(self.sandboxes.branch(parent, child).ref)

    def work(self, resource: PlanResource, number: int) -> PlanResource:
        """A step that makes of the sandbox the state with this number, and its boundary."""
        self.case.change(Path(resource.sandbox_path), number)
        return resource.at_boundary(self.snapshots.capture(resource).ref)

    def prepare(self, resource: PlanResource) -> PreparedApply:
        return self.sandboxes.prepare_apply(resource, ApplyOptions(message="work"))

    # --- what there is --------------------------------------------------------------------------

    def state(self, resource: PlanResource) -> object:
        return self.case.state(Path(resource.sandbox_path))

    @property
    def project(self) -> object:
        return self.case.state(self.location)

    def traces(self) -> list[Path]:
        """What an apply may not leave behind in what is the user's."""
        return list(self.location.parent.rglob("*cleveragents-*"))

    def user_changes(self, number: int) -> None:
        self.case.change(self.location, number)

    def damage(self) -> None:
        self.snapshots.close()
        self.case.damage(self.top / "data" / "snapshots")
        self.new_process()

    # --- the same again -------------------------------------------------------------------------

    def save(self) -> Path:
        self.snapshots.close()
        place = self.top.with_name("saved")
        shutil.rmtree(place, ignore_errors=True)
        subprocess.run(["cp", "-a", str(self.top), str(place)], check=True)
        return place

    def reset(self, saved: Path) -> None:
        self.snapshots.close()
        shutil.rmtree(self.top)
        subprocess.run(["cp", "-a", str(saved), str(self.top)], check=True)
        self.new_process()

    @property
    def watched(self) -> list[Path]:
        data = self.top / "data"
        return [self.location.parent, data / "sandboxes", data / "snapshots"]


# --- the types ----------------------------------------------------------------------------------


def _make_folder(place: Path) -> None:
    place.mkdir()
    for name in ("kept", "changed", "gone"):
        (place / name).write_text(f"{name} at first\n")
    (place / "inner").mkdir()
    (place / "inner" / "link").symlink_to("../kept")


def _change_folder(place: Path, number: int) -> None:
    (place / "changed").write_text(f"state {number}\n" * 50)
    (place / "gone").unlink(missing_ok=True)
    (place / "inner" / f"new {number}").write_text("new\n")
    (place / "inner" / "script").write_text("#!/bin/sh\n")
    (place / "inner" / "script").chmod(0o755)


def _files(place: Path) -> object:
    """Without what an apply keeps beside them until it is finished."""
    found = tree_of(place).items()
    return {path: facts for path, facts in found if not path.startswith(b".cleveragents")}


def _make_checkout(place: Path) -> None:
    _make_folder(place)
    _git(place, "init", "-q", "-b", "main")
    _git(place, "config", "user.name", "Uma")
    _git(place, "config", "user.email", "uma@example.com")
    _git(place, "add", "-A")
    _git(place, "commit", "-qm", "start")


def _git(place: Path, *args: str) -> None:
    subprocess.run(["git", "-C", str(place), *args], check=True, stdout=subprocess.PIPE)


def _make_database(place: Path) -> None:
    with closing(sqlite3.connect(place)) as db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)")
        db.executemany("INSERT INTO t (text) VALUES (?)", [(f"row {n}" * 50,) for n in range(200)])
        db.commit()


def _change_database(place: Path, number: int) -> None:
    with closing(sqlite3.connect(place)) as db:
        # The same place each time, and one of its own: on other pages, as far as rows tell.
        rows = (7, 40 + 20 * number)
        db.executemany("UPDATE t SET text = ? WHERE id = ?", [(f"state {number}", r) for r in rows])
        db.commit()


def _rows(place: Path) -> object:
    if not place.exists():
        return None
    with closing(sqlite3.connect(f"file:{place}?mode=ro", uri=True)) as db:
        return db.execute("SELECT * FROM t ORDER BY id").fetchall()


def _damage_store(folder: Path) -> None:
    """Whatever a snapshot has stored is there, and something else."""
    for path in folder.glob("*.db"):
        with closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE contents SET data = zeroblob(length(data))")
            db.commit()


def _make_note(place: Path) -> None:
    place.write_text("a note\n")


def _change_note(place: Path, number: int) -> None:
    place.write_text(f"state {number}\n")


def _text(place: Path) -> object:
    return place.read_text() if place.exists() else None


def _damage_notes(folder: Path) -> None:
    for path in folder.glob("*.notes/*/[0-9]*"):
        path.write_bytes(b"+something else")


CASES: Mapping[str, Case] = {
    "git-checkout": Case(
        make=_make_checkout, change=_change_folder, state=_files, damage=_damage_store
    ),
    "fs-directory": Case(
        make=_make_folder, change=_change_folder, state=_files, damage=_damage_store
    ),
    "sqlite": Case(make=_make_database, change=_change_database, state=_rows, damage=_damage_store),
    "note": Case(make=_make_note, change=_change_note, state=_text, damage=_damage_notes),
}
