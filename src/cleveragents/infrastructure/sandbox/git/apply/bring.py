"""Bringing what git made inside into a repository of the user's.

Only bytes come over, and each object is named by its own hash. Who reads them there is held inside
too, and can write nothing but objects; from then on the user's own git needs only their names.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.descriptors import opened
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.lfs import bring_contents
from cleveragents.infrastructure.sandbox.git.views import GitView, GitViews

# As git itself does it with what it fetches: more than so many stay in the pack that they came in.
_MOST_LOOSE = 100
_HEADER = 12


class Bringing(Struct, frozen=True, kw_only=True):
    """For one apply. `held` is who has the objects, in a room where packs of them can lie."""

    views: GitViews
    held: GitView
    resource: PlanResource

    def pack(self, git: Git, wanted: str, known: Sequence[str] = ()) -> Path:
        """All that `wanted` needs beyond what is `known`; `git` is one of this inside."""
        request = "".join([f"{wanted}\n", *(f"^{name}\n" for name in known)])
        args = ("pack-objects", "--revs", "-q", str(self.held.room / "over"))
        name = git.run(*args, input=request.encode()).stdout.decode().strip()
        return self.held.room / f"over-{name}.pack"

    def unpack(self, pack: Path, user: Git, whole: Sequence[str], *, strict: bool) -> None:
        """Durable when it returns. `whole` are revisions of which nothing may be missing then.

        With `strict`, objects that git itself would not make are refused; old histories have such.
        Raises GitError.
        """
        checks = ("--strict",) if strict else ()
        count = _count(pack)
        with self.views.into(self.resource, user) as git:
            if count > _MOST_LOOSE:
                git.run("index-pack", "--stdin", *checks, input=pack)
            elif count:
                git.run("unpack-objects", "-q", *checks, input=pack)
            git.run("rev-list", "--objects", "--quiet", *whole)

    def contents(self, git: Git, blobs: Sequence[str], user: Git) -> None:
        """What git-lfs keeps for these blobs, which `git` has."""
        bring_contents(self.held.room, git, blobs, user)


def _count(pack: Path) -> int:
    """Of its objects. Raises OSError if it is anything but a file."""
    # "PACK", version, number of objects: four bytes each.
    with opened(pack, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC) as fd:
        return int.from_bytes(os.read(fd, _HEADER)[8:], "big")
