"""Owns the command line of bubblewrap that gives a command the same view as our own means."""

from collections.abc import Sequence

from cleveragents.infrastructure.confinement.places import Places


def wrapped(bwrap: str, argv: Sequence[str], places: Places, filter_fd: int | None) -> list[str]:
    """`filter_fd` None: with the network."""
    view = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for path in places.writable:
        view += ["--bind", path, path]
    for path in places.closed:
        view += ["--ro-bind", path, path]
    network = [] if filter_fd is None else ["--unshare-net", "--seccomp", str(filter_fd)]
    apart = ["--unshare-pid", "--unshare-ipc", "--die-with-parent", "--new-session"]
    return [bwrap, *view, *apart, *network, "--chdir", places.folder, "--", *argv]
