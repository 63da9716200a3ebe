"""Waiting for the disk beside other work: what many paths were changed to is synced while it is
read back."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from threading import Thread

from cleveragents.infrastructure.files.filesystems import sync_all
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.files.update.rooted_writer import FEW, Sync


def first_sync_of(count: int) -> Sync:
    """What is durable when so many paths were written; the rest is `durable_beside`'s."""
    return Sync.EACH if count <= FEW else Sync.BESIDE


@contextmanager
def durable_beside(anchor: RootedFolder, count: int) -> Generator[None]:
    """All that was written to the sandbox before this is durable when it ends. Raises OSError."""
    if count <= FEW:
        yield
        return
    failed: list[OSError] = []
    root = os.dup(anchor.folder(b""))

    def sync() -> None:
        try:
            sync_all(root)
        except OSError as error:
            failed.append(error)

    thread = Thread(target=sync, name="sync")
    try:
        thread.start()
        try:
            yield
        finally:
            thread.join()
    finally:
        os.close(root)
    if failed:
        raise failed[0]
