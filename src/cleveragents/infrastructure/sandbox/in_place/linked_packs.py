"""Packs of the user's repository under names of ours: a second link to each, and no copy.

What git has packed is never written again, only removed: by a `git gc`, or with the whole `.git`.
As long as there is a link of ours the bytes stay, so that contents which are in a pack need not be
stored (ADR 0108). The links lie in a small repository in the store, by which git reads from them.
In which order: a pack, then its index, without which git does not look at the pack; then both are
synced; then it is asked which objects are really there.
What is not guaranteed: links. On another file system, or for files of somebody else, there are
none, and contents are stored.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.durable_files import write_file
from cleveragents.infrastructure.sandbox.git.command import OFFLINE, Git
from cleveragents.infrastructure.sandbox.git.proofs.conversions import blob_sizes
from cleveragents.infrastructure.sandbox.git.repository.state import GitBlobs
from cleveragents.infrastructure.snapshots.store.plan_store import packs_folder

_CONFIG = "[core]\n\trepositoryformatversion = {}\n\tbare = true\n{}"
_SHA256 = "[extensions]\n\tobjectformat = sha256\n"
_DEEPEST = 5
# Of more packs than this most would be looked at for nothing; git itself begins to gather at 50.
_MOST_PACKS = 200


class LinkedPacks:
    """For one resource that is worked on in place. As `Blobs`, it has what is in the links."""

    algorithm = "sha1"  # of nothing that is asked for here: each name says it by itself

    def __init__(self, snapshots_dir: str, resource: PlanResource) -> None:
        top = packs_folder(snapshots_dir, resource.store_id)
        self._folder = os.path.join(top, str(resource.resource_id))
        self._git = Git(self._folder, {**OFFLINE, "GIT_DIR": self._folder})

    def link(self, objects: str, object_format: str | None) -> bool:
        """All packs in this folder of objects and in those that it borrows from, as far as links
        can be made. Durable when this returns; False if there are none."""
        packs = _packs(objects)
        if not packs or len(packs) > _MOST_PACKS:
            return False
        try:
            self._make(object_format)
            linked = [_link(pack, self._packs) for pack in packs]
            for folder in (self._packs, os.path.dirname(self._packs), self._folder):
                _sync(folder)
        except OSError:
            return False
        return any(linked)

    def sizes(self, oids: Sequence[str]) -> Mapping[str, int]:
        """Of the blobs that are in the links."""
        return blob_sizes(self._git, oids)

    def read(self, oids: Sequence[str]) -> Iterator[bytes | None]:
        if not os.path.isdir(self._packs):
            return iter([None] * len(oids))
        return GitBlobs(self._git, self.algorithm).read(oids)

    @property
    def _packs(self) -> str:
        return os.path.join(self._folder, "objects", "pack")

    def _make(self, object_format: str | None) -> None:
        for folder in (self._packs, os.path.join(self._folder, "refs")):
            os.makedirs(folder, mode=0o700, exist_ok=True)
        other = object_format == "sha256"
        config = _CONFIG.format(1, _SHA256) if other else _CONFIG.format(0, "")
        write_file(os.path.join(self._folder, "config"), config.encode(), synced=False)
        write_file(os.path.join(self._folder, "HEAD"), b"ref: refs/heads/none\n", synced=False)


def _packs(objects: str, depth: int = 0) -> list[str]:
    """Without their endings."""
    folder = os.path.join(objects, "pack")
    with suppress(OSError):
        names = set(os.listdir(folder))
        stems = [name[: -len(".pack")] for name in names if name.endswith(".pack")]
        found = [os.path.join(folder, stem) for stem in sorted(stems) if f"{stem}.idx" in names]
        if depth < _DEEPEST:
            found += [pack for place in _borrowed(objects) for pack in _packs(place, depth + 1)]
        return found
    return []


def _borrowed(objects: str) -> Iterator[str]:
    with suppress(OSError, UnicodeError), open(f"{objects}/info/alternates", "rb") as file:
        for line in file.read().split(b"\n"):
            # What is in quotes would have to be read as git does; it is stored instead.
            if line and not line.startswith((b"#", b'"')):
                yield os.path.join(objects, os.fsdecode(line))


def _link(pack: str, folder: str) -> bool:
    """Whether it is there afterwards: with its index, which is linked last."""
    name = os.path.join(folder, os.path.basename(pack))
    try:
        for ending in (".pack", ".idx"):
            with suppress(FileExistsError):
                os.link(pack + ending, name + ending, follow_symlinks=False)
    except OSError:
        return False
    return True


def _sync(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
