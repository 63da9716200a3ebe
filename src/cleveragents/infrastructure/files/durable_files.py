"""Reading and writing files of ours in a folder where a step may have planted links.

Every folder on the way is opened by itself, from `top` on, and none of them through a link.
"""

import errno
import os
import stat
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO

from cleveragents.infrastructure.files.descriptors import opened

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A folder that is ours alone, wherever the user has put it.
_OURS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Not blocking: a pipe without a writer would wait for ever.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_TEMPORARY = ".cleveragents-tmp"


def read_file(top: str, name: str) -> bytes | None:
    """The bytes of a regular file below `top`; None if there is none."""
    try:
        with _folder_of(top, name) as (folder, last):
            fd = os.open(last, _FILE, dir_fd=folder)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        with open(fd, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(fd)


@contextmanager
def opened_file(top: str, name: str) -> Generator[IO[bytes]]:
    """To be read piece by piece. Raises OSError if it is not a regular file below `top`."""
    with _folder_of(top, name) as (folder, last):
        fd = os.open(last, _FILE, dir_fd=folder)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", name)
        yield file


def status(top: str, name: str) -> os.stat_result | None:
    """Of what is there, be it a link; None if nothing is, or only by way of a link."""
    try:
        with _folder_of(top, name) as (folder, last):
            return os.stat(last, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None


def link_target(top: str, name: str) -> bytes:
    with _folder_of(top, name) as (folder, last):
        return os.fsencode(os.readlink(last, dir_fd=folder))


def write_file(path: str, data: bytes, mode: int = 0o600, *, synced: bool = True) -> None:
    """Replace the whole file in one step that, if it is `synced`, survives a crash."""
    top, name = os.path.split(path)
    with opened(top, _OURS) as folder:
        _write(folder, name, data, mode, synced=synced)


def put_file(top: str, name: str, data: bytes, mode: int = 0o644, *, synced: bool = True) -> None:
    """Make `name` below `top` this file, whatever is there or on the way instead."""
    make_folder(top, os.path.dirname(name))
    with _folder_of(top, name) as (folder, last):
        if _is_folder(folder, last):
            _remove(folder, last)
        _write(folder, last, data, mode, synced=synced)


def put_link(top: str, name: str, target: bytes) -> None:
    make_folder(top, os.path.dirname(name))
    with _folder_of(top, name) as (folder, last):
        _remove(folder, last)
        os.symlink(target, os.fsencode(last), dir_fd=folder)


def remove(top: str, name: str) -> None:
    """Whatever it is. What can be reached only by a link is not there."""
    with suppress(FileNotFoundError, NotADirectoryError), _folder_of(top, name) as (folder, last):
        _remove(folder, last)


def put_below(top: str, name: str, data: bytes, mode: int = 0o644) -> None:
    """As `put_file`, where `top` is not ours to make: raises OSError unless it is a folder."""
    with opened(top, _FOLDER) as root:
        *above, last = name.split("/")
        folder = _made(root, above)
        try:
            if _is_folder(folder, last):
                _remove(folder, last)
            _write(folder, last, data, mode, synced=True)
        finally:
            os.close(folder)


def make_folder(top: str, name: str) -> None:
    """Real folders all the way: a link in their place would lead out of `top`."""
    parent, last = os.path.split(top.rstrip("/"))
    with opened(parent, _OURS) as fd:
        os.close(_made(fd, (last, *filter(None, name.split("/")))))


def _made(root: int, parts: Iterable[str]) -> int:
    """A descriptor of the last of these, each in the one before."""
    folder = os.dup(root)
    try:
        for part in parts:
            if not _is_folder(folder, part):
                _remove(folder, part)
                os.mkdir(part, 0o700, dir_fd=folder)
            inner = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
    except BaseException:
        os.close(folder)
        raise
    return folder


def below(top: str, folder: str) -> Iterator[str]:
    """Everything below a folder that is no folder itself, relative to `top`."""
    return (name for name, _ in kinds_below(top, folder))


def kinds_below(top: str, start: str) -> Iterator[tuple[str, bool]]:
    """The same, each with whether it is a regular file."""
    waiting = [(start, True, False)]
    while waiting:
        name, is_folder, is_file = waiting.pop()
        if is_folder:  # not by calling itself: who plants folders may plant thousands of them
            inner = reversed(_listed(top, name))
            waiting += ((f"{name}/{last}", folder, file) for last, folder, file in inner)
        else:
            yield name, is_file


def kinds_in(top: str, folder: str = ".") -> Iterator[tuple[str, bool]]:
    """What lies in a folder itself, each with whether it is a regular file or a folder."""
    return ((name, is_folder or is_file) for name, is_folder, is_file in _listed(top, folder))


def remove_empty_folders(top: str, name: str) -> None:
    for inner, is_folder, _ in _listed(top, name):
        if is_folder:
            remove_empty_folders(top, f"{name}/{inner}")
    with suppress(OSError), _folder_of(top, name) as (folder, last):
        os.rmdir(last, dir_fd=folder)


def _listed(top: str, folder: str) -> list[tuple[str, bool, bool]]:
    """Name by name, whether it is a folder, and whether a file; empty if it cannot be reached."""
    try:
        with _folder_of(top, f"{folder}/.") as (fd, _), os.scandir(fd) as entries:
            return sorted(
                (e.name, e.is_dir(follow_symlinks=False), e.is_file(follow_symlinks=False))
                for e in entries
            )
    except OSError:
        return []


@contextmanager
def _folder_of(top: str, name: str) -> Generator[tuple[int, str]]:
    """The folder that holds `name`, and its name in there. Raises OSError where a link is in the
    way."""
    *parts, last = name.split("/")
    fd = os.open(top, _FOLDER)
    try:
        for part in parts:
            inner = os.open(part, _FOLDER, dir_fd=fd)
            os.close(fd)
            fd = inner
        yield fd, last
    finally:
        os.close(fd)


def _write(folder: int, name: str, data: bytes, mode: int, *, synced: bool) -> None:
    temporary = name + _TEMPORARY
    _remove(folder, temporary)
    fd = os.open(temporary, _NEW, mode, dir_fd=folder)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        if synced:
            os.fsync(fd)
    os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    if synced:
        os.fsync(folder)


def _remove(folder: int, name: str) -> None:
    if _is_folder(folder, name):
        import shutil  # noqa: PLC0415 - hardly ever a folder is in the way

        shutil.rmtree(name, dir_fd=folder)
        return
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _is_folder(folder: int, name: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False
