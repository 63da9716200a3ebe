"""What this machine offers to hold commands inside, tried where its word is not enough."""

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property

from cleveragents.domain.confinement import Abilities
from cleveragents.infrastructure.confinement import landlock, socket_filter
from cleveragents.infrastructure.confinement.covers import mount_layer
from cleveragents.infrastructure.confinement.places import Places
from cleveragents.infrastructure.confinement.read_only_view import ReadOnlyView
from cleveragents.infrastructure.files.data_folder import make_private

_PATIENCE_SECONDS = 5


class Machine:
    """Asked once; `path` is where programs are looked for, `scratch` a folder where sandboxes
    are."""

    def __init__(self, path: str, scratch: str = "") -> None:
        self._path = path
        self._scratch = scratch

    @cached_property
    def landlock(self) -> int:
        return landlock.version()

    @cached_property
    def socket_filter(self) -> bool:
        return socket_filter.is_supported()

    @property
    def read_only_view(self) -> bool:
        return self.process_table or _works_here(apart=False)

    @property
    def process_table(self) -> bool:
        """Whether a command can have one of its own, beside its view of the files."""
        return _works_here(apart=True)

    @cached_property
    def bubblewrap(self) -> str | None:
        """Its path, if it is there and works."""
        found = shutil.which("bwrap", path=self._path)
        if found is None or not _works([found, "--ro-bind", "/", "/", "/bin/sh", "-c", ":"]):
            return None
        return found

    @property
    def layers(self) -> bool:
        if not self._scratch or not self.read_only_view:
            return False
        make_private(self._scratch)
        return can_mount_layer(self._scratch, self._scratch)

    def abilities(self, *, with_bubblewrap: bool, with_layers: bool = False) -> Abilities:
        """What they cost to be found out, only who tells them pays for."""
        return Abilities(
            landlock=self.landlock,
            socket_filter=self.socket_filter,
            read_only_view=self.read_only_view,
            process_table=self.process_table,
            bubblewrap=with_bubblewrap and self.bubblewrap is not None,
            layers=with_layers and self.layers,
        )


@cache
def _works_here(*, apart: bool) -> bool:
    """Tried, since a kernel that has it may still forbid it. Once per process: a fork copies all
    that the process holds."""
    with tempfile.TemporaryDirectory() as covered:
        folder = os.path.join(os.path.realpath(covered), "shown")
        os.mkdir(folder)
        places = Places(
            folder=folder,
            writable=[folder],
            hidden=[os.path.dirname(folder)],
            shown=[folder],
        )
        view = ReadOnlyView(places=places, most_processes=100, apart=apart)
        return _succeeds(lambda: _try_apart(view) if apart else _try_view(view))


def _try_apart(view: ReadOnlyView) -> bool:  # pragma: no cover - in a process of its own
    view.separate()
    return _succeeds(lambda: _try_view(view) and os.readlink("/proc/self") == "1")


def _try_view(view: ReadOnlyView) -> bool:  # pragma: no cover - as above
    view.enter()
    os.close(os.open("here", os.O_CREAT | os.O_WRONLY))
    return bool(os.statvfs("/").f_flag & os.ST_RDONLY)


def _succeeds(attempt: Callable[[], bool]) -> bool:
    """In a process of its own: what is tried changes whoever tries it."""
    child = os.fork()
    if child == 0:  # pragma: no cover - as above
        code = 1
        try:
            code = 0 if attempt() else 1
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def _works(argv: list[str]) -> bool:
    import subprocess  # noqa: PLC0415 - only where bubblewrap is asked for

    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath},
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def can_mount_layer(lower: str, scratch: str) -> bool:
    """Whether that folder can be the lower part of a layer whose upper part is on the file system
    of `scratch`. Tried, once for each two file systems."""
    devices = os.lstat(lower).st_dev, os.stat(scratch).st_dev
    if devices not in _MOUNTED:
        _MOUNTED[devices] = _layer_works(lower, scratch)
    return _MOUNTED[devices]


_MOUNTED: dict[tuple[int, int], bool] = {}


def _layer_works(lower: str, scratch: str) -> bool:
    with tempfile.TemporaryDirectory(dir=scratch, prefix="layer-") as folder:
        for name in ("upper", "work", "merged"):
            os.mkdir(f"{folder}/{name}")
        works = _succeeds(lambda: _try_layer(lower, folder))
        for left in ("work", "work/work"):
            with suppress(FileNotFoundError):
                os.chmod(f"{folder}/{left}", 0o700)
    return works


def _try_layer(lower: str, folder: str) -> bool:  # pragma: no cover - in a process of its own
    places = Places(folder=folder, writable=[folder])
    ReadOnlyView(places=places, most_processes=100).enter()
    flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
    parts = (lower, f"{folder}/upper", f"{folder}/work", f"{folder}/merged")
    opened = [os.open(part, flags) for part in parts]
    mount_layer(*opened)
    os.mkdir(f"{folder}/merged/.cleveragents-here")
    os.rmdir(f"{folder}/merged/.cleveragents-here")
    return True
