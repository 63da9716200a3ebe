"""Changing references of the user's repository past locks that a crash has left on them.

Git writes the new value into NAME.lock, syncs it and renames it. A power cut in between leaves it
there, and every later change of that name is refused, by the user's own git too. What was left is
known by what it holds, a commit of ours, or by its time: nobody lives that made it before the
machine was started.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress

from cleveragents.infrastructure.clock import machine_started_ns
from cleveragents.infrastructure.sandbox.git.command import Git, GitError


def change_ref(git: Git, ref: str, commit: str, *words: str, told: bytes = b"") -> None:
    """`git update-ref` with these words, which concern `ref` and `commit`."""
    try:
        git.run("update-ref", *words, input=told)
    except GitError:
        if not _cleared(git, ref, commit):
            raise
        git.run("update-ref", *words, input=told)


def clear_old_locks(gitdir: str, refs: Iterable[str]) -> None:
    """Of these references, HEAD and what is packed: locks from before the machine was started."""
    for name in (*refs, "HEAD", "packed-refs"):
        lock = os.path.join(gitdir, f"{name}.lock")
        if _is_left(lock, ""):
            os.unlink(lock)


def is_from_before_start(found: os.stat_result) -> bool:
    """Whether the machine was started since the file was written."""
    return found.st_mtime_ns < machine_started_ns()


def _cleared(git: Git, ref: str, commit: str) -> bool:
    """Whether there were locks that nobody holds any more."""
    left = [path for path in _locks(git, ref) if _is_left(path, commit)]
    for path in left:
        os.unlink(path)
    return bool(left)


def _locks(git: Git, ref: str) -> Iterator[str]:
    """A change of a branch also locks the HEAD that is on it; a deletion what is packed."""
    common = git.text("rev-parse", "--path-format=absolute", "--git-common-dir")
    own = git.text("rev-parse", "--absolute-git-dir")
    for path in (f"{common}/{ref}", f"{own}/HEAD", f"{common}/packed-refs"):
        if os.path.isfile(f"{path}.lock"):
            yield f"{path}.lock"


def _is_left(path: str, commit: str) -> bool:
    with suppress(FileNotFoundError, NotADirectoryError), open(path, "rb") as file:
        ours = bool(commit) and file.read(200).strip() == commit.encode()
        return ours or is_from_before_start(os.fstat(file.fileno()))
    return False
