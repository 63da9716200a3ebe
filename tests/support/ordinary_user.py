"""Runs a command as an ordinary user, where we are root: `python -m tests.support.ordinary_user
COMMAND…`.

Nobody works as root, and root is stopped by no mode, owns everything and has no limit to its
processes. The user is made for the run: known in a private view of `/etc`, with a home that goes
away. In that view the interpreter and this checkout can be reached, wherever they lie.
Nothing of the machine itself is changed.
"""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from cleveragents.infrastructure.confinement.syscalls import CLONE_NEWNS, mount, unshare

NAME, NUMBER = "user", 54321
_CHECKOUT = Path(__file__).parents[2]
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000
_KEPT = ("PATH", "LANG", "CI", "CLEVERAGENTS_TEST_", "COVERAGE_FILE", "PYTEST_ADDOPTS")


def main(command: Sequence[str]) -> int:
    if os.geteuid() != 0:
        sys.stderr.write("you are an ordinary user already\n")
        return 2
    home = Path(tempfile.mkdtemp(prefix="u"))  # short: paths of sockets have to be
    os.chown(home, NUMBER, NUMBER)
    try:
        child = os.fork()
        if child == 0:
            _become_and_run(command, home)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _become_and_run(command: Sequence[str], home: Path) -> NoReturn:
    try:
        unshare(CLONE_NEWNS)
        mount(b"none", b"/", _MS_REC | _MS_PRIVATE)
        _make_known(home)
        _open_the_way_to((_CHECKOUT, Path(sys.base_prefix), Path(sys.prefix)), home)
        os.setgroups([])
        os.setresgid(NUMBER, NUMBER, NUMBER)
        os.setresuid(NUMBER, NUMBER, NUMBER)
        os.chdir(_CHECKOUT)
        os.execvpe(command[0], list(command), _environment(home))
    except OSError as error:
        sys.stderr.write(f"could not become an ordinary user: {error}\n")
    os._exit(70)


def _environment(home: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key.startswith(_KEPT)}
    own = {
        "HOME": str(home),
        "USER": NAME,
        "LOGNAME": NAME,
        "TMPDIR": str(home),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(home / "hypothesis"),
        # The checkout is somebody else's, and is not written to.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return {**kept, **own}


def _make_known(home: Path) -> None:
    """git and others ask for the name behind a number."""
    lines = {
        "passwd": f"{NAME}:x:{NUMBER}:{NUMBER}::{home}:/bin/sh\n",
        "group": f"{NAME}:x:{NUMBER}:\n",
    }
    for name, line in lines.items():
        known = Path("/etc", name)
        file = home / f".{name}"
        file.write_text(known.read_text() + line)
        file.chmod(0o644)
        mount(os.fsencode(file), os.fsencode(known), _MS_BIND)


def _open_the_way_to(places: Iterable[Path], home: Path) -> None:
    """Folders on the way that are closed to others are replaced by ones that hold only the way."""
    wanted = {place.resolve() for place in places}
    for closed in sorted({found for place in wanted if (found := _closed_above(place))}):
        below = [place for place in wanted if closed in place.parents]
        held = {place: os.open(place, os.O_PATH | os.O_DIRECTORY) for place in below}
        empty = Path(tempfile.mkdtemp(prefix=".way-", dir=home))
        empty.chmod(0o755)
        mount(os.fsencode(empty), os.fsencode(closed), _MS_BIND)
        for place, folder in sorted(held.items()):
            place.mkdir(mode=0o755, parents=True, exist_ok=True)
            mount(f"/proc/self/fd/{folder}".encode(), os.fsencode(place), _MS_BIND | _MS_REC)
            os.close(folder)


def _closed_above(place: Path) -> Path | None:
    """The outermost folder above it that others may not enter."""
    return next((up for up in reversed(place.parents) if _is_closed(up)), None)


def _is_closed(folder: Path) -> bool:
    return not folder.stat().st_mode & stat.S_IXOTH


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
