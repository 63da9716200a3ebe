"""The references of a sandbox's own repository as files: read, written, and as one text.

Not through git commands in the sandbox: those stop at a damaged configuration or at a missing
object, and a snapshot must be possible then too, and above all the way back.
"""

import os
import re
from collections.abc import Mapping

from msgspec import Struct

from cleveragents.infrastructure.files.durable_files import (
    below,
    make_folder,
    put_file,
    read_file,
    remove,
    remove_empty_folders,
)
from cleveragents.infrastructure.sandbox.git.command import OFFLINE, Git

Refs = Mapping[bytes, bytes]
"""Each reference with its object, or with `ref: ` and the name of another one."""

# What a plan may want to look at. Not the stash: a step must not be able to pop the user's.
_COPIED = ("refs/heads", "refs/tags", "refs/remotes", "refs/notes", "refs/replace")
_OID = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SYMBOLIC = b"ref: "
_MOST_HOPS = 5
_LISTED = "%(objectname) %(refname) %(symref)"
_PEELED = "%(objecttype) %(*objecttype) %(*objectname)"


class ProjectRefs(Struct, frozen=True, kw_only=True):
    """The user's branches, tags and the like, as they are now; `peeled` has for each of their
    objects the one behind its tags, mostly itself."""

    refs: Refs
    peeled: Mapping[bytes, bytes]

    @classmethod
    def read(cls, git: Git) -> "ProjectRefs":
        listed = git.with_env(OFFLINE).run(
            "for-each-ref", f"--format={_LISTED} {_PEELED}", *_COPIED, check=False
        )
        if listed.code != 0:  # an object is missing, or was not fetched: then each is asked for
            listed = git.run("for-each-ref", f"--format={_LISTED} commit  ", *_COPIED)
            refs = _refs_in_listing(listed.stdout)
            return cls(refs=refs, peeled=peels(git, refs))
        refs = _refs_in_listing(listed.stdout)
        lines = [line.split(b" ") for line in listed.stdout.splitlines()]
        peeled = {oid: oid if kind != b"tag" else behind for oid, _, _, kind, _, behind in lines}
        if any(inner == b"tag" for *_, inner, _ in lines):  # not all versions look behind both
            peeled = peels(git, refs)
        return cls(refs=refs, peeled=peeled)


def _refs_in_listing(listing: bytes) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for line in listing.splitlines():
        oid, name, target, *_ = line.split(b" ")
        found[name] = _SYMBOLIC + target if target else oid
    # As a branch of that name it would be in the way of the plan's own, below it.
    found.pop(b"refs/heads/cleveragents", None)
    return found


def read_refs(gitdir: str) -> dict[bytes, bytes]:
    found = _packed(read_file(gitdir, "packed-refs") or b"")
    for name in map(os.fsencode, below(gitdir, "refs")):
        value = (read_file(gitdir, os.fsdecode(name)) or b"").strip()
        if _OID.fullmatch(value) or value.startswith(_SYMBOLIC):
            found[name] = value
        else:
            found.pop(name, None)  # for git it is broken, and hides the packed one
    return {name: value for name, value in found.items() if _is_name(name)}


def write_refs(gitdir: str, wanted: Refs, project: Git, *, synced: bool = True) -> None:
    """Make these the only references there are, as far as they are not."""
    if read_refs(gitdir) != wanted:
        put_refs(gitdir, wanted, peels(project, wanted), synced=synced)


def put_refs(
    gitdir: str, wanted: Refs, peeled: Mapping[bytes, bytes], *, synced: bool = True
) -> None:
    """The same in any case.

    What leads to a tag that the user's repository does not have is a file of its own: in the list
    of all others stands for each of them what its tag is about (ADR 0054).
    """
    packed = {name: oid for name, oid in wanted.items() if oid in peeled}
    put_file(gitdir, "packed-refs", packed_refs(packed, peeled), synced=synced)
    for name in list(below(gitdir, "refs")):
        remove(gitdir, name)
    remove_empty_folders(gitdir, "refs")
    make_folder(gitdir, "refs/heads")
    for name in wanted.keys() - packed.keys():
        put_file(gitdir, os.fsdecode(name), wanted[name] + b"\n", synced=synced)
    _remove_logs_of_others(gitdir, wanted)


def peels(git: Git, refs: Refs) -> dict[bytes, bytes]:
    """For each object that git has, the one behind its tags: mostly itself."""
    oids = sorted({oid for oid in refs.values() if _OID.fullmatch(oid)})
    request = b"".join(b"%s^{}\n" % oid for oid in oids)
    asked = git.with_env(OFFLINE).run(
        "cat-file", "--batch-check=%(objectname)", input=request, check=False
    )
    said = asked.stdout.splitlines()
    return {oid: peel for oid, peel in zip(oids, said, strict=False) if _OID.fullmatch(peel)}


def packed_refs(refs: Refs, peeled: Mapping[bytes, bytes]) -> bytes:
    """As git itself writes it: other programs do not know all the forms that git would read."""
    lines = [b"# pack-refs with: peeled fully-peeled sorted \n"]
    for name in sorted(refs):
        oid = refs[name]
        lines.append(b"%s %s\n" % (oid, name))
        if peeled[oid] != oid:
            lines.append(b"^%s\n" % peeled[oid])
    return b"".join(lines)


def text_of(refs: Refs) -> bytes:
    """One line each, in order."""
    return b"".join(b"%s %s\n" % (refs[name], name) for name in sorted(refs))


def refs_in(text: bytes) -> dict[bytes, bytes]:
    """The references that `text_of` made the text from."""
    lines = (line.rpartition(b" ") for line in text.splitlines())
    return {name: value for value, _, name in lines}


def objects_in(refs: Refs) -> set[str]:
    return {oid.decode("ascii") for oid in refs.values() if _OID.fullmatch(oid)}


def existing(git: Git, oids: set[str]) -> list[str]:
    """Those of these objects that git has."""
    if not oids:
        return []
    request = "".join(f"{oid}\n" for oid in sorted(oids)).encode()
    said = git.run("cat-file", "--batch-check=%(objectname)", input=request).stdout.decode()
    return [line for line in said.splitlines() if " " not in line]


def head_commit(head: bytes, refs: Refs) -> str:
    """The commit that HEAD stands for; "" on a branch without one."""
    value = head.strip()
    for _ in range(_MOST_HOPS):
        if not value.startswith(_SYMBOLIC):
            break
        value = refs.get(value.removeprefix(_SYMBOLIC).strip(), b"")
    return value.decode("ascii") if _OID.fullmatch(value) else ""


def _packed(data: bytes) -> dict[bytes, bytes]:
    lines = (line.partition(b" ") for line in data.splitlines())
    return {name: oid for oid, _, name in lines if _OID.fullmatch(oid)}


def _is_name(name: bytes) -> bool:
    """What git itself could not have made is none, nor is a lock."""
    return not name.endswith(b".lock") and all(byte > 32 and byte != 127 for byte in name)


def _remove_logs_of_others(gitdir: str, wanted: Refs) -> None:
    """A log without its branch would be in the way of a branch below that name."""
    for name in list(below(gitdir, "logs/refs")):
        if os.fsencode(name).removeprefix(b"logs/") not in wanted:
            remove(gitdir, name)
    remove_empty_folders(gitdir, "logs")
