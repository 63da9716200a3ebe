"""Copying a sandbox that nobody writes to, fast, with proof of what each copy was made from.

Other than `tree_copy`, which copies what is the user's and may change meanwhile, nothing is tried
again here: whatever does not go smoothly is an OSError, and the caller copies the careful way.
Many files are spread over processors, by helper processes (ADR 0026): threads would wait for each
other, as what they do is mostly system calls too short to be worth a change of thread.
In which order: folders and links, by us; plain files, by whoever is free; what is not plain, by us;
closed folders; modes and times of folders, from the inside out. A proof has the marks of original
and copy, taken together; what has none is read by the next look (`tree/inherit.py`).
"""

import marshal
import os
import stat
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress

from msgspec import Struct, field

from cleveragents.infrastructure.files.copy import copy_worker as plain_copy
from cleveragents.infrastructure.files.copy.clone_bytes import ByteCopy
from cleveragents.infrastructure.files.copy.copy_proof import CopyProof, proof_of_copy
from cleveragents.infrastructure.files.copy.copy_worker import NUMBER, Done, Job, Order, PlainCopy
from cleveragents.infrastructure.files.copy.one_file import dress
from cleveragents.infrastructure.files.copy.tree_copy import FolderCopy
from cleveragents.infrastructure.files.descriptors import opened
from cleveragents.infrastructure.files.excludes import Excludes
from cleveragents.infrastructure.files.layers.overlay_marks import (
    is_opaque,
    is_whiteout,
    make_whiteout,
    set_opaque,
)
from cleveragents.infrastructure.files.rooted_folder import RootedFolder

_JOB = 200
_NEVER_BY_OPEN = 0o7000
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class BranchCopy(Struct):
    """`hidden` names at the top are left out. Gives the marks of every path in the end."""

    source: bytes
    target: bytes
    hidden: frozenset[bytes]
    marks: dict[bytes, CopyProof] = field(default_factory=dict[bytes, CopyProof])
    _bytes: ByteCopy = field(default_factory=ByteCopy)
    _folders: list[tuple[bytes, os.stat_result]] = field(
        default_factory=list[tuple[bytes, os.stat_result]]
    )
    _jobs: list[Job] = field(default_factory=list[Job])
    # Folders that their owner may not list, or not look into.
    _closed: list[bytes] = field(default_factory=list[bytes])

    def run(self) -> dict[bytes, CopyProof]:
        """The empty folder `target` becomes a copy. Raises OSError or SandboxError."""
        waiting = [b""]
        while waiting:
            waiting += self._make_folders(waiting.pop())
        self._copy_files()
        self._copy_closed()
        self._dress_folders()
        return self.marks

    def _make_folders(self, folder: bytes) -> list[bytes]:
        """Those in it, and the links; files become jobs."""
        try:
            source = os.open(os.path.join(self.source, folder), _FOLDER)
        except PermissionError:
            self._closed.append(folder)
            return []
        try:
            found = os.fstat(source)
            if not found.st_mode & stat.S_IXUSR and os.geteuid():
                self._closed.append(folder)
                return []
            with opened(os.path.join(self.target, folder), _FOLDER) as target:
                self._folders.append((folder, found))
                set_opaque(target, wanted=is_opaque(source))
                return self._make_entries(folder, source, target)
        finally:
            os.close(source)

    def _make_entries(self, folder: bytes, source: int, target: int) -> list[bytes]:
        prefix = folder + b"/" if folder else b""
        folders: list[bytes] = []
        files: list[bytes] = []
        # By its path, as names are bytes then.
        with os.scandir(os.path.join(self.source, folder)) as entries:
            found = list(entries)
        for entry in found:
            name = entry.name
            if not folder and name in self.hidden:
                continue
            if entry.is_file(follow_symlinks=False):
                files.append(name)
            elif entry.is_dir(follow_symlinks=False):
                os.mkdir(name, 0o700, dir_fd=target)
                folders.append(prefix + name)
            elif entry.is_symlink():
                self._note(prefix + name, _copy_link(name, source, target))
            elif is_whiteout(entry.stat(follow_symlinks=False)):
                make_whiteout(name, dir_fd=target)
        self._jobs += [(folder, files[i : i + _JOB]) for i in range(0, len(files), _JOB)]
        return folders

    def _copy_files(self) -> None:
        plain = PlainCopy(self.source, self.target, _umask_now() | _NEVER_BY_OPEN)
        for number, rows, left in copy_all(plain, self._jobs):
            folder = self._jobs[number][0]
            prefix = folder + b"/" if folder else b""
            for name, *marks in rows:
                self.marks[prefix + name] = CopyProof._make(marks)
            self._copy_rest(folder, left)

    def _copy_rest(self, folder: bytes, names: Sequence[bytes]) -> None:
        """Files that are large, have holes, belong to somebody else or are closed."""
        if not names:
            return
        with RootedFolder(self.source, sandbox=True) as source:
            for name in names:
                path = os.path.join(folder, name)
                one = source.open(path)
                try:
                    self._note(path, self._copy_file(one, os.path.join(self.target, path)))
                finally:
                    os.close(one)

    def _copy_closed(self) -> None:
        """Without marks: the next look at the copy reads what is in them."""
        if not self._closed:
            return
        with RootedFolder(self.source, sandbox=True) as source, RootedFolder(self.target) as target:
            copy = FolderCopy(source, target, Excludes(hidden=self.hidden))
            for folder in self._closed:
                copy.run(folder)

    def _copy_file(self, one: int, target: bytes) -> CopyProof | None:
        before = os.fstat(one)
        with opened(target, _NEW, 0o600) as two:
            self._bytes.copy(one, two, before)
            dress(two, before)
            return proof_of_copy(before, os.fstat(two))

    def _note(self, path: bytes, marks: CopyProof | None) -> None:
        if marks:
            self.marks[path] = marks

    def _dress_folders(self) -> None:
        """From the inside: filling a folder changes its time, and it may be closed to us then."""
        for folder, found in sorted(self._folders, reverse=True):
            path = os.path.join(self.target, folder)
            with opened(path, _FOLDER) as fd:
                dress(fd, found)
                if folder:
                    self._note(folder, proof_of_copy(found, os.fstat(fd)))


def _copy_link(name: bytes, source: int, target: int) -> CopyProof | None:
    found = os.lstat(name, dir_fd=source)
    os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
    times = (found.st_atime_ns, found.st_mtime_ns)
    os.utime(name, ns=times, dir_fd=target, follow_symlinks=False)
    return proof_of_copy(found, os.lstat(name, dir_fd=target))


def _umask_now() -> int:
    """What the system takes from the mode of a new file; asking by `os.umask` would change it."""
    with suppress(OSError), open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    return 0o777


# --- helper processes -----------------------------------------------------------------------------

# Below, a helper would hardly begin before all is done.
ENOUGH = 800
_MOST = 3
# What fits into a pipe at once, so that filling it does not wait for a reader.
_PIPE = 65536 // NUMBER

_Helper = subprocess.Popen[bytes]


def copy_all(plain: PlainCopy, jobs: list[Job]) -> list[Done]:
    """Do all jobs, each by whoever is free first. Raises OSError."""
    files = sum(len(names) for _, names in jobs)
    wanted = min(_MOST, len(os.sched_getaffinity(0)) - 1, files // ENOUGH)
    if not wanted or len(jobs) > _PIPE:
        return [(number, *plain.copy(job)) for number, job in enumerate(jobs)]
    with _numbers(len(jobs)) as numbers, _helpers(wanted, plain, jobs, numbers) as helpers:
        done = plain.run(jobs, numbers, for_process=None)
        for helper in helpers:
            done += _answer(helper)
    if len(done) != len(jobs):
        raise OSError("a helper that copies files has stopped before its end")
    return done


@contextmanager
def _numbers(count: int) -> Generator[int]:
    """A pipe with the numbers of all jobs in it: whoever reads one has that job."""
    reading, writing = os.pipe()
    try:
        try:
            os.write(writing, b"".join(n.to_bytes(NUMBER, "big") for n in range(count)))
        finally:
            os.close(writing)
        yield reading
    finally:
        os.close(reading)


@contextmanager
def _helpers(
    count: int, plain: PlainCopy, jobs: list[Job], numbers: int
) -> Generator[list[_Helper]]:
    # -I and -S: nothing of the user's is loaded, and it starts in half the time.
    argv = [sys.executable, "-I", "-S", plain_copy.__file__]
    started: list[_Helper] = []
    try:
        with _order((*plain.order, numbers, os.getpid(), jobs)) as order:
            for _ in range(count):
                started.append(_start(argv, order, numbers))
        yield started
    finally:
        for helper in started:
            with helper:  # its end is waited for: it must not write behind our back
                helper.kill()


@contextmanager
def _order(told: Order) -> Generator[int]:
    """In a file, as a pipe would make us wait until its reader is there."""
    fd = os.memfd_create("order", os.MFD_CLOEXEC)
    try:
        with os.fdopen(fd, "wb", closefd=False) as file:
            marshal.dump(told, file)
        yield fd
    finally:
        os.close(fd)


def _start(argv: Sequence[str], order: int, numbers: int) -> _Helper:
    return subprocess.Popen(
        argv,
        stdin=order,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        pass_fds=[numbers],
    )


def _answer(helper: _Helper) -> list[Done]:
    output, _ = helper.communicate()
    try:
        done: list[Done] = marshal.loads(output)
    except (EOFError, ValueError, TypeError) as error:
        raise OSError(f"a helper that copies files ended with {helper.returncode}") from error
    return done
