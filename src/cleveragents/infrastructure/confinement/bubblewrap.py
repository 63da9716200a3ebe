"""The command line of bubblewrap that gives a command the same view as our own means."""

import os
from collections.abc import Callable, Sequence

from cleveragents.infrastructure.confinement.places import Places


def wrapped(bwrap: str, argv: Sequence[str], places: Places, filter_fd: int | None) -> list[str]:
    """`filter_fd` None: with the network."""
    view = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *_view(places)]
    network = [] if filter_fd is None else ["--unshare-net", "--seccomp", str(filter_fd)]
    apart = ["--unshare-pid", "--unshare-ipc", "--die-with-parent", "--new-session"]
    return [bwrap, *view, *apart, *network, "--chdir", places.folder, "--", *argv]


def _view(places: Places) -> list[str]:
    """In this order, as each covers what came before: what is hidden, and then what of it is shown
    nevertheless."""
    hidden = places.hidden
    shown = sorted(path for path in places.shown if _is_in(path, hidden))
    folders = [path for path in hidden if os.path.isdir(path)]
    files = [path for path in hidden if path not in folders]
    return [
        *_bound(places, lambda path: not _is_in(path, hidden)),
        *(word for path in folders for word in ("--tmpfs", path)),
        *(word for path in files for word in ("--ro-bind", "/dev/null", path)),
        *(word for path in shown for word in ("--ro-bind", path, path)),
        *_bound(places, lambda path: _is_in(path, hidden) and _is_in(path, shown)),
        *(word for path in folders for word in ("--remount-ro", path)),
    ]


def _bound(places: Places, wanted: Callable[[str], bool]) -> list[str]:
    writable = [path for path in places.writable if wanted(path)]
    closed = [path for path in places.closed if wanted(path)]
    return [
        *(word for path in writable for word in ("--bind", path, path)),
        *(word for path in closed for word in ("--ro-bind", path, path)),
    ]


def _is_in(path: str, folders: Sequence[str]) -> bool:
    place = os.path.realpath(path)
    return any(place == folder or place.startswith(f"{folder}/") for folder in folders)
