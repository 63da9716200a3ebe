"""The place of a sandbox on disk: private, and removed only where sandboxes are."""

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from cleveragents.domain.action import ResourceType
from cleveragents.domain.errors import SandboxError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.lent_modes import note_beside


class SandboxFolders:
    """The port of that name: all it does is to look at folders."""

    def __init__(self, sandboxes_dir: str) -> None:
        self._sandboxes = Path(sandboxes_dir)

    def is_there(self, resource: PlanResource) -> bool:
        return resource.rebuilding is None and is_there(self._sandboxes, resource)


def own_folder(resource: PlanResource) -> Path:
    """The folder that is the sandbox; a database is in one of its own."""
    path = Path(resource.sandbox_path)
    return path.parent if resource.type is ResourceType.SQLITE else path


def is_there(sandboxes: Path, resource: PlanResource) -> bool:
    """A folder of ours, and no link in its place. Of a database only that counts: a tool may have
    deleted it, and a rollback brings it back."""
    folder = own_folder(resource)
    inside = folder.parent.resolve().is_relative_to(sandboxes.resolve())
    return inside and not folder.is_symlink() and folder.is_dir()


def make_parent(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.chmod(0o700)


def remove_sandbox(sandboxes: Path, path: Path) -> None:
    """Remove what is at `path`, if anything. Raises SandboxError outside of `sandboxes`."""
    if path.parent.resolve().is_relative_to(sandboxes.resolve()):
        with suppress(FileNotFoundError):
            os.unlink(note_beside(os.fsencode(path)))
    if not os.path.lexists(path):
        return
    if not path.parent.resolve().is_relative_to(sandboxes.resolve()):
        raise SandboxError(
            f"{path} is not among the sandboxes in {sandboxes}, so it is not removed",
            f"look at it and remove it yourself: ls -la {path}",
        )
    if path.is_symlink() or not path.is_dir():
        path.unlink()
        return
    _make_removable(path)
    shutil.rmtree(path)


def _make_removable(path: Path) -> None:
    """A tool may have left folders read-only, which would keep their files from going."""
    path.chmod(0o700)
    # By descriptors: a path may be longer than the system takes at once.
    for _, folders, _, fd in os.fwalk(path):
        for name in folders:
            if stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                os.chmod(name, 0o700, dir_fd=fd)
