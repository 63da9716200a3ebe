"""Which places a command is shown, and which of them it may write: a step, its sandboxes.

What is added to these, a private temporary folder and the `write` places of the action:
`confiner.py`. For tools that run in our own process: `tools/sandbox_paths.py`.
"""

import os
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.infrastructure.confinement.covers import Cover, seen_at

_COMPARED = ("sandboxes", "scratch", "snapshots")


class Places(Struct, frozen=True, kw_only=True):
    """It runs in `folder`, and writes in what is `writable`, but not in what of that is `closed`.
    Of what is `hidden` it sees only what is `shown`. All of these are there. Under `covers`,
    sandboxes are at their projects' paths; what is `kept` stays there nevertheless."""

    folder: str
    writable: Sequence[str]
    closed: Sequence[str] = ()
    hidden: Sequence[str] = ()
    shown: Sequence[str] = ()
    covers: Sequence[Cover] = ()
    kept: Sequence[str] = ()

    def under(self, covers: Sequence[Cover]) -> "Places":
        return replace(self, folder=seen_at(covers, self.folder), covers=covers)


def places_of_step(folder: str, sandboxes: Iterable[str], *, read_only: bool) -> Places:
    """A step writes in the sandboxes of its plan, or nowhere if its tool only reads. What the
    action allows beside that, and a folder for temporary files, are added by the confiner."""
    # A step may have removed one, and what is not there cannot be opened for anybody.
    there = _outermost([sandbox for sandbox in sandboxes if os.path.isdir(sandbox)])
    if read_only:
        return Places(folder=folder, writable=(), closed=there)
    return Places(folder=folder, writable=there)


def _outermost(places: Sequence[str]) -> list[str]:
    """Without those that lie in another: each is a mount of its own, which could not be removed."""
    return [
        place
        for place in dict.fromkeys(places)
        if not any(place != other and place.startswith(f"{other}/") for other in places)
    ]


class Store(Struct, frozen=True, kw_only=True):
    """Where plans are kept: one folder, and maybe a database elsewhere, by real paths."""

    folder: str
    database: str = ""

    @property
    def scratch(self) -> str:
        return f"{self.folder}/scratch"

    def hidden_in(self, places: Places, private: str, *, is_ours: bool) -> Places:
        """Shown is what the command works on. A program of ours looks at the work and the snapshots
        of other plans too: it compares and merges. What an action names as further places to write
        is not shown, but for what of ours is in the folder for temporary files."""
        if not self.folder:
            return places
        compared = [f"{self.folder}/{name}" for name in _COMPARED if is_ours]
        lent = (item.place for cover in places.covers for item in cover.lent)
        own = [*places.writable, *places.closed, places.folder, private, *compared, *lent]
        files = [f"{self.database}{end}" for end in ("", "-wal", "-shm") if self.database]
        return replace(
            places,
            hidden=[path for path in (self.folder, *files) if os.path.exists(path)],
            shown=[path for path in map(os.path.realpath, own) if os.path.exists(path)],
        )
