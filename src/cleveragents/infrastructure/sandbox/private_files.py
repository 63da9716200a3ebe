"""Owns reading and writing files of ours in a folder where a step may have planted links."""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress


def read_file(path: str) -> bytes | None:
    """The bytes of a regular file; None if there is none. No link is followed."""
    try:
        # Not blocking: a pipe without a writer would wait for ever.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        with open(fd, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(fd)


def write_file(path: str, data: bytes, mode: int = 0o600, *, synced: bool = True) -> None:
    """Replace the whole file in one step that, if it is `synced`, survives a crash."""
    temporary = path + ".cleveragents-tmp"
    with suppress(FileNotFoundError):
        os.unlink(temporary)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        if synced:
            os.fsync(fd)
    os.replace(temporary, path)
    if synced:
        _sync_folder(os.path.dirname(path))


def _sync_folder(path: str) -> None:
    folder_fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder_fd)
    finally:
        os.close(folder_fd)


def put_file(top: str, name: str, data: bytes, mode: int = 0o644, *, synced: bool = True) -> None:
    """Make `name` below `top` this file, whatever is there or on the way instead."""
    make_folder(top, os.path.dirname(name))
    path = os.path.join(top, name)
    if _is_folder(path):
        remove(path)
    write_file(path, data, mode, synced=synced)


def remove(path: str) -> None:
    """Whatever it is; no link is followed."""
    if _is_folder(path):
        shutil.rmtree(path)
        return
    with suppress(FileNotFoundError):
        os.unlink(path)


def make_folder(top: str, name: str) -> None:
    """Real folders all the way: a link in their place would lead out of `top`."""
    path = top
    for part in ("", *filter(None, name.split("/"))):
        path = os.path.join(path, part) if part else path
        if not _is_folder(path):
            remove(path)
            os.mkdir(path, 0o700)


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


def below(top: str, folder: str) -> Iterator[str]:
    """Everything below a folder that is no folder itself, relative to `top`."""
    try:
        with os.scandir(os.path.join(top, folder)) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in found:
        name = f"{folder}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from below(top, name)
        else:
            yield name


def remove_empty_folders(top: str) -> None:
    for folder, _, _ in os.walk(top, topdown=False):
        with suppress(OSError):
            os.rmdir(folder)
