"""Opening what its owner has closed to himself, without changing its mode (ADR 0038).

A helper process does it, in a user namespace in which it may open whatever is its user's. It is
started when it is first needed, which for most trees is never; nor is what it takes loaded before.
"""


def open_closed(folder: int, name: bytes, flags: int) -> int:
    """As `os.open` of a name in a folder, for reading only; a link is not followed.

    Raises PermissionError where it is not ours either, or this machine allows no such helper.
    """
    from cleveragents.infrastructure.files.closed_opener import HELPERS  # noqa: PLC0415 - as said

    _, (fd,) = HELPERS.ask("open", name, flags, [folder])
    return fd


def watch_closed(queue: int, fd: int, mask: int) -> int:
    """As `inotify_add_watch` of what is open as `fd`. Raises OSError."""
    from cleveragents.infrastructure.files.closed_opener import HELPERS  # noqa: PLC0415 - as said

    number, _ = HELPERS.ask("watch", b"", mask, [queue, fd])
    return number
