"""How one command is held inside: what it gets to see, and what it gives up as it starts.

In which order, in the new process (`Enclosure.enter`): its own view of the files, made by mounts;
root's capabilities; no new privileges; Landlock; the filter of calls.
Why: each takes away what the one before it needs. Mounting takes capabilities, and Landlock forbids
it; and without a promise of no new privileges an ordinary user may set up neither of the last two.
Where bubblewrap is asked for, it gives the view, and none of this is ours to do.
What is not guaranteed: more than the machine can do. `Enforcement` says what holds; where all of it
is required and something is missing, nothing runs.
"""

import errno
import os
from collections.abc import Mapping, Sequence

from msgspec import Struct

from cleveragents.infrastructure.confinement import landlock
from cleveragents.infrastructure.confinement.covers import Cover
from cleveragents.infrastructure.confinement.read_only_view import ReadOnlyView
from cleveragents.infrastructure.confinement.socket_filter import SocketFilter
from cleveragents.infrastructure.confinement.syscalls import (
    PR_CAPBSET_DROP,
    PR_SET_NO_NEW_PRIVS,
    prctl,
)

# What root may still do once it is inside: handle files and users, as package managers do. Gone
# are devices, modules, mounts, the clock, and whatever else reaches beyond files.
_KEPT_CAPABILITIES = frozenset((0, 1, 3, 4, 5, 6, 7, 8, 10, 18, 29, 31))
_MOST_CAPABILITIES = 64


class Enclosure(Struct, frozen=True, kw_only=True):
    """One command made ready to run inside."""

    argv: Sequence[str]
    environ: Mapping[str, str]
    passed_fds: tuple[int, ...] = ()
    ruleset: int | None = None
    view: ReadOnlyView | None = None
    filter: SocketFilter | None = None
    gives_up_rights: bool = False
    landlock: int = 0
    covers: Sequence[Cover] = ()

    @property
    def is_apart(self) -> bool:
        """Whether it gets a process table of its own."""
        return self.view is not None and self.view.apart

    def separate(self) -> None:  # pragma: no cover - in a new process that no tool looks into
        """By the process whose next child is to be the first one there. Raises OSError."""
        assert self.view is not None
        self.view.separate()

    def enter(self) -> None:  # pragma: no cover - in a new process that no tool looks into
        """By the new process, before it becomes its program. Raises OSError."""
        merged = self.view.enter() if self.view is not None else []
        if not self.gives_up_rights:
            return
        if os.geteuid() == 0:
            _drop_capabilities()
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        if self.ruleset is not None:
            if self.view is not None and self.view.places.writable:
                landlock.add_folders(self.ruleset, merged, self.landlock)
            landlock.restrict_self(self.ruleset)
        if self.filter is not None:
            self.filter.apply()


def _drop_capabilities() -> None:  # pragma: no cover - as above
    for number in range(_MOST_CAPABILITIES):
        if number in _KEPT_CAPABILITIES:
            continue
        try:
            prctl(PR_CAPBSET_DROP, number)
        except OSError as error:
            if error.errno == errno.EINVAL:
                break  # this kernel has no more
