"""`index.lock` and HEAD of the user's repository: locked as git does it, on the disk in time.

What is in a lock is on the disk before the lock has its name, and its removal before a record says
that all is done: a power cut leaves a lock that the next command knows as ours, or none. What git
itself has left there before the machine was started is removed if it is empty; else it is told, as
git tells it.
HEAD is written here, as git does not sync it when it comes to stand for another branch: a power cut
could leave it empty, and without it there is no repository (ADR 0107).
"""

import errno
import os
import stat
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress

from cleveragents.domain.errors import RepositoryBusyError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.descriptors import opened
from cleveragents.infrastructure.files.durable_files import read_file, remove, status
from cleveragents.infrastructure.sandbox.git.repository.ref_locks import is_from_before_start
from cleveragents.infrastructure.sandbox.in_place.git_reading import INDEX, INDEX_LOCK
from cleveragents.infrastructure.sandbox.in_place.git_there import HEAD, git_folder

_LOCK, _READY = INDEX_LOCK, "cleveragents-index"
_HEAD_LOCK, _HEAD_READY = "HEAD.lock", "cleveragents-head"
_OURS = b"cleveragents\n"
_TRIES, _PAUSE_SECONDS = 100, 0.1
# Where a file cannot have a second name.
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def refuse_busy(resource: PlanResource) -> None:
    """Raise RepositoryBusyError if the index is locked, and stays so."""
    gitdir = git_folder(resource.location)
    lock = os.path.join(gitdir, _LOCK)
    for _ in range(_TRIES // 2):
        if _is_nobodys(lock) or read_file(gitdir, _LOCK) == _OURS:
            return
        time.sleep(_PAUSE_SECONDS)
    raise RepositoryBusyError(resource.location, lock)


def refuse_locked(resource: PlanResource, refs: Iterable[str]) -> None:
    """The same for references that are to be moved, HEAD, and what is packed."""
    gitdir, tries = git_folder(resource.location), _TRIES // 2
    for lock in (f"{name}.lock" for name in (*refs, HEAD, "packed-refs")):
        while _is_somebodys(gitdir, lock):
            tries -= 1
            if tries < 0:
                raise RepositoryBusyError(resource.location, os.path.join(gitdir, lock))
            time.sleep(_PAUSE_SECONDS)


def _is_somebodys(gitdir: str, lock: str) -> bool:
    found = status(gitdir, lock)
    return found is not None and not (stat.S_ISREG(found.st_mode) and is_from_before_start(found))


def clear_ours(gitdir: str) -> None:
    """What a kill of ours has left; nobody else of ours can be at work here."""
    own = [_LOCK] if read_file(gitdir, _LOCK) == _OURS else []
    if _same_file(os.path.join(gitdir, _HEAD_READY), os.path.join(gitdir, _HEAD_LOCK)):
        own.append(_HEAD_LOCK)
    for name in (*own, _READY, _HEAD_READY, f"{INDEX}.cleveragents-tmp"):
        remove(gitdir, name)  # whatever it is by now, and never through a link


@contextmanager
def index_locked(resource: PlanResource, refs: Iterable[str]) -> Generator[None]:
    """Nobody's git changes the index meanwhile. Where these references, HEAD and the index are is
    on the disk in the end."""
    gitdir = git_folder(resource.location)
    _take(resource, gitdir)
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(gitdir, _LOCK))
        _sync_folders({gitdir, *(os.path.dirname(os.path.join(gitdir, ref)) for ref in refs)})


def write_head(resource: PlanResource, head: str) -> None:
    """Inside of `index_locked`. Raises RepositoryBusyError if somebody else is about to."""
    gitdir = git_folder(resource.location)
    lock, ready = os.path.join(gitdir, _HEAD_LOCK), os.path.join(gitdir, _HEAD_READY)
    _write_synced(ready, os.fsencode(f"{head}\n"), mode_of(gitdir, HEAD))
    try:
        _link(resource, ready, lock)
        os.replace(lock, os.path.join(gitdir, HEAD))
    finally:
        os.unlink(ready)


def mode_of(gitdir: str, name: str) -> int:
    found = status(gitdir, name)
    return found.st_mode & 0o777 if found and stat.S_ISREG(found.st_mode) else 0o644


def _take(resource: PlanResource, gitdir: str) -> None:
    lock, ready = os.path.join(gitdir, _LOCK), os.path.join(gitdir, _READY)
    _write_synced(ready, _OURS, mode_of(gitdir, INDEX))
    try:
        _link(resource, ready, lock)
    finally:
        os.unlink(ready)


def _link(resource: PlanResource, ready: str, lock: str) -> None:
    """By a link: whoever finds the lock finds by its content whose it is, after a power cut too."""
    for _ in range(_TRIES):
        with suppress(FileExistsError):
            _name(ready, lock)
            return
        if not _is_nobodys(lock):
            time.sleep(_PAUSE_SECONDS)
    raise RepositoryBusyError(resource.location, lock)


def _name(ready: str, lock: str) -> None:
    try:
        os.link(ready, lock)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A kill within this leaves a lock that is not whole, which the next command names.
        with open(ready, "rb") as file:
            _write_synced(lock, file.read(), stat.S_IMODE(os.fstat(file.fileno()).st_mode))


def _write_synced(path: str, data: bytes, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _same_file(one: str, other: str) -> bool:
    try:
        return os.path.samestat(os.lstat(one), os.lstat(other))
    except OSError:
        return False


def _is_nobodys(lock: str) -> bool:
    """Whether there is none, or one that git had made when the power went, and had not written to
    yet: whoever made it is gone. Such a one is removed."""
    try:
        found = os.lstat(lock)
    except OSError:
        return True
    if found.st_size or not is_from_before_start(found):
        return False
    with suppress(FileNotFoundError):
        os.unlink(lock)
    return True


def _sync_folders(folders: Iterable[str]) -> None:
    """Names that git gives are not synced by it, and records may be on another file system."""
    for folder in folders:
        with suppress(FileNotFoundError), opened(folder, _FOLDER) as fd:
            os.fsync(fd)
