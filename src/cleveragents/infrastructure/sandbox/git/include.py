"""Bringing ignored paths that a sandbox needs along from the project (`include`)."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from cleveragents.domain.errors import ResourceError


def check_include(project: str, include: tuple[str, ...]) -> None:
    """Raise ResourceError unless every path is there, in the project and not of git itself."""
    for item in include:
        _source(project, item)


def copy_include(project: str, include: tuple[str, ...], sandbox: str) -> None:
    """Copy with modes and times, links as links. What the checkout holds already stays."""
    for item in include:
        source = _source(project, item)
        target = Path(sandbox, PurePosixPath(item))
        target.parent.mkdir(parents=True, exist_ok=True)
        _copy(source, target)


def _source(project: str, item: str) -> Path:
    path = PurePosixPath(item)
    if path.is_absolute() or ".." in path.parts or path.parts[:1] in ((), (".git",)):
        raise ResourceError(
            f"include: {item!r} is not a path inside the project {project}",
            "name files and folders relative to the project, without `..`",
        )
    source = Path(project, path)
    if not os.path.lexists(source):
        raise ResourceError(
            f"include: {project} has no {item!r}",
            f"create {source}, or take it out of `include`",
        )
    # A folder on the way may be a link to somewhere else.
    if not source.parent.resolve().is_relative_to(Path(project).resolve()):
        raise ResourceError(
            f"include: {item!r} leads out of the project {project} through a link",
            "include the link itself, or copy the files into the project",
        )
    return source


def _copy(source: Path, target: Path) -> None:
    for old, new in _pairs(source, target):
        mode = old.lstat().st_mode
        if stat.S_ISDIR(mode):
            new.mkdir(exist_ok=True)
        elif os.path.lexists(new) or not (stat.S_ISLNK(mode) or stat.S_ISREG(mode)):
            continue  # the checkout's own file; or a socket or pipe, which has no content
        else:
            shutil.copy2(old, new, follow_symlinks=False)
    # Folders last and from the inside: filling one changes its time, and it may be read-only.
    for old, new in reversed(list(_pairs(source, target))):
        if old.is_dir() and not old.is_symlink():
            shutil.copystat(old, new)


def _pairs(source: Path, target: Path) -> Iterator[tuple[Path, Path]]:
    """The path and everything below it, folders before what they hold."""
    yield source, target
    if source.is_symlink() or not source.is_dir():
        return
    for folder, folders, files in os.walk(source):
        inside = target / Path(folder).relative_to(source)
        for name in (*folders, *files):
            yield Path(folder, name), inside / name
