"""Finding the submodules of a real checkout before a plan is made on it."""

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, field

from cleveragents.infrastructure.sandbox.git.command import Git, GitError
from cleveragents.infrastructure.sandbox.git.repository.own_place import Submodule
from cleveragents.infrastructure.sandbox.git.repository.pins import value_of
from cleveragents.infrastructure.sandbox.git.submodules.records import (
    Named,
    is_safe,
    links_in,
    named_in,
)

_NAMES_SHOWN = 3


class FoundSubmodules(Struct):
    """Outer ones before those inside of them; what is not among them is empty in a sandbox."""

    top: str
    usable: list[Submodule] = field(default_factory=list[Submodule])
    not_there: list[str] = field(default_factory=list[str])
    outdated: list[str] = field(default_factory=list[str])
    unusable: list[str] = field(default_factory=list[str])
    dirty: list[str] = field(default_factory=list[str])

    def notices(self) -> Iterator[str]:
        fill = f"git -C {self.top} submodule update --init --recursive"
        yield from _told(
            self.not_there, "not checked out in the project, and empty in the sandbox", fill
        )
        yield from _told(
            self.outdated,
            "without the commit that the project names, and empty in the sandbox",
            fill,
        )
        yield from _told(self.unusable, "nothing that git can use, and empty in the sandbox", "")
        yield from _told(
            self.dirty, "changed inside, which is not part of this plan", "commit it there first"
        )


def find_submodules(git: Git, base: str) -> FoundSubmodules:
    """All that the commit `base` of a checkout names, on every level."""
    found = FoundSubmodules(top=git.directory)
    _find(found, git, base, None)
    return found


def _find(found: FoundSubmodules, git: Git, commit: str, outer: Submodule | None) -> None:
    links = links_in(git, commit)
    named = named_in(git, commit) if links else {}
    for path, link in sorted(links.items()):
        # One that `.gitmodules` does not know is called by its path.
        name = named.get(path, Named(name=path)).name
        whole = f"{outer.path}/{path}" if outer else path
        inner = _repository(found, whole)
        if inner is None:
            continue
        if not is_safe(name):
            found.unusable.append(whole)
            continue
        if value_of(inner, link) is None:
            found.outdated.append(whole)
            continue
        module = Submodule(
            path=whole,
            name=name,
            within=outer.path if outer else "",
            place=f"{outer.place}/modules/{name}" if outer else f"modules/{name}",
            git_dir=_relative(_common(inner), found.top),
            commit=link,
        )
        found.usable.append(module)
        if _is_dirty(inner):
            found.dirty.append(whole)
        _find(found, inner, module.commit, module)


def _repository(found: FoundSubmodules, path: str) -> Git | None:
    """The user's own, as it is checked out."""
    place = Path(found.top, path)
    # Without one of its own, git would answer for the repository around it.
    if not os.path.lexists(place / ".git"):
        found.not_there.append(path)
        return None
    git = Git(str(place))
    try:
        usable = Path(git.text("rev-parse", "--show-toplevel")).resolve() == place.resolve()
        usable = usable and place.resolve().is_relative_to(Path(found.top).resolve())
    except GitError:
        usable = False
    if not usable:
        found.unusable.append(path)
        return None
    return git


def _common(git: Git) -> str:
    return git.text("rev-parse", "--path-format=absolute", "--git-common-dir")


def _relative(git_dir: str, top: str) -> str:
    """Found again where the project has been moved to, if it was inside of it."""
    inside = Path(git_dir).is_relative_to(top)
    return os.path.relpath(git_dir, top) if inside else git_dir


def _is_dirty(git: Git) -> bool:
    args = ("status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=all")
    return bool(git.run(*args).stdout)


def _told(paths: list[str], what: str, cure: str) -> Iterator[str]:
    if not paths:
        return
    names = ", ".join(paths[:_NAMES_SHOWN]) + (", …" if len(paths) > _NAMES_SHOWN else "")
    who = "the submodule" if len(paths) == 1 else f"{len(paths)} submodules"
    verb = "is" if len(paths) == 1 else "are"
    yield f"{who} {names} {verb} {what}" + (f": {cure}" if cure else "")
