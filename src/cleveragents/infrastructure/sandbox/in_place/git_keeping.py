"""Objects that groups need stay, whatever the user's `git gc` does: one name of ours leads to all.

Each state has a commit of ours: its tree is what the index says, its parents are the commits that
references and files name, and the commit of the state before. So one reference keeps the objects of
all groups, and with it they go. Tags that are objects cannot be parents: their bytes are stored
with the snapshot, and what they are about is a parent.
"""

import os
from collections.abc import Mapping, Sequence

from msgspec import Struct

from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.durable_files import write_file
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.repository.pins import Pins, pin, value_of
from cleveragents.infrastructure.sandbox.in_place.git_reading import INDEX, FoundRepository
from cleveragents.infrastructure.sandbox.in_place.git_there import OpenRepository

TAG = "tag:"
_NOBODY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (
        ("NAME", "CleverAgents"),
        ("EMAIL", "cleveragents@localhost"),
        ("DATE", "@0 +0000"),
    )
}


class _Objects(Struct, frozen=True, kw_only=True):
    """Those that are there: commits, and by name the bytes of tags."""

    commits: Sequence[str]
    tags: Mapping[str, bytes]


class KeptObjects:
    def __init__(self, pins: Pins) -> None:
        self._pins = pins

    def keep(
        self, resource: PlanResource, found: FoundRepository, there: OpenRepository
    ) -> Mapping[str, bytes]:
        """Gives back the tags, to be stored. Durable when this returns."""
        git = there.git
        objects = _objects(git, sorted(found.objects()))
        ref = self._pins.base(resource.plan_id, resource.name)
        before = value_of(git, ref)
        tree = _tree(there, found)
        parents = dict.fromkeys([*filter(None, [before]), *objects.commits])
        words = [word for parent in parents for word in ("-p", parent)]
        commit = git.run(
            "commit-tree", tree, *words, input=b"kept for checkpoints\n", env=_NOBODY
        ).stdout.decode()
        pin(git, ref, commit.strip())
        return {f"{TAG}{name}": data for name, data in objects.tags.items()}


def _tree(there: OpenRepository, found: FoundRepository) -> str:
    """What the index says; the empty one if there is no index, or git cannot read it."""
    git = there.git
    if INDEX not in found.files:
        return git.run("mktree").stdout.decode().strip()
    copy = os.path.join(there.room, "index")
    write_file(copy, found.files[INDEX], synced=False)
    env = {"GIT_INDEX_FILE": copy}
    made = git.run("write-tree", "--missing-ok", env=env, check=False)
    if made.code == 0:
        return made.stdout.decode().strip()
    listed = git.run("ls-files", "--stage", "-z", env=env, check=False).stdout
    return git.run("mktree", "--missing", input=_by_object(listed)).stdout.decode().strip()


def missing_objects(git: Git, names: Sequence[str]) -> list[str]:
    request = "".join(f"{name}\n" for name in names).encode()
    said = git.run("cat-file", "--batch-check", input=request).stdout.decode()
    return [line.split(" ")[0] for line in said.splitlines() if line.endswith(" missing")]


def _by_object(listing: bytes) -> bytes:
    """An index in the middle of a merge has several of a path: a tree that names each by itself."""
    lines = (line.partition(b"\t")[0].split(b" ") for line in listing.split(b"\0")[:-1])
    found = sorted({oid for mode, oid, _ in lines if mode != b"160000"})
    return b"".join(b"100644 blob %s\t%s\n" % (oid, oid) for oid in found)


def _objects(git: Git, names: Sequence[str]) -> _Objects:
    """Of these and of what tags are about."""
    if not names:
        return _Objects(commits=(), tags={})
    request = "".join(f"{name}\n{name}^{{}}\n" for name in names).encode()
    said = git.run("cat-file", "--batch-check", input=request).stdout.decode().splitlines()
    kinds = [line.split(" ") for line in said]
    commits = [words[0] for words in kinds if words[1:2] == ["commit"]]
    tags = [words[0] for words in kinds if words[1:2] == ["tag"]]
    return _Objects(commits=list(dict.fromkeys(commits)), tags=_bytes_of(git, tags))


def _bytes_of(git: Git, tags: Sequence[str]) -> Mapping[str, bytes]:
    if not tags:
        return {}
    request = "".join(f"{name}\n" for name in dict.fromkeys(tags)).encode()
    said = git.run("cat-file", "--batch", input=request).stdout
    found: dict[str, bytes] = {}
    while said:
        line, _, rest = said.partition(b"\n")  # "<oid> tag <size>", the bytes, a line end
        name, _, size = line.decode().split(" ")
        found[name], said = rest[: int(size)], rest[int(size) + 1 :]
    return found
