"""Bringing what a plan has changed in ignored folders, for those who ask for it (ADR 0089).

What is to change is found out when the apply is prepared, and written down beside the sandbox, as
nobody could tell afterwards what the user's folder held. The rest is what an apply into a folder
does: staged, kept, changed, or put back. Only that the stage lies in the git folder.
"""

import os
from collections.abc import Sequence

from msgspec import Struct, msgpack

from cleveragents.domain.errors import ApplyConflictError, ApplyRefusedError
from cleveragents.domain.ids import made_at
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.durable_files import put_file, read_file
from cleveragents.infrastructure.files.entry import Kind, shown
from cleveragents.infrastructure.files.excludes import excludes
from cleveragents.infrastructure.files.layers.known_layers import beside, known_layers, layers_since
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.files.update.path_update import is_folder, status_at
from cleveragents.infrastructure.sandbox.folder.apply.carry_out import CarryOut, finish
from cleveragents.infrastructure.sandbox.folder.apply.journal import ApplyJournal
from cleveragents.infrastructure.sandbox.folder.apply.prepare import (
    base_of,
    refuse_conflicts,
    reported,
)
from cleveragents.infrastructure.sandbox.git.apply.token import IgnoredToken
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.trees import GITLINK
from cleveragents.infrastructure.sandbox.project_view.ignored_changes import (
    IgnoredChanges,
    LayerChange,
    LayerComparison,
    is_at_or_below,
)
from cleveragents.infrastructure.snapshots.tree.diff import PathDifference
from cleveragents.infrastructure.snapshots.tree.engine import TreeEngine
from cleveragents.infrastructure.snapshots.tree.reader import TreeReader

_NS = 10**9
_LIST, _RETURNED = "bringing", "returned"
_Mark = tuple[int, int]


class GitPaths(Struct, frozen=True, kw_only=True):
    """What of a sandbox git brings itself, or what is somebody else's."""

    tracked: frozenset[bytes]
    foreign: tuple[bytes, ...]

    def is_ignored(self, path: bytes) -> bool:
        return path not in self.tracked and not any(is_at_or_below(path, f) for f in self.foreign)

    def is_above_some(self, path: bytes) -> bool:
        return any(name.startswith(path + b"/") for name in self.tracked)


def git_paths(git: Git, resource: PlanResource, tree: str, nested: Sequence[bytes]) -> GitPaths:
    """`nested` are repositories in the sandbox that are none of the project's."""
    names: set[bytes] = set()
    foreign = {*nested, *map(os.fsencode, resource.cut_out)}
    for one in (resource.base, tree):
        for row in git.run("ls-tree", "-r", "-z", one).stdout.split(b"\0")[:-1]:
            mode, _, path = row.partition(b"\t")
            names.add(path)
            if mode.startswith(GITLINK):
                foreign.add(path)
    return GitPaths(tracked=frozenset(names), foreign=tuple(foreign))


class IgnoredPreparing:
    """For one resource."""

    def __init__(self, resource: PlanResource, snapshots: TreeEngine, paths: GitPaths) -> None:
        self._resource = resource
        self._snapshots = snapshots
        self._paths = paths
        self._since = layers_since(resource.sandbox_path)
        self._returned = _returned(resource)

    def prepare(self, asked: Sequence[str]) -> IgnoredToken | None:
        """None if nothing was changed at any of these. Raises ApplyConflictError."""
        result = self._snapshots.capture(self._resource).ref
        with (
            self._snapshots.reading(self._resource) as reader,
            RootedFolder(self._resource.location) as user,
        ):
            parts = self._parts(user, reader, result)
        places = {path: self._relative(path) for path in asked}
        taken = {path: _wanted(parts, place) for path, place in places.items()}
        taken = {path: found for path, found in taken.items() if found.differences or found.refused}
        if not taken:
            return None
        _refuse(self._resource, {path for found in taken.values() for path in found.refused})
        differences = {p: item for found in taken.values() for p, item in found.differences.items()}
        ordered = [differences[path] for path in sorted(differences)]
        refuse_conflicts(self._resource, ordered)
        _write_list(self._resource, ordered)
        names = {path: shown(places[path] or b"") for path in taken}
        told = [f"{names[path] or '.'} ({_words(found)})" for path, found in taken.items()]
        return IgnoredToken(
            result=result, asked=tuple(taken), places=tuple(names.values()), told=tuple(told)
        )

    def _parts(self, user: RootedFolder, reader: TreeReader, result: str) -> list[IgnoredChanges]:
        layers = known_layers(self._resource.sandbox_path)
        found = [self._layer(user, reader, result, path) for path in layers]
        return [*found, self._others(reader, result, [*map(os.fsencode, layers)])]

    def _layer(
        self, user: RootedFolder, reader: TreeReader, result: str, layer: str
    ) -> IgnoredChanges:
        top = os.fsencode(layer)
        own = reader.entry(top, result)
        upper = [*([own] if own else []), *reader.entries_below(top, result)]
        if not is_folder(user, top):
            # Of its files only those are in the sandbox that were changed.
            return IgnoredChanges(refused={top} if len(upper) > 1 else set())
        since = self._since.get(layer, int(made_at(self._resource.plan_id) * _NS))

        def is_newer(path: bytes, found: os.stat_result) -> bool:
            ours = self._returned.get(path) == (found.st_ino, found.st_ctime_ns)
            return found.st_ctime_ns > since and not ours

        exclude = excludes(self._resource.exclude)
        return LayerComparison(user, exclude, is_newer).run(upper)

    def _others(self, reader: TreeReader, result: str, layers: Sequence[bytes]) -> IgnoredChanges:
        """Ignored files that are in the sandbox alone, or were copied into it."""
        differences = [
            item
            for item in reader.between(base_of(self._resource), result)
            if self._paths.is_ignored(item.path)
            and not any(is_at_or_below(item.path, layer) for layer in layers)
        ]
        files = [item.path for item in differences if not _is_folder(item)]
        own = [
            item
            for item in differences
            if not _is_folder(item)
            or any(path.startswith(item.path + b"/") for path in files)
            or not self._paths.is_above_some(item.path)
        ]
        return IgnoredChanges(differences={item.path: item for item in own})

    def _relative(self, path: str) -> bytes | None:
        """Below the project; None if it is not."""
        top = os.path.realpath(self._resource.location)
        if os.path.isabs(path):
            path = os.path.relpath(path, top)
        clean = os.path.normpath(path)
        if clean == ".":
            return b""
        return None if clean.split("/")[0] == ".." else os.fsencode(clean)


class IgnoredSteps:
    """What `prepare` has found, carried out or taken back; each may be repeated after a crash."""

    def __init__(
        self, git: Git, resource: PlanResource, snapshots: TreeEngine, token: IgnoredToken | None
    ) -> None:
        self._git = git
        self._resource = resource
        self._snapshots = snapshots
        self._token = token

    def bring(self) -> None:
        """If it raises, everything is as it was."""
        if self._token is None:
            return
        with self._snapshots.reading(self._resource) as reader:
            try:
                with reported(self._resource, "could not be changed and is as it was"):
                    self._work(reader, self._token).run()
            except BaseException:
                self._note_returned()
                raise

    def revert(self) -> tuple[str, ...]:
        """Gives back what somebody has changed on top."""
        if self._token is None:
            return ()
        with (
            self._snapshots.reading(self._resource) as reader,
            reported(self._resource, "could not be put back"),
        ):
            kept = self._work(reader, self._token).revert()
        self._note_returned()
        return tuple(map(shown, kept))

    def finish(self) -> None:
        if self._token is not None:
            finish(self._resource, self._journal(self._token), self._stage)

    def _work(self, reader: TreeReader, token: IgnoredToken) -> CarryOut:
        differences = _read_list(self._resource)
        if differences is None:
            raise ApplyRefusedError(
                f"what was to be brought to {self._resource.location} is not known any more",
                f"agents plan apply {self._resource.plan_id}",
            )
        return CarryOut(self._resource, reader, differences, self._journal(token), self._stage)

    def _journal(self, token: IgnoredToken) -> ApplyJournal:
        return ApplyJournal(self._resource, token.result)

    @property
    def _stage(self) -> str:
        git_dir = self._git.text("rev-parse", "--absolute-git-dir")
        return f"{git_dir}/cleveragents-ignored-{self._resource.resource_id}"

    def _note_returned(self) -> None:
        """To keep a file is to change its status, which must not look like the user's doing."""
        with RootedFolder(self._resource.location) as user:
            found = {
                item.path: status_at(user, item.path)
                for item in _read_list(self._resource) or ()
                if item.old is not None
            }
        marks = {path: (s.st_ino, s.st_ctime_ns) for path, s in found.items() if s is not None}
        told = msgpack.encode(_returned(self._resource) | marks)
        put_file(beside(self._resource.sandbox_path), _RETURNED, told)


def _wanted(parts: Sequence[IgnoredChanges], path: bytes | None) -> IgnoredChanges:
    if path is None:
        return IgnoredChanges()
    found = [part.within(path) for part in parts]
    return IgnoredChanges(
        differences={p: item for part in found for p, item in part.differences.items()},
        refused={p for part in found for p in part.refused},
    )


def _refuse(resource: PlanResource, refused: set[bytes]) -> None:
    if refused:
        raise ApplyConflictError(
            resource.plan_id,
            resource.name,
            [shown(path) for path in sorted(refused)],
            "you have changed them since the plan's copy was made, or they cannot be read",
            "apply without --with-ignored, and bring the folder up to date by what makes it (for"
            " example npm ci); the plan's own version is in "
            f"{resource.sandbox_path}",
        )


def _words(found: IgnoredChanges) -> str:
    items = found.differences.values()
    counted = LayerChange(
        written=sum(item.new is not None and item.new.kind is not Kind.DIR for item in items),
        removed=sum(item.new is None and not _is_folder(item) for item in items),
    )
    return counted.in_words or "folders"


def _is_folder(item: PathDifference) -> bool:
    """Whether it is one on each side that has something."""
    return all(side.kind is Kind.DIR for side in (item.old, item.new) if side is not None)


def _write_list(resource: PlanResource, differences: Sequence[PathDifference]) -> None:
    folder = beside(resource.sandbox_path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    put_file(folder, _LIST, msgpack.encode(differences))


def _read_list(resource: PlanResource) -> list[PathDifference] | None:
    """It goes with the sandbox, and not before: an apply that was taken back may begin anew."""
    told = read_file(beside(resource.sandbox_path), _LIST)
    return None if told is None else msgpack.decode(told, type=list[PathDifference])


def _returned(resource: PlanResource) -> dict[bytes, _Mark]:
    told = read_file(beside(resource.sandbox_path), _RETURNED)
    return {} if told is None else msgpack.decode(told, type=dict[bytes, _Mark])
