"""Changing a tree on disk so that some of its paths become what a snapshot says."""

import errno
import os
import stat
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from cleveragents.infrastructure.files.entry import Entry, Kind
from cleveragents.infrastructure.files.excludes import Excludes
from cleveragents.infrastructure.files.filesystems import sync_all
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.snapshots.tree.restore.staging import Staging

# Up to this many paths are made durable one by one; more of them, by one call for the whole file
# system, which also waits for what others have written to it.
FEW = 16
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
        self._touched: set[bytes] = set()
        self._staged: dict[bytes, str] = {}
        self._files: list[int] = []
        self._many = False

    def apply(self, wanted: Mapping[bytes, Entry | None]) -> None:
        """All of it is durable at the end, and not before (ADR 0014)."""
        try:
            self._apply(wanted)
        finally:
            self._close_files()

    def _apply(self, wanted: Mapping[bytes, Entry | None]) -> None:
        """Removals deepest first, folders from the top, files and links, folder modes last."""
        self._many = len(wanted) > FEW
        self._stage([e for e in wanted.values() if e is not None and e.kind is Kind.FILE])
        for path in sorted(filter(lambda p: _needs_room(wanted[p]), wanted), key=_depth)[::-1]:
            self._clear(path, wanted[path])
        entries = [entry for entry in wanted.values() if entry is not None]
        folders = sorted((e for e in entries if e.kind is Kind.DIR), key=lambda e: _depth(e.path))
        for entry in folders:
            self._make_folder(entry)
        for entry in sorted(entries, key=lambda e: e.path):
            if entry.kind is Kind.FILE:
                self._put_file(entry)
            elif entry.kind is Kind.LINK:
                self._put_link(entry)
        self._sync()
        self._set_modes(folders)
        if self._many:
            sync_all(self._anchor.folder(b""))

    def _stage(self, files: Sequence[Entry]) -> None:
        """Give each its own file, outside of the sandbox, that only has to be moved."""
        uses = Counter(entry.hash for entry in files)
        for entry in files:
            uses[entry.hash] -= 1
            fd, name = self._staging.open(entry.hash)
            if uses[entry.hash]:
                os.close(fd)
                fd, name = self._staging.new_copy(name, self._staging.fd)
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
        time = self._times.get(entry.mtime_ns, entry.mtime_ns)
        os.utime(fd, ns=(time, time))

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
        self._touched.add(path.rpartition(b"/")[0])

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
        self._touched.add(entry.path.rpartition(b"/")[0])

    def _put_file(self, entry: Entry) -> None:
        folder, name = self._anchor.place(entry.path)
        staged = self._staged[entry.path]
        try:
            os.rename(staged, name, src_dir_fd=self._staging.fd, dst_dir_fd=folder)
        except IsADirectoryError:
            self._clear(entry.path, entry)
            folder, name = self._anchor.place(entry.path)
            os.rename(staged, name, src_dir_fd=self._staging.fd, dst_dir_fd=folder)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            # Another file system: only a neighbour can be moved into place in one step.
            self._clear(entry.path, entry)
            folder, name = self._anchor.place(entry.path)
            self._move_copy(entry, staged, folder, name)
        self._touched.add(entry.path.rpartition(b"/")[0])

    def _move_copy(self, entry: Entry, staged: str, folder: int, name: bytes) -> None:
        fd, temporary = self._staging.new_copy(staged, folder)
        try:
            self._finish(fd, entry)
            os.fsync(fd)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.unlink(temporary, dir_fd=folder)
            raise
        finally:
            os.close(fd)

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

    def _put_link(self, entry: Entry) -> None:
        folder, name = self._anchor.place(entry.path)
        temporary = b"link"
        os.symlink(entry.target, temporary, dir_fd=self._staging.fd)
        try:
            os.rename(temporary, name, src_dir_fd=self._staging.fd, dst_dir_fd=folder)
        except OSError as error:
            os.unlink(temporary, dir_fd=self._staging.fd)
            if error.errno != errno.EXDEV:
                raise
            self._replace_by_link(entry.target, folder, name)
        self._touched.add(entry.path.rpartition(b"/")[0])

    @staticmethod
    def _replace_by_link(target: bytes, folder: int, name: bytes) -> None:
        temporary = b".cleveragents-link"
        try:
            os.symlink(target, temporary, dir_fd=folder)
        except FileExistsError:
            os.unlink(temporary, dir_fd=folder)
            os.symlink(target, temporary, dir_fd=folder)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)

    def _set_modes(self, folders: Iterable[Entry]) -> None:
        modes = {entry.path: entry.mode for entry in folders}
        final = {**self._anchor.opened_modes, **modes}
        # Deepest first: a parent that is closed again would be in the way of its children.
        for path in sorted(final, key=_depth, reverse=True):
            fd = self._anchor.folder(path)
            os.fchmod(fd, final[path])
            if not self._many:
                os.fsync(fd)
            self._anchor.close_chain()
        self._anchor.opened_modes.clear()

    def _sync(self) -> None:
        if self._many:
            return  # once for all, at the end
        for fd in self._files:
            os.fsync(fd)
        for path in self._touched:
            self._sync_folder(path)

    def _sync_folder(self, path: bytes) -> None:
        try:
            os.fsync(self._anchor.folder(path))
        except (FileNotFoundError, NotADirectoryError):
            return  # removed itself later on; its parent is in the list then


def _needs_room(entry: Entry | None) -> bool:
    """A file takes the place of anything but a folder in one move, and that is found out then."""
    return entry is None or entry.kind is not Kind.FILE


def _depth(path: bytes) -> int:
    return path.count(b"/") + 1 if path else 0
