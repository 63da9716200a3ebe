"""The contents that git-lfs keeps beside the objects of a repository.

Inside it has a place of its own for them, where it finds the user's by links. What it adds there
is brought over as bytes, each under the hash that it is named by.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from cleveragents.domain.errors import ApplyRefusedError
from cleveragents.infrastructure.files.durable_files import opened_file, status
from cleveragents.infrastructure.sandbox.git.command import Git

_PLACE = "lfs"
_OBJECTS = "objects"
_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:.*\n)*?oid sha256:([0-9a-f]{64})\n"
)
_LONGEST_POINTER = 1024
_CHUNK = 1 << 20


def lfs_in(room: Path) -> dict[str, str]:
    """Settings by which git-lfs keeps its contents in the room, and not with the user's."""
    return {"lfs.storage": str(room / _PLACE)}


def lend(user: Git, objects: str, room: Path) -> None:
    """Let git-lfs find what the user has; `objects` is the folder of the repository's objects."""
    usual = Path(objects).with_name(_PLACE)
    # Who does not have git-lfs has not told it of another place, and git need not be asked.
    theirs = (_storage(user) if shutil.which("git-lfs") else usual) / _OBJECTS
    for name in _contents(theirs):
        place = room / _PLACE / _OBJECTS / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(theirs / name)


def bring_contents(room: Path, git: Git, blobs: Sequence[str], user: Git) -> None:
    """What these blobs stand for, as far as git-lfs has made it in the room.

    `git` has the blobs, and `user` is the repository that they are brought to.
    """
    made = room / _PLACE
    if not (made / _OBJECTS).is_dir():
        return
    target = _storage(user) / _OBJECTS
    for oid in sorted(_named(git, blobs)):
        name = f"{_OBJECTS}/{oid[:2]}/{oid[2:4]}/{oid}"
        found = status(str(made), name)
        if found is not None and not os.path.lexists(target / name.removeprefix(f"{_OBJECTS}/")):
            _copy(str(made), name, oid, target)


def _contents(folder: Path) -> Iterator[str]:
    """Each lies in two folders that are named by its beginning."""
    with suppress(OSError):
        for path in folder.glob("??/??/*"):
            yield str(path.relative_to(folder))


def _named(git: Git, blobs: Sequence[str]) -> set[str]:
    """The hashes of contents that these blobs, as far as they are pointers, name."""
    request = "".join(f"{oid}\n" for oid in blobs).encode()
    args = ("cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)")
    lines = git.run(*args, input=request).stdout.decode().splitlines()
    small = [line.split()[0] for line in lines if _is_small_blob(line.split())]
    if not small:
        return set()
    told = "".join(f"{oid}\n" for oid in small).encode()
    found = git.run("cat-file", "--batch", input=told).stdout
    return {match[1].decode() for match in _POINTER.finditer(found)}


def _is_small_blob(fields: Sequence[str]) -> bool:
    return len(fields) == 3 and fields[1] == "blob" and int(fields[2]) <= _LONGEST_POINTER


def _storage(user: Git) -> Path:
    """Where the user's git-lfs keeps contents: what the settings say, or its usual place."""
    told = user.run("config", "--type=path", "--get", "lfs.storage", check=False).stdout
    common = user.text("rev-parse", "--path-format=absolute", "--git-common-dir")
    return Path(common, os.fsdecode(told.removesuffix(b"\n")) or _PLACE)


def _copy(top: str, name: str, oid: str, target: Path) -> None:
    place = target / oid[:2] / oid[2:4] / oid
    place.parent.mkdir(parents=True, exist_ok=True)
    half = place.with_name(f"{oid}.cleveragents-tmp")
    hashed = hashlib.sha256()
    with opened_file(top, name) as source, half.open("wb") as file:
        while chunk := source.read(_CHUNK):
            hashed.update(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    if hashed.hexdigest() != oid:
        half.unlink()
        raise ApplyRefusedError(
            f"the content {oid} of git-lfs is not what its name says",
            "look at the filter `lfs` in your git configuration, then apply again",
        )
    half.replace(place)
