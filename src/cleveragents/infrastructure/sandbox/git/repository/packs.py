"""The objects that only a sandbox's repository has: stored with a snapshot, as packs.

A step may run a `git gc` there, or remove the repository altogether. The same for the repository
of a submodule, whose packs are told from others in the snapshot by its place.
A pack may hold an object as what differs from one of an earlier pack, or of the base: so they are
numbered, and unpacked in that order.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence

from msgspec import Struct

from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.snapshots.tree.extra_state import StoredSide

_EMPTY_PACK = 0
_NUMBERED = "-"
_PACK, _TIPS, _FIRST_REFS, _COMMIT = "pack", "tips", "first-refs", "commit"


class Stored(Struct, frozen=True, kw_only=True):
    """What is to be stored, and the hashes of what is needed still and is stored already."""

    contents: Mapping[str, bytes]
    inherited: Mapping[str, bytes]


class Packs(Struct, frozen=True):
    """Of the project's repository, or of that of a submodule at a `place` below it."""

    place: str = ""

    def first_refs(self, stored: StoredSide) -> bytes | None:
        """The references that it had from the user's, whose objects are not stored."""
        name = self._name(_FIRST_REFS)
        return stored.content(name) if name in stored.hashes else None

    def commit(self, stored: StoredSide) -> str | None:
        """The one that it stood at; None if the snapshot has nothing of it."""
        name = self._name(_COMMIT)
        return stored.content(name).decode("ascii") if name in stored.hashes else None

    def with_commit(self, stored: Stored, commit: str) -> Stored:
        told = {**stored.contents, self._name(_COMMIT): commit.encode("ascii")}
        return Stored(contents=told, inherited=stored.inherited)

    def all_of(self, stored: StoredSide) -> Mapping[str, bytes]:
        """The hashes of all that a snapshot has of it."""
        return {k: v for k, v in stored.hashes.items() if self._is_own(k)}

    def store(
        self,
        git: Git,
        tips: Sequence[str],
        base: Sequence[str],
        first_refs: bytes,
        before: StoredSide | None,
    ) -> Stored | None:
        """Packs that, with those of the snapshot before and `base`, which is kept for us in the
        user's repository, hold all of `tips`. None if the repository is not whole."""
        told = {self._name(_TIPS): "\n".join(tips).encode("ascii")}
        kept: dict[str, bytes] = {}
        if before is None:
            told[self._name(_FIRST_REFS)] = first_refs
            if set(tips) <= set(base):
                return Stored(contents=told, inherited=kept)
        else:
            kept[self._name(_FIRST_REFS)] = before.hashes[self._name(_FIRST_REFS)]
            known = [*base, *self._tips(before)]
            if (pack := _pack(git, revisions(tips, known))) is not None:
                packs = {name: before.hashes[name] for name in self._packs(before)}
                named = self._named(pack, len(packs))
                return Stored(contents={**told, **named}, inherited={**kept, **packs})
        # The first, or what the one before had is gone from the repository: pack all of it.
        for known in (base, ()):
            if (pack := _pack(git, revisions(tips, known))) is not None:
                return Stored(contents={**told, **self._named(pack, 0)}, inherited=kept)
        return None

    def put_back(self, git: Git, base: Sequence[str], target: StoredSide) -> bool:
        """Into a repository that may have lost them; False if it is not whole then."""
        request = revisions(self._tips(target), base)
        if _is_whole(git, request):
            return True
        for name in self._packs(target):
            git.run("index-pack", "--stdin", "--fix-thin", input=target.content(name))
        return _is_whole(git, request)

    def _tips(self, stored: StoredSide) -> list[str]:
        return lines_of(stored.content(self._name(_TIPS)))

    def _packs(self, stored: StoredSide) -> list[str]:
        """In the order in which they were made. Those without a number need no other."""
        begin = self._name(_PACK) + ":"
        found = (name for name in stored.hashes if name.startswith(begin))
        return sorted(found, key=lambda name: (_NUMBERED in name.removeprefix(begin), name))

    def _named(self, pack: bytes, number: int) -> dict[str, bytes]:
        # "PACK", version, number of objects: four bytes each.
        if int.from_bytes(pack[8:12], "big") == _EMPTY_PACK:
            return {}
        told = f"{number:06}{_NUMBERED}{hashlib.sha256(pack).hexdigest()}"
        return {f"{self._name(_PACK)}:{told}": pack}

    def _name(self, kind: str) -> str:
        # The store takes no name that is not UTF-8.
        place = os.fsencode(self.place).decode("latin-1")
        return f"{kind}@{place}" if place else kind

    def _is_own(self, name: str) -> bool:
        own = [self._name(kind) for kind in (_TIPS, _FIRST_REFS, _COMMIT)]
        return name in own or name.startswith(self._name(_PACK) + ":")


def places_in(stored: StoredSide) -> list[str]:
    """Of the submodules that a snapshot has, outer ones first."""
    begin = f"{_TIPS}@"
    found = [name.removeprefix(begin) for name in stored.hashes if name.startswith(begin)]
    return sorted(os.fsdecode(place.encode("latin-1")) for place in found)


def is_pack(name: str) -> bool:
    return name.startswith((f"{_PACK}:", f"{_PACK}@"))


def revisions(wanted: Sequence[str], known: Sequence[str]) -> bytes:
    return "".join([*(f"{oid}\n" for oid in wanted), *(f"^{oid}\n" for oid in known)]).encode()


def lines_of(data: bytes) -> list[str]:
    return data.decode("ascii", "replace").split()


def _pack(git: Git, request: bytes) -> bytes | None:
    # Thin: what git has as a difference stays one, which takes a quarter of the time and less room.
    # To look for the smallest difference and the smallest form takes longer than they save.
    args = ("pack-objects", "--revs", "--thin", "--window=1", "--compression=1", "--stdout", "-q")
    done = git.run(*args, input=request, check=False)
    return done.stdout if done.code == 0 else None


def _is_whole(git: Git, request: bytes) -> bool:
    return (
        git.run("rev-list", "--objects", "--quiet", "--stdin", input=request, check=False).code == 0
    )
