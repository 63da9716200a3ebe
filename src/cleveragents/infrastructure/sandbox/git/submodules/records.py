"""The submodules that a project had checked out when a plan was made, and their sandboxes.

Each has in the sandbox what it has in the project: its files, and a repository below that of the
sandbox, which borrows the objects of the user's (ADR 0048). Which ones there are is in the plan's
records: what a step writes into `.gitmodules` or a `.git` does not lead us anywhere.
"""

import os
import re
from collections.abc import Sequence

from msgspec import Struct

from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.durable_files import make_folder
from cleveragents.infrastructure.sandbox.git.command import UNSYNCED, Git
from cleveragents.infrastructure.sandbox.git.repository.git_dir import GitFolder
from cleveragents.infrastructure.sandbox.git.repository.own_place import Submodule, details_of

_LINKS = rb"(?:^|\0)160000 commit ([0-9a-f]+)\t([^\0]*)"
_TOLD = r"^submodule\..*\.(path|url)$"


def submodules_of(resource: PlanResource) -> Sequence[Submodule]:
    """Outer ones before those inside of them."""
    return details_of(resource).submodules


def inside(resource: PlanResource, path: str = "") -> Sequence[Submodule]:
    """Those of the project itself, or of the submodule at this path."""
    return [module for module in submodules_of(resource) if module.within == path]


def submodule_folder(resource: PlanResource, module: Submodule) -> GitFolder:
    """Its files and its repository in the sandbox."""
    own = GitFolder(resource.sandbox_path)
    return GitFolder(os.path.join(own.sandbox, module.path), own.file(module.place))


def borrowing_folder(resource: PlanResource, module: Submodule) -> GitFolder:
    """The same, where the repository can hold and find objects."""
    folder = submodule_folder(resource, module)
    make_folder(GitFolder(resource.sandbox_path).path, module.place)
    folder.make(os.path.join(module.repository(resource.location), "objects"))
    return folder


def in_repository(project: str, module: Submodule) -> Git:
    """The user's repository of it."""
    return repository_git(module.repository(project))


def repository_git(place: str) -> Git:
    """A repository of the user's, for references, settings and objects."""
    # The folder of its files may be gone, which would stop git.
    return Git(place, {"GIT_DIR": place, "GIT_WORK_TREE": place})


def submodule_git(resource: PlanResource, module: Submodule) -> Git:
    """Git over its files in the sandbox; settings and filters are those of the user's repository,
    new objects go to the sandbox's."""
    folder = borrowing_folder(resource, module)
    places = {
        "GIT_DIR": module.repository(resource.location),
        "GIT_SHALLOW_FILE": folder.file("shallow"),
        **folder.as_work_tree(),
    }
    return Git(folder.sandbox, places, settings=UNSYNCED)


def links_in(git: Git, tree: str) -> dict[str, str]:
    """The commits that a tree names for its submodules; by path."""
    listed = git.run("ls-tree", "-r", "-z", "--full-tree", tree).stdout
    return {os.fsdecode(path): commit.decode() for commit, path in re.findall(_LINKS, listed)}


class Named(Struct, frozen=True, kw_only=True):
    """What `.gitmodules` says of a submodule."""

    name: str
    address: str = ""


def named_in(git: Git, tree: str) -> dict[str, Named]:
    """The submodules that `.gitmodules` of a tree knows; by path."""
    asked = ("config", f"--blob={tree}:.gitmodules", "-z", "--get-regexp", _TOLD)
    listed = git.run(*asked, check=False).stdout.split(b"\0")[:-1]
    told: dict[str, dict[str, str]] = {}
    for line in listed:
        key, _, value = os.fsdecode(line).partition("\n")
        name, _, what = key.removeprefix("submodule.").rpartition(".")
        told.setdefault(name, {})[what] = value
    return {
        one["path"]: Named(name=name, address=one.get("url", ""))
        for name, one in told.items()
        if "path" in one
    }


def is_safe(name: str) -> bool:
    """As git itself wants it: a path that stays below where it begins."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    return bool(parts) and name[0] != "/" and ".." not in parts and "\n" not in name
