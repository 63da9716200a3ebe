"""Copying many plain files fast, in this process and in helpers that run this file by itself.

Only modules that every Python has loaded anyway: a helper has to be at work within milliseconds.
What is not plain (large, with holes, of another owner, closed to its owner) is named, and left to
the caller.
"""

import errno
import fcntl
import marshal
import os
import sys

Job = tuple[bytes, list[bytes]]
"""A folder below the source, and names of files in it."""
Row = tuple[bytes, int, int, int, int, int, int, int, int, int, int, int]
"""A name, and what `adoption.Marks` says of its copy."""
Done = tuple[int, list[Row], list[bytes]]
"""The number of a job, the copies made for it, and the names that were left."""

Order = tuple[bytes, bytes, int, int, int, list[Job]]
"""What a helper is told: source, target, unsure bits, the pipe of numbers, for whom, all jobs."""

NUMBER = 4
_SMALL = 256 * 1024
_BLOCK = 512
FICLONE = 0x40049409
CANNOT = {
    errno.EOPNOTSUPP,
    errno.ENOTTY,
    errno.EINVAL,
    errno.EXDEV,
    errno.ENOSYS,
    errno.EPERM,
    errno.EBADF,
}
"""How a file system says that it cannot do a thing, which is no failure."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class PlainCopy:
    """`unsure` are the bits of a mode that a new file does not get by being made with them."""

    def __init__(self, source: bytes, target: bytes, unsure: int) -> None:
        self.order = (source, target, unsure)
        """What another process needs to do the same."""
        self._source, self._target, self._unsure = self.order
        self._we = (os.geteuid(), os.getegid())
        self._shares = True

    def run(self, jobs: list[Job], numbers: int, *, for_process: int | None) -> list[Done]:
        """Those whose numbers come out of the pipe `numbers`, which others read from too.

        No more of them once `for_process` is not our parent: it is gone then, and somebody may be
        about to make its sandbox anew.
        """
        done: list[Done] = []
        while for_process in (None, os.getppid()) and (number := os.read(numbers, NUMBER)):
            index = int.from_bytes(number, "big")
            done.append((index, *self.copy(jobs[index])))
        return done

    def copy(self, job: Job) -> tuple[list[Row], list[bytes]]:
        """Raises OSError."""
        folder, names = job
        source = os.open(os.path.join(self._source, folder), _FOLDER)
        try:
            target = os.open(os.path.join(self._target, folder), _FOLDER)
            try:
                rows = [self._file(name, source, target) for name in names]
            finally:
                os.close(target)
        finally:
            os.close(source)
        left = [name for name, row in zip(names, rows, strict=True) if row is None]
        return [row for row in rows if row], left

    def _file(self, name: bytes, source: int, target: int) -> Row | None:
        """One function for all of it, as calling others for every file would show."""
        try:
            one = os.open(name, _READ, dir_fd=source)
        except PermissionError:
            return None
        try:
            found = os.fstat(one)
            mode, size, time = found.st_mode, found.st_size, found.st_mtime_ns
            owners = (found.st_uid, found.st_gid)
            if size > _SMALL or found.st_blocks * _BLOCK < size or owners != self._we:
                return None
            two = os.open(name, _NEW, mode & 0o777, dir_fd=target)
            try:
                if size and not (self._shares and self._share(one, two)):
                    os.write(two, os.read(one, size))
                if mode & self._unsure:
                    os.fchmod(two, mode & 0o7777)
                os.utime(two, ns=(found.st_atime_ns, time))
                made = os.fstat(two)
            finally:
                os.close(two)
        finally:
            os.close(one)
        if (made.st_mode, made.st_size, made.st_mtime_ns) != (mode, size, time):
            raise OSError("a copy differs from what it was made of")
        return (
            *(name, mode, size, time, found.st_ctime_ns, found.st_ino, found.st_dev),
            *(made.st_ctime_ns, made.st_ino, made.st_dev, made.st_uid, made.st_gid),
        )

    def _share(self, one: int, two: int) -> bool:
        """Small ones too, where that is possible: they are most of what takes room."""
        try:
            fcntl.ioctl(two, FICLONE, one)
        except OSError as error:
            if error.errno not in CANNOT:
                raise
            self._shares = False  # it is tried once
            return False
        return True


def _help() -> None:
    """What to do is in the file that is the standard input; all helpers have the same one."""
    order = os.pread(0, os.fstat(0).st_size, 0)
    told: Order = marshal.loads(order)
    source, target, unsure, numbers, starter, jobs = told
    done = PlainCopy(source, target, unsure).run(jobs, numbers, for_process=starter)
    marshal.dump(done, sys.stdout.buffer)


if __name__ == "__main__":
    _help()
