"""Files in memory: sandboxes, and the snapshots that bring them back."""

import hashlib
import json
from collections.abc import Collection, Mapping

from fakes import Faults
from msgspec.structs import replace

from cleveragents.application.ports.runtime import Expected, Restored
from cleveragents.domain.action import ResourceSpec
from cleveragents.domain.applied import ApplySide
from cleveragents.domain.apply import ApplyOptions, PreparedApply
from cleveragents.domain.changes import ChangeKind, FileChange, FileDiff, ResourceDiff
from cleveragents.domain.checkpoint import Snapshot
from cleveragents.domain.errors import (
    ApplyConflictError,
    ApplyRefusedError,
    SandboxMissingError,
    SnapshotDamagedError,
)
from cleveragents.domain.footprint import Footprint
from cleveragents.domain.ids import PlanId, ResourceId
from cleveragents.domain.resource import (
    Damage,
    OwnState,
    PlanResource,
    Rebuilding,
    ResourceInspection,
)
from cleveragents.domain.resource_kinds import ResourceType

Files = dict[str, str]


class MemoryDisk:
    """The real project by location, and the sandboxes by path. It survives every crash.

    `kept` is what a project was before an apply that is not settled yet.
    """

    def __init__(self) -> None:
        self.projects: dict[str, Files] = {}
        self.kept: dict[str, Files] = {}
        self.sandboxes: dict[str, Files] = {}


def hash_files(files: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(sorted(files.items())).encode()).hexdigest()


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[FileChange, ...]:
    found: list[FileChange] = []
    for path in sorted(old.keys() | new.keys()):
        if path not in old:
            found.append(FileChange(path=path, kind=ChangeKind.ADDED))
        elif path not in new:
            found.append(FileChange(path=path, kind=ChangeKind.DELETED))
        elif old[path] != new[path]:
            found.append(FileChange(path=path, kind=ChangeKind.MODIFIED))
    return tuple(found)


class MemorySnapshots:
    """Like the real store: the same content has the same ref only as long as nothing changes."""

    def __init__(self, disk: MemoryDisk, faults: Faults) -> None:
        self._disk = disk
        self._faults = faults
        self.versions: dict[ResourceId, dict[str, Files]] = {}
        self.latest: dict[ResourceId, str] = {}
        self.damaged: set[str] = set()
        self.doubtful: set[ResourceId] = set()
        self.damaged_files: set[str] = set()
        self.wrong_hashes = 0
        self.forgotten: list[PlanId] = []

    def capture(self, resource: PlanResource) -> Snapshot:
        self._faults.reach("capture")
        return self._taken(resource)

    def known(self, resource: PlanResource, ref: str) -> Snapshot:
        return Snapshot(ref=ref, state_hash=hash_files(self.content(resource, ref)), sandbox_ref="")

    def restore(self, resource: PlanResource, ref: str, *, together: bool = True) -> Restored:
        return self._restored(resource, self.content(resource, ref))

    def newest(self, resource: PlanResource) -> str:
        return self.latest[resource.resource_id]

    def refuse_damaged(self, resource: PlanResource, ref: str) -> None:
        self._refuse_damage(resource, ref, hash_files(self.content(resource, ref)))

    def rebuild(self, resource: PlanResource, how: Rebuilding) -> Restored:
        return self._restored(resource, self.content(resource, how.snapshot))

    def restore_sparing(self, *given: object, **further: object) -> Restored:
        raise NotImplementedError(given, further)  # in place is no fake's

    def refuse_in_use(self, *given: object, **further: object) -> None: ...

    def restore_paths(self, resource: PlanResource, ref: str, paths: Collection[str]) -> Restored:
        wanted = self.content(resource, ref)
        files = self._disk.sandboxes[resource.sandbox_path]
        rest = {path: text for path, text in files.items() if path not in paths}
        return self._restored(resource, {**rest, **{p: t for p, t in wanted.items() if p in paths}})

    def compare(
        self, resource: PlanResource, ref: str, paths: Collection[str] = ()
    ) -> tuple[FileChange, ...]:
        changes = differences(
            self._disk.sandboxes[resource.sandbox_path], self.content(resource, ref)
        )
        return tuple(change for change in changes if not paths or change.path in paths)

    def unknown_paths(
        self, resource: PlanResource, ref: str, paths: Collection[str]
    ) -> Mapping[str, str | None]:
        known = self.content(resource, ref) | self._disk.sandboxes[resource.sandbox_path]
        return {path: min(known) for path in paths if path not in known}

    def _restored(self, resource: PlanResource, wanted: Files) -> Restored:
        self._faults.reach("restore")
        files = self._disk.sandboxes[resource.sandbox_path]
        changes = differences(files, wanted)
        for change in changes:
            if change.kind is ChangeKind.DELETED:
                del files[change.path]
            else:
                files[change.path] = wanted[change.path]
            self._faults.reach("restored a file")
        snapshot = self._taken(resource)
        if self.wrong_hashes:
            self.wrong_hashes -= 1
            snapshot = replace(snapshot, state_hash="wrong")
        return Restored(snapshot=snapshot, changes=changes)

    def verify_restorable(
        self, resource: PlanResource, ref: str, state_hash: str, paths: Collection[str] = ()
    ) -> None:
        self._refuse_damage(resource, ref, state_hash)
        if self.damaged_files.intersection(paths or self.content(resource, ref)):
            raise SnapshotDamagedError(resource.name, "the content of a file is lost")

    def damages(
        self, resource: PlanResource, snapshots: Collection[Expected]
    ) -> Mapping[Expected, str]:
        found: dict[Expected, str] = {}
        for snapshot in snapshots:
            try:
                self._refuse_damage(resource, snapshot.ref, snapshot.state_hash)
            except SnapshotDamagedError as error:
                found[snapshot] = error.message
        return found

    def _refuse_damage(self, resource: PlanResource, ref: str, state_hash: str) -> None:
        self._faults.reach("verify")
        if ref in self.damaged or hash_files(self.content(resource, ref)) != state_hash:
            raise SnapshotDamagedError(resource.name, "its hash differs")

    def changes_between(self, resource: PlanResource, old: str, new: str) -> tuple[FileChange, ...]:
        return differences(self.content(resource, old), self.content(resource, new))

    def release(self, resource: PlanResource) -> None:
        """Nothing is kept."""

    def is_doubtful(self, resource: PlanResource) -> bool:
        return resource.resource_id in self.doubtful

    def believe(self, resource: PlanResource) -> None:
        self._faults.reach("believe")
        self.doubtful.discard(resource.resource_id)

    def keep_only(self, resource: PlanResource, refs: Collection[str], **_: bool) -> int:
        self._faults.reach("keep_only")
        versions = self.versions.setdefault(resource.resource_id, {})
        missing = set(refs) - versions.keys()
        assert not missing, "what is kept must be there"
        latest = self.latest.get(resource.resource_id)
        gone = [ref for ref in versions if ref not in refs and ref != latest]
        for ref in gone:
            del versions[ref]
        return len(gone)

    def forget(self, plan_id: PlanId) -> None:
        self._faults.reach("forget")
        self.forgotten.append(plan_id)

    def content(self, resource: PlanResource, ref: str) -> Files:
        versions = self.versions.get(resource.resource_id, {})
        if ref not in versions:
            raise SnapshotDamagedError(resource.name, f"{ref} is not there")
        return versions[ref]

    def _taken(self, resource: PlanResource) -> Snapshot:
        files = dict(self._disk.sandboxes[resource.sandbox_path])
        versions = self.versions.setdefault(resource.resource_id, {})
        before = versions.get(self.latest.get(resource.resource_id, ""), {})
        is_new = not versions or before != files
        if is_new:
            number = sum(len(known) for known in self.versions.values()) + len(self._faults.calls)
            ref = f"{resource.name}@{number}-{hash_files(files)[:6]}"
            while ref in versions:
                ref += "'"
            versions[ref] = files
            self.latest[resource.resource_id] = ref
        return Snapshot(
            ref=self.latest[resource.resource_id],
            state_hash=hash_files(files),
            sandbox_ref=f"commit of {resource.name}",
            changes=(changes := differences(before, files)),
            footprint=Footprint(paths=frozenset(change.path for change in changes)),
            size_bytes=sum(len(text) for text in files.values()) if is_new else 0,
        )


class MemorySandboxes:
    def __init__(self, disk: MemoryDisk, faults: Faults, snapshots: MemorySnapshots) -> None:
        self._snapshots, self._disk, self._faults = snapshots, disk, faults
        self.released: list[str] = []
        self.carried_out: list[str] = []
        self.left_in_sandbox: tuple[str, ...] = ()
        self.refusing: set[str] = set()
        self.prepared_with: list[ApplyOptions] = []

    def inspect(
        self, spec: ResourceSpec, plan_id: PlanId | None, *, include_uncommitted: bool
    ) -> ResourceInspection:
        self._faults.reach(f"inspect {spec.name}")
        self._disk.projects.setdefault(spec.location, {"README": "hello"})
        notices = ("takes uncommitted work along",) if include_uncommitted else ()
        return ResourceInspection(location=spec.location, base="base", notices=notices)

    def path_for(self, plan_id: PlanId, name: str, type_: ResourceType, location: str = "") -> str:
        return f"/sandboxes/{plan_id}/{name}"

    def create(self, resource: PlanResource) -> None:
        self._faults.reach(f"create {resource.name}")
        self._disk.sandboxes[resource.sandbox_path] = dict(self._disk.projects[resource.location])
        self._faults.reach(f"created {resource.name}")

    def branch(self, parent: PlanResource, child: PlanResource) -> Snapshot:
        self._faults.reach("branch")
        self._disk.sandboxes[child.sandbox_path] = dict(self._disk.sandboxes[parent.sandbox_path])
        return self._snapshots.capture(child)

    def diff_since(self, resource: PlanResource, ref: str) -> ResourceDiff:
        old = self._snapshots.content(resource, ref)
        return _as_diff(old, self._disk.sandboxes[resource.sandbox_path], ())

    def make_durable(self, resources: Collection[PlanResource]) -> None:
        self._faults.reach("make durable")

    def secure(self, resource: PlanResource) -> bool:
        """Nothing is pinned."""
        return True

    def refuse_running(self, resource: PlanResource) -> None: ...
    def end_running(self, plan_id: PlanId) -> None: ...
    def place_of(self, location: str) -> str: ...
    def occupant(self, place: str) -> str | None: ...

    def check(self, resource: PlanResource) -> None:
        self._faults.reach("check")
        if resource.sandbox_path not in self._disk.sandboxes:
            raise SandboxMissingError(resource.name, resource.sandbox_path, resource.store_id)

    def is_there(self, resource: PlanResource) -> bool:
        return resource.rebuilding is None and resource.sandbox_path in self._disk.sandboxes

    def damage(self, resource: PlanResource) -> Damage | None:
        return None if self.is_there(resource) else Damage.GONE

    def make_room(self, resource: PlanResource, how: Rebuilding) -> None:
        self._disk.sandboxes[resource.sandbox_path] = {}

    def remove(self, resource: PlanResource) -> None:
        self._faults.reach("remove")
        self._disk.sandboxes.pop(resource.sandbox_path, None)

    remove_copy = remove

    def release(self, resource: PlanResource) -> None:
        self.released.append(resource.name)

    def only_here(self, resource: PlanResource) -> tuple[str, ...]:
        diff = self.diff(resource)
        return tuple(sorted({*(file.path for file in diff.files), *diff.left_behind}))

    def left_behind(self, resource: PlanResource) -> tuple[str, ...]:
        return self.diff(resource).left_behind

    def diff(self, resource: PlanResource) -> ResourceDiff:
        if resource.sandbox_path not in self._disk.sandboxes:
            raise SandboxMissingError(resource.name, resource.sandbox_path, resource.store_id)
        old = self._disk.projects[resource.location]
        return _as_diff(old, self._disk.sandboxes[resource.sandbox_path], self.left_in_sandbox)

    def applied_diff(self, resource: PlanResource, applied_ref: str) -> ResourceDiff:
        return ResourceDiff(patch=applied_ref)

    def prepare_apply(self, resource: PlanResource, options: ApplyOptions) -> PreparedApply:
        self._faults.reach(f"prepare {resource.name}")
        self.prepared_with.append(options)
        files = dict(self._disk.sandboxes[resource.sandbox_path])
        return PreparedApply(
            resource_id=resource.resource_id, token={"files": files}, diff=self.diff(resource)
        )

    def carry_out(self, resource: PlanResource, prepared: PreparedApply) -> str:
        self._faults.reach(f"carry out {resource.name}")
        project = self._disk.projects[resource.location]
        self._disk.kept.setdefault(resource.location, dict(project))
        self._faults.reach(f"kept {resource.name}")
        if resource.name in self.refusing:
            raise ApplyRefusedError(f"{resource.name} is locked", "wait")
        if strange := self._foreign(resource, prepared):
            raise ApplyConflictError(resource.plan_id, resource.name, strange, "changed meanwhile")
        _become(project, prepared.token["files"], self._faults)
        self.carried_out.append(resource.name)
        self._faults.reach(f"carried out {resource.name}")
        return f"commit of {resource.name}"

    def revert(self, resource: PlanResource, prepared: PreparedApply) -> tuple[str, ...]:
        self._faults.reach(f"take back {resource.name}")
        before = self._disk.kept.get(resource.location)
        if before is None:
            return ()
        project, ours = self._disk.projects[resource.location], prepared.token["files"]
        theirs = self._foreign(resource, prepared)
        stays = {path: text for path, text in project.items() if path in theirs or path not in ours}
        was = {path: text for path, text in before.items() if path not in theirs}
        _become(project, {**stays, **was}, self._faults)
        return tuple(theirs)

    def _foreign(self, resource: PlanResource, prepared: PreparedApply) -> list[str]:
        """Paths of the apply that hold neither what they did nor what they shall."""
        project, ours = self._disk.projects[resource.location], prepared.token["files"]
        before = self._disk.kept[resource.location]
        return sorted(p for p in ours if project.get(p) not in (before.get(p), ours[p]))

    def finish(self, resource: PlanResource, prepared: PreparedApply) -> None:
        self._faults.reach(f"finish {resource.name}")
        self._disk.kept.pop(resource.location, None)

    settle = withdraw = finish

    def way_of(self, resource: PlanResource, prepared: PreparedApply) -> OwnState | None:
        """Nothing is kept here that an apply could be taken back by later."""

    def kept_bytes(self, resource: PlanResource) -> int:
        return 0

    def prepare_move(self, resource: PlanResource, way: OwnState, side: ApplySide) -> PreparedApply:
        raise ApplyRefusedError(f"{resource.name} is final", "leave it")


def _become(files: Files, wanted: Mapping[str, str], faults: Faults) -> None:
    for change in differences(files, wanted):
        if change.kind is ChangeKind.DELETED:
            del files[change.path]
        else:
            files[change.path] = wanted[change.path]
        faults.reach("changed a file of the project")


def _as_diff(
    old: Mapping[str, str], new: Mapping[str, str], left_behind: tuple[str, ...]
) -> ResourceDiff:
    files = tuple(
        FileDiff(path=change.path, kind=change.kind, insertions=1, deletions=0)
        for change in differences(old, new)
    )
    return ResourceDiff(files=files, left_behind=left_behind)


class SteadyProjects:
    """Projects that stay where they are."""

    def is_at_home(self, resource: PlanResource) -> bool:
        return True

    def is_grounded(self, resource: PlanResource) -> bool:
        return True

    def hold(self, resource: PlanResource) -> None:
        """They are kept."""

    def refuse_lost(self, resource: PlanResource) -> None:
        """None is."""

    def find_for_certain(self, resource: PlanResource) -> str | None:
        return None

    def find(self, resource: PlanResource, told: Mapping[str, str]) -> str | None:
        return None

    def relocate(self, resource: PlanResource, place: str) -> PlanResource:
        return resource
