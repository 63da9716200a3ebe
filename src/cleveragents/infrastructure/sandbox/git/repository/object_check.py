"""Finding objects of a sandbox's own repository that a power cut has left without their bytes.

Git takes an object that it can find for one that is there, and never writes it again. So what is
not what its name says goes, and comes back from the snapshots.
"""

import hashlib
import os
import re
import zlib
from collections.abc import Iterator

from cleveragents.infrastructure.files.durable_files import below, read_file, remove

_LOOSE = re.compile(r"(?:^|/)objects/([0-9a-f]{2})/([0-9a-f]{38}(?:[0-9a-f]{24})?)$")
_PACKED = re.compile(r"(?:^|/)objects/pack/pack-[0-9a-f]+\.(?:pack|idx|rev)$")
_HASHES = {40: hashlib.sha1, 64: hashlib.sha256}


def clear_broken_objects(repository: str) -> bool:
    """Of a repository and those of submodules in it; True if there were any."""
    broken = list(_broken(repository))
    for name in broken:
        remove(repository, name)
    return bool(broken)


def _broken(repository: str) -> Iterator[str]:
    stems: set[str] = set()
    for name in below(repository, "."):
        if found := _LOOSE.search(name):
            if not _is_object(read_file(repository, name), found[1] + found[2]):
                yield name
        elif _PACKED.search(name) and not _is_whole(read_file(repository, name)):
            stems.add(os.path.splitext(name)[0])
    # A pack and what tells of it go together.
    for stem in sorted(stems):
        yield from (f"{stem}{ending}" for ending in (".idx", ".rev", ".pack"))


def _is_object(data: bytes | None, name: str) -> bool:
    try:
        content = zlib.decompress(data or b"")
    except zlib.error:
        return False
    return _HASHES[len(name)](content, usedforsecurity=False).hexdigest() == name


def _is_whole(data: bytes | None) -> bool:
    """All of these end with a sum over what comes before."""
    if not data:
        return False
    return any(
        made(data[: -size // 2], usedforsecurity=False).digest() == data[-size // 2 :]
        for size, made in _HASHES.items()
    )
