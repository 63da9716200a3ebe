"""How one command is held inside: what it gets to see, and what it gives up as it starts."""

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.domain.confinement import (
    LANDLOCK_USABLE,
    Confinement,
    ConfinementMeans,
    ConfinementMode,
    Enforcement,
    Guarantee,
    enforcement,
)
from cleveragents.domain.errors import ToolNotStartedError
from cleveragents.infrastructure.confinement import bubblewrap, landlock, socket_filter
from cleveragents.infrastructure.confinement.environment import passed_on, private_places
from cleveragents.infrastructure.confinement.machine import Machine
from cleveragents.infrastructure.confinement.places import Places, Store
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
        if self.view is not None:
            self.view.enter()
        if not self.gives_up_rights:
            return
        if os.geteuid() == 0:
            _drop_capabilities()
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        if self.ruleset is not None:
            landlock.restrict_self(self.ruleset)
        if self.filter is not None:
            self.filter.apply()


class Confiner(Struct, frozen=True, kw_only=True, dict=True):
    """`configured` and `variables` are what the settings say; `scratch` is for private folders.
    `store` is what commands do not see, if anything is."""

    environ: Mapping[str, str]
    scratch: str
    store: Store = Store(folder="")
    configured: str = ConfinementMode.PREFERRED
    variables: tuple[str, ...] = ()
    process_limit: int = 1000

    @cached_property
    def machine(self) -> Machine:
        return Machine(self.environ.get("PATH", os.defpath))

    def enforcement(self, asked: Confinement) -> Enforcement:
        wanted = asked.by is ConfinementMeans.BUBBLEWRAP
        machine = self.machine.abilities(with_bubblewrap=wanted)
        return enforcement(asked, ConfinementMode(self.configured), machine)

    @contextmanager
    def enclosed(
        self, argv: Sequence[str], asked: Confinement, places: Places, *, is_ours: bool = False
    ) -> Generator[Enclosure]:
        """To what it may write come its own temporary folder, and what the action allows.
        `is_ours`: it is a program of ours, over what a step wrote."""
        holds = self.enforcement(asked)
        if holds.by is ConfinementMeans.NOTHING:
            yield Enclosure(argv=argv, environ=dict(self.environ))
            return
        with self._private_folder() as private:
            environ = passed_on(self.environ, (*self.variables, *asked.environment))
            environ |= private_places(private)
            further = [_made(path) for path in map(_expanded, asked.write)]
            shown = self.store.hidden_in(places, private, is_ours=is_ours)
            ours = [path for path in further if path.startswith(f"{self.store.scratch}/")]
            places = replace(
                shown,
                writable=[*places.writable, private, *further],
                shown=[*shown.shown, *ours],
            )
            is_wrapped = holds.by is ConfinementMeans.BUBBLEWRAP
            means = self._wrapped if is_wrapped else self._by_kernel
            with means(argv, holds, places) as enclosure:
                yield replace(enclosure, environ=environ)

    @contextmanager
    def _by_kernel(
        self, argv: Sequence[str], holds: Enforcement, places: Places
    ) -> Generator[Enclosure]:
        abi = self.machine.landlock
        ruleset = landlock.make_ruleset(places.writable, abi) if abi >= LANDLOCK_USABLE else None
        try:
            yield Enclosure(
                argv=argv,
                environ={},
                ruleset=ruleset,
                view=ReadOnlyView(
                    places=places,
                    most_processes=self.process_limit,
                    apart=self.machine.process_table,
                )
                if Guarantee.ATTRIBUTES in holds.enforced
                else None,
                filter=SocketFilter(socket_filter.program())
                if Guarantee.NETWORK in holds.enforced
                else None,
                gives_up_rights=True,
            )
        finally:
            if ruleset is not None:
                os.close(ruleset)

    @contextmanager
    def _wrapped(
        self, argv: Sequence[str], holds: Enforcement, places: Places
    ) -> Generator[Enclosure]:
        bwrap = self.machine.bubblewrap
        assert bwrap is not None
        if Guarantee.NETWORK not in holds.enforced:
            yield Enclosure(argv=bubblewrap.wrapped(bwrap, argv, places, None), environ={})
            return
        with tempfile.TemporaryFile() as code:
            code.write(socket_filter.program())
            code.seek(0)
            line = bubblewrap.wrapped(bwrap, argv, places, code.fileno())
            yield Enclosure(argv=line, environ={}, passed_fds=(code.fileno(),))

    @contextmanager
    def _private_folder(self) -> Generator[str]:
        os.makedirs(self.scratch, mode=0o700, exist_ok=True)
        folder = tempfile.mkdtemp(prefix="step-", dir=self.scratch)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, onerror=_open_and_retry)


def _expanded(path: str) -> str:
    return os.path.realpath(os.path.expanduser(path))


def _made(path: str) -> str:
    """A place to write that is not there is a folder: a program would have to make it in one where
    it may not write."""
    if not os.path.lexists(path):
        try:
            os.makedirs(path, mode=0o700)
        except FileExistsError:
            pass  # by another command of the plan
        except OSError as error:
            raise ToolNotStartedError(
                f"{path} is to be written to and cannot be made: {error.strerror}",
                "make it by hand, or take it out of confinement.write in the action file",
            ) from error
    return path


def _drop_capabilities() -> None:  # pragma: no cover - as above
    for number in range(_MOST_CAPABILITIES):
        if number in _KEPT_CAPABILITIES:
            continue
        try:
            prctl(PR_CAPBSET_DROP, number)
        except OSError as error:
            if error.errno == errno.EINVAL:
                break  # this kernel has no more


def _open_and_retry(function: Callable[[str], object], path: str, error: object) -> None:
    """A step may take away its own rights to a folder; what still stays is swept up later."""
    del error
    with suppress(OSError):
        os.chmod(os.path.dirname(path), 0o700)
        function(path)
