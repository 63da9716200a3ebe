"""What a command may see and write, chosen for it and made ready: whoever starts it enters that.

How it is entered, and in which order: `enclosure.py`.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
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
from cleveragents.infrastructure.confinement.enclosure import Enclosure
from cleveragents.infrastructure.confinement.machine import Machine, can_mount_layer
from cleveragents.infrastructure.confinement.places import Places, Store
from cleveragents.infrastructure.confinement.read_only_view import ReadOnlyView
from cleveragents.infrastructure.confinement.socket_filter import SocketFilter
from cleveragents.infrastructure.files.data_folder import make_private


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
        return Machine(self.environ.get("PATH", os.defpath), self.scratch)

    def enforcement(self, asked: Confinement) -> Enforcement:
        wanted = asked.by is ConfinementMeans.BUBBLEWRAP
        machine = self.machine.abilities(with_bubblewrap=wanted)
        return enforcement(asked, ConfinementMode(self.configured), machine)

    def can_cover(self, asked: Confinement) -> bool:
        """Whether a command can be shown its sandboxes at their projects' own paths."""
        holds = self.enforcement(asked)
        is_kernel = holds.by is ConfinementMeans.KERNEL
        return is_kernel and Guarantee.ATTRIBUTES in holds.enforced

    def can_layer(self, asked: Confinement, lower: str) -> bool | None:
        """Whether that folder can be the lower part of a layer, too; None if nobody wants that."""
        if self.enforcement(asked).by is not ConfinementMeans.KERNEL:
            return None
        if not self.can_cover(asked):
            return False
        make_private(self.scratch)
        return can_mount_layer(lower, self.scratch)

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
                kept=further,
            )
            is_wrapped = holds.by is ConfinementMeans.BUBBLEWRAP
            means = self._wrapped if is_wrapped else self._by_kernel
            with means(argv, holds, places) as enclosure:
                yield replace(enclosure, environ=environ, covers=places.covers)

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
                landlock=abi,
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
        make_private(self.scratch)
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


def _open_and_retry(function: Callable[[str], object], path: str, error: object) -> None:
    """A step may take away its own rights to a folder; what still stays is swept up later."""
    del error
    with suppress(OSError):
        os.chmod(os.path.dirname(path), 0o700)
        function(path)


# --- which variables of the user's environment a command gets to see ------------------------------

# Where programs are, who runs them, how they talk, and where toolchains live. No credentials, and
# no addresses of services that would act in a command's place (agents, buses, displays).
_PASSED = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "LANG", "LANGUAGE", "TZ", "TERM"),
        *("COLUMNS", "LINES", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "CI", "EDITOR", "PAGER"),
        *("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYTHONPATH", "PYTHONHOME"),
        *("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONUTF8", "PYTHONWARNINGS"),
        *("JAVA_HOME", "GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME", "NVM_DIR", "NODE_PATH"),
        *("PYENV_ROOT", "RBENV_ROOT", "GEM_HOME", "GEM_PATH", "DOTNET_ROOT", "ANDROID_HOME"),
        *("LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "MANPATH", "INFOPATH", "CC", "CXX", "MAKEFLAGS"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "SOURCE_DATE_EPOCH"),
    )
)
_PASSED_PREFIXES = ("LC_",)


def passed_on(environ: Mapping[str, str], further: Collection[str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environ.items()
        if name in _PASSED or name in further or name.startswith(_PASSED_PREFIXES)
    }


def private_places(folder: str) -> dict[str, str]:
    """Where programs put what need not stay: HOME can be read, but not written."""
    return {
        "TMPDIR": folder,
        "TMP": folder,
        "TEMP": folder,
        "XDG_CACHE_HOME": f"{folder}/cache",
        "XDG_STATE_HOME": f"{folder}/state",
        "npm_config_cache": f"{folder}/cache/npm",
    }
