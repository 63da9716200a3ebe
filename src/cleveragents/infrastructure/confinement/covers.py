"""Sandboxes that a command sees at their projects' own paths (ADR 0084).

A cover is one sandbox, mounted over its project. What lies below the project and is needed all the
same is picked up before: the objects that the sandbox's repository borrows, and the user's folders
that are ignored, each as the lower part of a layer into whose upper part all changes go.
In which order: everything that is about to be covered is opened; the sandboxes, outer ones first;
what is seen or read elsewhere; the layers.
Why by descriptors: a step may have put a link in the place of any folder of its sandbox. What was
opened without following one is mounted, whatever its path leads to.
What is not guaranteed: that a layer can be mounted. `can_be_mounted` tries it, and OSError says so.
"""

import os
import stat
from collections.abc import Sequence
from itertools import islice

from msgspec import Struct

from cleveragents.infrastructure.confinement.syscalls import (
    AT_RECURSIVE,
    MOVE_MOUNT,
    OPEN_TREE,
    mount,
    set_read_only,
    set_writable,
    syscall,
    unmount,
)

_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC = 2, 4, 0x1000, 0x4000
_AT_FDCWD = -100
_CLONE_TREE = 1
_OF_THE_DESCRIPTOR = 0x4
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAMED = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class Layer(Struct, frozen=True, kw_only=True):
    """An ignored folder, at `path` below the sandbox. `lower` is the user's own, which is never
    written; what changes is in the sandbox's folder of that path, the upper one. `work` is an empty
    folder somewhere beside the sandbox, for the kernel alone, and `base` another one, where the
    folder that both lie in is mounted for a moment: the kernel wants them in one mount."""

    path: str
    lower: str
    work: str
    base: str


class Seen(Struct, frozen=True, kw_only=True):
    """What is at `source` is seen at `place`, and can only be read there. Both are there."""

    source: str
    place: str


class Cover(Struct, frozen=True, kw_only=True):
    """`sandbox` is seen at `home`, the project's own path. `lent` is seen elsewhere, because it is
    covered; `replaced` are files in the place of others, where those are plain files.
    `read_only`: so are its layers."""

    sandbox: str
    home: str
    lent: tuple[Seen, ...] = ()
    replaced: tuple[Seen, ...] = ()
    layers: tuple[Layer, ...] = ()
    read_only: bool = False

    def seen(self, path: str) -> str | None:
        """What the command calls this path of the sandbox; None if it is not of it."""
        if path == self.sandbox:
            return self.home
        inside = path.removeprefix(f"{self.sandbox}/")
        return None if inside == path else f"{self.home}/{inside}"


def seen_at(covers: Sequence[Cover], path: str) -> str:
    """What a command under these covers calls the path."""
    return next((place for cover in covers if (place := cover.seen(path))), path)


FolderMark = tuple[tuple[int, int, int], ...]
"""Of a folder and of those nearest below it: which it is, and when a name in it, or anything of
it, last changed."""
# Enough for the folder in which a virtual environment has its packages, and as quick in every one.
_MOST_FOLDERS, _MOST_NAMES = 48, 32


def marks_below(covers: Sequence[Cover]) -> dict[str, FolderMark | None]:
    """Of the user's folders that are seen through layers."""
    return {item.lower: mark_of_folder(item.lower) for c in covers for item in c.layers}


def mark_of_folder(path: str) -> FolderMark | None:
    """It takes as long whatever the folder holds."""
    marks: list[tuple[int, int, int]] = []
    waiting = [path]
    for folder in waiting:
        try:
            found = os.lstat(folder)
            marks.append((found.st_ino, found.st_mtime_ns, found.st_ctime_ns))
            with os.scandir(folder) as entries:
                some = [e.path for e in islice(entries, _MOST_NAMES) if _is_folder(e)]
        except OSError:
            continue
        waiting += some[: _MOST_FOLDERS - len(waiting)]
    return tuple(marks) or None


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    return entry.is_dir(follow_symlinks=False)


def put_on(covers: Sequence[Cover], kept: Sequence[str] = ()) -> list[int]:  # pragma: no cover
    """In a mount namespace of our own. `kept` are places that stay what they are, wherever they
    lie. Gives a descriptor of each merged folder. Raises OSError."""
    ordered = sorted(covers, key=lambda cover: cover.home)
    spared = [path for path in sorted(kept) if any(_is_below(path, c.home) for c in ordered)]
    trees = [(path, clone_mounts(os.fsencode(path))) for path in spared]
    lent = [
        (item.place, clone_mounts(os.fsencode(item.source))) for c in ordered for item in c.lent
    ]
    lower = {item: os.open(item.lower, _FOLDER) for c in ordered for item in c.layers}
    for cover in ordered:
        mount(os.fsencode(cover.sandbox), os.fsencode(cover.home), _MS_BIND | _MS_REC)
    for place, tree in lent:
        move_mount(tree, os.fsencode(place))
        set_read_only(os.fsencode(place))
    for item in (item for cover in ordered for item in cover.replaced):
        _replace(item)
    merged = [_put_layer(c, item, lower[item]) for c in ordered for item in c.layers]
    for path, tree in trees:
        os.makedirs(path, exist_ok=True)
        move_mount(tree, os.fsencode(path))
    return merged


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/")


def _replace(item: Seen) -> None:  # pragma: no cover - in a new process
    try:
        place = os.open(item.place, _NAMED)
    except FileNotFoundError:
        return  # a step has removed it
    try:
        if stat.S_ISREG(os.fstat(place).st_mode):
            target = b"/proc/self/fd/%d" % place
            mount(os.fsencode(item.source), target, _MS_BIND)
            set_read_only(os.fsencode(item.place), recursive=False)
    finally:
        os.close(place)


def _put_layer(cover: Cover, layer: Layer, lower: int) -> int:  # pragma: no cover - as above
    beside, name = os.path.split(cover.sandbox)
    base = os.fsencode(layer.base)
    mount(os.fsencode(beside), base, _MS_BIND)
    set_writable(base, recursive=False)
    upper = _walked(layer.base, f"{name}/{layer.path}")
    work = _walked(layer.base, os.path.relpath(layer.work, beside))
    place = _walked(cover.home, layer.path)
    try:
        mount_layer(lower, upper, work, place)
    finally:
        for opened in (lower, upper, work, place):
            os.close(opened)
    unmount(base)
    merged = _walked(cover.home, layer.path)
    if cover.read_only:
        set_read_only(b"/proc/self/fd/%d" % merged, recursive=False)
    return merged


def mount_layer(lower: int, upper: int, work: int, place: int) -> None:  # pragma: no cover
    """All of them open folders. Raises OSError."""
    by = b"/proc/self/fd/%d"
    options = b",".join(
        (
            b"userxattr",
            b"lowerdir=" + by % lower,
            b"upperdir=" + by % upper,
            b"workdir=" + by % work,
        )
    )
    mount(b"overlay", by % place, _MS_NOSUID | _MS_NODEV, b"overlay", options)


def _walked(top: str, path: str) -> int:  # pragma: no cover - as above
    """The folder, opened part by part: no part of it may be a link. Raises OSError."""
    here = os.open(top, _FOLDER)
    for part in path.split("/"):
        inner = os.open(part, _FOLDER, dir_fd=here)
        os.close(here)
        here = inner
    return here


def clone_mounts(path: bytes) -> int:  # pragma: no cover - as above
    """The mounts from there on as they are, by a descriptor; not anywhere yet."""
    flags = _CLONE_TREE | AT_RECURSIVE | os.O_CLOEXEC
    return syscall(OPEN_TREE, _AT_FDCWD, path, flags)


def move_mount(tree: int, place: bytes) -> None:  # pragma: no cover - as above
    syscall(MOVE_MOUNT, tree, b"", _AT_FDCWD, place, _OF_THE_DESCRIPTOR)
    os.close(tree)
