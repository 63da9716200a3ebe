"""Owns the command line of bubblewrap that gives a command the same view as our own means."""

from collections.abc import Sequence


def wrapped(
    bwrap: str, argv: Sequence[str], writable: Sequence[str], folder: str, filter_fd: int | None
) -> list[str]:
    """`filter_fd` None: with the network."""
    view = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for path in writable:
        view += ["--bind", path, path]
    network = [] if filter_fd is None else ["--unshare-net", "--seccomp", str(filter_fd)]
    apart = ["--unshare-pid", "--unshare-ipc", "--die-with-parent", "--new-session"]
    return [bwrap, *view, *apart, *network, "--chdir", folder, "--", *argv]
