"""The watched folders of one tree: which watch is which folder, and what was heard of them.

What: events become three sets: paths that were written to, paths with which anything else happened,
and folders that are to be looked through as a whole.
In which order: a file of our own is written, and the queue is read until its event comes: all that
happened before is in front of it. A folder that goes loses its watch and those below it, at once:
its name may be another folder's with the next event.
What is not guaranteed: events, if more happen than the queue holds. Then, and whenever the queue
does not answer, LostTrackError says that everything has to be compared.
"""

import errno
import os
import time
import weakref
from typing import Protocol

from cleveragents.infrastructure.files.entry import parent_of
from cleveragents.infrastructure.snapshots.changes import inotify
from cleveragents.infrastructure.snapshots.changes.inotify import Event, Inotify

_ENDS = inotify.IGNORED | inotify.UNMOUNT
_COMES_OR_GOES = inotify.CREATE | inotify.DELETE | inotify.MOVED_FROM | inotify.MOVED_TO

_NO_NEWS = inotify.DELETE_SELF | inotify.MOVE_SELF


class LostTrackError(Exception):
    """Something may have happened that was not heard of."""


class Queue(Protocol):
    """What is needed of Inotify."""

    def watch(self, fd: int, mask: int) -> int: ...
    def watch_below(self, fd: int, path: bytes, mask: int) -> int: ...
    def unwatch(self, wd: int) -> None: ...
    def read(self) -> list[Event]: ...
    def close(self) -> None: ...


class FolderWatches:
    """What was heard of, once `drain` is done: `folders` are to be looked through as a whole,
    `written` are paths that were written to, and `paths` those with which anything else happened.

    Nothing is looked at here while the queue is read: the events tell of the past, and only what
    is there after the last of them counts.
    """

    def __init__(self, queue: Queue, scratch_dir: str) -> None:
        self._queue = queue
        self._folders: dict[int, bytes] = {}
        self._watches: dict[bytes, int] = {}
        # Which are in which, from the moment on when that is needed.
        self._inner: dict[bytes, set[bytes]] | None = None
        self.paths: set[bytes] = set()
        self.written: set[bytes] = set()
        self.folders: set[bytes] = set()
        self._cookie = _nameless_file(scratch_dir)
        self._close_cookie = weakref.finalize(self, os.close, self._cookie)
        self._cookie_watch = queue.watch(self._cookie, inotify.MODIFY)

    def add(self, path: bytes, fd: int) -> None:
        """Watch a folder, before it is listed. Raises OSError."""
        wd = self._queue.watch(fd, inotify.FOLDER_EVENTS)
        before = self._folders.get(wd)
        if before is not None and before != path:
            # It was moved a moment ago; the events that say so are still to come.
            self._forget(before)
        self._note(path, wd)

    def add_below(self, root: int, path: bytes) -> None:
        """The same by name, which is faster. Raises OSError.

        Safe only if its parent was watched before: should a link be on the way, then the parent
        of that link tells when a folder takes its place.
        """
        wd = self._queue.watch_below(root, path, inotify.FOLDER_EVENTS)
        if self._folders.get(wd, path) != path:
            raise OSError(errno.ELOOP, "one folder is reached by two ways")
        self._note(path, wd)

    def __contains__(self, path: bytes) -> bool:
        return path in self._watches

    def _note(self, path: bytes, wd: int) -> None:
        self._folders[wd] = path
        self._watches[path] = wd
        if path and self._inner is not None:
            self._inner.setdefault(parent_of(path), set()).add(path)

    def drain(self) -> None:
        """Take in everything that happened before this call. Raises LostTrackError."""
        # Its event comes behind all that came before; without it something is wrong.
        os.pwrite(self._cookie, b"x", 0)
        while events := self._queue.read():
            arrived = False
            for event in events:
                wd, mask, name = event
                if wd == self._cookie_watch:
                    arrived = True
                elif mask == inotify.WRITTEN and name and (folder := self._folders.get(wd)):
                    # By far most of all that happens.
                    self.written.add(folder + b"/" + name)
                else:
                    self._hear(event)
            if arrived:
                return
        raise LostTrackError("the kernel's queue did not answer")

    def close(self) -> None:
        self._queue.close()
        self._close_cookie()

    def _hear(self, event: Event) -> None:
        if event.mask & inotify.OVERFLOW:
            raise LostTrackError("more happened at once than the kernel's queue holds")
        folder = self._folders.get(event.wd)
        if folder is None:
            return  # of a folder that went away, which its parent has told
        if event.mask & _ENDS:
            self._ended(folder)
        elif event.name:
            self._hear_of(folder + b"/" + event.name if folder else event.name, event.mask)
        elif not folder and event.mask & _NO_NEWS:
            raise LostTrackError("the sandbox itself was moved or removed")
        elif folder and not event.mask & _NO_NEWS:
            self.paths.add(folder)

    def _hear_of(self, path: bytes, mask: int) -> None:
        if not mask & ~inotify.WRITTEN:
            self.written.add(path)
            return
        if not (mask & inotify.IS_FOLDER and mask & _COMES_OR_GOES):
            self.paths.add(path)
            return
        if mask & (inotify.DELETE | inotify.MOVED_FROM):
            self._drop(path)
        # Whatever it is now; events inside of it were not heard as long as it was not watched.
        self.folders.add(path)

    def _ended(self, folder: bytes) -> None:
        if not folder:
            raise LostTrackError("the sandbox cannot be watched any more")
        self._drop(folder)
        self.folders.add(folder)

    def _drop(self, path: bytes) -> None:
        known = self._known_inner()
        for inner in tuple(known.get(path, ())):
            self._drop(inner)
        wd = self._watches.get(path)
        if wd is not None:
            self._queue.unwatch(wd)
            self._forget(path)
        known.pop(path, None)

    def _known_inner(self) -> dict[bytes, set[bytes]]:
        if self._inner is None:
            self._inner = {}
            for path in self._watches:
                if path:
                    self._inner.setdefault(parent_of(path), set()).add(path)
        return self._inner

    def _forget(self, path: bytes) -> None:
        wd = self._watches.pop(path, None)
        if wd is not None:
            self._folders.pop(wd, None)
        if self._inner is not None and (siblings := self._inner.get(parent_of(path))):
            siblings.discard(path)


def _nameless_file(folder: str) -> int:
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = f"{folder}/cookie-{os.getpid()}-{time.monotonic_ns()}"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    os.unlink(path)
    return fd


def open_watches(scratch_dir: str) -> FolderWatches:
    """Raises OSError where nothing can be watched."""
    queue = Inotify()
    try:
        return FolderWatches(queue, scratch_dir)
    except BaseException:
        queue.close()
        raise
