"""The borders of a sandbox for the file tools: no way out by `..`, `/` or a link."""

import os
from collections.abc import Generator
from contextlib import contextmanager

from msgspec import Struct

from cleveragents.domain.errors import PathOutsideSandboxError, ToolError
from cleveragents.infrastructure.files.rooted_folder import RootedFolder


class SandboxPath(Struct, frozen=True):
    """A path inside a sandbox: its open parent folder, and its name in there."""

    root: str
    relative: str
    folder: int
    name: bytes

    @property
    def absolute(self) -> str:
        return os.path.join(self.root, self.relative)


def resolve(root: str, path: str) -> str:
    """`path` relative to `root`, links in it resolved; raises if that leads out of `root`."""
    if not path or "\0" in path:
        raise PathOutsideSandboxError(path, "it is not a path")
    if os.path.isabs(path):
        raise PathOutsideSandboxError(path, "it is absolute")
    real_root = os.path.realpath(root)
    parent, name = os.path.split(os.path.normpath(os.path.join(real_root, path)))
    # The last part is not resolved: a link itself may be deleted, moved or replaced.
    real = os.path.join(os.path.realpath(parent), name)
    if real != real_root and not real.startswith(real_root + os.sep):
        raise PathOutsideSandboxError(path, "it leads out of it")
    relative = os.path.relpath(real, real_root)
    if relative.split(os.sep)[0] == ".git":
        raise PathOutsideSandboxError(path, "`.git` belongs to git")
    return relative


def resolve_folder(root: str, path: str) -> str:
    """The real path of what `path` leads to, links in all its parts resolved, inside `root`."""
    real = os.path.realpath(os.path.join(os.path.realpath(root), resolve(root, path)))
    resolve(root, os.path.relpath(real, os.path.realpath(root)))
    if not os.path.exists(real):
        raise ToolError(f"{path}: there is no such file or folder", "check the path")
    return real


@contextmanager
def place(root: str, path: str, *, make_parents: bool = False) -> Generator[SandboxPath]:
    """Open the parent folder of `path` step by step, following no link on the way."""
    relative = resolve(root, path)
    if relative == os.curdir:
        raise PathOutsideSandboxError(path, "it is the sandbox itself")
    if make_parents and os.path.dirname(relative):
        _make_parents(root, os.path.dirname(relative))
    with _anchored(root, relative) as anchor:
        try:
            folder, name = anchor.place(os.fsencode(relative))
        except NotADirectoryError:
            raise PathOutsideSandboxError(path, "a part of it is not a folder") from None
        except FileNotFoundError:
            raise ToolError(f"{path}: there is no such folder", "check the path") from None
        yield SandboxPath(root=root, relative=relative, folder=folder, name=name)


def _anchored(root: str, relative: str) -> RootedFolder:
    try:
        return RootedFolder(root)
    except OSError as error:
        raise ToolError(
            f"{relative}: the sandbox cannot be opened: {error.strerror}",
            "see `agents plan status`",
        ) from error


def _make_parents(root: str, folder: str) -> None:
    with _anchored(root, folder) as anchor:
        made = b""
        for part in os.fsencode(folder).split(b"/"):
            parent = anchor.folder(made)
            try:
                os.mkdir(part, 0o777, dir_fd=parent)
            except FileExistsError:
                pass  # only opening it shows whether it is a folder; `place` does
            except NotADirectoryError:
                return
            made = made + b"/" + part if made else part
