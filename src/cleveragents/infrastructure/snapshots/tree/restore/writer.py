"""Changing a tree on disk so that some of its paths become what a snapshot says.

In which order: each file is made ready outside, with mode, owner and time; what is in the way goes,
deepest first; folders come, from the top; files and links take their places, each by one rename;
folder modes come last, as one may close the folder to us. All of it is durable at the end, or for
many paths once the caller has synced the file system.
Where many files change, those that nobody has open are written where they are (`in_place.py`).
Why: whoever opens a file gets the old one or the new one at any moment, and a folder is there
before what is in it.
What is not guaranteed: any order on disk before the end. A kill may leave a file half written, and
a power cut every mixture of old, new and missing; whoever restores again finds it out by looking.
"""

import errno
import os
import stat
from collections import Counter
from collections.abc import Mapping, Sequence

from cleveragents.infrastructure.files.entry import MODE_BITS, Entry, Kind
from cleveragents.infrastructure.files.excludes import Excludes
from cleveragents.infrastructure.files.filesystems import sync_all
from cleveragents.infrastructure.files.layers.overlay_marks import OPAQUE, make_whiteout, set_opaque
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.files.update.rooted_writer import (
    FEW,
    RootedWriter,
    Sync,
    depth,
    sync_of,
)
from cleveragents.infrastructure.snapshots.tree.restore.in_place import InPlaceWriter
from cleveragents.infrastructure.snapshots.tree.restore.staging import Staging

_LINK = b"link"
_SPECIAL_BITS = stat.S_ISUID | stat.S_ISGID


class TreeWriter:
    """Works through an anchor that opens folders up; every step may be repeated after a kill.

    `times` says which time a file gets in place of its own, if it is to have another.
    """

    def __init__(
        self,
        anchor: RootedFolder,
        staging: Staging,
        exclude: Excludes,
        times: Mapping[int, int] | None = None,
    ) -> None:
        self._anchor = anchor
        self._staging = staging
        self._exclude = exclude
        self._times = times or {}
        self._writer = RootedWriter(anchor, staging.fd)
        self._staged: dict[bytes, bytes] = {}
        self._files: list[int] = []
        self._many = False
        self._in_place = InPlaceWriter(anchor)

    def apply(self, wanted: Mapping[bytes, Entry | None], sync: Sync | None = None) -> None:
        """All of it is durable at the end, unless `sync` says otherwise (ADR 0014)."""
        try:
            self._apply(wanted, sync or sync_of(len(wanted)))
        finally:
            self._close_files()

    def _apply(self, wanted: Mapping[bytes, Entry | None], sync: Sync) -> None:
        """Removals deepest first, folders from the top, files and links, folder modes last."""
        self._many = len(wanted) > FEW
        files = [e for e in wanted.values() if e is not None and e.kind is Kind.FILE]
        self._stage([entry for entry in files if entry.hash not in self._staging.held])
        for path in sorted(filter(lambda p: _needs_room(wanted[p]), wanted), key=depth)[::-1]:
            self._clear(path, wanted[path])
        entries = [entry for entry in wanted.values() if entry is not None]
        folders = sorted((e for e in entries if e.kind is Kind.DIR), key=lambda e: depth(e.path))
        for entry in folders:
            self._make_folder(entry)
        for entry in sorted(entries, key=lambda e: e.path):
            if entry.kind is Kind.FILE:
                self._put_file(entry)
            elif entry.kind in (Kind.LINK, Kind.WHITEOUT):
                self._put_small(entry)
        for fd in self._files:
            os.fsync(fd)
        for entry in folders:
            set_opaque(self._anchor.folder(entry.path), wanted=bool(entry.mode & OPAQUE))
        modes = {entry.path: entry.mode & MODE_BITS for entry in folders}
        self._writer.finish(modes, sync)

    def _stage(self, files: Sequence[Entry]) -> None:
        """Give each its own file, outside of the sandbox, that only has to be moved."""
        uses = Counter(entry.hash for entry in files)
        for entry in files:
            uses[entry.hash] -= 1
            # The last one takes the file itself.
            fd, name = self._staging.open(entry.hash, copy=uses[entry.hash])
            self._files.append(fd)
            self._finish(fd, entry)
            self._staged[entry.path] = name
            if self._many:
                self._close_files()
        if files and self._many:
            # Written out together first: moving files one by one would write them one by one.
            sync_all(self._staging.fd)

    def _finish(self, fd: int, entry: Entry) -> None:
        os.fchmod(fd, self._own(fd, entry))
        time = self._time(entry)
        os.utime(fd, ns=(time, time))

    def _time(self, entry: Entry) -> int:
        return self._times.get(entry.mtime_ns, entry.mtime_ns)

    def _close_files(self) -> None:
        while self._files:
            os.close(self._files.pop())

    def _clear(self, path: bytes, entry: Entry | None) -> None:
        """Take away what is at `path` unless the new entry can replace it in one move."""
        try:
            folder, name = self._anchor.place(path)
            found = os.lstat(name, dir_fd=folder)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            if error.errno == errno.ELOOP:
                return  # a link is in the place of one of its folders: the path is not there
            raise
        is_folder = stat.S_ISDIR(found.st_mode)
        if entry is not None and is_folder == (entry.kind is Kind.DIR):
            return
        if is_folder:
            self._remove_folder(path, keep_excluded=entry is None)
        elif entry is None or entry.kind is Kind.DIR:
            os.unlink(name, dir_fd=folder)
        self._writer.touch(path)

    def _remove_folder(self, path: bytes, *, keep_excluded: bool) -> bool:
        """True if it is gone; it stays where something excluded is in it and may be kept."""
        empty = True
        with os.scandir(self._anchor.folder(path)) as found:
            inner = [(os.fsencode(e.name), e.is_dir(follow_symlinks=False)) for e in found]
        for name, is_folder in inner:
            child = path + b"/" + name
            if keep_excluded and (child, is_folder) in self._exclude:
                empty = False
            elif is_folder:
                empty = self._remove_folder(child, keep_excluded=keep_excluded) and empty
            else:
                os.unlink(name, dir_fd=self._anchor.folder(path))
        if empty:
            folder, name = self._anchor.place(path)
            os.rmdir(name, dir_fd=folder)
            self._anchor.opened_modes.pop(path, None)
        return empty

    def _make_folder(self, entry: Entry) -> None:
        folder, name = self._anchor.place(entry.path)
        try:
            os.mkdir(name, 0o700, dir_fd=folder)
        except FileExistsError:
            return
        self._own(self._anchor.folder(entry.path), entry)
        self._writer.touch(entry.path)

    def _put_file(self, entry: Entry) -> None:
        staged = self._staged.get(entry.path)
        if staged is None:
            data = self._staging.held[entry.hash]
            if self._in_place.write(entry, data, self._time(entry)):
                return
            staged = self._stage_held(entry)
        try:
            self._writer.move_in(staged, entry.path)
        except IsADirectoryError:
            self._clear(entry.path, entry)
            self._writer.move_in(staged, entry.path)

    def _stage_held(self, entry: Entry) -> bytes:
        """One that was to be written in place, and has to be replaced."""
        fd, name = self._staging.open_held(entry.hash, self._anchor.place(entry.path)[0])
        try:
            self._finish(fd, entry)
        finally:
            os.close(fd)
        return name

    def _own(self, fd: int, entry: Entry) -> int:
        """Give it to its owner where we may; the mode it may then have.

        Bits that lend the owner's rights are left out if the owner would be somebody else.
        """
        found = os.fstat(fd)
        if (found.st_uid, found.st_gid) == (entry.uid, entry.gid):
            return entry.mode
        try:
            os.fchown(fd, entry.uid, entry.gid)
        except OSError:
            return entry.mode & ~_SPECIAL_BITS
        return entry.mode

    def _put_small(self, entry: Entry) -> None:
        """A link, or a whiteout: all there is to it is its name in the staging folder."""
        if entry.kind is Kind.LINK:
            os.symlink(entry.target, _LINK, dir_fd=self._staging.fd)
        else:
            make_whiteout(_LINK, dir_fd=self._staging.fd)
        try:
            self._writer.move_in(_LINK, entry.path)
        except BaseException:
            os.unlink(_LINK, dir_fd=self._staging.fd)
            raise


def _needs_room(entry: Entry | None) -> bool:
    """A file takes the place of anything but a folder in one move, and that is found out then."""
    return entry is None or entry.kind is not Kind.FILE
