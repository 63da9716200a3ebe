"""The place of a sandbox on disk: private, and removed only where sandboxes are."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress

from msgspec.structs import replace

from cleveragents.domain.errors import SandboxError
from cleveragents.domain.resource import PlanResource

StrPath = str | os.PathLike[str]


class SandboxFolders:
    """The port of that name: all it does is to look at folders."""

    def __init__(self, sandboxes_dir: str) -> None:
        self._sandboxes = sandboxes_dir

    def is_there(self, resource: PlanResource) -> bool:
        if resource.in_place:  # a database that is gone comes back with the next rollback
            return os.path.isdir(own_folder(resource))
        return resource.rebuilding is None and is_there(self._sandboxes, resource)


class NothingBeside:
    """The part of a `SandboxMaker` that is the same for all types whose sandboxes are all there is:
    no repository of their own, and nothing that was pinned in the project."""

    def secure(self, resource: PlanResource) -> bool:  # noqa: ARG002 - the same for every one
        """A capture reads everything."""
        return True

    def has_repository(self, resource: PlanResource) -> bool:  # noqa: ARG002 - it needs none
        return True

    def release(self, resource: PlanResource) -> None:
        """Nothing was pinned."""


class PlainLocation:
    """Of a file or folder that nothing tells from another one: a `ResourceLocation` of types whose
    sandboxes stand on nothing but themselves. `is_one` says whether such a thing is at a place."""

    def __init__(self, is_one: Callable[[str], bool]) -> None:
        self._is_one = is_one

    def is_grounded(self, resource: PlanResource) -> bool:  # noqa: ARG002 - it needs no ground
        return True

    def hold(self, resource: PlanResource) -> None:
        """Nothing of it is needed."""

    def refuse_lost(self, resource: PlanResource) -> None:
        """Nor can be lost."""

    def is_at(self, resource: PlanResource, place: str) -> bool:  # noqa: ARG002 - whichever it is
        return self._is_one(place)

    def is_surely_at(self, resource: PlanResource, place: str) -> bool:  # noqa: ARG002
        return False

    def near(self, resource: PlanResource, cwd: str) -> Iterator[str]:  # noqa: ARG002
        return iter(())

    def moved(self, resource: PlanResource, place: str) -> PlanResource:
        return replace(resource, location=place)

    def written_places(self, resource: PlanResource) -> Iterator[str]:
        # Not a database itself: closing that would end the locks that SQLite has on it.
        is_folder = resource.kind.is_folder
        yield resource.location if is_folder else os.path.dirname(resource.location)


def own_folder(resource: PlanResource) -> str:
    """The folder that is the sandbox; a file is in one of its own."""
    path = resource.sandbox_path
    return path if resource.kind.is_folder else os.path.dirname(path)


def is_there(sandboxes: StrPath, resource: PlanResource) -> bool:
    """A folder of ours, and no link in its place. Of a database only that counts: a tool may have
    deleted it, and a rollback brings it back."""
    folder = own_folder(resource)
    return _is_among(folder, sandboxes) and not os.path.islink(folder) and os.path.isdir(folder)


def _is_among(path: str, sandboxes: StrPath) -> bool:
    inner, outer = os.path.realpath(os.path.dirname(path)), os.path.realpath(sandboxes)
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")


def make_parent(path: StrPath) -> None:
    parent = os.path.dirname(path)
    os.makedirs(parent, mode=0o700, exist_ok=True)
    os.chmod(parent, 0o700)


def throw_away(sandboxes: StrPath, path: StrPath) -> None:
    """The same as `remove_sandbox`, by one rename: what it was is deleted later (ADR 0088)."""
    from cleveragents.infrastructure.files.installed.trash import Trash  # noqa: PLC0415

    path = os.fspath(path)
    if os.path.lexists(path) and _is_among(path, sandboxes):
        Trash(os.path.dirname(os.path.abspath(sandboxes))).take(path)
    remove_sandbox(sandboxes, path)


def remove_sandbox(sandboxes: StrPath, path: StrPath) -> None:
    """Remove what is at `path`, if anything. Raises SandboxError outside of `sandboxes`."""
    # Who only asks where a sandbox is removes none.
    import shutil  # noqa: PLC0415

    from cleveragents.infrastructure.files.lent_modes import note_beside  # noqa: PLC0415

    path = os.fspath(path)
    if _is_among(path, sandboxes):
        with suppress(FileNotFoundError):
            os.unlink(note_beside(os.fsencode(path)))
    if not os.path.lexists(path):
        return
    if not _is_among(path, sandboxes):
        raise SandboxError(
            f"{path} is not among the sandboxes in {sandboxes}, so it is not removed",
            f"look at it and remove it yourself: ls -la {path}",
        )
    if os.path.islink(path) or not os.path.isdir(path):
        os.unlink(path)
        return
    _make_removable(path)
    shutil.rmtree(path)


def _make_removable(path: str) -> None:
    """A tool may have left folders read-only, which would keep their files from going."""
    os.chmod(path, 0o700)
    # By descriptors: a path may be longer than the system takes at once.
    for _, folders, _, fd in os.fwalk(path):
        for name in folders:
            if stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                os.chmod(name, 0o700, dir_fd=fd)
