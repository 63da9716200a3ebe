"""A repository that is worked on where it is, and the parts of the adapter that does it."""

import os
import subprocess
from pathlib import Path

from msgspec.structs import replace
from tests.support.runners import adapters_in

from cleveragents.domain.action import ResourceSpec
from cleveragents.domain.ids import PlanId, ResourceId
from cleveragents.domain.in_place import Sparing
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import FS_DIRECTORY, GIT_CHECKOUT
from cleveragents.infrastructure.sandbox.in_place.adapter import InPlaceAdapter
from cleveragents.infrastructure.sandbox.in_place.engine import InPlaceEngine
from cleveragents.infrastructure.sandbox.in_place.inspect import inspect_in_place

PLAN = PlanId("01ARZ3NDEKTSV4RRFFQ69G5FAV")
TREE = ResourceId("01ARZ3NDEKTSV4RRFFQ69G5FAW")
MAKE = (
    "git init -q -b main . && git config user.name n && git config user.email e@x &&"
    " echo one > a.txt && mkdir src && echo two > src/b.txt && git add -A && git commit -qm base"
)


class OwnTree:
    """`repository`: it is one, else a plain folder."""

    def __init__(self, top: Path, *, repository: bool = True) -> None:
        self.top = top
        self.path = top / "project"
        self.path.mkdir()
        self.data = str(top / "data")
        self.type = GIT_CHECKOUT.type if repository else FS_DIRECTORY.type
        self.sh(MAKE if repository else "echo one > a.txt")
        self.resource = PlanResource(
            resource_id=TREE,
            plan_id=PLAN,
            name="code",
            type=self.type,
            location=str(self.path),
            base="",
            sandbox_path=str(self.path),
            in_place=True,
        )
        adapter = adapters_in(top / "data").of(self.resource)
        assert isinstance(adapter, InPlaceAdapter)
        self.adapter = adapter

    @property
    def gitdir(self) -> Path:
        return self.path / ".git"

    @property
    def engine(self) -> InPlaceEngine:
        engine = self.adapter.snapshots
        assert isinstance(engine, InPlaceEngine)
        return engine

    def sh(self, command: str) -> str:
        done = subprocess.run(
            ["/bin/sh", "-ec", command], cwd=self.path, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return os.fsdecode(done.stdout).strip()

    def inspect(self, location: Path | None = None, **given: tuple[str, ...]):
        spec = ResourceSpec(
            name="code", type=self.type, location=str(location or self.path), in_place=True
        )
        return inspect_in_place(replace(spec, **given), self.data, lambda: "ours")

    def capture(self) -> str:
        return self.engine.capture(self.resource).ref

    def back_to(self, ref: str, last: str | None = None, *, keep: bool = False):
        """As a way back does: the present is held first."""
        sparing = Sparing(held=self.capture(), last=last, keep=keep)
        return self.engine.restore_sparing(self.resource, ref, sparing)
