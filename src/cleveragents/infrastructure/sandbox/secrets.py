"""Secrets of a tree that is to be worked on: which are there, and how they stay out of groups."""

import os
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from cleveragents.domain.action import ResourceSpec
from cleveragents.domain.in_place import listed
from cleveragents.domain.resource import ResourceInspection
from cleveragents.domain.secrets import TOLD, excludes_of_secrets, is_secret
from cleveragents.infrastructure.files.excludes import Excludes, excludes
from cleveragents.infrastructure.sandbox.git.command import Git


def with_secrets_left_out(spec: ResourceSpec, found: ResourceInspection) -> ResourceInspection:
    """No checkpoint will have them; what git tracks stays, since the repository has it anyway."""
    tracked = _tracked(found.location) if spec.kind.has_repository else []
    entries = excludes_of_secrets(tracked)
    left_out = excludes(entries)
    there = sorted(_there(found.location, left_out, excludes((*spec.exclude, *found.exclude))))
    notice = f"in no checkpoint, and left in place by rollbacks: {TOLD}; there are now: "
    notices = [notice + (listed(sorted(there, key=_depth)) or "none")]
    if known := [path for path in tracked if is_secret(path.rpartition("/")[2])]:
        notices.append(
            f"called like secrets, but in checkpoints, as git tracks it: {listed(known)}"
        )
    return replace(found, exclude=(*found.exclude, *entries), notices=(*found.notices, *notices))


def _tracked(top: str) -> list[str]:
    names = Git(top).run("ls-files", "-z").stdout.split(b"\0")
    return [os.fsdecode(name) for name in names if name and _has_secret_part(os.fsdecode(name))]


def _has_secret_part(path: str) -> bool:
    return any(is_secret(part) for part in path.split("/"))


def _there(top: str, secrets: Excludes, others: Excludes) -> Iterator[str]:
    """Links are not followed, and what is left out anyway is not looked into."""
    for folder, folders, files in os.walk(top):
        below = os.path.relpath(folder, top)
        prefix = "" if below == "." else f"{below}/"
        folders[:] = [
            name
            for name in folders
            if name != ".git" and (os.fsencode(prefix + name), True) not in others
        ]
        for name in list(folders):
            if (os.fsencode(prefix + name), True) in secrets:
                folders.remove(name)
                yield f"{prefix}{name}/"
        yield from (
            prefix + name for name in files if (os.fsencode(prefix + name), False) in secrets
        )


def _depth(path: str) -> tuple[int, str]:
    return path.count("/"), path


def secrets_among(paths: Sequence[bytes]) -> list[str]:
    """Of what a rollback has left in place, what it was asked to leave as a secret."""
    names = [os.fsdecode(path) for path in paths]
    return [name for name in names if is_secret(name.rpartition("/")[2])]
